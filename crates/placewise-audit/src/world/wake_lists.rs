//! Wakees on their way over the wake list of a CPU: sent, and not enqueued there yet.

use placewise_policy::{NR_CPUS, Placement};

use crate::steps::by_number::ByTask;
use crate::steps::task::TaskNumber;

pub struct WakeLists {
    /// The CPU on whose list a task is.
    pub on: ByTask<Option<u32>>,
    /// Tasks on each CPU's list.
    pub pending: Vec<u32>,
}

impl WakeLists {
    pub fn new() -> Self {
        WakeLists { on: ByTask::default(), pending: vec![0; NR_CPUS as usize] }
    }

    pub fn send(&mut self, task: TaskNumber, cpu: u32, policy: &mut Placement) {
        self.arrive(task, policy);
        *self.on.of(task) = Some(cpu);
        self.pending[cpu as usize] += 1;
        policy.set_ttwu_pending(cpu, true);
    }

    /// It is on none any more.
    pub fn arrive(&mut self, task: TaskNumber, policy: &mut Placement) {
        if let Some(cpu) = self.on.of(task).take() {
            self.pending[cpu as usize] -= 1;
            if self.pending[cpu as usize] == 0 {
                policy.set_ttwu_pending(cpu, false);
            }
        }
    }
}
