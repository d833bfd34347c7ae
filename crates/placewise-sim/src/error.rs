//! Why a run has no outcome.

use placewise_machine::MachineError;

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
