//! Which wakeups were made with WF_SYNC.

use std::collections::HashMap;

use placewise_policy::FIRST_TASK;

use crate::task::{NameId, TaskId, Tasks};

#[derive(Default)]
pub struct SyncFlags {
    /// How much the outcomes so far speak for sync wakeups from one name to another.
    balance: HashMap<(NameId, NameId), i32>,
    pub tell: u64,
    pub wrong: u64,
}

impl SyncFlags {
    pub fn may_be_sync(&self, waker: TaskId, interrupt: bool) -> bool {
        waker >= FIRST_TASK && !interrupt
    }

    pub fn guess(&self, waker: TaskId, wakee: TaskId, interrupt: bool, tasks: &Tasks) -> bool {
        if !self.may_be_sync(waker, interrupt) {
            return false;
        }
        let key = (tasks.get(waker).name, tasks.get(wakee).name);
        self.balance.get(&key).is_some_and(|&balance| balance > 0)
    }

    #[allow(clippy::too_many_arguments)]
    pub fn learn(
        &mut self,
        waker: TaskId,
        wakee: TaskId,
        guess: bool,
        predicted: u32,
        other: u32,
        actual: u32,
        tasks: &Tasks,
    ) {
        if predicted == other || (predicted != actual && other != actual) {
            return;
        }
        self.tell += 1;
        let sync = (predicted == actual) == guess;
        if predicted != actual {
            self.wrong += 1;
        }
        let key = (tasks.get(waker).name, tasks.get(wakee).name);
        let balance = self.balance.entry(key).or_default();
        *balance = (*balance + if sync { 1 } else { -1 }).clamp(-8, 8);
    }
}
