//! The results of a study: a directory with a file per finished cell, named by the cell's address.
//!
//! A file appears whole, by a rename, so that whoever is killed loses what it had under way and nothing
//! else, and any number of processes on any number of machines may write into the directory. A file that
//! is not whole all the same, after a power cut, counts as not there.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::Context;
use placewise_sim::{Figure, Outcome};
use serde::{Deserialize, Serialize};

use crate::finished::Told;
use crate::input::InputError;

/// What became of a cell.
#[derive(Clone)]
pub enum Result {
    Figures { figures: Vec<Figure>, stats: Vec<Figure> },
    Failed(String),
}

/// The same in its file.
#[derive(Serialize, Deserialize)]
struct Written {
    figures: Vec<Told>,
    stats: Vec<Told>,
    failure: Option<String>,
}

impl Result {
    pub fn of(outcome: std::result::Result<Outcome, String>) -> Self {
        match outcome {
            Ok(Outcome { figures, statistics, .. }) => {
                Self::Figures { figures, stats: statistics.figures }
            }
            Err(why) => Self::Failed(why),
        }
    }

    fn written(&self) -> Written {
        let told = |figures: &[Figure]| figures.iter().map(Told::of).collect();
        match self {
            Self::Figures { figures, stats } => {
                Written { figures: told(figures), stats: told(stats), failure: None }
            }
            Self::Failed(why) => {
                Written { figures: vec![], stats: vec![], failure: Some(why.clone()) }
            }
        }
    }
}

impl From<Written> for Result {
    fn from(written: Written) -> Self {
        let figures = |told: Vec<Told>| told.into_iter().map(Told::figure).collect();
        match written.failure {
            Some(why) => Self::Failed(why),
            None => {
                Self::Figures { figures: figures(written.figures), stats: figures(written.stats) }
            }
        }
    }
}

/// A directory, and what has been read from it.
pub struct Results {
    directory: PathBuf,
    known: BTreeMap<String, Result>,
}

impl Results {
    pub fn open(directory: PathBuf) -> anyhow::Result<Self> {
        fs::create_dir_all(&directory).map_err(|error| {
            InputError(format!("{}: cannot be made: {error}", directory.display()))
        })?;
        Ok(Self { directory, known: BTreeMap::new() })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn get(&mut self, id: &str) -> Option<&Result> {
        if !self.known.contains_key(id) {
            let result = self.read(id)?;
            self.known.insert(id.to_owned(), result);
        }
        self.known.get(id)
    }

    /// Looks at the file.
    pub fn is_there(&self, id: &str) -> bool {
        self.read(id).is_some()
    }

    fn read(&self, id: &str) -> Option<Result> {
        let text = fs::read_to_string(self.path(id)).ok()?;
        serde_json::from_str::<Written>(&text).ok().map(Result::from)
    }

    pub fn write(&self, id: &str, result: &Result) -> anyhow::Result<()> {
        let text = serde_json::to_string(&result.written())? + "\n";
        // Processes of several machines may be about the same cell.
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let hidden = self.directory.join(format!(".{id}.{host}.{}", process::id()));
        let written = fs::write(&hidden, text).and_then(|()| fs::rename(&hidden, self.path(id)));
        if written.is_err() {
            let _ = fs::remove_file(&hidden);
        }
        written.with_context(|| format!("cannot write {}", self.path(id).display()))
    }

    pub fn forget(&mut self, id: &str) -> anyhow::Result<()> {
        self.known.remove(id);
        match fs::remove_file(self.path(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", self.path(id).display()))
            }
            _ => Ok(()),
        }
    }

    fn path(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}.json"))
    }
}
