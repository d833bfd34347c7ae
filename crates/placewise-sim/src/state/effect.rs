//! What an operation of a task leaves to be done when it ends: first whom to wake, then how the task
//! goes on.

use std::collections::VecDeque;

use placewise_policy::TaskId;
use placewise_workload::program::Call;

use crate::state::task::Resume;
use crate::state::waker::WakerContext;

#[derive(Default)]
pub struct Effect {
    /// In this order, all of them in the same way.
    pub wakees: Vec<TaskId>,
    /// How many of them are woken, or being woken.
    pub woken: u32,
    pub sync: bool,
    pub context: WakerContext,
    /// Its lock is held meanwhile.
    pub wait_queue: Option<WaitQueue>,
    /// What the kernel does around the wakeups beyond what they take.
    pub call: Call,
    pub then: Then,
}

/// What a wait queue belongs to whose lock matters: others want it, too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WaitQueue {
    Channel(u32),
    Gate(u32),
}

/// What the current task does once all its wakeups are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Then {
    /// Its next operation.
    #[default]
    Next,
    /// The same operation again.
    Again,
    Block(Resume),
    /// Spin, until whoever has the lock that it wants lets it go on.
    Spin,
    Exit,
}

impl Effect {
    /// Another operation begins to have its effect; what is to be done after it is said at its end.
    pub fn begin(&mut self) {
        self.call = Call::default();
        self.wake_as(false, WakerContext::Task);
    }

    /// The wakeups are of this kind.
    pub fn wake_as(&mut self, sync: bool, context: WakerContext) {
        self.sync = sync;
        self.context = context;
    }

    /// All wakeups are done: the next operation finds none.
    pub fn end(&mut self) {
        self.wakees.clear();
        self.woken = 0;
    }

    pub fn wake_first(&mut self, waiters: &mut VecDeque<TaskId>) {
        if let Some(first) = waiters.pop_front() {
            self.wakees.push(first);
        }
    }

    pub fn wake_all(&mut self, waiters: &mut VecDeque<TaskId>) {
        while !waiters.is_empty() {
            self.wake_first(waiters);
        }
    }

    /// They come through a gate: those whose programs name the CPU that they begin on go there.
    pub fn begins(&self) -> bool {
        matches!(self.wait_queue, Some(WaitQueue::Gate(_)))
    }

    /// Who is to be woken next.
    pub fn wakee(&self) -> Option<TaskId> {
        self.wakees.get(self.woken as usize).copied()
    }

    #[cfg(feature = "invariants")]
    pub fn will_wake(&self, task: TaskId) -> bool {
        self.wakees[self.woken as usize..].contains(&task)
    }
}
