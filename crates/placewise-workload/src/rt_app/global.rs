//! The `global` section: how long the file runs, and the policy of tasks that name none.
//!
//! Keys that change only what rt-app prints, or how it makes its load, are accepted and have no
//! effect; they are listed in [`NO_EFFECT`].

use super::json::Node;
use crate::error::WorkloadError;
use crate::program::{Nanos, SchedPolicy};

/// What the section says.
#[derive(Debug, Default)]
pub(super) struct Global {
    /// `None` for -1, the default: until all tasks have ended.
    pub duration: Option<Nanos>,
    /// For tasks that name none; a real-time one without its priority.
    pub policy: SchedPolicy,
}

/// Output, calibration of the load loop, page locking, and the settings of events that are refused.
const NO_EFFECT: [&str; 10] = [
    "calibration",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "cumulative_slack",
    "io_device",
    "mem_buffer_size",
];

/// Longest simulated time of an rt-app file.
pub(super) const LONGEST_SECONDS: i64 = 3600;

impl Global {
    pub fn read(section: &Node) -> Result<Self, WorkloadError> {
        let mut global = Self::default();
        let mut seen: Vec<(&str, &Node)> = Vec::new();
        for member in section.members()? {
            let key = member.key.as_str();
            let earlier = seen.iter().find(|(earlier, _)| *earlier == key).map(|(_, node)| *node);
            let node = member.only(earlier)?;
            match key {
                "duration" => global.duration = read_duration(node)?,
                "default_policy" => global.policy = read_policy(node)?,
                "pi_enabled" => {
                    if node.boolean()? {
                        return Err(
                            node.wrong("priority inheritance is not modelled; set it to false")
                        );
                    }
                }
                _ if NO_EFFECT.contains(&key) => {}
                _ => {
                    let known = ["duration", "default_policy", "pi_enabled"];
                    return Err(member.unknown(&[&known[..], &NO_EFFECT[..]].concat()));
                }
            }
            seen.push((key, node));
        }
        Ok(global)
    }
}

fn read_duration(node: &Node) -> Result<Option<Nanos>, WorkloadError> {
    match node.integer(-1..=LONGEST_SECONDS, "seconds (-1: until all tasks have ended)")? {
        -1 => Ok(None),
        0 => Err(node.wrong("expected at least 1 second, or -1 to run until all tasks have ended")),
        seconds => Ok(Some(seconds as Nanos * 1_000_000_000)),
    }
}

/// A policy; the priority of a real-time one is a matter of another key.
pub(super) fn read_policy(node: &Node) -> Result<SchedPolicy, WorkloadError> {
    match node.text()? {
        "SCHED_OTHER" => Ok(SchedPolicy::Other),
        "SCHED_IDLE" => Ok(SchedPolicy::Idle),
        "SCHED_FIFO" => Ok(SchedPolicy::Fifo(0)),
        "SCHED_RR" => Ok(SchedPolicy::RoundRobin(0)),
        _ => Err(node.wrong("expected SCHED_OTHER, SCHED_IDLE, SCHED_FIFO or SCHED_RR")),
    }
}
