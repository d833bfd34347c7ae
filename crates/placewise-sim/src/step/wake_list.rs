//! Wake lists: wakees that their target enqueues itself.

use placewise_policy::{CpuId, TaskId};

use crate::engine::Engine;
use crate::state::cpu::Cpu;
use crate::state::event_queue::Time;
use crate::state::waker::WakerContext;

impl Engine<'_> {
    /// Over the wake list: the target enqueues the wakee itself.
    pub(super) fn queue_on_wake_list(&mut self, cpu: CpuId, wakee: TaskId) {
        let target = self.scheduler.cpu_of(wakee);
        self.scheduler.policy.set_ttwu_pending(target.into(), true);
        let list = &mut self.cpus[target].wake_list;
        list.push(wakee);
        if list.len() == 1 {
            self.tell_of(wakee, cpu, target);
        }
    }

    /// Takes what is on the wake list of `cpu`, for `cpu` to enqueue under its lock: how long it waits for that,
    /// and what it does then; none if the list is empty. Kernels that clear the pending mark first let the CPU
    /// look idle until then.
    #[inline(never)]
    pub(super) fn take_wake_list(&mut self, cpu: CpuId) -> Option<(Time, Time)> {
        let Cpu { wake_list, arriving, .. } = &mut self.cpus[cpu];
        if wake_list.is_empty() {
            return None;
        }
        debug_assert!(arriving.is_empty());
        std::mem::swap(wake_list, arriving);
        let more = self.costs.scheduler.rq_lock_hold_ns * (arriving.len() as Time - 1);
        if self.scheduler.policy.profile.wake_list_clear_early {
            self.scheduler.policy.set_ttwu_pending(cpu.into(), false);
        }
        let (waits, hold) = self.turn_of_run_queue(cpu, cpu);
        Some((waits, hold + self.costs.draw(more)))
    }

    /// sched_ttwu_pending: what was taken from the wake list is enqueued.
    pub(crate) fn enqueue_arriving(&mut self, cpu: CpuId) {
        let mut arriving = std::mem::take(&mut self.cpus[cpu].arriving);
        for wakee in arriving.drain(..) {
            if self.confinement.affinity.in_use {
                let target = self.still_allowed_cpu(wakee, cpu);
                self.move_wakee(cpu, WakerContext::Interrupt, wakee, target);
            }
            self.activate(cpu, WakerContext::Interrupt, wakee);
        }
        let pending = !self.cpus[cpu].wake_list.is_empty();
        self.scheduler.policy.set_ttwu_pending(cpu.into(), pending);
        self.cpus[cpu].arriving = arriving;
    }

    /// The wake list of a CPU that runs a task: enqueued at once, in time that is owed.
    #[inline]
    pub(super) fn drain_wake_list(&mut self, cpu: CpuId) {
        if let Some((waits, work)) = self.take_wake_list(cpu) {
            self.owe_turn(cpu, waits, work);
            self.enqueue_arriving(cpu);
        }
    }
}
