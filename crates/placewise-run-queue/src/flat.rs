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
//! The tasks of a group that is throttled are in no order until it is back.

use placewise_policy::{Profile, TaskId};

use crate::entity::{Dequeue, Enqueue, EnqueuedBy, Entity, Tasks, Tunables};
use crate::queue::Queue;

/// MIN_SHARES, of a task in deep or crowded groups.
pub const LEAST_WEIGHT: u64 = 2;

pub struct Flat {
    queue: Queue<TaskId>,
    /// By group, as is what follows; that of the root is the root.
    parents: Vec<u32>,
    throttled: Vec<bool>,
    /// Those that wait for runtime.
    throttled_tasks: Vec<TaskId>,
}

const ROOT: u32 = 0;

impl Flat {
    pub fn new(profile: &Profile, tunables: Tunables, parents: &[u32]) -> Self {
        Flat {
            queue: Queue::new(profile, tunables),
            parents: std::iter::once(ROOT).chain(parents.iter().copied()).collect(),
            throttled: vec![false; parents.len() + 1],
            throttled_tasks: Vec::new(),
        }
    }

    /// Is the group throttled, or one that it is in?
    fn waits_for_runtime(&self, group: u32) -> bool {
        let above = |&group: &u32| (group != ROOT).then(|| self.parents[group as usize]);
        std::iter::successors(Some(group), above).any(|group| self.throttled[group as usize])
    }

    /// Is the task one of those that wait for runtime? It is none of them from now on.
    fn take_throttled(&mut self, task: TaskId) -> bool {
        let at = self.throttled_tasks.iter().position(|&other| other == task);
        at.map(|at| self.throttled_tasks.remove(at)).is_some()
    }

    pub fn waiting_tasks(&self) -> usize {
        self.queue.waiting_tasks()
    }

    #[cfg(feature = "invariants")]
    pub fn check(&self, tasks: &Tasks) {
        self.queue.check(tasks);
        let has_runtime = |task: &TaskId| !self.waits_for_runtime(tasks[*task].group);
        assert!(self.queue.tasks().iter().all(has_runtime), "what is throttled is in no order");
        assert!(!self.throttled_tasks.iter().any(has_runtime), "what is not is in order");
    }

    #[cfg(feature = "invariants")]
    pub fn tasks(&self) -> Vec<TaskId> {
        let mut tasks = self.queue.tasks();
        tasks.extend(&self.throttled_tasks);
        tasks
    }

    pub fn fork(&self, creator: &Entity, child: &mut Entity, running: u64) {
        self.queue.fork(creator, child, running);
    }

    pub fn account(&mut self, tasks: &mut Tasks, current: TaskId, ns: u64) -> bool {
        self.queue.account(tasks, current, ns)
    }

    pub fn enqueue(
        &mut self,
        tasks: &mut Tasks,
        current: Option<TaskId>,
        task: TaskId,
        why: Enqueue,
    ) {
        if self.waits_for_runtime(tasks[task].group) {
            self.throttled_tasks.push(task);
        } else {
            self.queue.enqueue(tasks, current, task, why);
        }
    }

    pub fn dequeue(
        &mut self,
        tasks: &mut Tasks,
        current: Option<TaskId>,
        task: TaskId,
        why: Dequeue,
    ) {
        if !self.take_throttled(task) {
            self.queue.dequeue(tasks, current, task, why);
        }
    }

    pub fn leave(&self, entity: &mut Entity) {
        self.queue.leave(entity);
    }

    pub fn put_back(&mut self, tasks: &Tasks, current: TaskId) {
        self.queue.put_back(tasks, current);
    }

    pub fn pick(&mut self, tasks: &mut Tasks) -> Option<TaskId> {
        self.queue.pick(tasks, None)
    }

    pub fn take(&mut self, tasks: &mut Tasks, task: TaskId) {
        self.queue.take(tasks, task);
    }

    pub fn tick(&mut self, tasks: &Tasks, current: TaskId) -> bool {
        self.queue.tick(tasks, current)
    }

    pub fn rival(
        &mut self,
        tasks: &mut Tasks,
        competitors: (TaskId, TaskId),
        by: EnqueuedBy,
    ) -> Option<TaskId> {
        self.queue.rival(tasks, competitors, by)
    }

    pub fn is_eligible(&self, tasks: &Tasks, current: Option<TaskId>, task: TaskId) -> bool {
        self.queue.is_eligible(tasks, current, task)
    }

    pub fn for_each_waiting(
        &self,
        tasks: &Tasks,
        current: Option<TaskId>,
        visit: impl FnMut(TaskId, bool),
    ) {
        self.queue.for_each_waiting(tasks, current, visit);
    }

    pub fn requeue_delayed(&mut self, tasks: &mut Tasks, current: Option<TaskId>, task: TaskId) {
        if !self.waits_for_runtime(tasks[task].group) {
            self.queue.requeue_delayed(tasks, current, task);
        }
    }

    pub fn finish_delayed(&mut self, tasks: &mut Tasks, current: Option<TaskId>, task: TaskId) {
        self.queue.finish_delayed(tasks, current, task);
    }

    pub fn throttle(&mut self, tasks: &mut Tasks, current: Option<TaskId>, group: u32) {
        self.throttled[group as usize] = true;
        let waiting = self.queue.waiting().iter().map(|place| place.entity);
        let leaving = waiting.filter(|&task| self.waits_for_runtime(tasks[task].group));
        for task in leaving.collect::<Vec<_>>() {
            self.queue.dequeue(tasks, current, task, Dequeue::Sleep);
            self.throttled_tasks.push(task);
        }
    }

    pub fn unthrottle(&mut self, tasks: &mut Tasks, current: Option<TaskId>, group: u32) {
        self.throttled[group as usize] = false;
        for task in std::mem::take(&mut self.throttled_tasks) {
            self.enqueue(tasks, current, task, Enqueue::Wakeup);
        }
    }

    /// What its groups leave the task is `weight` from now on.
    pub fn reweight(
        &mut self,
        tasks: &mut Tasks,
        current: Option<TaskId>,
        task: TaskId,
        weight: u64,
    ) {
        if tasks[task].weight != weight {
            self.queue.reweight(tasks, current, task, weight);
        }
    }
}
