//! The placements that cost most.
//!
//! A placement costs what its task then waited behind others until it ran. It is told as one of the
//! worst if it missed an idle CPU: where none was idle, no other answer would have been better. Of
//! each name the placement with the longest wait is kept as well, missed or not.
//!
//! Limit: a wait that outlasts the trace has no known length.

use serde::Serialize;

use super::places::Nearest;
use crate::steps::by_name::ByName;
use crate::steps::by_number::ByTask;
use crate::steps::task::{NameId, TaskNumber, Tasks};
use crate::verdict::{Kind, Placed};

/// How many are told.
const LISTED: usize = 10;

/// A placement that missed an idle CPU, and what its task waited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorstDecision {
    /// As the trace has it: what `--at` finds.
    pub time_ns: u64,
    pub kind: Kind,
    pub task: String,
    pub pid: u32,
    pub from_cpu: u32,
    pub to_cpu: u32,
    /// Where the kernel's policy would have put it.
    pub predicted_cpu: u32,
    pub nearest_idle: Nearest,
    pub cost_ns: u64,
}

#[derive(Clone, Copy)]
struct Decision {
    time_ns: u64,
    kind: Kind,
    name: NameId,
    pid: u32,
    from_cpu: u16,
    to_cpu: u16,
    predicted_cpu: u16,
    nearest_idle: Option<Nearest>,
}

#[derive(Default)]
pub struct WorstDecisions {
    waiting: ByTask<Option<Decision>>,
    /// Most expensive first, equal ones as they came.
    worst: Vec<(u64, Decision)>,
    /// The cost and the time of each name's most expensive one.
    of_names: ByName<Option<(u64, u64)>>,
}

impl WorstDecisions {
    pub fn placed(
        &mut self,
        placed: &Placed,
        time_ns: u64,
        nearest_idle: Option<Nearest>,
        tasks: &Tasks,
    ) {
        let task = tasks.get(placed.task);
        *self.waiting.of(placed.task) = Some(Decision {
            time_ns,
            kind: placed.kind,
            name: task.name,
            pid: task.pid,
            from_cpu: placed.prev_cpu as u16,
            to_cpu: placed.actual as u16,
            predicted_cpu: placed.predicted as u16,
            nearest_idle,
        });
    }

    /// The task runs.
    pub fn waited(&mut self, task: TaskNumber, behind_ns: u64) {
        let Some(decision) = self.waiting.of(task).take().filter(|_| behind_ns > 0) else { return };
        let of_name = self.of_names.of(decision.name);
        if of_name.is_none_or(|(cost, _)| cost < behind_ns) {
            *of_name = Some((behind_ns, decision.time_ns));
        }
        if decision.nearest_idle.is_some() {
            self.list(behind_ns, decision);
        }
    }

    fn list(&mut self, cost: u64, decision: Decision) {
        let at = self.worst.partition_point(|&(other, _)| other >= cost);
        if at < LISTED {
            self.worst.truncate(LISTED - 1);
            self.worst.insert(at, (cost, decision));
        }
    }

    /// The task's wait ends, nobody knows when.
    pub fn forget(&mut self, task: TaskNumber) {
        *self.waiting.of(task) = None;
    }

    /// When the placement of this name was that cost most.
    pub fn time_of(&self, name: NameId) -> Option<u64> {
        self.of_names.get(name).copied().flatten().map(|(_, time_ns)| time_ns)
    }

    pub fn report(&self, tasks: &Tasks) -> Vec<WorstDecision> {
        let report = |&(cost_ns, decision): &(u64, Decision)| {
            let Decision { time_ns, kind, pid, .. } = decision;
            Some(WorstDecision {
                time_ns,
                kind,
                task: tasks.name(decision.name).into(),
                pid,
                from_cpu: decision.from_cpu.into(),
                to_cpu: decision.to_cpu.into(),
                predicted_cpu: decision.predicted_cpu.into(),
                nearest_idle: decision.nearest_idle?,
                cost_ns,
            })
        };
        self.worst.iter().filter_map(report).collect()
    }
}
