//! Whether the lines are those of one trace.
//!
//! A kernel keeps the events of a CPU in the order of time, and what prints them merges the CPUs
//! by time. So time that goes back tells that a second trace begins, and so does a header behind
//! events. It may go back a little: clocks that are read without a lock do, those of two CPUs
//! differ, and a reader of `trace_pipe` may meet a CPU's event too late. Such steps are counted.
//!
//! Limit: a trace of the same boot, recorded later and joined without its header, looks like a
//! trace with a silence.

use std::fmt;

use super::losses::Losses;
use crate::header::Header;

/// For one CPU.
const MOST_BACK_OF_CPU_NS: u64 = 1_000_000;
/// For two CPUs: the scheduler keeps their clocks within a tick of each other.
const MOST_BACK_NS: u64 = 1_000_000_000;

/// What a line shows that one trace cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecondTrace {
    /// The time of a CPU goes back.
    Time { cpu: u32, from_ns: u64, to_ns: u64 },
    /// A line that stands before the events.
    Header,
}

impl fmt::Display for SecondTrace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ns: &u64| *ns as f64 / 1e9;
        match self {
            SecondTrace::Time { cpu, from_ns, to_ns } => {
                let (from, to) = (seconds(from_ns), seconds(to_ns));
                write!(out, "time goes back from {from:.6} s to {to:.6} s on CPU {cpu}")
            }
            SecondTrace::Header => out.write_str("a header behind events"),
        }
    }
}

/// Follows the time of a trace.
pub(super) struct Order {
    /// `None` before the first event.
    latest_ns: Option<u64>,
    latest_of_cpu_ns: Box<[u64]>,
}

impl Order {
    pub fn new() -> Self {
        let latest_of_cpu_ns = vec![0; Losses::NR_CPUS as usize].into_boxed_slice();
        Order { latest_ns: None, latest_of_cpu_ns }
    }

    pub fn event(&mut self, cpu: u32, time_ns: u64) -> Result<(), SecondTrace> {
        let latest_ns = self.latest_ns.get_or_insert(time_ns);
        let latest_of_cpu_ns = &mut self.latest_of_cpu_ns[cpu as usize];
        for (latest_ns, most_ns) in
            [(latest_of_cpu_ns, MOST_BACK_OF_CPU_NS), (latest_ns, MOST_BACK_NS)]
        {
            if latest_ns.saturating_sub(time_ns) > most_ns {
                return Err(SecondTrace::Time { cpu, from_ns: *latest_ns, to_ns: time_ns });
            }
            *latest_ns = time_ns.max(*latest_ns);
        }
        Ok(())
    }

    pub fn comment(&self, text: &str) -> Result<(), SecondTrace> {
        match self.latest_ns.is_some() && Header::stands_before_events(text) {
            true => Err(SecondTrace::Header),
            false => Ok(()),
        }
    }
}
