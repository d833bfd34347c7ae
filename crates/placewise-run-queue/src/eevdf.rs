//! Earliest eligible virtual deadline first (v6.6 on).
//!
//! A task is eligible while it has had no more than its share, that is, while
//! its virtual runtime is not ahead of the weighted average V. Of the eligible
//! tasks the one with the earliest deadline runs, and current runs on while it
//! is eligible and protected.
//!
//! One level of it; hierarchy.rs puts several together. Limits: one slice length
//! for all tasks, so that the rules for shorter slices never act, and that the
//! smallest slice in a task group, which is its entity's, is this one too.

use crate::entity::{
    Dequeue, Enqueue, EnqueuedBy, Entities, EntitiesMut, Entity, EntityId, Protection, Tunables,
};
use crate::waiting::{Order, Place, Waiting, WaitingTasks};

pub struct Eevdf<Id> {
    pub(crate) waiting: WaitingTasks<Id>,
    tunables: Tunables,
    /// V while nothing is queued.
    last_average: i64,
    /// The task group that one of its tasks slept in last is preferred, or a wakee that is nominated.
    next_buddy: Option<Id>,
}

/// Sums over the queued tasks, current included.
struct Average {
    weighted: i128,
    weight: i128,
}

impl Average {
    #[inline]
    fn value(&self) -> i64 {
        match narrow(self.weighted, self.weight) {
            Some((weighted, weight)) => weighted.div_euclid(weight),
            None => self.weighted.div_euclid(self.weight) as i64,
        }
    }

    /// Compared exactly, without the division.
    fn admits(&self, vruntime: i64) -> bool {
        i128::from(vruntime) * self.weight <= self.weighted
    }
}

impl<Id: EntityId> Eevdf<Id> {
    pub fn new(tunables: Tunables) -> Self {
        let waiting = WaitingTasks::new(Order::Deadline);
        Eevdf { waiting, tunables, last_average: 0, next_buddy: None }
    }

    fn average(&self, entities: &impl Entities<Id>, current: Option<Id>) -> Option<Average> {
        let current = current.map(|current| Waiting::new(entities, current));
        let (weighted, weight) = self.waiting.sums();
        let average = Average {
            weighted: weighted + current.map_or(0, |current| current.weighted()),
            weight: i128::from(weight + current.map_or(0, |current| current.weight)),
        };
        (average.weight > 0).then_some(average)
    }

    fn virtual_slice(&self, entity: &Entity) -> i64 {
        entity.virtual_time(self.tunables.base_slice)
    }

    fn lag(&self, entity: &Entity, average: i64) -> i64 {
        let limit = entity.virtual_time(self.tunables.lag_limit);
        (average - entity.vruntime).clamp(-limit, limit)
    }

    /// Of a task that has stayed to win its lag back: it has won back no more than all.
    fn lag_of_delayed(&self, entity: &Entity, average: i64) -> i64 {
        let lag = match self.tunables.delayed_keeps_lag {
            true => self.lag(entity, average).max(entity.lag),
            false => average - entity.vruntime,
        };
        lag.min(0)
    }

    pub fn account(&mut self, entities: &mut impl EntitiesMut<Id>, current: Id, ns: u64) -> bool {
        let slice = self.virtual_slice(&entities[current]);
        let entity = &mut entities[current];
        entity.vruntime += entity.virtual_time(ns);
        entity.ran += ns;
        if entity.vruntime < entity.deadline {
            return self.tunables.protect_by_slice
                && !entity.is_protected()
                && !self.waiting.is_empty();
        }
        entity.deadline = entity.vruntime + slice;
        entity.protected_until = entity.vruntime;
        !self.waiting.is_empty()
    }

    pub fn enqueue(
        &mut self,
        entities: &mut impl EntitiesMut<Id>,
        current: Option<Id>,
        task: Id,
        why: Enqueue,
    ) {
        let average = self.average(entities, current);
        let slice = self.virtual_slice(&entities[task]);
        let entity = &mut entities[task];
        if !self.tunables.place_lag {
            entity.lag = 0;
        }
        entity.vruntime = match average {
            Some(average) => average.value() - inflated_lag(entity, average.weight),
            None => self.last_average,
        };
        entity.deadline = entity.vruntime
            + match why {
                Enqueue::Fork => slice / 2,
                Enqueue::Balance if entity.relative => entity.deadline,
                _ => slice,
            };
        entity.relative = false;
        // It has not been picked yet.
        entity.protected_until = entity.vruntime;
        self.waiting.push(Waiting::new(entities, task));
    }

    pub fn dequeue(
        &mut self,
        entities: &mut impl EntitiesMut<Id>,
        current: Option<Id>,
        task: Id,
        why: Dequeue,
    ) {
        let average = self.average(entities, current).expect("the task is queued").value();
        self.last_average = average;
        if current != Some(task) {
            self.waiting.remove(&Waiting::new(entities, task));
        }
        self.next_buddy.take_if(|buddy| *buddy == task);
        let entity = &mut entities[task];
        entity.lag = self.lag(entity, average);
        if why == Dequeue::Balance {
            entity.deadline -= entity.vruntime;
            entity.relative = true;
        }
    }

    pub fn is_eligible(&self, entities: &impl Entities<Id>, current: Option<Id>, task: Id) -> bool {
        let average = self.average(entities, current).expect("the task is queued");
        average.admits(entities[task].vruntime)
    }

    pub fn for_each_waiting(
        &self,
        entities: &impl Entities<Id>,
        current: Option<Id>,
        mut visit: impl FnMut(Id, bool),
    ) {
        if let Some(average) = self.average(entities, current) {
            let waiting = self.waiting.iter().map(|place| place.entity);
            waiting.for_each(|task| visit(task, average.admits(entities[task].vruntime)));
        }
    }

    /// The earliest deadline of the eligible tasks that wait; of equals the one queued earlier.
    fn earliest(&self, entities: &impl Entities<Id>, average: &Average) -> Option<&Place<Id>> {
        self.waiting.iter().find(|place| average.admits(entities[place.entity].vruntime))
    }

    /// It is picked before all others.
    fn eligible_buddy(&self, entities: &impl Entities<Id>, average: &Average) -> Option<Id> {
        self.next_buddy.filter(|&buddy| average.admits(entities[buddy].vruntime))
    }

    /// `last`: what ran last, and is still queued, keeps the CPU while it is eligible and protected.
    pub fn pick(&mut self, entities: &impl Entities<Id>, last: Option<Id>) -> Option<Id> {
        let average = self.average(entities, None)?;
        let goes_on = |entity: &Entity| average.admits(entity.vruntime) && entity.is_protected();
        self.eligible_buddy(entities, &average)
            .or_else(|| last.filter(|&last| goes_on(&entities[last])))
            .or_else(|| self.earliest(entities, &average).map(|place| place.entity))
    }

    pub fn taken(&mut self, entities: &mut impl EntitiesMut<Id>, task: Id) {
        let Entity { vruntime, deadline, .. } = entities[task];
        let protected_until = match self.tunables.protection {
            Protection::Deadline => deadline,
            Protection::Ns(ns) => vruntime + entities[task].virtual_time(ns),
            Protection::Eligible => {
                self.average(entities, None).map_or(vruntime, |others| others.value())
            }
        };
        let entity = &mut entities[task];
        entity.ran = 0;
        entity.protected_until = deadline.min(protected_until);
        self.next_buddy.take_if(|buddy| *buddy == task);
    }

    /// Kernels before those that protect by slice set the buddy and do not look at it.
    pub fn set_next_buddy(&mut self, task: Id) {
        if self.tunables.protect_by_slice {
            self.next_buddy = Some(task);
        }
    }

    /// The entity keeps its lag and what is left of its slice, as real time.
    pub fn reweight(
        &mut self,
        entities: &mut impl EntitiesMut<Id>,
        current: Option<Id>,
        task: Id,
        weight: u64,
    ) {
        let average = self.average(entities, current).expect("the task is queued").value();
        let before = Waiting::new(entities, task);
        let entity = &mut entities[task];
        let old = i128::from(entity.weight);
        let scaled = |time: i64| (i128::from(time) * old / i128::from(weight)) as i64;
        let vruntime = average - scaled(average - entity.vruntime);
        entity.deadline = vruntime + scaled(entity.deadline - entity.vruntime);
        entity.protected_until = vruntime + scaled(entity.protected_until - entity.vruntime);
        entity.vruntime = vruntime;
        entity.weight = weight;
        self.waiting.replace(&before, Waiting::new(entities, task));
    }

    pub fn tick(&mut self, entities: &impl Entities<Id>, current: Id) -> bool {
        self.tunables.protect_by_slice
            && !self.waiting.is_empty()
            && !entities[current].is_protected()
    }

    /// Who a pick would choose instead of current, which is kept while it is eligible and protected.
    ///
    /// Where wakees are nominated, a waker that has had more than its share gives way to whoever is
    /// picked, and an eligible nominee is picked before all others. A sync waker is left its time: what
    /// it has run was accounted just before, so that it never comes to the limit that the patch sets.
    pub fn rival(
        &mut self,
        entities: &mut impl EntitiesMut<Id>,
        (current, task): (Id, Id),
        by: EnqueuedBy,
    ) -> Option<Id> {
        let average = self.average(entities, Some(current)).expect("current is queued");
        let running = &entities[current];
        let eligible = average.admits(running.vruntime);
        if self.tunables.next_buddy {
            if by.task && !eligible {
                return Some(task);
            }
            let is_new = self.nominate(entities, task);
            if is_new && by.sync {
                return None;
            }
        }
        if (self.tunables.next_buddy || self.tunables.wakeup_picks)
            && let Some(buddy) = self.eligible_buddy(entities, &average)
        {
            return Some(buddy);
        }
        if eligible && running.is_protected() {
            return None;
        }
        let best = self.earliest(entities, &average)?;
        (!eligible || running.deadline >= best.key).then_some(best.entity)
    }

    /// One whose deadline is earlier remains it.
    fn nominate(&mut self, entities: &impl Entities<Id>, task: Id) -> bool {
        let deadline = |of: Id| entities[of].deadline;
        let is_new = self.next_buddy.is_none_or(|buddy| deadline(buddy) >= deadline(task));
        if is_new {
            self.next_buddy = Some(task);
        }
        is_new
    }

    /// Does an entity without tasks stay until its lag is spent? It is preferred no more.
    pub fn delays(
        &mut self,
        entities: &impl Entities<Id>,
        current: Option<Id>,
        entity: Id,
    ) -> bool {
        self.next_buddy.take_if(|buddy| *buddy == entity);
        !self.is_eligible(entities, current, entity)
    }

    /// Is the task nominated to run next?
    pub fn prefers(&self, task: Id) -> bool {
        self.tunables.next_buddy && self.next_buddy == Some(task)
    }

    /// The current task stays to win its lag back.
    pub fn delay(&mut self, entities: &mut impl EntitiesMut<Id>, task: Id) {
        if self.tunables.delayed_keeps_lag {
            let average = self.average(entities, Some(task)).expect("current is queued").value();
            entities[task].lag = self.lag(&entities[task], average);
        }
    }

    /// It stays where it is, unless it has another lag there than it ought to have: such as one it has won back, with
    /// which it starts anew where the others are on average.
    pub fn requeue_delayed(
        &mut self,
        entities: &mut impl EntitiesMut<Id>,
        current: Option<Id>,
        task: Id,
    ) {
        let average = self.average(entities, current).expect("the task is queued").value();
        let slice = self.virtual_slice(&entities[task]);
        let lag = self.lag_of_delayed(&entities[task], average);
        if average - lag == entities[task].vruntime {
            return;
        }
        self.waiting.remove(&Waiting::new(entities, task));
        let others = self.average(entities, current);
        let entity = &mut entities[task];
        entity.lag = lag;
        entity.vruntime = match others {
            Some(others) => others.value() - inflated_lag(entity, others.weight),
            None => average,
        };
        entity.deadline = entity.vruntime + slice;
        self.waiting.push(Waiting::new(entities, task));
    }

    pub fn finish_delayed(
        &mut self,
        entities: &mut impl EntitiesMut<Id>,
        current: Option<Id>,
        task: Id,
    ) {
        let average = self.average(entities, current).expect("the task is queued").value();
        let lag = self.lag_of_delayed(&entities[task], average);
        self.dequeue(entities, current, task, Dequeue::Sleep);
        let entity = &mut entities[task];
        entity.lag = entity.lag.max(lag).min(0);
    }
}

/// The lag a task must be placed with to have its own after V moved by its arrival.
fn inflated_lag(entity: &Entity, queued_weight: i128) -> i64 {
    let lag = i128::from(entity.lag) * (queued_weight + i128::from(entity.weight));
    match narrow(lag, queued_weight) {
        Some((lag, queued_weight)) => lag / queued_weight,
        None => (lag / queued_weight) as i64,
    }
}

/// Nearly all sums fit into 64 bits, where a division is one instruction instead of a hundred.
fn narrow(dividend: i128, divisor: i128) -> Option<(i64, i64)> {
    Some((dividend.try_into().ok()?, divisor.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use placewise_policy::{Table, TaskId};

    use super::*;
    use crate::entity::NICE_0_WEIGHT;

    const SLICE: i64 = 2_800_000;
    const TUNABLES: Tunables = Tunables {
        latency: 0,
        min_granularity: 0,
        wakeup_granularity: 0,
        wakeup_granularity_scales: false,
        slice_floor: true,
        base_slice: SLICE as u64,
        lag_limit: 2 * SLICE as u64,
        delayed_keeps_lag: false,
        place_lag: true,
        next_buddy: false,
        wakeup_picks: false,
        protect_by_slice: true,
        protection: Protection::Deadline,
    };

    fn queue_of(vruntimes: &[i64]) -> (Eevdf<TaskId>, Table<TaskId, Entity>) {
        let entity = |&vruntime| Entity {
            vruntime,
            deadline: vruntime + SLICE,
            weight: NICE_0_WEIGHT,
            ..Entity::default()
        };
        let entities: Table<TaskId, Entity> = vruntimes.iter().map(entity).collect();
        let mut queue = Eevdf::new(TUNABLES);
        for task in 0..entities.len() as u32 {
            queue.waiting.push(Waiting::new(&entities, TaskId::new(task)));
        }
        (queue, entities)
    }

    #[test]
    fn a_task_ahead_of_the_average_is_not_eligible() {
        let (queue, entities) = queue_of(&[0, 100]);
        assert!(queue.is_eligible(&entities, None, TaskId::new(0)));
        assert!(!queue.is_eligible(&entities, None, TaskId::new(1)));
        let (queue, entities) = queue_of(&[100]);
        assert!(
            queue.is_eligible(&entities, None, TaskId::new(0)),
            "a task alone is its own average"
        );
    }

    #[test]
    fn the_earliest_deadline_of_the_eligible_runs() {
        let (mut queue, mut entities) = queue_of(&[0, 10, 1_000]);
        for (task, deadline) in [(1, 5), (2, 1)] {
            let before = Waiting::new(&entities, TaskId::new(task));
            entities[TaskId::new(task)].deadline = deadline;
            queue.waiting.replace(&before, Waiting::new(&entities, TaskId::new(task)));
        }
        assert_eq!(queue.pick(&entities, None), Some(TaskId::new(1)));
    }

    #[test]
    fn protected_current_is_not_preempted() {
        let (mut queue, mut entities) = queue_of(&[0, -10]);
        queue.waiting.remove(&Waiting::new(&entities, TaskId::new(0)));
        entities[TaskId::new(0)].protected_until = SLICE;
        entities[TaskId::new(0)].vruntime = -20;
        let tasks = (TaskId::new(0), TaskId::new(1));
        let rival = queue.rival(&mut entities, tasks, EnqueuedBy::default());
        assert_eq!(rival, None, "eligible and protected");
        entities[TaskId::new(0)].vruntime = 20;
        let rival = queue.rival(&mut entities, tasks, EnqueuedBy::default());
        assert_eq!(rival, Some(TaskId::new(1)), "it had more than its share");
    }

    /// With the knob that takes away the protection for a slice, v7.3 leaves so much.
    #[test]
    fn current_is_protected_for_its_share_of_what_was_queued_when_it_was_picked() {
        for (other, is_protected) in [(500, true), (-500, false)] {
            let (mut queue, mut entities) = queue_of(&[0, other, 0]);
            queue.tunables.protection = Protection::Eligible;
            let [current, other_task, wakee] = [0, 1, 2].map(TaskId::new);
            queue.waiting.remove(&Waiting::new(&entities, wakee));
            queue.waiting.remove(&Waiting::new(&entities, current));
            queue.taken(&mut entities, current);
            // Without it both are eligible, and the wakee's deadline is the earlier one.
            queue.waiting.remove(&Waiting::new(&entities, other_task));
            entities[wakee].deadline -= 1;
            queue.waiting.push(Waiting::new(&entities, wakee));
            let rival = queue.rival(&mut entities, (current, wakee), EnqueuedBy::default());
            assert_eq!(rival, (!is_protected).then_some(wakee), "beside {other}");
        }
    }

    #[test]
    fn a_sleeper_comes_back_with_the_lag_it_left_with() {
        let (mut queue, mut entities) = queue_of(&[0, 1_000]);
        queue.dequeue(&mut entities, None, TaskId::new(0), Dequeue::Sleep);
        assert_eq!(entities[TaskId::new(0)].lag, 500);
        queue.enqueue(&mut entities, None, TaskId::new(0), Enqueue::Wakeup);
        let average = queue.average(&entities, None).unwrap().value();
        assert_eq!(average - entities[TaskId::new(0)].vruntime, 500);
    }

    #[test]
    fn a_lag_has_a_limit() {
        let (mut queue, mut entities) = queue_of(&[0, 6 * SLICE]);
        queue.dequeue(&mut entities, None, TaskId::new(0), Dequeue::Sleep);
        assert_eq!(entities[TaskId::new(0)].lag, 2 * SLICE);
    }

    /// A task that is far behind has come meanwhile.
    #[test]
    fn a_delayed_task_keeps_the_lag_it_slept_with() {
        for (keeps, lag) in [(true, -50), (false, -350)] {
            let (mut queue, mut entities) = queue_of(&[0, 100, -850]);
            queue.tunables.delayed_keeps_lag = keeps;
            let [sleeper, late] = [1, 2].map(TaskId::new);
            for task in [sleeper, late] {
                queue.waiting.remove(&Waiting::new(&entities, task));
            }
            queue.delay(&mut entities, sleeper);
            for task in [sleeper, late] {
                queue.waiting.push(Waiting::new(&entities, task));
            }
            queue.requeue_delayed(&mut entities, None, sleeper);
            let average = queue.average(&entities, None).unwrap().value();
            assert_eq!(average - entities[sleeper].vruntime, lag, "{keeps}");
        }
    }

    #[test]
    fn a_delayed_task_is_replaced_only_once_its_lag_is_positive() {
        let (mut queue, mut entities) = queue_of(&[0, 100, 100]);
        queue.requeue_delayed(&mut entities, None, TaskId::new(1));
        assert_eq!(entities[TaskId::new(1)].vruntime, 100);
        queue.requeue_delayed(&mut entities, None, TaskId::new(0));
        assert_eq!(entities[TaskId::new(0)].vruntime, 100, "where the others are on average");
    }
}
