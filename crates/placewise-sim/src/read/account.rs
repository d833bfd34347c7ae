//! What the kernel has on account of the tasks, as getrusage() and /proc/PID/sched say it.

use crate::engine::Engine;
use crate::outcome::TaskAccount;
use crate::state::task::TaskState;

impl Engine<'_> {
    /// Since boot. The first task, which only starts the others, is left out; to exit is no sleep.
    pub(crate) fn task_account(&self) -> TaskAccount {
        let mut account = TaskAccount { ns: self.now, ..TaskAccount::default() };
        account.units = self.measurement.parts(self.workload).map(|(part, ..)| part.units).sum();
        for task in self.user_tasks().skip(1) {
            let record = &self.scheduler.policy.task[task];
            account.tasks += 1;
            account.sleeps += record.nvcsw;
            account.sleeps -= u64::from(self.tasks[task].state == TaskState::Exited);
            account.preemptions += record.nivcsw;
            account.migrations += self.tasks[task].statistics.migrations;
        }
        account
    }
}
