//! Where a task is to go: the policy is asked, and what it read and answered traced.

use placewise_policy::{CpuId, TaskId};
use placewise_trace::{AffineReason, Event, SearchReason};

use crate::engine::Engine;
use crate::state::waker::WakerContext;

impl Engine<'_> {
    /// Asks the policy for a CPU: `task`, which last ran on `prev`, is woken or created on `cpu`.
    pub(super) fn select_task_rq(
        &mut self,
        cpu: CpuId,
        context: WakerContext,
        task: TaskId,
        prev: CpuId,
        wake_flags: u32,
    ) -> CpuId {
        if self.confinement.affinity.in_use {
            self.allow_some_cpu(task);
        }
        // What auditors ask about is the fair class.
        if !self.tracer.takes_decisions() || self.scheduler.is_rt(task) {
            return self.ask(cpu, task, prev, wake_flags);
        }
        let mut decision = self.readings(cpu, task, prev, wake_flags);
        let result = self.ask(cpu, task, prev, wake_flags);
        let answer = &self.scheduler.policy.decision;
        decision.target_cpu = answer.target_cpu;
        decision.result_cpu = answer.result_cpu;
        decision.affine = AffineReason::ALL[answer.affine as usize];
        decision.search = SearchReason::ALL[answer.search as usize];
        self.trace_in(cpu, context, Event::Decision(Box::new(decision)));
        result
    }

    #[inline]
    fn ask(&mut self, cpu: CpuId, task: TaskId, prev: CpuId, wake_flags: u32) -> CpuId {
        let (task, prev, cpu) = (task.into(), prev.into(), cpu.into());
        self.scheduler.policy.select_task_rq(task, prev, cpu, wake_flags, self.now).into()
    }
}
