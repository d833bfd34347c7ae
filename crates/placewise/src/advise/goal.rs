//! What advice is for: one figure of a run, of all names of tasks whose replay is like the trace, or of
//! one.
//!
//! Throughput is stretches of computing per second, as `placewise replay` has it: of each name until its
//! own last turn, added up. Limit: names that were done in a tenth of the trace have no rate to speak of.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;
use placewise_replay::{Compared, Figures, Measured, Recording, Validation};
use placewise_sim::Better;
use placewise_workload::program::Nanos;
use serde::Serialize;

use crate::input::InputError;

/// Fewer wakeups have no 99th percentile.
const WAKEUPS_OF_P99: u64 = 100;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Aim {
    /// The 99th percentile of the time from a wakeup until the task runs
    P99,
    /// Stretches of computing per second
    #[default]
    Throughput,
    /// How far that 99th percentile is above the median
    Spread,
}

impl Aim {
    pub fn better(self) -> Better {
        if self == Aim::Throughput { Better::Higher } else { Better::Lower }
    }

    pub fn name(self) -> &'static str {
        match self {
            Aim::P99 => "p99 latency",
            Aim::Throughput => "throughput",
            Aim::Spread => "spread of latency",
        }
    }

    /// Is that what the figure of a validation is about?
    fn is_told_by(self, row: &Compared) -> bool {
        match self {
            Aim::Throughput => row.figure == "throughput",
            Aim::P99 => row.figure == "latency_p99",
            Aim::Spread => matches!(row.figure, "latency_p50" | "latency_p99"),
        }
    }
}

#[derive(Default)]
pub struct Goal {
    pub aim: Aim,
    /// Whose figure it is.
    pub names: Vec<String>,
    /// Names whose replay is not like the trace in this.
    pub unlike: Vec<String>,
    /// It was asked for, or these computed more than the rest.
    is_most: bool,
    /// Recorded stretches of computing of each name that went on.
    segments: BTreeMap<String, u64>,
}

/// Of each name that went on.
fn segments(recorded: &Measured) -> BTreeMap<String, u64> {
    let goes_on = |it: &Figures| it.until_ns >= recorded.all.until_ns / 10;
    let going = recorded.by_name.iter().filter(|(_, it)| goes_on(it));
    going.map(|(name, it)| (name.clone(), it.segments)).collect()
}

/// What the tasks of each name computed, without the kernel's own that nobody may move.
fn users(recording: &Recording) -> BTreeMap<String, Nanos> {
    let mut users = BTreeMap::<String, Nanos>::new();
    for task in recording.tasks.iter().filter(|task| !task.is_immovable()) {
        *users.entry(task.name.clone()).or_default() += task.computing();
    }
    users
}

impl Goal {
    /// Of the tasks of one name, or of all that can be believed.
    pub fn new(
        aim: Aim,
        task: Option<&str>,
        recording: &Recording,
        recorded: &Measured,
        validation: &Validation,
    ) -> Result<Self, InputError> {
        let segments = segments(recorded);
        let is_off = |rows: &[Compared]| rows.iter().any(|row| aim.is_told_by(row) && row.is_off());
        let off = validation.by_name.iter().filter(|(_, rows)| is_off(rows)).map(|(name, _)| name);
        let unlike: BTreeSet<&String> = off.chain(&validation.blamed).collect();
        let unlike: Vec<String> = unlike.into_iter().cloned().collect();
        let users = users(recording);
        let names = recording.names().into_iter().map(|(name, _)| name);
        let names: Vec<String> = names.filter(|name| segments.contains_key(name)).collect();
        let names = match task {
            None => {
                let is_meant = |name: &String| users.contains_key(name) && !unlike.contains(name);
                names.into_iter().filter(is_meant).collect()
            }
            Some(task) if names.iter().any(|name| name == task) => vec![task.to_owned()],
            Some(task) => {
                let known = names.join(", ");
                let problem =
                    format!("--task {task}: no task of that name went on; there are {known}");
                return Err(InputError(problem));
            }
        };
        let all: Nanos = users.values().sum();
        let of_names: Nanos = names.iter().filter_map(|name| users.get(name)).sum();
        let is_most = task.is_some() || of_names * 2 > all;
        Ok(Goal { aim, names, unlike, is_most, segments })
    }

    /// May anything be said of it?
    pub fn is_believed(&self) -> bool {
        self.is_most && !self.names.iter().any(|name| self.unlike.contains(name))
    }

    /// Of a run; NaN where it has none.
    pub fn of(&self, run: &Measured) -> f64 {
        self.figure(run, &self.names)
    }

    /// Of a recording, whose stretches are its own; NaN where it has none.
    pub fn recorded(&self, recorded: &Measured) -> f64 {
        let (segments, names) = (segments(recorded), self.names.clone());
        Goal { segments, names, unlike: Vec::new(), ..*self }.of(recorded)
    }

    /// Of the tasks of one name.
    pub fn of_name(&self, run: &Measured, name: &str) -> f64 {
        self.figure(run, &[name.to_owned()])
    }

    /// Those that can be believed.
    pub fn all_names(&self) -> impl Iterator<Item = &str> {
        self.segments.keys().map(String::as_str).filter(|name| !self.is_unlike(name))
    }

    pub fn is_unlike(&self, name: &str) -> bool {
        self.unlike.iter().any(|unlike| unlike == name)
    }

    fn figure(&self, run: &Measured, names: &[String]) -> f64 {
        if self.aim == Aim::Throughput {
            return names.iter().map(|name| self.rate(run, name)).sum();
        }
        let figures = run.of(|name| names.iter().any(|it| it == name));
        if figures.latencies() < WAKEUPS_OF_P99 {
            return f64::NAN;
        }
        let quantile = |it| figures.latency_ns(it).map_or(f64::NAN, |ns| ns as f64);
        let less = if self.aim == Aim::Spread { quantile(0.5) } else { 0.0 };
        quantile(0.99) - less
    }

    fn rate(&self, run: &Measured, name: &str) -> f64 {
        let until_ns = run.by_name.get(name).map_or(0, |it| it.until_ns);
        let segments = self.segments.get(name).copied().unwrap_or(0);
        if until_ns == 0 { 0.0 } else { segments as f64 * 1e9 / until_ns as f64 }
    }
}
