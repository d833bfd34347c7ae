//! One decision as people are told it: who placed whom, when, from where to where, and rule by rule why.

use serde::Serialize;

use crate::audit::Decided;
use crate::report::explain::{Rule, explain};
use crate::verdict::Kind;

/// A decision step by step.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    pub number: u64,
    /// As the trace has it.
    pub time_ns: u64,
    pub kind: Kind,
    pub task: String,
    pub pid: u32,
    pub waker: String,
    pub waker_pid: u32,
    pub waking_cpu: u32,
    pub prev_cpu: u32,
    pub predicted_cpu: u32,
    pub actual_cpu: u32,
    pub rules: Vec<Rule>,
}

impl Explanation {
    pub fn of(decision: &Decided<'_>) -> Self {
        let Decided { number, time_ns, placed, sight, state, tasks, .. } = *decision;
        Explanation {
            number,
            time_ns,
            kind: placed.kind,
            task: tasks.name_of(placed.task).to_owned(),
            pid: tasks.get(placed.task).pid,
            waker: tasks.name_of(placed.waker).to_owned(),
            waker_pid: tasks.get(placed.waker).pid,
            waking_cpu: placed.waking_cpu,
            prev_cpu: placed.prev_cpu,
            predicted_cpu: placed.predicted,
            actual_cpu: placed.actual,
            rules: explain(placed, sight, state, tasks),
        }
    }
}
