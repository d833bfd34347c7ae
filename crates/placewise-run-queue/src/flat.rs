//! Task groups where all tasks of a CPU compete at one level (v7.3).
//!
//! ```text
//!   queue   task 7, of the root   task 8, of group 1   task 9, of group 1
//! ```
//!
//! A task has no group's entity above it here, but a weight that stands for them: what its group is
//! worth on the CPU, by its part in the group's own queue, and so on up to the root. That is worked
//! out when the task is enqueued, when it is picked, and at each tick while it runs; what others are
//! worth meanwhile stays as it was.
//!
//! The tasks of a group that is throttled are in no queue until it is back.

use placewise_policy::*;

use crate::entity::{Dequeue, Enqueue, scale_load};
use crate::scheduler::Scheduler;

/// MIN_SHARES, of a task in deep or crowded groups.
const LEAST_WEIGHT: u64 = 2;

impl Scheduler {
    /// Is it in a group, and beside the tasks of others all the same?
    #[inline]
    pub(crate) fn competes_beside_groups(&self, task: TaskId) -> bool {
        self.policy.task[task].task_group != ROOT_TASK_GROUP && self.policy.profile.flat_queue
    }

    /// Weighs a task that is to be enqueued; false if it has to wait for runtime before.
    pub(crate) fn joins_by_groups(&mut self, cpu: CpuId, task: TaskId) -> bool {
        if self.waits_for_runtime(task) {
            self.cpus[cpu].throttled.push(task);
            return false;
        }
        let weight = self.weight_of_groups(task);
        self.entities[task].reweigh(weight);
        true
    }

    /// A task that is queued weighs what its groups leave it.
    #[inline]
    pub(crate) fn weigh_by_groups(&mut self, cpu: CpuId, task: TaskId) {
        if self.competes_beside_groups(task) {
            let weight = self.weight_of_groups(task);
            let current = self.running_fair(cpu);
            self.cpus[cpu].queue.reweight_task(&mut self.entities, current, task, weight);
        }
    }

    /// __calc_prop_weight: at each level its part of the queue there, of what the group has in the one above.
    fn weight_of_groups(&self, task: TaskId) -> u64 {
        let Task { weight, mut task_group, cpu, .. } = self.policy.task[task];
        let mut weight = scale_load(weight);
        while task_group != ROOT_TASK_GROUP {
            let group = &self.policy.group_rq[task_group as usize][CpuId::from(cpu)];
            weight = weight * u64::from(group.weight) / group.cfs.load_weight.max(1);
            task_group = self.policy.task_group[task_group as usize].parent;
        }
        weight.max(LEAST_WEIGHT)
    }

    /// Leaves, if it waits for runtime.
    pub(crate) fn leaves_throttled(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let throttled = &mut self.cpus[cpu].throttled;
        let at = throttled.iter().position(|&other| other == task);
        at.map(|at| throttled.remove(at)).is_some()
    }

    /// A group has been throttled: its tasks leave the queue.
    pub(crate) fn throttle_tasks(&mut self, cpu: CpuId) {
        let mut waiting = Vec::new();
        let queue = &self.cpus[cpu].queue;
        queue.for_each_waiting(&self.entities, None, |task, _| waiting.push(task));
        for task in waiting {
            if self.competes_beside_groups(task) && self.waits_for_runtime(task) {
                self.leave_queue(cpu, task, Dequeue::Sleep);
                self.cpus[cpu].throttled.push(task);
            }
        }
    }

    /// A group is back, with those of its tasks that no other keeps.
    pub(crate) fn unthrottle_tasks(&mut self, cpu: CpuId) {
        for task in std::mem::take(&mut self.cpus[cpu].throttled) {
            self.join_queue(cpu, task, Enqueue::Wakeup);
        }
    }
}
