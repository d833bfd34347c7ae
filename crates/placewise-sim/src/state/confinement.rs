//! Where tasks may run, and for how long.

use placewise_machine::Machine;
use placewise_policy::ROOT_TASK_GROUP;
use placewise_workload::program::{CgroupId, Workload};

use crate::state::affinity::Affinity;
use crate::state::cfs_bandwidth::CfsBandwidth;

pub struct Confinement {
    pub affinity: Affinity,
    pub cfs_bandwidth: CfsBandwidth,
}

impl Confinement {
    pub fn new(machine: &Machine, workload: &Workload) -> Self {
        Confinement {
            affinity: Affinity::new(workload, machine),
            cfs_bandwidth: CfsBandwidth::new(workload, machine.cpus.len()),
        }
    }
}

/// The policy's number of a cgroup.
pub fn task_group(cgroup: Option<CgroupId>) -> u32 {
    cgroup.map_or(ROOT_TASK_GROUP, |cgroup| cgroup + 1)
}
