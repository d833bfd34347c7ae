//! One level of a run queue: CFS or EEVDF.

use placewise_policy::{Profile, RUN_QUEUE_EEVDF};

use crate::cfs::Cfs;
use crate::eevdf::Eevdf;
use crate::entity::{
    Dequeue, Enqueue, EnqueuedBy, Entities, EntitiesMut, Entity, EntityId, Tunables,
};
use crate::waiting::{Waiting, WaitingTasks};

/// One level of a run queue.
pub enum Queue<Id> {
    Cfs(Cfs<Id>),
    Eevdf(Eevdf<Id>),
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

impl<Id: EntityId> Queue<Id> {
    pub fn new(profile: &Profile, tunables: Tunables) -> Self {
        if profile.run_queue == RUN_QUEUE_EEVDF {
            Queue::Eevdf(Eevdf::new(tunables))
        } else {
            Queue::Cfs(Cfs::new(tunables))
        }
    }

    pub fn waiting(&self) -> &WaitingTasks<Id> {
        either!(self, queue => &queue.waiting)
    }

    pub fn waiting_tasks(&self) -> usize {
        self.waiting().len()
    }

    #[cfg(feature = "invariants")]
    pub fn check(&self, entities: &impl Entities<Id>) {
        self.waiting().check(entities);
    }

    #[cfg(feature = "invariants")]
    pub fn tasks(&self) -> Vec<Id> {
        self.waiting().iter().map(|place| place.entity).collect()
    }

    pub fn fork(&self, creator: &Entity, child: &mut Entity, running: u64) {
        match self {
            Queue::Cfs(queue) => queue.fork(creator, child, running),
            Queue::Eevdf(_) => child.start_without_lag(),
        }
    }

    #[inline]
    pub fn account(&mut self, entities: &mut impl EntitiesMut<Id>, current: Id, ns: u64) -> bool {
        either!(self, queue => queue.account(entities, current, ns))
    }

    pub fn enqueue(
        &mut self,
        entities: &mut impl EntitiesMut<Id>,
        current: Option<Id>,
        task: Id,
        why: Enqueue,
    ) {
        either!(self, queue => queue.enqueue(entities, current, task, why));
    }

    pub fn dequeue(
        &mut self,
        entities: &mut impl EntitiesMut<Id>,
        current: Option<Id>,
        task: Id,
        why: Dequeue,
    ) {
        either!(self, queue => queue.dequeue(entities, current, task, why));
    }

    pub fn leave(&self, entity: &mut Entity) {
        if let Queue::Cfs(queue) = self {
            queue.leave(entity);
        }
    }

    pub fn put_back(&mut self, entities: &impl Entities<Id>, current: Id) {
        either!(self, queue => queue.waiting.push(Waiting::new(entities, current)));
    }

    #[inline]
    pub fn pick(&mut self, entities: &impl Entities<Id>, last: Option<Id>) -> Option<Id> {
        match self {
            Queue::Cfs(queue) => queue.pick(entities),
            Queue::Eevdf(queue) => queue.pick(entities, last),
        }
    }

    #[inline]
    pub fn take(&mut self, entities: &mut impl EntitiesMut<Id>, task: Id) {
        either!(self, queue => {
            assert!(queue.waiting.remove(&Waiting::new(entities, task)), "the picked task waits");
            queue.taken(entities, task);
        });
    }

    pub fn tick(&mut self, entities: &impl Entities<Id>, current: Id) -> bool {
        either!(self, queue => queue.tick(entities, current))
    }

    /// Who would run instead of current, now that the task is queued.
    pub fn rival(
        &mut self,
        entities: &mut impl EntitiesMut<Id>,
        (current, task): (Id, Id),
        by: EnqueuedBy,
    ) -> Option<Id> {
        match self {
            Queue::Cfs(queue) => queue.preempts(entities, current, task).then_some(task),
            Queue::Eevdf(queue) => queue.rival(entities, (current, task), by),
        }
    }

    pub fn set_next_buddy(&mut self, task: Id) {
        either!(self, queue => queue.set_next_buddy(task));
    }

    pub fn reweight(
        &mut self,
        entities: &mut impl EntitiesMut<Id>,
        current: Option<Id>,
        task: Id,
        weight: u64,
    ) {
        either!(self, queue => queue.reweight(entities, current, task, weight));
    }

    pub fn is_eligible(&self, entities: &impl Entities<Id>, current: Option<Id>, task: Id) -> bool {
        match self {
            Queue::Cfs(_) => true,
            Queue::Eevdf(queue) => queue.is_eligible(entities, current, task),
        }
    }

    pub fn delays(
        &mut self,
        entities: &impl Entities<Id>,
        current: Option<Id>,
        entity: Id,
    ) -> bool {
        match self {
            Queue::Cfs(_) => false,
            Queue::Eevdf(queue) => queue.delays(entities, current, entity),
        }
    }

    pub fn for_each_waiting(
        &self,
        entities: &impl Entities<Id>,
        current: Option<Id>,
        mut visit: impl FnMut(Id, bool),
    ) {
        match self {
            Queue::Cfs(queue) => queue.waiting.iter().for_each(|place| visit(place.entity, true)),
            Queue::Eevdf(queue) => queue.for_each_waiting(entities, current, visit),
        }
    }

    pub fn delay(&mut self, entities: &mut impl EntitiesMut<Id>, task: Id) {
        if let Queue::Eevdf(queue) = self {
            queue.delay(entities, task);
        }
    }

    pub fn requeue_delayed(
        &mut self,
        entities: &mut impl EntitiesMut<Id>,
        current: Option<Id>,
        task: Id,
    ) {
        if let Queue::Eevdf(queue) = self {
            queue.requeue_delayed(entities, current, task);
        }
    }

    pub fn finish_delayed(
        &mut self,
        entities: &mut impl EntitiesMut<Id>,
        current: Option<Id>,
        task: Id,
    ) {
        if let Queue::Eevdf(queue) = self {
            queue.finish_delayed(entities, current, task);
        }
    }
}
