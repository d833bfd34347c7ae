//! The stopper of a CPU, which preempts whatever runs there to move tasks away: for active balance,
//! for a task that may not be there any more, and when the CPU goes offline.

use placewise_policy::*;

use crate::engine::Engine;
use crate::state::event_queue::Time;

impl Engine<'_> {
    /// The stopper of `cpu` pushes one task to `to`.
    pub(super) fn active_balance(&mut self, cpu: CpuId, to: CpuId) {
        self.run_stopper(cpu, |engine| {
            let task =
                engine.scheduler.policy.active_balance_task(cpu.into(), to.into(), engine.now);
            if task != NO_TASK {
                engine.move_queued_task(cpu, task.into(), to);
                engine.measurement.migrations.active += 1;
            }
            1
        });
    }

    /// The stopper of `cpu` preempts its current task, for `push` to move tasks away, and says in
    /// how many runs.
    pub(super) fn run_stopper(&mut self, cpu: CpuId, push: impl FnOnce(&mut Self) -> u32) {
        let current = self.scheduler.running(cpu);
        if let Some(current) = current {
            self.account_current(cpu);
            self.put_back(cpu, current);
        }
        // While the stopper runs, no task of the queue does.
        self.scheduler.policy.rq[cpu].curr = TaskId::idle(cpu).into();
        let runs = push(self);
        let Some(current) = current else { return self.begin_interrupt(cpu) };
        let switches = 2 * self.costs.draw(self.costs.scheduler.context_switch_ns);
        self.cpus[cpu].debt += switches * Time::from(runs);
        if self.scheduler.cpu_of(current) != cpu {
            // It has left: nothing is to be switched out here.
            self.tasks[current].on_cpu = false;
            self.cpus[cpu].idle_task_since = self.now;
            return self.pick_next(cpu, TaskId::idle(cpu));
        }
        self.scheduler.policy.rq[cpu].curr = current.into();
        self.pick_next(cpu, current);
    }
}
