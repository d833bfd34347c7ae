//! Task groups where all tasks of a CPU compete at one level (v7.3).
//!
//! ```text
//!   queue   task 7, of the root   task 8, of group 1   task 9, of group 1
//! ```
//!
//! A task has no group's entity above it here, but a weight that stands for them: what its group is
//! worth on the CPU, by its part in the group's own queue, and so on up to the root. The scheduler
//! says what that is, which is when the task is enqueued, when it is picked, and at each tick while
//! it runs; what others are worth meanwhile stays as it was.
//!
//! The tasks of a group that is throttled are in no queue until it is back.

use placewise_policy::TaskId;

use crate::entity::{Dequeue, Enqueue, Tasks};
use crate::queue::Queue;

/// MIN_SHARES, of a task in deep or crowded groups.
pub const LEAST_WEIGHT: u64 = 2;

const ROOT: u32 = 0;

/// Those that wait for runtime.
pub struct ThrottledTasks {
    /// By group, as is what follows; that of the root is the root.
    parents: Vec<u32>,
    throttled: Vec<bool>,
    pub tasks: Vec<TaskId>,
}

impl ThrottledTasks {
    pub fn new(parents: &[u32]) -> Self {
        ThrottledTasks {
            parents: std::iter::once(ROOT).chain(parents.iter().copied()).collect(),
            throttled: vec![false; parents.len() + 1],
            tasks: Vec::new(),
        }
    }

    /// Is the group throttled, or one that it is in?
    pub fn waits_for_runtime(&self, group: u32) -> bool {
        let above = |&group: &u32| (group != ROOT).then(|| self.parents[group as usize]);
        std::iter::successors(Some(group), above).any(|group| self.throttled[group as usize])
    }

    /// A task that comes to the queue is one of these instead, if its group is throttled.
    pub fn keep(&mut self, tasks: &Tasks, task: TaskId) -> bool {
        let keeps = self.waits_for_runtime(tasks[task].group);
        self.tasks.extend(keeps.then_some(task));
        keeps
    }

    /// A task goes, if it is one of these.
    pub fn take(&mut self, task: TaskId) -> bool {
        let at = self.tasks.iter().position(|&other| other == task);
        at.map(|at| self.tasks.remove(at)).is_some()
    }

    pub fn throttle(
        &mut self,
        queue: &mut Queue<TaskId>,
        tasks: &mut Tasks,
        current: Option<TaskId>,
        group: u32,
    ) {
        self.throttled[group as usize] = true;
        let waiting: Vec<TaskId> = queue.waiting().iter().map(|place| place.entity).collect();
        for task in waiting {
            if self.keep(tasks, task) {
                queue.dequeue(tasks, current, task, Dequeue::Sleep);
            }
        }
    }

    pub fn unthrottle(
        &mut self,
        queue: &mut Queue<TaskId>,
        tasks: &mut Tasks,
        current: Option<TaskId>,
        group: u32,
    ) {
        self.throttled[group as usize] = false;
        for task in std::mem::take(&mut self.tasks) {
            if !self.keep(tasks, task) {
                queue.enqueue(tasks, current, task, Enqueue::Wakeup);
            }
        }
    }
}
