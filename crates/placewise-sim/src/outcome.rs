//! What a run reports: the workload's figures, and the counters that say why.

use crate::load_balance::LoadBalance;

/// Which direction of a figure is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Lower,
    Higher,
}

/// One measured value.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub metric: String,
    pub value: f64,
    pub unit: &'static str,
    /// None for counters that are neither.
    pub better: Option<Better>,
}

/// What a table of figures as CSV has columns for, predicted ones or published.
pub const COLUMNS: [&str; 12] = [
    "series",
    "machine",
    "kernel",
    "workload",
    "case",
    "metric",
    "policy",
    "value",
    "unit",
    "better",
    "spread_pct",
    "change_pct",
];

/// All that a run reports.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub figures: Vec<Figure>,
    pub statistics: Statistics,
}

/// What the kernel has on account of all tasks but the first, and how much they did meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskAccount {
    /// How long it took.
    pub ns: u64,
    /// Units of work, as the workload counts them.
    pub units: u64,
    pub tasks: u64,
    /// Voluntary switches.
    pub sleeps: u64,
    /// Involuntary switches.
    pub preemptions: u64,
    /// Changes of the CPU.
    pub migrations: u64,
}

impl TaskAccount {
    /// What has come since `earlier`, of all tasks that there are.
    pub(crate) fn since(&self, earlier: &TaskAccount) -> TaskAccount {
        TaskAccount {
            ns: self.ns - earlier.ns,
            units: self.units - earlier.units,
            tasks: self.tasks,
            sleeps: self.sleeps - earlier.sleeps,
            preemptions: self.preemptions - earlier.preemptions,
            migrations: self.migrations - earlier.migrations,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Statistics {
    /// Simulated time, warm-up included.
    pub simulated_ns: u64,
    /// Entries taken from the event queue, and what they were about.
    pub events: u64,
    pub wakeups: u64,
    pub switches: u64,
    /// Of the measured window.
    pub account: TaskAccount,
    /// Counters of the measured window, always in the same order.
    pub figures: Vec<Figure>,
    /// What load balancing did in the measured window.
    pub load_balance: Vec<LoadBalance>,
    /// /proc/schedstat at the end of the run, since boot.
    pub schedstat: String,
    /// /proc/PID/sched of the first task of each program, at the end of the run.
    pub proc_sched: Vec<String>,
}
