//! Execs: a process has least to lose by going elsewhere before its program is loaded, so that is
//! when the policy is asked. The stopper takes it there, and it loads the program there.
//!
//! Limit: what it had in memory before stays its own.

use placewise_policy::*;

use crate::engine::Engine;
use crate::state::cpu::Interrupt;
use crate::state::effect::Then;

impl Engine<'_> {
    /// First it may go elsewhere, then the program is loaded.
    pub(super) fn exec(&mut self, cpu: CpuId, task: TaskId) -> Then {
        let state = &mut self.tasks[task];
        state.stage += 1;
        if state.stage > 1 {
            self.trace_exec(cpu, task);
            return Then::Next;
        }
        self.balance_exec(cpu, task);
        Then::Again
    }

    /// sched_exec.
    fn balance_exec(&mut self, cpu: CpuId, task: TaskId) {
        let to = self.select_slow_path(cpu, task, WF_EXEC);
        if to != cpu {
            self.cpus[cpu].interrupts.push_back(Interrupt::Exec { task, to });
        }
    }

    /// migration_cpu_stop: the stopper of `cpu` moves a task that may have left, or may no longer go there.
    pub(super) fn migrate_exec(&mut self, cpu: CpuId, task: TaskId, to: CpuId) {
        if !self.is_queued_on(task, cpu) || !self.may_be_on(task, to) {
            return self.begin_interrupt(cpu);
        }
        self.run_stopper(cpu, |engine| {
            engine.move_queued_task(cpu, task, to);
            engine.measurement.migrations.exec += 1;
            1
        });
    }
}
