//! Stand-in for the simulator until it lands: figures are made up.
#![allow(dead_code)]

use placewise_machine::Machine;
use placewise_policy::Policy;
use placewise_workload::program::{Metric, Workload};

pub struct Scenario<'a> {
    pub machine: &'a Machine,
    pub policy: &'a Policy,
    pub workload: &'a Workload,
    pub seed: u64,
}

pub struct Outcome {
    pub figures: Vec<Figure>,
    pub statistics: Statistics,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Better {
    Lower,
    Higher,
}

pub struct Figure {
    pub metric: &'static str,
    pub value: f64,
    pub unit: &'static str,
    pub better: Better,
}

pub struct Statistics {
    pub simulated_ns: u64,
    pub events: u64,
    pub wakeups: u64,
    pub switches: u64,
    pub figures: Vec<Figure>,
    pub schedstat: String,
}

#[derive(Debug, thiserror::Error)]
#[error("stand-in")]
pub struct SimError;

pub fn simulate(
    scenario: &Scenario,
    _trace: Option<&mut dyn placewise_trace::Sink>,
) -> Result<Outcome, SimError> {
    let shift = scenario.machine.cpus.len() as f64 + f64::from(scenario.policy.hint);
    let value = (scenario.seed as f64).sin() + shift;
    let figure = |metric: &Metric| {
        let (metric, unit, better) = match metric {
            Metric::Time { .. } => ("time", "s", Better::Lower),
            Metric::Throughput { unit, .. } => ("throughput", *unit, Better::Higher),
            Metric::WakeupLatency { .. } => ("p99_wakeup_latency", "usec_p99", Better::Lower),
            Metric::RunQueueLockShare => ("rq_lock_share", "pct", Better::Lower),
        };
        Figure { metric, value, unit, better }
    };
    let why = Figure {
        metric: "schedstat_wakeups_on_same_mc",
        value,
        unit: "count",
        better: Better::Lower,
    };
    Ok(Outcome {
        figures: scenario.workload.metrics.iter().map(figure).collect(),
        statistics: Statistics {
            simulated_ns: 1,
            events: 1_000_000,
            wakeups: 2,
            switches: 3,
            figures: vec![why],
            schedstat: String::new(),
        },
    })
}
