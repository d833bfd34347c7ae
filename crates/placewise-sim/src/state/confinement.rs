//! Where tasks may run, and for how long.

use placewise_machine::Machine;
use placewise_policy::ROOT_TASK_GROUP;
use placewise_workload::program::{CgroupId, Workload};

use crate::state::affinity::Affinity;
use crate::state::cfs_bandwidth::CfsBandwidth;
use crate::state::shared_line::SharedLine;

pub struct Confinement {
    pub affinity: Affinity,
    pub cfs_bandwidth: CfsBandwidth,
    /// The line that the load of each task group is in.
    pub loads: Vec<SharedLine>,
}

impl Confinement {
    pub fn new(machine: &Machine, workload: &Workload) -> Self {
        Confinement {
            affinity: Affinity::new(workload, machine),
            cfs_bandwidth: CfsBandwidth::new(workload, machine.cpus.len()),
            loads: vec![SharedLine::new(machine.nr_caches()); 1 + workload.cgroups.len()],
        }
    }
}

/// The policy's number of a cgroup.
pub fn task_group(cgroup: Option<CgroupId>) -> u32 {
    cgroup.map_or(ROOT_TASK_GROUP, |cgroup| cgroup + 1)
}
