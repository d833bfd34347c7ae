//! The order in which the tasks of one CPU run.
//!
//! CFS until v6.5, EEVDF after; the kernel's profile chooses. A queue holds the
//! tasks that wait; the current task is passed in, since it counts in averages
//! but waits nowhere. Both keep waiting tasks in a plain vector: a CPU seldom has
//! more than a few, and their sums are kept along. Where there are task groups,
//! each has a queue of its own, and an entity in the queue above, hierarchy.rs; from v7.3 on their
//! tasks compete at one level: flat.rs.

use placewise_policy::{Profile, RUN_QUEUE_CFS, TaskId};

use crate::entity::{Dequeue, Enqueue, EnqueuedBy, Entity, Tasks, Tunables};
use crate::hierarchy::Hierarchy;
use crate::queue::Queue;

/// The run queue of a CPU, with task groups or without.
pub struct RunQueue {
    levels: Levels,
    may_preempt: MayPreempt,
}

/// Whether what is queued may preempt what runs.
#[derive(Clone, Copy, PartialEq)]
enum MayPreempt {
    Always,
    /// Only if what runs is SCHED_IDLE, and what is queued is not.
    OfIdlePolicy,
    Never,
}

enum Levels {
    One(Queue<TaskId>),
    Many(Box<Hierarchy>),
}

/// Calls the same method of one level or of a hierarchy of them.
macro_rules! levels {
    ($queue:expr, $inner:ident => $call:expr) => {
        match $queue {
            Levels::One($inner) => $call,
            Levels::Many($inner) => $call,
        }
    };
}

impl MayPreempt {
    fn of(profile: &Profile) -> Self {
        match (profile.wakeup_preemption, profile.run_queue) {
            (true, _) => MayPreempt::Always,
            (false, RUN_QUEUE_CFS) => MayPreempt::OfIdlePolicy,
            (false, _) => MayPreempt::Never,
        }
    }
}

impl RunQueue {
    pub fn new(profile: &Profile, tunables: Tunables) -> Self {
        let levels = Levels::One(Queue::new(profile, tunables));
        RunQueue { levels, may_preempt: MayPreempt::of(profile) }
    }

    /// A queue with a level for each task group, or from v7.3 on with one for the tasks of all: `parents` names the
    /// parent of group 1, of group 2, and so on; group 0 is the root.
    pub fn with_groups(profile: &Profile, tunables: Tunables, parents: &[u32]) -> Self {
        if parents.is_empty() || profile.flat_queue {
            return RunQueue::new(profile, tunables);
        }
        let levels = Levels::Many(Box::new(Hierarchy::new(profile, tunables, parents)));
        RunQueue { levels, may_preempt: MayPreempt::of(profile) }
    }

    /// Tasks that wait for the CPU, and not for runtime.
    pub fn len(&self) -> usize {
        levels!(&self.levels, queue => queue.waiting_tasks())
    }

    #[cfg(feature = "invariants")]
    pub fn check(&self, entities: &Tasks) {
        levels!(&self.levels, queue => queue.check(entities));
    }

    /// The tasks that wait, for whatever, in no order.
    #[cfg(feature = "invariants")]
    pub fn tasks(&self) -> Vec<TaskId> {
        levels!(&self.levels, queue => queue.tasks())
    }

    /// A child starts from its creator's place in the creator's queue.
    pub fn fork(&self, creator: &Entity, child: &mut Entity, running: u64) {
        levels!(&self.levels, queue => queue.fork(creator, child, running))
    }

    /// The current task ran for `ns`; true if it should be rescheduled.
    #[inline]
    pub fn account(&mut self, entities: &mut Tasks, current: TaskId, ns: u64) -> bool {
        levels!(&mut self.levels, queue => queue.account(entities, current, ns))
    }

    pub fn enqueue(
        &mut self,
        entities: &mut Tasks,
        current: Option<TaskId>,
        task: TaskId,
        why: Enqueue,
    ) {
        levels!(&mut self.levels, queue => queue.enqueue(entities, current, task, why));
    }

    /// Takes out a waiting task, or the current one.
    pub fn dequeue(
        &mut self,
        entities: &mut Tasks,
        current: Option<TaskId>,
        task: TaskId,
        why: Dequeue,
    ) {
        levels!(&mut self.levels, queue => queue.dequeue(entities, current, task, why));
    }

    /// A blocked task of this queue goes to another CPU.
    pub fn leave(&self, entity: &mut Entity) {
        levels!(&self.levels, queue => queue.leave(entity));
    }

    /// The current task waits again.
    pub fn put_back(&mut self, entities: &Tasks, current: TaskId) {
        levels!(&mut self.levels, queue => queue.put_back(entities, current));
    }

    /// The task to run next; it stays in the queue until it is taken.
    #[inline]
    pub fn pick(&mut self, entities: &mut Tasks) -> Option<TaskId> {
        match &mut self.levels {
            Levels::One(queue) => queue.pick(entities, None),
            Levels::Many(queue) => queue.pick(entities),
        }
    }

    /// The picked task becomes current.
    #[inline]
    pub fn take(&mut self, entities: &mut Tasks, task: TaskId) {
        levels!(&mut self.levels, queue => queue.take(entities, task));
    }

    /// What runs next is none of these tasks.
    #[inline]
    pub fn rest(&mut self) {
        if let Levels::Many(queue) = &mut self.levels {
            queue.rest();
        }
    }

    /// The current task has had its share at a tick.
    pub fn tick(&mut self, entities: &Tasks, current: TaskId) -> bool {
        levels!(&mut self.levels, queue => queue.tick(entities, current))
    }

    /// Who would run instead of the current task, now that `task` is enqueued, if it may preempt that: it, or a
    /// task that it competes with.
    pub fn rival(
        &mut self,
        entities: &mut Tasks,
        (current, task): (TaskId, TaskId),
        by: EnqueuedBy,
    ) -> Option<TaskId> {
        if self.may_preempt == MayPreempt::Never {
            return None;
        }
        let (now, then) = (entities[current].idle_policy, entities[task].idle_policy);
        if now != then || self.may_preempt == MayPreempt::OfIdlePolicy {
            return (now && !then).then_some(task);
        }
        levels!(&mut self.levels, queue => queue.rival(entities, (current, task), by))
    }

    /// Has the task had no more than its share? Always so for CFS.
    pub fn is_eligible(&self, entities: &Tasks, current: Option<TaskId>, task: TaskId) -> bool {
        levels!(&self.levels, queue => queue.is_eligible(entities, current, task))
    }

    /// Visits the waiting tasks, with whether they are eligible.
    pub fn for_each_waiting(
        &self,
        entities: &Tasks,
        current: Option<TaskId>,
        visit: impl FnMut(TaskId, bool),
    ) {
        levels!(&self.levels, queue => queue.for_each_waiting(entities, current, visit))
    }

    /// The current task sleeps, but stays to win its lag back.
    pub fn delay(&mut self, entities: &mut Tasks, task: TaskId) {
        if let Levels::One(queue) = &mut self.levels {
            queue.delay(entities, task);
        }
    }

    /// A delayed task is woken where it is.
    pub fn requeue_delayed(&mut self, entities: &mut Tasks, current: Option<TaskId>, task: TaskId) {
        levels!(&mut self.levels, queue => queue.requeue_delayed(entities, current, task))
    }

    /// A task is to be enqueued: a delayed entity of a group that it is in is woken where it is.
    pub fn requeue_delayed_group(
        &mut self,
        entities: &mut Tasks,
        current: Option<TaskId>,
        task: TaskId,
    ) {
        if let Levels::Many(queue) = &mut self.levels {
            queue.requeue_delayed_group(entities, current, task);
        }
    }

    /// Does the entity of a group stay queued without tasks?
    pub fn is_group_delayed(&self, group: u32) -> bool {
        matches!(&self.levels, Levels::Many(queue) if queue.is_delayed(group))
    }

    #[inline]
    pub fn has_delayed_groups(&self) -> bool {
        matches!(&self.levels, Levels::Many(queue) if queue.has_delayed())
    }

    /// A group whose entity has stayed so, and has left since this was asked last.
    #[inline]
    pub fn take_spent_group(&mut self) -> Option<u32> {
        match &mut self.levels {
            Levels::One(_) => None,
            Levels::Many(queue) => queue.take_spent(),
        }
    }

    /// A delayed task leaves because it was picked; its lag is not positive.
    pub fn finish_delayed(&mut self, entities: &mut Tasks, current: Option<TaskId>, task: TaskId) {
        levels!(&mut self.levels, queue => queue.finish_delayed(entities, current, task))
    }

    /// A task group is out of runtime: it leaves with all its tasks, none of which is current.
    pub fn throttle(&mut self, entities: &mut Tasks, current: Option<TaskId>, group: u32) {
        if let Levels::Many(queue) = &mut self.levels {
            queue.throttle(entities, current, group);
        }
    }

    /// It has got some: it is back, if it has tasks.
    pub fn unthrottle(&mut self, entities: &mut Tasks, current: Option<TaskId>, group: u32) {
        if let Levels::Many(queue) = &mut self.levels {
            queue.unthrottle(entities, current, group);
        }
    }

    /// The entity of a task group has another weight here from now on.
    pub fn reweight_group(
        &mut self,
        entities: &mut Tasks,
        current: Option<TaskId>,
        group: u32,
        weight: u64,
    ) {
        if let Levels::Many(queue) = &mut self.levels {
            queue.reweight_group(entities, current, group, weight);
        }
    }

    /// Where tasks of all groups compete: what its groups leave one that is queued here.
    pub fn reweight_task(
        &mut self,
        entities: &mut Tasks,
        current: Option<TaskId>,
        task: TaskId,
        weight: u64,
    ) {
        if entities[task].weight != weight
            && let Levels::One(queue) = &mut self.levels
        {
            queue.reweight(entities, current, task, weight);
        }
    }

    /// The weights of the task groups' entities that are queued, by group.
    #[cfg(feature = "invariants")]
    pub fn group_weights(&self) -> Vec<(u32, u64)> {
        match &self.levels {
            Levels::One(_) => Vec::new(),
            Levels::Many(queue) => queue.group_weights(),
        }
    }
}
