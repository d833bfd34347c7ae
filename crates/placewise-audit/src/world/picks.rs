//! What the queues would pick, beside what the kernel has picked: whether their order is its own.

use placewise_run_queue::Picked;

use super::World;
use super::trail::Whereabouts;
use crate::steps::task::TaskNumber;

/// Picks of a CPU on which two or more tasks waited.
#[derive(Clone, Copy, Debug, Default)]
pub struct Picks {
    pub all: u32,
    pub foretold: u32,
}

impl Picks {
    pub fn foretold_pct(self) -> u32 {
        self.foretold * 100 / self.all
    }
}

impl World {
    /// The kernel has picked `next`; the one before it waits again, or sleeps.
    pub(super) fn compare_pick(&mut self, cpu: u32, next: TaskNumber) {
        while let Some(picked) = self.scheduler.pick(cpu.into(), self.clock.now) {
            match picked {
                Picked::Left(task) => self.trail(task.into()).whereabouts = Whereabouts::Asleep,
                Picked::Next(task) => {
                    if self.scheduler.policy.rq[cpu as usize].nr_running > 1 {
                        self.picks.all += 1;
                        self.picks.foretold += u32::from(task == next.into());
                    }
                    return;
                }
            }
        }
    }
}
