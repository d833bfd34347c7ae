//! What is printed of a study, as JSON Lines: cells to simulate, figures, and changes. The order is that
//! of the plan.

use std::io::{self, BufWriter, Write};

use placewise_sim::{Better, Figure};
use serde::Serialize;

use super::cell::{Cell, Cells, Label};
use super::results::{Result, Results};
use crate::comparison;
use crate::machine_readable::{direction, nine_digits};
use crate::report::json;

/// A figure of a cell; of one that failed, why.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    label: &'a Label<'a>,
    metric: Option<&'a str>,
    #[serde(serialize_with = "nine_digits")]
    value: Option<f64>,
    unit: Option<&'a str>,
    #[serde(serialize_with = "direction")]
    better: Option<Better>,
    failure: Option<&'a str>,
}

/// A figure of a combination over all runs, beside the first of its group.
#[derive(Serialize)]
struct Change<'a> {
    workload: &'a str,
    #[serde(flatten)]
    row: comparison::Row,
}

pub fn print_cells(cells: &Cells, open: &[Cell]) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for cell in open {
        out.write_all(json::line(&cells.label(*cell))?.as_bytes())?;
    }
    Ok(out.flush()?)
}

pub fn print_figures(cells: &Cells, results: &mut Results) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for cell in cells.done(results) {
        let label = cells.label(cell);
        let result = results.get(&label.cell).expect("it is done");
        for row in rows(&label, result, cells.plan.stats) {
            out.write_all(json::line(&row)?.as_bytes())?;
        }
    }
    Ok(out.flush()?)
}

fn rows<'a>(label: &'a Label<'a>, result: &'a Result, with_stats: bool) -> Vec<Row<'a>> {
    let empty =
        || Row { label, metric: None, value: None, unit: None, better: None, failure: None };
    let row = |figure: &'a Figure| Row {
        metric: Some(&figure.metric),
        value: Some(figure.value).filter(|value| value.is_finite()),
        unit: Some(figure.unit),
        better: figure.better,
        ..empty()
    };
    match result {
        Result::Failed(why) => vec![Row { failure: Some(why), ..empty() }],
        Result::Figures { figures, stats } => {
            let stats = stats.iter().filter(|_| with_stats);
            figures.iter().chain(stats).map(row).collect()
        }
    }
}

/// A group whose first combination has failed has none.
pub fn print_changes(cells: &Cells, results: &mut Results) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for group in cells.groups() {
        let runs = cells.round(group, results).runs;
        let members = cells.whole(group, runs, results);
        if members.first().is_none_or(|(first, _)| *first != 0) {
            continue;
        }
        let part = &cells.plan.parts[group.0];
        let case = &part.plan.cases[part.groups[group.1].case].name;
        for row in comparison::rows(case, &cells.series(group, &members)) {
            let change = Change { workload: &part.workload, row };
            out.write_all(json::line(&change)?.as_bytes())?;
        }
    }
    Ok(out.flush()?)
}
