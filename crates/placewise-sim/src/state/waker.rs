//! Who wakes, and a wakeup that is under way.

use placewise_policy::{CpuId, TaskId};

/// What a waker is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WakerContext {
    /// The current task of the CPU.
    #[default]
    Task,
    /// A softirq at the end of the current task's system call, on its time: what it has sent over
    /// loopback arrives. in_task() is false.
    Softirq,
    /// A hard interrupt on the CPU, whatever is current.
    Interrupt,
}

impl WakerContext {
    /// The current task goes on only once the wakeup is done.
    pub fn holds_up_the_task(self) -> bool {
        self != WakerContext::Interrupt
    }
}

/// A wakeup whose CPU has been chosen.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub wakee: TaskId,
    pub cpu: CpuId,
    /// The lock of the run queue there has been waited for, and is the waker's.
    pub has_turn: bool,
}
