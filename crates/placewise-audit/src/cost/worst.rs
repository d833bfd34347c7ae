//! The placements that cost most.
//!
//! A placement costs what its task then waited behind others until it ran. It is told as one of the
//! worst if it missed an idle CPU: where none was idle, no other answer would have been better. Of
//! each name the placement with the longest wait is kept as well, missed or not.
//!
//! Limit: a wait that outlasts the trace has no known length.

use serde::Serialize;

use super::on_the_way::OnTheWay;
use super::places::Nearest;
use crate::steps::by_name::ByName;
use crate::steps::task::{NameId, Tasks};
use crate::verdict::Kind;

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

#[derive(Default)]
pub struct WorstDecisions {
    /// Most expensive first, equal ones as they came.
    worst: Vec<(u64, OnTheWay)>,
    /// The cost and the time of each name's most expensive one.
    of_names: ByName<Option<(u64, u64)>>,
}

impl WorstDecisions {
    /// The task runs, and has waited for so long behind others.
    pub fn waited(&mut self, placement: &OnTheWay, behind_ns: u64) {
        if behind_ns == 0 {
            return;
        }
        let of_name = self.of_names.of(placement.waiter.name);
        if of_name.is_none_or(|(cost, _)| cost < behind_ns) {
            *of_name = Some((behind_ns, placement.time_ns));
        }
        if placement.nearest_idle.is_some() {
            self.list(behind_ns, placement);
        }
    }

    fn list(&mut self, cost: u64, placement: &OnTheWay) {
        let at = self.worst.partition_point(|&(other, _)| other >= cost);
        if at < LISTED {
            self.worst.truncate(LISTED - 1);
            self.worst.insert(at, (cost, *placement));
        }
    }

    /// When the placement of this name was that cost most.
    pub fn time_of(&self, name: NameId) -> Option<u64> {
        self.of_names.get(name).copied().flatten().map(|(_, time_ns)| time_ns)
    }

    pub fn report(&self, tasks: &Tasks) -> Vec<WorstDecision> {
        let report = |&(cost_ns, placement): &(u64, OnTheWay)| {
            let OnTheWay { time_ns, kind, pid, .. } = placement;
            Some(WorstDecision {
                time_ns,
                kind,
                task: tasks.name(placement.waiter.name).into(),
                pid,
                from_cpu: placement.from_cpu.into(),
                to_cpu: placement.to_cpu.into(),
                predicted_cpu: placement.predicted_cpu.into(),
                nearest_idle: placement.nearest_idle?,
                cost_ns,
            })
        };
        self.worst.iter().filter_map(report).collect()
    }
}
