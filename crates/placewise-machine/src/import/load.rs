//! Where a machine that the user names comes from.

use std::path::Path;

use super::likeness::preset_like;
use super::presets::{PRESETS, preset};
use super::{file, host, hwloc, synthetic};
use crate::error::MachineError;
use crate::machine::Machine;

/// A machine that comes with Placewise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preset {
    pub name: &'static str,
    pub description: String,
}

/// The machines that come with Placewise.
pub fn presets() -> Vec<Preset> {
    PRESETS
        .iter()
        .map(|(name, text)| Preset { name, description: file::description(text) })
        .collect()
}

/// Reads the machine that `spec` names: a preset, `host`, a path to a machine file (`.toml`) or to
/// an hwloc dump (`.xml`), or an lstopo synthetic string such as `pack:2 l3:8 core:8 pu:2`.
pub fn load(spec: &str) -> Result<Machine, MachineError> {
    let extension = Path::new(spec).extension().and_then(|ext| ext.to_str());
    if spec == "host" {
        host::load()
    } else if let Some((name, text)) = preset(spec) {
        file::parse(name, text)
    } else if extension == Some("toml") {
        file::parse(&stem(spec), &read(spec)?).map_err(|error| error.within(spec))
    } else if extension == Some("xml") {
        hwloc::parse(&stem(spec), &read(spec)?).map_err(|error| error.within(spec))
    } else if spec.contains(':') {
        let machine = synthetic::parse(spec)?;
        // Figures of both would be taken for each other.
        Ok(match preset_like(&machine) {
            Some(preset) => machine.with_costs_of(preset),
            None => machine,
        })
    } else {
        Err(unknown(spec))
    }
}

fn stem(path: &str) -> String {
    let stem = Path::new(path).file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn read(path: &str) -> Result<String, MachineError> {
    std::fs::read_to_string(path)
        .map_err(|error| MachineError::new(path, format!("cannot be read: {error}")))
}

fn unknown(spec: &str) -> MachineError {
    let near: Vec<&str> = PRESETS
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| strsim::jaro_winkler(name, &spec.to_lowercase()) > 0.75)
        .collect();
    let hint = match near.is_empty() {
        true => "`placewise machine list` shows the presets".to_string(),
        false => format!("did you mean {}?", near.join(" or ")),
    };
    MachineError::new(
        format!("machine `{spec}`"),
        format!(
            "is not a preset, `host`, a path to a .toml or .xml file, \
             or a synthetic string such as `pack:2 l3:8 core:8 pu:2`; {hint}"
        ),
    )
}
