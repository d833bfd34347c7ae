//! The placements whose tasks waited longest of those that missed an idle CPU, rule by rule.
//!
//! A placement can only be explained when it is made, and what it costs is known later: so each one
//! that missed an idle CPU is explained, and forgotten if its task did not wait long.
//!
//! Limit: after so many explanations no more are made, for they take longer than the audit itself.

use placewise_audit::{Decided, Kind, explain};
use serde::Serialize;

/// How many are kept.
const KEPT: usize = 64;
/// How many are made.
const MOST_MADE: u32 = 1 << 17;

/// One decision.
#[derive(Serialize)]
pub struct Explained {
    number: u64,
    /// As the trace has it.
    time_ns: u64,
    /// From the start of the timeline.
    at_ns: u64,
    kind: Kind,
    task: String,
    pid: u32,
    waker: String,
    waker_pid: u32,
    waking_cpu: u32,
    prev_cpu: u32,
    predicted_cpu: u32,
    actual_cpu: u32,
    /// Each with what it saw and what it answered.
    rules: Vec<[String; 3]>,
}

/// Those that cost most, most expensive first, equal ones as they came.
#[derive(Default)]
pub struct MostExpensive {
    kept: Vec<(u64, Explained)>,
    made: u32,
}

impl MostExpensive {
    pub fn explain(&mut self, decided: &Decided<'_>, at_ns: u64) -> Option<Box<Explained>> {
        if self.made == MOST_MADE {
            return None;
        }
        self.made += 1;
        let Decided { number, time_ns, placed, sight, state, tasks, .. } = *decided;
        let rules = explain(placed, sight, state, tasks);
        Some(Box::new(Explained {
            number,
            time_ns,
            at_ns,
            kind: placed.kind,
            task: tasks.name_of(placed.task).to_owned(),
            pid: tasks.get(placed.task).pid,
            waker: tasks.name_of(placed.waker).to_owned(),
            waker_pid: tasks.get(placed.waker).pid,
            waking_cpu: placed.waking_cpu,
            prev_cpu: placed.prev_cpu,
            predicted_cpu: placed.predicted,
            actual_cpu: placed.actual,
            rules: rules
                .into_iter()
                .map(|one| [one.rule.to_owned(), one.saw, one.answer])
                .collect(),
        }))
    }

    /// Its task runs.
    pub fn waited(&mut self, explained: Explained, ns: u64) {
        let at = self.kept.partition_point(|&(other, _)| other >= ns);
        if at < KEPT {
            self.kept.truncate(KEPT - 1);
            self.kept.insert(at, (ns, explained));
        }
    }

    pub fn list(self) -> Vec<Explained> {
        self.kept.into_iter().map(|(_, explained)| explained).collect()
    }
}
