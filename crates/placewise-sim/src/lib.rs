//! A simulator of Linux task placement.
//!
//! [`simulate`] runs a workload on a machine under a policy and returns the
//! workload's figures with the kernel's own counters. Time is integer
//! nanoseconds; the same inputs give the same outcome and the same trace, byte
//! for byte. Where a task runs is decided by the C policy, and when by the run
//! queues of the scheduler core; this crate owns time and costs.

mod affinity;
mod balance;
mod bandwidth;
mod cfs_bandwidth;
mod changes;
mod channel;
mod costs;
mod cpu;
mod decision;
mod engine;
mod event_queue;
mod fork;
mod hotplug;
mod idle;
mod interrupt;
#[cfg(feature = "invariants")]
mod invariants;
mod load_balance;
mod measure;
#[cfg(feature = "invariants")]
mod missed_idle;
mod occupancy;
mod ops;
mod outcome;
mod schedstat;
mod schedule;
mod sync;
mod task;
mod tracing;
mod wakeup;

#[doc(hidden)]
#[cfg(feature = "invariants")]
pub use invariants::{Audit, simulate_checked};
pub use load_balance::LoadBalance;
#[doc(hidden)]
#[cfg(feature = "invariants")]
pub use missed_idle::{MissedIdle, simulate_watched};
pub use outcome::{Better, Figure, Outcome, Statistics};

use placewise_machine::{CpuSet, Machine, MachineError};
use placewise_policy::{NR_TASK_GROUP_LEVELS, NR_TASK_GROUPS, Policy};
use placewise_trace::Sink;
use placewise_workload::program::Workload;

/// One run.
#[derive(Clone, Copy)]
pub struct Scenario<'a> {
    pub machine: &'a Machine,
    pub policy: &'a Policy,
    pub workload: &'a Workload,
    pub seed: u64,
}

/// Why a run has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(
        "{confined} may run on none of the online CPUs of {machine}; give it CPUs that the machine has"
    )]
    NoAllowedCpu { confined: String, machine: String },
    #[error(
        "no task has got anything done for long, at {seconds:.3} s: the workload '{workload}' deadlocks"
    )]
    Deadlock { workload: String, seconds: f64 },
    #[error(
        "cgroup '{cgroup}' of the workload '{workload}' cannot be: there may be {groups} of them in {levels} levels, each after the one it is in"
    )]
    Cgroup { workload: String, cgroup: String, groups: u32, levels: u32 },
    #[error("the change of '{workload}' at {seconds} s cannot be: {problem}")]
    Change { workload: String, seconds: f64, problem: String },
    #[error("the workload '{workload}' creates more than {limit} tasks")]
    TooManyTasks { workload: String, limit: u32 },
}

/// Runs a scenario to its end; tracepoints go to `trace`.
pub fn simulate<'r>(
    scenario: &Scenario<'r>,
    trace: Option<&'r mut dyn Sink>,
) -> Result<Outcome, SimError> {
    check(scenario)?;
    let Scenario { machine, policy, workload, seed } = *scenario;
    let mut engine = engine::Engine::new(machine, policy, workload, seed, trace)?;
    engine.run()
}

/// What neither the machine nor the workload can tell alone.
fn check(scenario: &Scenario) -> Result<(), SimError> {
    check_affinities(scenario)?;
    check_cgroups(scenario.workload)?;
    changes::check(scenario)
}

fn check_cgroups(workload: &Workload) -> Result<(), SimError> {
    let mut depths: Vec<u32> = Vec::new();
    for cgroup in &workload.cgroups {
        let above = cgroup.parent.map_or(Some(0), |parent| depths.get(parent as usize).copied());
        let fits = |depth: &u32| *depth < NR_TASK_GROUP_LEVELS;
        match above.filter(fits) {
            Some(depth) if depths.len() + 1 < NR_TASK_GROUPS as usize => depths.push(depth + 1),
            _ => {
                return Err(SimError::Cgroup {
                    workload: workload.name.clone(),
                    cgroup: cgroup.name.clone(),
                    groups: NR_TASK_GROUPS - 1,
                    levels: NR_TASK_GROUP_LEVELS,
                });
            }
        }
    }
    Ok(())
}

fn check_affinities(scenario: &Scenario) -> Result<(), SimError> {
    let online = scenario.machine.online();
    let none = |cpus: &Option<CpuSet>| cpus.is_some_and(|cpus| !cpus.intersects(&online));
    let Workload { programs, cgroups, .. } = scenario.workload;
    let program = programs.iter().find(|program| none(&program.cpus));
    let cgroup = cgroups.iter().find(|cgroup| none(&cgroup.cpus));
    let confined = program.map(|program| ("program", &program.name));
    match confined.or(cgroup.map(|cgroup| ("cgroup", &cgroup.name))) {
        Some((what, name)) => Err(SimError::NoAllowedCpu {
            confined: format!("{what} '{name}'"),
            machine: scenario.machine.name.clone(),
        }),
        None => Ok(()),
    }
}
