//! Finished runs, kept in a file as they finish, so that a reproduction that was stopped goes on where
//! it was and ends with the same bytes.
//!
//! A line is a run: what was simulated, for people, and the digest that it is known by. Lines are whole or the last; one that a kill has cut short does not count.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Context;
use placewise_sim::Scenario;
use serde::{Deserialize, Serialize};

use super::measured::Figures;
use crate::finished::{Digest, Told};
use crate::input::InputError;

/// The figures of a run by key, and where more go.
pub struct Kept {
    path: PathBuf,
    file: Mutex<File>,
    /// Of this program.
    build: Digest,
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
        Ok(Self { path: path.to_owned(), file: Mutex::new(file), build: Digest::of_build()?, runs })
    }

    pub fn key(&self, scenario: &Scenario) -> String {
        let Scenario { machine, policy, workload, seed } = scenario;
        Digest::of(&(self.build, machine, policy, workload, seed)).to_string()
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

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
