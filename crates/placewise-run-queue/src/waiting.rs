//! The entities that wait in a queue, in the order in which they were queued.
//!
//! Their weighted sum of virtual runtimes is kept along, so that the average does
//! not take a walk over all of them.

use crate::entity::{Entities, Entity, EntityId};

/// A waiting entity, with what picking compares.
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

#[derive(Clone, Debug)]
pub struct WaitingTasks<Id> {
    tasks: Vec<Waiting<Id>>,
    /// Of virtual runtime times weight.
    weighted: i128,
    weight: u64,
    /// Where the one stood that was chosen last: it is likely to leave next.
    chosen: usize,
}

impl<Id: EntityId> WaitingTasks<Id> {
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Waiting<Id>> {
        self.tasks.iter()
    }

    /// The sums of virtual runtime times weight, and of weight.
    pub fn sums(&self) -> (i128, u64) {
        (self.weighted, self.weight)
    }

    /// Inline, so that what was just put together is not read back from memory.
    #[inline]
    pub fn push(&mut self, waiting: Waiting<Id>) {
        self.weighted += waiting.weighted();
        self.weight += waiting.weight;
        self.tasks.push(waiting);
    }

    /// The one with the earliest deadline of those that `admit` lets pass; of equals the one queued
    /// earlier.
    pub fn choose(&mut self, admit: impl Fn(&Waiting<Id>) -> bool) -> Option<&Waiting<Id>> {
        let mut best: Option<(usize, i64)> = None;
        for (at, waiting) in self.tasks.iter().enumerate() {
            // Few are earlier than all before them, and only those are to be admitted.
            let earlier = best.is_none_or(|(_, deadline)| waiting.deadline < deadline);
            if earlier && admit(waiting) {
                best = Some((at, waiting.deadline));
            }
        }
        self.chosen = best?.0;
        self.tasks.get(self.chosen)
    }

    fn position(&self, id: Id) -> Option<usize> {
        if self.tasks.get(self.chosen).is_some_and(|chosen| chosen.entity == id) {
            return Some(self.chosen);
        }
        self.tasks.iter().position(|waiting| waiting.entity == id)
    }

    /// False if the task does not wait.
    pub fn remove(&mut self, id: Id) -> bool {
        let Some(at) = self.position(id) else { return false };
        let gone = self.tasks.remove(at);
        self.weighted -= gone.weighted();
        self.weight -= gone.weight;
        true
    }

    /// A task, which may wait, has another weight.
    pub fn reweight(&mut self, id: Id, weight: u64) {
        if let Some(&waiting) = self.tasks.iter().find(|waiting| waiting.entity == id) {
            self.replace(Waiting { weight, ..waiting });
        }
    }

    /// Each waits as what it is, and the sums are theirs.
    #[cfg(feature = "invariants")]
    pub fn check(&self, entities: &impl Entities<Id>) {
        for waiting in &self.tasks {
            assert_eq!(*waiting, Waiting::new(entities, waiting.entity), "it waits as what it was");
        }
        let weighted = self.tasks.iter().map(Waiting::weighted).sum::<i128>();
        let weight = self.tasks.iter().map(|waiting| waiting.weight).sum::<u64>();
        assert_eq!(self.sums(), (weighted, weight), "sums over what waits");
    }

    /// What a task that waits has become, in the place it had.
    pub fn replace(&mut self, by: Waiting<Id>) {
        if let Some(waiting) = self.tasks.iter_mut().find(|waiting| waiting.entity == by.entity) {
            self.weighted += by.weighted() - waiting.weighted();
            self.weight = self.weight - waiting.weight + by.weight;
            *waiting = by;
        }
    }
}

impl<Id> Default for WaitingTasks<Id> {
    fn default() -> Self {
        WaitingTasks { tasks: Vec::new(), weighted: 0, weight: 0, chosen: 0 }
    }
}

impl<Id: EntityId> FromIterator<Waiting<Id>> for WaitingTasks<Id> {
    fn from_iter<I: IntoIterator<Item = Waiting<Id>>>(waiting: I) -> Self {
        let mut tasks = WaitingTasks::default();
        waiting.into_iter().for_each(|waiting| tasks.push(waiting));
        tasks
    }
}
