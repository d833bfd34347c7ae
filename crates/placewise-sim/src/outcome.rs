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

/// All that a run reports.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub figures: Vec<Figure>,
    pub statistics: Statistics,
}

#[derive(Clone, Debug)]
pub struct Statistics {
    /// Simulated time, warm-up included.
    pub simulated_ns: u64,
    /// Entries taken from the event queue, and what they were about.
    pub events: u64,
    pub wakeups: u64,
    pub switches: u64,
    /// Counters of the measured window, always in the same order.
    pub figures: Vec<Figure>,
    /// What load balancing did in the measured window.
    pub load_balance: Vec<LoadBalance>,
    /// /proc/schedstat at the end of the run, since boot.
    pub schedstat: String,
    /// /proc/PID/sched of the first task of each program, at the end of the run.
    pub proc_sched: Vec<String>,
}
