//! The order in which the tasks of one CPU run.
//!
//! CFS until v6.5, EEVDF after; the kernel's profile chooses. A queue holds the
//! tasks that wait; the current task is passed in, since it counts in averages
//! but waits nowhere. Both keep waiting tasks in a plain vector: a CPU seldom has
//! more than a few, and their sums are kept along. Where there are task groups,
//! each has a queue of its own, and an entity in the queue above: hierarchy.rs.

use crate::cfs::Cfs;
use crate::eevdf::Eevdf;
use crate::hierarchy::Hierarchy;
use crate::waiting::{Waiting, WaitingTasks};

use placewise_policy::{Profile, RUN_QUEUE_EEVDF};

/// Weight of a task at nice 0; virtual time is real time at this weight.
pub const NICE_0_WEIGHT: u64 = 1024;

/// What a run queue knows of a task, waiting or not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entity {
    /// Virtual runtime; relative to its queue's while `relative`.
    pub vruntime: i64,
    pub relative: bool,
    pub weight: u64,
    pub idle_policy: bool,
    /// CPU time since it was last picked, in ns.
    pub ran: u64,
    /// EEVDF: relative to `vruntime` while `relative`.
    pub deadline: i64,
    /// EEVDF: virtual lag when it was dequeued.
    pub lag: i64,
    /// EEVDF: current is not preempted before it gets here.
    pub protected_until: i64,
    /// Its task group; 0 is the root.
    pub group: u32,
    /// It has come to another CPU since it was queued last.
    pub migrated: bool,
}

/// In the number of an entity: it stands for a task group.
pub const GROUP: u32 = 1 << 31;

/// The entities of a queue by their numbers.
pub trait Entities {
    fn entity(&self, number: u32) -> &Entity;
    fn entity_mut(&mut self, number: u32) -> &mut Entity;
}

impl Entities for [Entity] {
    #[inline]
    fn entity(&self, number: u32) -> &Entity {
        &self[number as usize]
    }

    #[inline]
    fn entity_mut(&mut self, number: u32) -> &mut Entity {
        &mut self[number as usize]
    }
}

impl Entity {
    /// `ns` of CPU time as virtual time.
    #[inline]
    pub fn virtual_time(&self, ns: u64) -> i64 {
        if self.weight == NICE_0_WEIGHT {
            ns as i64
        } else {
            (ns * NICE_0_WEIGHT / self.weight) as i64
        }
    }

    pub fn start_without_lag(&mut self) {
        let Entity { weight, idle_policy, group, .. } = *self;
        *self = Entity { weight, idle_policy, group, ..Entity::default() };
    }
}

/// Why a task enters a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueue {
    Fork,
    Wakeup,
    Balance,
}

/// Why a task leaves a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue {
    Sleep,
    Balance,
}

/// Time constants, scaled with the number of CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Tunables {
    pub latency: u64,
    pub min_granularity: u64,
    pub wakeup_granularity: u64,
    pub slice_floor: bool,
    pub base_slice: u64,
    pub tick: u64,
    /// Protection of current follows `protected_until` instead of the deadline.
    pub protect_by_slice: bool,
}

impl Tunables {
    pub fn new(profile: &Profile, scale: u32, tick: u64) -> Self {
        let scale = u64::from(scale);
        Tunables {
            latency: 6_000_000 * scale,
            min_granularity: 750_000 * scale,
            wakeup_granularity: 1_000_000 * scale,
            slice_floor: profile.slice_floor,
            base_slice: u64::from(profile.base_slice_us) * 1_000 * scale,
            tick,
            protect_by_slice: profile.vprot,
        }
    }
}

/// One level of a run queue.
pub enum Queue {
    Cfs(Cfs),
    Eevdf(Eevdf),
}

/// Calls the same method of either class.
macro_rules! either {
    ($queue:expr, $inner:ident => $call:expr) => {
        match $queue {
            Queue::Cfs($inner) => $call,
            Queue::Eevdf($inner) => $call,
        }
    };
}

impl Queue {
    pub fn new(profile: &Profile, tunables: Tunables) -> Self {
        if profile.run_queue == RUN_QUEUE_EEVDF {
            Queue::Eevdf(Eevdf::new(tunables))
        } else {
            Queue::Cfs(Cfs::new(tunables))
        }
    }

    pub fn waiting(&self) -> &WaitingTasks {
        either!(self, queue => &queue.waiting)
    }

    pub fn waiting_tasks(&self) -> usize {
        self.waiting().len()
    }

    #[cfg(feature = "invariants")]
    pub fn check(&self, entities: &(impl Entities + ?Sized)) {
        self.waiting().check(entities);
    }

    #[cfg(feature = "invariants")]
    pub fn tasks(&self) -> Vec<u32> {
        self.waiting().iter().map(|waiting| waiting.task).collect()
    }

    pub fn fork(&self, creator: &Entity, child: &mut Entity, running: u64) {
        match self {
            Queue::Cfs(queue) => queue.fork(creator, child, running),
            Queue::Eevdf(_) => child.start_without_lag(),
        }
    }

    #[inline]
    pub fn account(
        &mut self,
        entities: &mut (impl Entities + ?Sized),
        current: u32,
        ns: u64,
    ) -> bool {
        either!(self, queue => queue.account(entities, current, ns))
    }

    pub fn enqueue(
        &mut self,
        entities: &mut (impl Entities + ?Sized),
        current: Option<u32>,
        task: u32,
        why: Enqueue,
    ) {
        either!(self, queue => queue.enqueue(entities, current, task, why));
    }

    pub fn dequeue(
        &mut self,
        entities: &mut (impl Entities + ?Sized),
        current: Option<u32>,
        task: u32,
        why: Dequeue,
    ) {
        either!(self, queue => queue.dequeue(entities, current, task, why));
    }

    pub fn leave(&self, entity: &mut Entity) {
        if let Queue::Cfs(queue) = self {
            queue.leave(entity);
        }
    }

    pub fn put_back(&mut self, entities: &(impl Entities + ?Sized), current: u32) {
        either!(self, queue => queue.waiting.push(Waiting::new(entities, current)));
    }

    pub fn pick(&mut self, entities: &(impl Entities + ?Sized)) -> Option<u32> {
        either!(self, queue => queue.pick(entities))
    }

    pub fn take(&mut self, entities: &mut (impl Entities + ?Sized), task: u32) {
        either!(self, queue => {
            assert!(queue.waiting.remove(task), "the picked task waits");
            queue.taken(entities, task);
        });
    }

    pub fn tick(&mut self, entities: &(impl Entities + ?Sized), current: u32) -> bool {
        either!(self, queue => queue.tick(entities, current))
    }

    pub fn preempts(
        &mut self,
        entities: &mut (impl Entities + ?Sized),
        current: u32,
        task: u32,
    ) -> bool {
        either!(self, queue => queue.preempts(entities, current, task))
    }

    pub fn set_next_buddy(&mut self, task: u32) {
        either!(self, queue => queue.set_next_buddy(task));
    }

    pub fn reweight(
        &mut self,
        entities: &mut (impl Entities + ?Sized),
        current: Option<u32>,
        task: u32,
        weight: u64,
    ) {
        either!(self, queue => queue.reweight(entities, current, task, weight));
    }

    pub fn is_eligible(
        &self,
        entities: &(impl Entities + ?Sized),
        current: Option<u32>,
        task: u32,
    ) -> bool {
        match self {
            Queue::Cfs(_) => true,
            Queue::Eevdf(queue) => queue.is_eligible(entities, current, task),
        }
    }

    pub fn for_each_waiting(
        &self,
        entities: &(impl Entities + ?Sized),
        current: Option<u32>,
        mut visit: impl FnMut(u32, bool),
    ) {
        match self {
            Queue::Cfs(queue) => queue.waiting.iter().for_each(|waiting| visit(waiting.task, true)),
            Queue::Eevdf(queue) => queue.for_each_waiting(entities, current, visit),
        }
    }

    pub fn requeue_delayed(
        &mut self,
        entities: &mut (impl Entities + ?Sized),
        current: Option<u32>,
        task: u32,
    ) {
        if let Queue::Eevdf(queue) = self {
            queue.requeue_delayed(entities, current, task);
        }
    }

    pub fn finish_delayed(&mut self, entities: &mut (impl Entities + ?Sized), task: u32) {
        if let Queue::Eevdf(queue) = self {
            queue.finish_delayed(entities, task);
        }
    }
}

/// The run queue of a CPU, with task groups or without.
pub struct RunQueue(Levels);

enum Levels {
    One(Queue),
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

impl RunQueue {
    pub fn new(profile: &Profile, tunables: Tunables) -> Self {
        RunQueue(Levels::One(Queue::new(profile, tunables)))
    }

    /// A queue with a level for each task group: `parents` names the parent of group 1, of group
    /// 2, and so on; group 0 is the root.
    pub fn with_groups(profile: &Profile, tunables: Tunables, parents: &[u32]) -> Self {
        if parents.is_empty() {
            return RunQueue::new(profile, tunables);
        }
        RunQueue(Levels::Many(Box::new(Hierarchy::new(profile, tunables, parents))))
    }

    /// Tasks that wait for the CPU, and not for runtime.
    pub fn len(&self) -> usize {
        levels!(&self.0, queue => queue.waiting_tasks())
    }

    #[cfg(feature = "invariants")]
    pub fn check(&self, entities: &[Entity]) {
        levels!(&self.0, queue => queue.check(entities));
    }

    /// The tasks that wait, for whatever, in no order.
    #[cfg(feature = "invariants")]
    pub fn tasks(&self) -> Vec<u32> {
        levels!(&self.0, queue => queue.tasks())
    }

    /// A child starts from its creator's place in the creator's queue.
    pub fn fork(&self, creator: &Entity, child: &mut Entity, running: u64) {
        levels!(&self.0, queue => queue.fork(creator, child, running))
    }

    /// The current task ran for `ns`; true if it should be rescheduled.
    #[inline]
    pub fn account(&mut self, entities: &mut [Entity], current: u32, ns: u64) -> bool {
        levels!(&mut self.0, queue => queue.account(entities, current, ns))
    }

    pub fn enqueue(
        &mut self,
        entities: &mut [Entity],
        current: Option<u32>,
        task: u32,
        why: Enqueue,
    ) {
        levels!(&mut self.0, queue => queue.enqueue(entities, current, task, why));
    }

    /// Takes out a waiting task, or the current one.
    pub fn dequeue(
        &mut self,
        entities: &mut [Entity],
        current: Option<u32>,
        task: u32,
        why: Dequeue,
    ) {
        levels!(&mut self.0, queue => queue.dequeue(entities, current, task, why));
    }

    /// A blocked task of this queue goes to another CPU.
    pub fn leave(&self, entity: &mut Entity) {
        levels!(&self.0, queue => queue.leave(entity));
    }

    /// The current task waits again.
    pub fn put_back(&mut self, entities: &[Entity], current: u32) {
        levels!(&mut self.0, queue => queue.put_back(entities, current));
    }

    /// The task to run next; it stays in the queue until it is taken.
    pub fn pick(&mut self, entities: &[Entity]) -> Option<u32> {
        levels!(&mut self.0, queue => queue.pick(entities))
    }

    /// The picked task becomes current.
    pub fn take(&mut self, entities: &mut [Entity], task: u32) {
        levels!(&mut self.0, queue => queue.take(entities, task));
    }

    /// The current task has had its share at a tick.
    pub fn tick(&mut self, entities: &[Entity], current: u32) -> bool {
        levels!(&mut self.0, queue => queue.tick(entities, current))
    }

    /// Does a task that was just enqueued preempt the current one?
    pub fn preempts(&mut self, entities: &mut [Entity], current: u32, task: u32) -> bool {
        let (now, then) =
            (entities[current as usize].idle_policy, entities[task as usize].idle_policy);
        if now != then {
            return now;
        }
        levels!(&mut self.0, queue => queue.preempts(entities, current, task))
    }

    /// Has the task had no more than its share? Always so for CFS.
    pub fn is_eligible(&self, entities: &[Entity], current: Option<u32>, task: u32) -> bool {
        levels!(&self.0, queue => queue.is_eligible(entities, current, task))
    }

    /// Visits the waiting tasks, with whether they are eligible.
    pub fn for_each_waiting(
        &self,
        entities: &[Entity],
        current: Option<u32>,
        visit: impl FnMut(u32, bool),
    ) {
        levels!(&self.0, queue => queue.for_each_waiting(entities, current, visit))
    }

    /// A delayed task is woken where it is.
    pub fn requeue_delayed(&mut self, entities: &mut [Entity], current: Option<u32>, task: u32) {
        levels!(&mut self.0, queue => queue.requeue_delayed(entities, current, task))
    }

    /// A delayed task leaves because it was picked; its lag is not positive.
    pub fn finish_delayed(&mut self, entities: &mut [Entity], task: u32) {
        levels!(&mut self.0, queue => queue.finish_delayed(entities, task))
    }

    /// A task group is out of runtime: it leaves with all its tasks, none of which is current.
    pub fn throttle(&mut self, entities: &mut [Entity], current: Option<u32>, group: u32) {
        if let Levels::Many(queue) = &mut self.0 {
            queue.throttle(entities, current, group);
        }
    }

    /// It has got some: it is back, if it has tasks.
    pub fn unthrottle(&mut self, entities: &mut [Entity], current: Option<u32>, group: u32) {
        if let Levels::Many(queue) = &mut self.0 {
            queue.unthrottle(entities, current, group);
        }
    }

    /// The entity of a task group has another weight here from now on.
    pub fn reweight_group(
        &mut self,
        entities: &mut [Entity],
        current: Option<u32>,
        group: u32,
        weight: u64,
    ) {
        if let Levels::Many(queue) = &mut self.0 {
            queue.reweight_group(entities, current, group, weight);
        }
    }

    /// The weights of the task groups' entities that are queued, by group.
    #[cfg(feature = "invariants")]
    pub fn group_weights(&self) -> Vec<(u32, u64)> {
        match &self.0 {
            Levels::One(_) => Vec::new(),
            Levels::Many(queue) => queue.group_weights(),
        }
    }
}
