//! Stand-in for the simulator until it lands.
use placewise_machine::Machine;
use placewise_policy::Policy;
use placewise_workload::program::Workload;

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
    trace: Option<&mut dyn placewise_trace::Sink>,
) -> Result<Outcome, SimError> {
    let _ = trace;
    let value = (scenario.seed as f64).sin()
        + 3.0
        + scenario.policy.hint as f64
        + scenario.machine.cpus.len() as f64
        + scenario.workload.programs.len() as f64;
    Ok(Outcome {
        figures: vec![
            Figure { metric: "time", value, unit: "s", better: Better::Lower },
            Figure {
                metric: "p99_wakeup_latency",
                value: 2.0 * value,
                unit: "us",
                better: Better::Lower,
            },
        ],
        statistics: Statistics {
            simulated_ns: 1,
            events: 1000000,
            wakeups: 2,
            switches: 3,
            figures: vec![Figure {
                metric: "schedstat_wakeups_on_same_mc",
                value: 1.0,
                unit: "count",
                better: Better::Lower,
            }],
            schedstat: String::new(),
        },
    })
}
