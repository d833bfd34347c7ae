//! The cost figures of a machine file, each with its source.
//!
//! `costs_from` takes the figures of a preset; figures in the file then override them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::cost_bounds::{check_numbers, check_relations};
use super::presets::{PRESETS, preset};
use crate::costs::Costs;
use crate::error::MachineError;

/// What a machine file says of costs; whatever else it says is not looked at.
#[derive(Deserialize)]
pub(crate) struct CostsOfFile {
    pub costs_from: Option<String>,
    #[serde(default)]
    pub costs: toml::Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    value: toml::Value,
    source: String,
}

/// The figures, and where each is from.
pub(crate) struct ReadCosts {
    pub figures: Costs,
    pub sources: BTreeMap<String, String>,
}

/// Those of a preset.
pub(crate) fn preset_costs(name: &str) -> ReadCosts {
    let (_, text) = preset(name).expect("only presets lend costs");
    of_preset(text).read().expect("presets are checked by the tests")
}

fn of_preset(text: &str) -> CostsOfFile {
    toml::from_str(text).expect("presets are checked by the tests")
}

impl CostsOfFile {
    pub(crate) fn read(&self) -> Result<ReadCosts, MachineError> {
        read_costs(&self.figures(0)?)
    }

    /// Whose costs the machine has.
    pub(crate) fn lender(&self) -> String {
        match (&self.costs_from, self.costs.len()) {
            (None, _) => "its own".to_string(),
            (Some(lender), 0) => format!("those of {lender}"),
            (Some(lender), own) => format!("those of {lender} and {own} of its own"),
        }
    }

    /// The file's own, over those of the preset named by `costs_from`. `depth` ends a circle of
    /// presets.
    fn figures(&self, depth: usize) -> Result<toml::Table, MachineError> {
        let mut figures = match &self.costs_from {
            None => toml::Table::new(),
            Some(lender) => borrowed_figures(lender, depth)?,
        };
        figures.extend(self.costs.clone());
        Ok(figures)
    }
}

fn borrowed_figures(lender: &str, depth: usize) -> Result<toml::Table, MachineError> {
    let Some((_, text)) = preset(lender).filter(|_| depth < PRESETS.len()) else {
        let problem = format!("`{lender}` is not a preset with costs of its own");
        return Err(MachineError::new("costs_from", problem));
    };
    of_preset(text).figures(depth + 1)
}

fn read_costs(figures: &toml::Table) -> Result<ReadCosts, MachineError> {
    let mut values = toml::Table::new();
    let mut sources = BTreeMap::new();
    for (name, figure) in figures {
        let place = format!("[costs] {name}");
        let figure: Figure = figure.clone().try_into().map_err(|error: toml::de::Error| {
            let problem =
                format!("{}; expected {{ value = ..., source = \"...\" }}", error.message());
            MachineError::new(&place, problem)
        })?;
        if figure.source.trim().is_empty() {
            return Err(MachineError::new(&place, "source is empty: say where the figure is from"));
        }
        check_numbers(name, &place, &figure.value)?;
        values.insert(name.clone(), figure.value);
        sources.insert(name.clone(), figure.source);
    }
    let figures = toml::Value::Table(values)
        .try_into()
        .map_err(|error: toml::de::Error| MachineError::new("[costs]", error.to_string()))?;
    check_relations(&figures)?;
    Ok(ReadCosts { figures, sources })
}
