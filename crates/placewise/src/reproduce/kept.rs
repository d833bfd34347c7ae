//! Finished runs, kept in a file as they finish, so that a reproduction that was stopped goes on where
//! it was and ends with the same bytes.
//!
//! A line is a run: what was simulated, for people, and a key made of all that its figures follow from:
//! machine, policy, workload, seed, and this program itself. A run of another build is thus never
//! taken for one of this. Lines are whole or the last; one that a kill has cut short does not count.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Context;
use placewise_sim::{Better, Figure, Scenario};
use serde::{Deserialize, Serialize};

use super::measured::Figures;
use crate::input::InputError;
use crate::machine_readable::direction_name;

/// The figures of a run by key, and where more go.
pub struct Kept {
    path: PathBuf,
    file: Mutex<File>,
    /// Of this program.
    build: u64,
    runs: BTreeMap<String, Figures>,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Run {
    key: String,
    machine: String,
    policy: String,
    workload: String,
    seed: u64,
    figures: Vec<Told>,
}

/// `null` for a value that is not finite.
#[derive(Serialize, Deserialize)]
struct Told(String, Option<f64>, String, Option<String>);

impl Kept {
    /// Refuses a file that holds something else, of which nothing is lost then.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let refuse = |why: String| InputError(format!("{}: {why}", path.display()));
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(path);
        let mut file = file.map_err(|error| refuse(format!("cannot be written: {error}")))?;
        let mut text = String::new();
        file.read_to_string(&mut text)
            .map_err(|error| refuse(format!("cannot be read: {error}")))?;
        let mut runs = BTreeMap::new();
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        for (number, line) in text[..whole].lines().enumerate() {
            let run: Run = serde_json::from_str(line).map_err(|_| {
                let line = number + 1;
                refuse(format!("line {line} is no finished run; name a file of runs, or a new one"))
            })?;
            runs.insert(run.key, run.figures.into_iter().map(Told::figure).collect());
        }
        if whole < text.len() {
            if !text[whole..].starts_with("{\"key\":") {
                return Err(refuse("is no file of finished runs; name a new one".into()).into());
            }
            file.set_len(whole as u64).with_context(|| cannot_write(path))?;
        }
        Ok(Self { path: path.to_owned(), file: Mutex::new(file), build: build()?, runs })
    }

    pub fn key(&self, scenario: &Scenario) -> String {
        let mut hasher = DefaultHasher::new();
        let Scenario { machine, policy, workload, seed } = scenario;
        (self.build, seed).hash(&mut hasher);
        format!("{machine:?}{policy:?}{workload:?}").hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    pub fn figures(&self, key: &str) -> Option<Figures> {
        self.runs.get(key).cloned()
    }

    pub fn add(&self, key: String, scenario: &Scenario, figures: &Figures) -> anyhow::Result<()> {
        let run = Run {
            key,
            machine: scenario.machine.name.clone(),
            policy: scenario.policy.name.clone(),
            workload: scenario.workload.name.clone(),
            seed: scenario.seed,
            figures: figures.iter().map(Told::of).collect(),
        };
        let line = serde_json::to_string(&run)? + "\n";
        let mut file = self.file.lock().expect("no run panics while it is kept");
        file.write_all(line.as_bytes()).with_context(|| cannot_write(&self.path))
    }
}

impl Told {
    fn of(figure: &Figure) -> Self {
        let better = figure.better.map(|better| direction_name(better).to_owned());
        let value = Some(figure.value).filter(|value| value.is_finite());
        Self(figure.metric.clone(), value, figure.unit.to_owned(), better)
    }

    fn figure(self) -> Figure {
        let Self(metric, value, unit, better) = self;
        let better = better.map(|name| match name == direction_name(Better::Lower) {
            true => Better::Lower,
            false => Better::Higher,
        });
        Figure { metric, value: value.unwrap_or(f64::NAN), unit: unit_named(unit), better }
    }
}

/// Units are few, and live as long as the program.
fn unit_named(unit: String) -> &'static str {
    static KNOWN: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().expect("nothing panics here");
    if let Some(known) = known.iter().find(|known| **known == unit) {
        return known;
    }
    known.push(unit.leak());
    known[known.len() - 1]
}

/// What tells this build from others: the program's own bytes.
fn build() -> anyhow::Result<u64> {
    let bytes = fs::read("/proc/self/exe").or_else(|error| match error.kind() {
        ErrorKind::NotFound => fs::read(std::env::current_exe()?),
        _ => Err(error),
    });
    let mut hasher = DefaultHasher::new();
    bytes.context("cannot read this program")?.hash(&mut hasher);
    Ok(hasher.finish())
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
