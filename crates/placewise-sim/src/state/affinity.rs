//! The CPUs that tasks have asked for, and those that the cpusets of their cgroups have.

use placewise_machine::{CpuSet, Machine};
use placewise_policy::Cpumask;
use placewise_workload::program::Workload;

pub struct Affinity {
    /// Something confines tasks or will; if not, nothing else here is looked at.
    pub in_use: bool,
    /// The CPUs that are online when the machine boots: no others come.
    pub possible: CpuSet,
    /// What the tasks of each program have asked for.
    pub asked: Vec<Option<CpuSet>>,
    /// By task group, with the root: cpuset.cpus, and what comes of it.
    pub cpusets: Vec<Option<CpuSet>>,
    pub effective: Vec<CpuSet>,
    /// The last destination of a displaced task.
    pub rotor: usize,
}

impl Affinity {
    pub fn new(workload: &Workload, machine: &Machine) -> Self {
        let possible = machine.online();
        let cpusets = workload.cgroups.iter().map(|cgroup| cgroup.cpus);
        let cpusets: Vec<Option<CpuSet>> = std::iter::once(None).chain(cpusets).collect();
        Affinity {
            in_use: !workload.changes.is_empty() || cpusets.iter().any(Option::is_some),
            possible,
            asked: workload.programs.iter().map(|program| program.asks_for(machine)).collect(),
            effective: vec![possible; cpusets.len()],
            cpusets,
            rotor: 0,
        }
    }
}

pub fn cpu_set(mask: &Cpumask) -> CpuSet {
    mask.iter().map(usize::from).collect()
}
