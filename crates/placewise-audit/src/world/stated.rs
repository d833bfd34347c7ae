//! What the header of a trace tells of its tasks.

use std::collections::{BTreeMap, HashMap};

use placewise_machine::CpuSet;
use placewise_policy::ROOT_TASK_GROUP;
use placewise_trace::Header;

use crate::task_groups::{self, TaskGroup, TaskGroups};

/// By pid.
#[derive(Default)]
pub struct Stated {
    pub affinities: BTreeMap<u32, CpuSet>,
    pub groups: TaskGroups,
    pub group_of: HashMap<u32, u32>,
}

impl Stated {
    pub fn of(header: &Header) -> Self {
        let paths = task_groups::stated(header);
        let groups = TaskGroups::of(paths.values().copied(), header);
        let group_of = paths.iter().filter_map(|(pid, path)| Some((*pid, groups.number(path)?)));
        Stated {
            affinities: header.tasks.iter().map(|(&pid, task)| (pid, task.cpus)).collect(),
            group_of: group_of.collect(),
            groups,
        }
    }

    /// The parent and the shares of each task group, and the group of each task that is not in the root's, by the
    /// policy's numbers.
    pub fn groups(&self) -> (Vec<(u32, u32)>, HashMap<u32, u32>) {
        let group = |group: &TaskGroup| (in_policy(group.parent), group.shares);
        let of_task = |(pid, group): (&u32, &u32)| (*pid, in_policy(Some(*group)));
        (self.groups.all.iter().map(group).collect(), self.group_of.iter().map(of_task).collect())
    }
}

/// The policy's number of a group.
fn in_policy(group: Option<u32>) -> u32 {
    group.map_or(ROOT_TASK_GROUP, |group| group + 1)
}
