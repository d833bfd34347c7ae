//! The entities that wait in a queue, in the order of what it picks by: the virtual runtime or the
//! deadline; of equals the one queued earlier comes first.
//!
//! What is picked stands near the front, and what has just come near the back, and a place is small, so
//! that a long queue costs little more than a short one. The weighted sum of virtual runtimes is kept
//! along, so that the average does not take a walk over all of them.

use crate::entity::{Entities, Entity, EntityId};
use crate::row::Row;

/// An entity that is to wait, or does, with what of it may not change meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting<Id> {
    pub vruntime: i64,
    pub deadline: i64,
    pub weight: u64,
    pub entity: Id,
}

impl<Id: EntityId> Waiting<Id> {
    #[inline]
    pub fn new(entities: &impl Entities<Id>, id: Id) -> Self {
        let Entity { vruntime, deadline, weight, .. } = entities[id];
        Waiting { vruntime, deadline, weight, entity: id }
    }

    pub fn weighted(&self) -> i128 {
        i128::from(self.vruntime) * i128::from(self.weight)
    }
}

/// What a queue picks by.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    Vruntime,
    Deadline,
}

impl Order {
    fn key<Id>(self, waiting: &Waiting<Id>) -> i64 {
        match self {
            Order::Vruntime => waiting.vruntime,
            Order::Deadline => waiting.deadline,
        }
    }
}

/// Where an entity waits.
#[derive(Clone, Copy, Debug)]
pub struct Place<Id> {
    /// Its virtual runtime or its deadline, whatever is picked by.
    pub key: i64,
    /// How many were queued before it.
    number: u64,
    pub entity: Id,
}

#[derive(Clone, Debug)]
pub struct WaitingTasks<Id> {
    order: Order,
    places: Row<Place<Id>>,
    /// Of virtual runtime times weight.
    weighted: i128,
    weight: u64,
    queued: u64,
}

impl<Id: EntityId> WaitingTasks<Id> {
    pub fn new(order: Order) -> Self {
        WaitingTasks { order, places: Row::new(), weighted: 0, weight: 0, queued: 0 }
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Place<Id>> {
        self.places.iter()
    }

    pub fn first(&self) -> Option<&Place<Id>> {
        self.places.first()
    }

    /// The sums of virtual runtime times weight, and of weight.
    pub fn sums(&self) -> (i128, u64) {
        (self.weighted, self.weight)
    }

    #[inline]
    pub fn push(&mut self, waiting: Waiting<Id>) {
        let number = self.queued;
        self.queued += 1;
        let key = self.order.key(&waiting);
        self.put(number, waiting, |other| other.key <= key);
    }

    /// Behind those that are to be picked before it.
    #[inline]
    fn put(&mut self, number: u64, waiting: Waiting<Id>, is_before: impl Fn(&Place<Id>) -> bool) {
        self.weighted += waiting.weighted();
        self.weight += waiting.weight;
        let place = Place { key: self.order.key(&waiting), number, entity: waiting.entity };
        // Mostly it is the last.
        if self.places.last().is_none_or(&is_before) {
            self.places.push(place);
        } else {
            self.places.insert(self.places.partition_point(is_before), place);
        }
    }

    fn position(&self, waiting: &Waiting<Id>) -> Option<usize> {
        let key = self.order.key(waiting);
        let mut at = match self.places.first() {
            Some(first) if first.key < key => self.places.partition_point(|other| other.key < key),
            _ => 0,
        };
        while let Some(other) = self.places.get(at).filter(|other| other.key == key) {
            if other.entity == waiting.entity {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    /// False if the task does not wait as what it is.
    #[inline]
    pub fn remove(&mut self, waiting: &Waiting<Id>) -> bool {
        let at = self.position(waiting);
        at.map(|at| self.take(at, waiting)).is_some()
    }

    fn take(&mut self, at: usize, waiting: &Waiting<Id>) {
        self.places.remove(at);
        self.weighted -= waiting.weighted();
        self.weight -= waiting.weight;
    }

    /// What a task that may wait has become: it counts as queued when it was.
    pub fn replace(&mut self, waiting: &Waiting<Id>, by: Waiting<Id>) {
        if let Some(at) = self.position(waiting) {
            let number = self.places[at].number;
            self.take(at, waiting);
            let place = (self.order.key(&by), number);
            self.put(number, by, |other| (other.key, other.number) < place);
        }
    }

    /// Each waits as what it is, and the sums are theirs.
    #[cfg(feature = "invariants")]
    pub fn check(&self, entities: &impl Entities<Id>) {
        let waiting = |place: &Place<Id>| Waiting::new(entities, place.entity);
        for place in self.iter() {
            assert_eq!(place.key, self.order.key(&waiting(place)), "it waits as what it was");
        }
        let in_order = self.places.iter().is_sorted_by_key(|place| (place.key, place.number));
        assert!(in_order, "what is first runs first");
        let weighted = self.iter().map(|place| waiting(place).weighted()).sum::<i128>();
        let weight = self.iter().map(|place| waiting(place).weight).sum::<u64>();
        assert_eq!(self.sums(), (weighted, weight), "sums over what waits");
    }
}

#[cfg(test)]
mod tests {
    use placewise_policy::TaskId;

    use super::*;

    fn waiting(task: u32, deadline: i64) -> Waiting<TaskId> {
        Waiting { vruntime: -deadline, deadline, weight: 1024, entity: TaskId::new(task) }
    }

    fn order(tasks: &WaitingTasks<TaskId>) -> Vec<u32> {
        tasks.iter().map(|place| place.entity.into()).collect()
    }

    fn queued(by: Order, deadlines: &[i64]) -> WaitingTasks<TaskId> {
        let mut tasks = WaitingTasks::new(by);
        (0..).zip(deadlines).for_each(|(task, &deadline)| tasks.push(waiting(task, deadline)));
        tasks
    }

    #[test]
    fn the_least_comes_first_and_equals_as_they_were_queued() {
        assert_eq!(order(&queued(Order::Deadline, &[5, 3, 5, 1, 3])), [3, 1, 4, 0, 2]);
        assert_eq!(order(&queued(Order::Vruntime, &[5, 3, 5, 1, 3])), [0, 2, 1, 4, 3]);
    }

    #[test]
    fn what_is_replaced_keeps_its_turn_among_equals() {
        let mut tasks = queued(Order::Deadline, &[1, 5, 5, 9]);
        tasks.replace(&waiting(0, 1), waiting(0, 5));
        tasks.replace(&waiting(3, 9), waiting(3, 5));
        assert_eq!(order(&tasks), [0, 1, 2, 3]);
        assert_eq!(tasks.sums(), (-4 * 5 * 1024, 4 * 1024));
    }

    #[test]
    fn who_does_not_wait_is_not_removed() {
        let mut tasks = queued(Order::Deadline, &[5, 5, 7]);
        assert!(!tasks.remove(&waiting(3, 5)));
        assert!(tasks.remove(&waiting(1, 5)));
        assert_eq!(order(&tasks), [0, 2]);
        assert_eq!(tasks.sums(), (-12 * 1024, 2 * 1024));
    }
}
