//! The completely fair scheduler: the task with the least virtual runtime runs.
//!
//! One level of it; hierarchy.rs puts several together. Limits: the skip buddy
//! of sched_yield is left out; where tasks of two groups compare, those queued
//! count where their groups meet, not those in the group of the current one.

use crate::entity::{Dequeue, Enqueue, Entities, EntitiesMut, Entity, EntityId, Tunables};
use crate::waiting::{Order, Place, Waiting, WaitingTasks};

/// Up to this many tasks share one latency period.
const NR_LATENCY: u64 = 8;

pub struct Cfs<Id> {
    pub(crate) waiting: WaitingTasks<Id>,
    tunables: Tunables,
    min_vruntime: i64,
    /// The wakee that preempted last is preferred, and so is the task it preempted.
    next_buddy: Option<Id>,
    last_buddy: Option<Id>,
}

impl<Id: EntityId> Cfs<Id> {
    pub fn new(tunables: Tunables) -> Self {
        Cfs {
            waiting: WaitingTasks::new(Order::Vruntime),
            tunables,
            min_vruntime: 0,
            next_buddy: None,
            last_buddy: None,
        }
    }

    fn leftmost(&self) -> Option<&Place<Id>> {
        self.waiting.first()
    }

    fn update_min_vruntime(&mut self, current: Option<i64>) {
        let leftmost = self.leftmost().map(|place| place.key);
        let least = match (current, leftmost) {
            (Some(current), Some(leftmost)) => current.min(leftmost),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => return,
        };
        self.min_vruntime = self.min_vruntime.max(least);
    }

    /// The time in which each of `running` tasks is to run once, in ns.
    pub fn period(&self, running: u64) -> u64 {
        if running <= NR_LATENCY {
            self.tunables.latency
        } else {
            running * self.tunables.min_granularity
        }
    }

    /// A slice from its parts at all levels.
    pub fn floored(&self, slice: u64) -> u64 {
        if self.tunables.slice_floor { slice.max(self.tunables.min_granularity) } else { slice }
    }

    /// The period follows all tasks of the CPU, not only those of one level: since the floor.
    pub fn counts_all_tasks(&self) -> bool {
        self.tunables.slice_floor
    }

    /// The share of the latency period that `entity` gets, in ns.
    fn slice(&self, entity: &Entity, others: u64, running: u64) -> u64 {
        self.floored(share(self.period(running), entity.weight, others))
    }

    pub fn waiting_weight(&self) -> u64 {
        self.waiting.sums().1
    }

    pub fn fork(&self, creator: &Entity, child: &mut Entity, running: u64) {
        let others = self.waiting_weight() + creator.weight;
        let slice = self.slice(child, others, running + 1);
        self.place_child(Some(creator.vruntime), child, slice);
    }

    /// A child begins a slice behind the others, and not before its creator if that is one of them.
    pub fn place_child(&self, creator: Option<i64>, child: &mut Entity, slice: u64) {
        let start = self.min_vruntime + child.virtual_time(slice);
        child.vruntime = creator.map_or(start, |creator| creator.max(start)) - self.min_vruntime;
        child.relative = true;
    }

    pub fn account(&mut self, entities: &mut impl EntitiesMut<Id>, current: Id, ns: u64) -> bool {
        let entity = &mut entities[current];
        entity.vruntime += entity.virtual_time(ns);
        entity.ran += ns;
        self.update_min_vruntime(Some(entity.vruntime));
        false
    }

    pub fn enqueue(
        &mut self,
        entities: &mut impl EntitiesMut<Id>,
        _current: Option<Id>,
        task: Id,
        why: Enqueue,
    ) {
        let entity = &mut entities[task];
        if entity.relative {
            entity.vruntime += self.min_vruntime;
            entity.relative = false;
        }
        if why == Enqueue::Wakeup {
            let credit = (self.tunables.latency / 2) as i64;
            entity.vruntime = entity.vruntime.max(self.min_vruntime - credit);
        }
        self.waiting.push(Waiting::new(entities, task));
    }

    pub fn dequeue(
        &mut self,
        entities: &mut impl EntitiesMut<Id>,
        current: Option<Id>,
        task: Id,
        why: Dequeue,
    ) {
        if current != Some(task) {
            self.waiting.remove(&Waiting::new(entities, task));
        }
        self.forget(task);
        let current = current.filter(|&current| current != task);
        if why == Dequeue::Balance {
            self.leave(&mut entities[task]);
        }
        self.update_min_vruntime(current.map(|current| entities[current].vruntime));
    }

    fn forget(&mut self, task: Id) {
        self.next_buddy.take_if(|buddy| *buddy == task);
        self.last_buddy.take_if(|buddy| *buddy == task);
    }

    pub fn leave(&self, entity: &mut Entity) {
        if !entity.relative {
            entity.vruntime -= self.min_vruntime;
            entity.relative = true;
        }
    }

    pub fn set_next_buddy(&mut self, task: Id) {
        self.next_buddy = Some(task);
    }

    pub fn reweight(
        &mut self,
        entities: &mut impl EntitiesMut<Id>,
        _current: Option<Id>,
        task: Id,
        weight: u64,
    ) {
        let before = Waiting::new(entities, task);
        entities[task].weight = weight;
        self.waiting.replace(&before, Waiting::new(entities, task));
    }

    #[inline]
    pub fn pick(&mut self, entities: &impl Entities<Id>) -> Option<Id> {
        let left = self.leftmost()?.entity;
        let granularity = self.tunables.wakeup_granularity;
        let close = |buddy: &Id| !is_behind(&entities[*buddy], &entities[left], granularity);
        Some(self.next_buddy.filter(close).or(self.last_buddy.filter(close)).unwrap_or(left))
    }

    #[inline]
    pub fn taken(&mut self, entities: &mut impl EntitiesMut<Id>, task: Id) {
        entities[task].ran = 0;
        self.forget(task);
    }

    pub fn tick(&mut self, entities: &impl Entities<Id>, current: Id) -> bool {
        let running = self.waiting.len() as u64 + 1;
        let slice = self.slice(&entities[current], self.waiting_weight(), running);
        self.tick_with(entities, current, slice)
    }

    /// The same where levels above make the slice shorter.
    pub fn tick_with(&mut self, entities: &impl Entities<Id>, current: Id, slice: u64) -> bool {
        let entity = &entities[current];
        let Some(left) = self.leftmost() else { return false };
        if entity.ran > slice {
            self.forget(current);
            return true;
        }
        entity.ran >= self.tunables.min_granularity && entity.vruntime - left.key > slice as i64
    }

    pub fn preempts(&mut self, entities: &mut impl EntitiesMut<Id>, current: Id, task: Id) -> bool {
        let running = self.waiting.len() as u64 + 1;
        let scale = match self.tunables.wakeup_granularity_scales {
            true => (running / 2).clamp(1, NR_LATENCY),
            false => 1,
        };
        let granularity = scale * self.tunables.wakeup_granularity;
        if !is_behind(&entities[current], &entities[task], granularity) {
            return false;
        }
        self.next_buddy = Some(task);
        if running >= NR_LATENCY && !current.is_group() {
            self.last_buddy = Some(current);
        }
        true
    }
}

/// Would `wakee` be worth preempting `entity` for?
fn is_behind(entity: &Entity, wakee: &Entity, granularity: u64) -> bool {
    entity.vruntime - wakee.vruntime > wakee.virtual_time(granularity)
}

/// What `weight` gets of `time` beside `others`.
pub fn share(time: u64, weight: u64, others: u64) -> u64 {
    time * weight / (weight + others)
}

#[cfg(test)]
mod tests {
    use crate::entity::Protection;
    use placewise_policy::{Table, TaskId};

    use super::*;
    use crate::entity::NICE_0_WEIGHT;

    const TUNABLES: Tunables = Tunables {
        latency: 24_000_000,
        min_granularity: 3_000_000,
        wakeup_granularity: 4_000_000,
        wakeup_granularity_scales: false,
        slice_floor: true,
        base_slice: 0,
        lag_limit: 0,
        delayed_keeps_lag: false,
        place_lag: true,
        next_buddy: false,
        wakeup_picks: false,
        protect_by_slice: false,
        protection: Protection::Deadline,
    };

    fn entities(vruntimes: &[i64]) -> Table<TaskId, Entity> {
        let entity = |&vruntime| Entity { vruntime, weight: NICE_0_WEIGHT, ..Entity::default() };
        vruntimes.iter().map(entity).collect()
    }

    #[test]
    fn the_least_virtual_runtime_runs_and_equals_in_order() {
        let mut entities = entities(&[30, 20, 20]);
        let mut queue = Cfs::new(TUNABLES);
        for task in 0..3 {
            queue.enqueue(&mut entities, None, TaskId::new(task), Enqueue::Balance);
        }
        assert_eq!(queue.pick(&entities), Some(TaskId::new(1)));
    }

    #[test]
    fn a_sleeper_gets_half_a_latency_of_credit() {
        let mut entities = entities(&[100_000_000, 0]);
        let mut queue = Cfs::new(TUNABLES);
        queue.account(&mut entities, TaskId::new(0), 0);
        queue.enqueue(&mut entities, Some(TaskId::new(0)), TaskId::new(1), Enqueue::Wakeup);
        assert_eq!(entities[TaskId::new(1)].vruntime, 100_000_000 - 12_000_000);
        assert!(
            queue.preempts(&mut entities, TaskId::new(0), TaskId::new(1)),
            "12 ms behind is more than 4 ms"
        );
    }

    #[test]
    fn a_small_lead_does_not_preempt() {
        let mut entities = entities(&[3_000_000, 0]);
        let mut queue = Cfs::new(TUNABLES);
        queue.enqueue(&mut entities, Some(TaskId::new(0)), TaskId::new(1), Enqueue::Balance);
        assert!(!queue.preempts(&mut entities, TaskId::new(0), TaskId::new(1)));
        entities[TaskId::new(0)].vruntime = 4_000_001;
        assert!(queue.preempts(&mut entities, TaskId::new(0), TaskId::new(1)));
    }

    #[test]
    fn the_tick_ends_a_slice() {
        let mut entities = entities(&[0, 0]);
        let mut queue = Cfs::new(TUNABLES);
        queue.enqueue(&mut entities, Some(TaskId::new(0)), TaskId::new(1), Enqueue::Balance);
        queue.account(&mut entities, TaskId::new(0), 12_000_000);
        assert!(!queue.tick(&entities, TaskId::new(0)));
        queue.account(&mut entities, TaskId::new(0), 1);
        assert!(queue.tick(&entities, TaskId::new(0)));
    }

    /// Fails if current's end of slice forgets whom the wakeup before it preferred.
    #[test]
    fn the_end_of_a_slice_leaves_another_buddy_preferred() {
        let mut entities = entities(&[0, 100, 200]);
        let mut queue = Cfs::new(TUNABLES);
        let current = TaskId::new(0);
        for task in 1..3 {
            queue.enqueue(&mut entities, Some(current), TaskId::new(task), Enqueue::Balance);
        }
        queue.set_next_buddy(TaskId::new(2));
        queue.account(&mut entities, current, 12_000_000);
        assert!(queue.tick(&entities, current));
        assert_eq!(queue.pick(&entities), Some(TaskId::new(2)));
    }

    #[test]
    fn a_migrating_task_keeps_its_distance() {
        let mut entities = entities(&[50, 1_000, 1_070]);
        let (mut old, mut new) = (Cfs::new(TUNABLES), Cfs::new(TUNABLES));
        old.enqueue(&mut entities, None, TaskId::new(0), Enqueue::Balance);
        old.update_min_vruntime(None);
        new.enqueue(&mut entities, None, TaskId::new(1), Enqueue::Balance);
        new.update_min_vruntime(None);
        entities[TaskId::new(2)].vruntime = 120;
        old.enqueue(&mut entities, None, TaskId::new(2), Enqueue::Balance);
        old.dequeue(&mut entities, None, TaskId::new(2), Dequeue::Balance);
        new.enqueue(&mut entities, None, TaskId::new(2), Enqueue::Balance);
        assert_eq!(entities[TaskId::new(2)].vruntime, 1_070);
    }
}
