//! Scenarios, what they demand, and machines as their files say them, and what is wrong with such a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::figures::Figure;
use crate::guest::{Clock, Guest};
use crate::machine::Machine;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it shows, in a line.
    pub shows: String,
    /// Whether it belongs to the quick part.
    #[serde(default)]
    pub quick: bool,
    /// Series, such as 6.18.
    pub kernels: Vec<String>,
    /// Names of machines.
    pub machines: Vec<String>,
    /// Words, each of which makes a case in which `$variant` is that word.
    #[serde(default)]
    pub variants: Vec<String>,
    /// Programs that the script needs, besides those of busybox.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Time in the guest advances by instructions, not by the host's clock: how fast and how busy the host
    /// is hardly matters, and all is several times slower.
    #[serde(default)]
    pub deterministic: bool,
    /// Each CPU has a time of its own, so that CPUs run side by side, as in interventions.
    #[serde(default)]
    pub side_by_side: bool,
    /// Of the host's time, from start to power off.
    pub limit_seconds: u64,
    /// Lines of the console that are no failure here: regular expressions.
    #[serde(default)]
    pub tolerates: Vec<String>,
    /// What the guest runs, with `guest/functions.sh`.
    pub script: String,
    #[serde(default)]
    pub checks: Vec<Check>,
}

/// One bound. `figure` is of the guest, or TRACE.PATH of the audit of a trace; `counts` the prefix of
/// figures that are instructions by program, `recorded` a file of such, relative to this crate.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, untagged)]
pub enum Check {
    Equals { figure: String, equals: Figure },
    AtLeast { figure: String, at_least: f64 },
    AtMost { figure: String, at_most: f64 },
    Above { figure: String, above_figure: String },
    Below { figure: String, below_figure: String },
    Console { console: String },
    NotOnConsole { not_on_console: String },
    Recorded { counts: String, recorded: PathBuf },
}

/// A scenario on one machine under one kernel, in one variant if it has any.
pub struct Case {
    pub name: String,
    variant: Option<String>,
    pub kernel: String,
    pub machine: Machine,
    pub scenario: Arc<Scenario>,
}

impl Case {
    pub fn guest(&self) -> Guest {
        let clock = match (self.scenario.deterministic, self.scenario.side_by_side) {
            (_, true) => Clock::Parallel { seed: 1 },
            (true, false) => Clock::Instructions,
            (false, false) => Clock::Host,
        };
        Guest {
            kernel: self.kernel.clone(),
            machine: self.machine.clone(),
            clock,
            programs: self.scenario.programs.clone(),
            script: self.script(),
            limit_seconds: self.scenario.limit_seconds,
        }
    }

    fn script(&self) -> String {
        let variant = self.variant.as_ref().map(|variant| format!("variant={variant}\n"));
        variant.unwrap_or_default() + &self.scenario.script
    }
}

/// All cases of the files in `directory`, in the order of their names.
pub fn cases(directory: &Path) -> anyhow::Result<Vec<Case>> {
    let machines = machines(directory)?;
    let mut cases = Vec::new();
    for path in scenario_files(directory)? {
        let scenario = Arc::new(read::<Scenario>(&path)?);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        for name in &scenario.machines {
            let machine = machines.get(name).with_context(|| {
                format!("{}: machines.toml has no machine {name}", path.display())
            })?;
            cases.extend(cases_on(name, machine, &stem, &scenario));
        }
    }
    ensure!(!cases.is_empty(), "{}: no scenario", directory.display());
    Ok(cases)
}

/// The shapes by name.
pub fn machines(directory: &Path) -> anyhow::Result<BTreeMap<String, Machine>> {
    read(&directory.join("machines.toml"))
}

fn cases_on(
    machine_name: &str,
    machine: &Machine,
    stem: &str,
    scenario: &Arc<Scenario>,
) -> Vec<Case> {
    let case = |kernel: &String, variant: Option<&str>| {
        let words = [Some(stem), variant, Some(machine_name), Some(kernel)];
        Case {
            name: words.into_iter().flatten().collect::<Vec<_>>().join("::"),
            variant: variant.map(str::to_owned),
            kernel: kernel.clone(),
            machine: machine.clone(),
            scenario: scenario.clone(),
        }
    };
    let of_kernel =
        |kernel| variants(scenario).into_iter().map(move |variant| case(kernel, variant));
    scenario.kernels.iter().flat_map(of_kernel).collect()
}

/// One without a name where there are none.
fn variants(scenario: &Scenario) -> Vec<Option<&str>> {
    match scenario.variants.as_slice() {
        [] => vec![None],
        variants => variants.iter().map(|variant| Some(variant.as_str())).collect(),
    }
}

fn scenario_files(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let scenarios = directory.join("scenarios");
    let entries = fs::read_dir(&scenarios).with_context(|| scenarios.display().to_string())?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| scenarios.display().to_string())?.path();
        match path.extension().is_some_and(|extension| extension == "toml") {
            true => files.push(path),
            false => bail!("{}: expected only .toml files here", path.display()),
        }
    }
    files.sort();
    Ok(files)
}

pub fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}
