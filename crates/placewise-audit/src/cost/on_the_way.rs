//! A placement from when it is decided until its task runs: what the meters are to know then.

use super::behind::Role;
use super::places::Nearest;
use crate::steps::task::Tasks;
use crate::verdict::{Kind, Placed};

/// A placement whose task does not run yet.
#[derive(Clone, Copy, Debug)]
pub struct OnTheWay {
    /// As the trace has it.
    pub time_ns: u64,
    pub kind: Kind,
    pub waiter: Role,
    pub pid: u32,
    pub from_cpu: u16,
    pub to_cpu: u16,
    pub predicted_cpu: u16,
    /// Of the idle CPUs that it may use and missed.
    pub nearest_idle: Option<Nearest>,
    /// What ran where it goes, if anything did.
    pub runner: Option<Role>,
}

impl OnTheWay {
    pub fn of(
        placed: &Placed,
        time_ns: u64,
        nearest_idle: Option<Nearest>,
        runner: Option<Role>,
        tasks: &Tasks,
    ) -> Self {
        OnTheWay {
            time_ns,
            kind: placed.kind,
            waiter: Role::of(placed.task, tasks),
            pid: tasks.get(placed.task).pid,
            from_cpu: placed.prev_cpu as u16,
            to_cpu: placed.actual as u16,
            predicted_cpu: placed.predicted as u16,
            nearest_idle,
            runner,
        }
    }
}
