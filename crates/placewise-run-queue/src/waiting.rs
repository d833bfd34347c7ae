//! The tasks that wait in a queue, in the order in which they were queued.
//!
//! Their weighted sum of virtual runtimes is kept along, so that the average does
//! not take a walk over all of them.

use crate::run_queue::{Entities, Entity};

/// A waiting task, with what picking compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub vruntime: i64,
    pub deadline: i64,
    pub weight: u64,
    pub task: u32,
}

impl Waiting {
    #[inline]
    pub fn new(entities: &(impl Entities + ?Sized), task: u32) -> Self {
        let Entity { vruntime, deadline, weight, .. } = *entities.entity(task);
        Waiting { vruntime, deadline, weight, task }
    }

    pub fn weighted(&self) -> i128 {
        i128::from(self.vruntime) * i128::from(self.weight)
    }
}

#[derive(Clone, Debug, Default)]
pub struct WaitingTasks {
    tasks: Vec<Waiting>,
    /// Of virtual runtime times weight.
    weighted: i128,
    weight: u64,
}

impl WaitingTasks {
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.tasks.iter()
    }

    /// The sums of virtual runtime times weight, and of weight.
    pub fn sums(&self) -> (i128, u64) {
        (self.weighted, self.weight)
    }

    /// Inline, so that what was just put together is not read back from memory.
    #[inline]
    pub fn push(&mut self, waiting: Waiting) {
        self.weighted += waiting.weighted();
        self.weight += waiting.weight;
        self.tasks.push(waiting);
    }

    /// False if the task does not wait.
    pub fn remove(&mut self, task: u32) -> bool {
        let Some(at) = self.tasks.iter().position(|waiting| waiting.task == task) else {
            return false;
        };
        let gone = self.tasks.remove(at);
        self.weighted -= gone.weighted();
        self.weight -= gone.weight;
        true
    }

    /// A task, which may wait, has another weight.
    pub fn reweight(&mut self, task: u32, weight: u64) {
        if let Some(&waiting) = self.tasks.iter().find(|waiting| waiting.task == task) {
            self.replace(Waiting { weight, ..waiting });
        }
    }

    /// Each waits as what it is, and the sums are theirs.
    #[cfg(feature = "invariants")]
    pub fn check(&self, entities: &(impl Entities + ?Sized)) {
        for waiting in &self.tasks {
            assert_eq!(*waiting, Waiting::new(entities, waiting.task), "it waits as what it was");
        }
        let weighted = self.tasks.iter().map(Waiting::weighted).sum::<i128>();
        let weight = self.tasks.iter().map(|waiting| waiting.weight).sum::<u64>();
        assert_eq!(self.sums(), (weighted, weight), "sums over what waits");
    }

    /// What a task that waits has become, in the place it had.
    pub fn replace(&mut self, by: Waiting) {
        if let Some(waiting) = self.tasks.iter_mut().find(|waiting| waiting.task == by.task) {
            self.weighted += by.weighted() - waiting.weighted();
            self.weight = self.weight - waiting.weight + by.weight;
            *waiting = by;
        }
    }
}

impl FromIterator<Waiting> for WaitingTasks {
    fn from_iter<I: IntoIterator<Item = Waiting>>(waiting: I) -> Self {
        let mut tasks = WaitingTasks::default();
        waiting.into_iter().for_each(|waiting| tasks.push(waiting));
        tasks
    }
}
