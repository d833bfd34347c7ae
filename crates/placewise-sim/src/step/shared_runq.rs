//! Tasks that wait in lists of their LLC (`policy/shared_runq.h`): what the lists cost, and that a CPU may
//! take over what is on its way to another.
//!
//! A task stands in a list from when it is enqueued until it is picked. An idle CPU picks what was enqueued once its
//! idle task has got as far. Until then others may take the task off the list, and have it if they lock its run
//! queue first. Whoever is too late has gone there for nothing, and looks again.
//!
//! Limits: a list's lock is held for as long as its lines take to come; who is picked is taken to have stood in a
//! list; CPUs that look at one list at a time do not wait for each other.

use placewise_policy::*;

use crate::engine::Engine;
use crate::state::cpu::Activity;

/// Of a list: its lock with its head, and one of the tasks beside the one that comes or goes.
const LIST_LINES: u32 = 2;

impl Engine<'_> {
    #[inline]
    pub(super) fn has_lists(&self) -> bool {
        self.scheduler.policy.profile.shared_runq != SHARED_RUNQ_NONE
    }

    /// `by` changes the list of `cpu`, in turn; the time is owed.
    #[inline]
    pub(super) fn lock_list(&mut self, cpu: CpuId, by: CpuId) {
        if self.has_lists() {
            self.change_list(self.list_of(cpu), by);
        }
    }

    fn list_of(&self, cpu: CpuId) -> CpuId {
        self.scheduler.policy.cpu[cpu].shared_first.into()
    }

    fn change_list(&mut self, list: CpuId, by: CpuId) {
        let asked = self.owes_until(by);
        let list = &mut self.cpus[list].list;
        let hold = self.costs.lock_lines(&list.lock, LIST_LINES, asked, by);
        let waits = list.change(by, asked, hold);
        self.owe_turn(by, waits + hold, 0);
    }

    /// Nothing is queued on `cpu`: is it to take over what waits in a list? It has looked at them, and has the
    /// first that it may have off its list.
    pub(super) fn take_off_list(&mut self, cpu: CpuId) -> bool {
        if !self.scheduler.policy.newidle_looks_at_lists(cpu.into()) {
            return false;
        }
        let task = self.scheduler.policy.newidle_shared_task(cpu.into());
        self.look_at_lists(cpu, task);
        if task == NO_TASK {
            return false;
        }
        let task = TaskId::from(task);
        self.cpus[cpu].taken = Some(task);
        self.lock_run_queue(self.scheduler.cpu_of(task), cpu);
        let end = self.pay(cpu, 0);
        self.begin(cpu, Activity::TakeOver, end);
        true
    }

    /// What looking for `task` at one list after the other takes, and having it off the last of them.
    fn look_at_lists(&mut self, cpu: CpuId, task: u32) {
        let first = self.list_of(cpu);
        let holds = (task != NO_TASK).then(|| self.list_of(self.scheduler.cpu_of(task.into())));
        let mut list = first;
        loop {
            if self.cpus[list].list.is_news_to(cpu) {
                let owner = self.cpus[list].list.lock.last_owner;
                self.cpus[cpu].debt += self.lines(1, owner, cpu);
            }
            if holds == Some(list) {
                return self.change_list(list, cpu);
            }
            list = self.scheduler.policy.cpu[list].shared_next.into();
            if list == first {
                return;
            }
        }
    }

    /// The run queue of the task that `cpu` has off a list is locked: has its CPU not picked it yet?
    pub(crate) fn take_over(&mut self, cpu: CpuId) {
        let task = self.cpus[cpu].taken.take().expect("a CPU takes over what it has off a list");
        let from = self.scheduler.cpu_of(task);
        if self.may_take_over(cpu, task, from) {
            self.account_current(from);
            self.move_queued_task(cpu, task, cpu);
            self.measurement.migrations.newly_idle += 1;
        }
        if self.scheduler.policy.rq[cpu].nr_running > 0 {
            self.pick_after_newidle(cpu);
        } else {
            self.newidle_balance(cpu);
        }
    }

    fn may_take_over(&self, cpu: CpuId, task: TaskId, from: CpuId) -> bool {
        let runs = self.tasks[task].on_cpu || self.scheduler.current(from) == task;
        from != cpu
            && !runs
            && self.scheduler.is_queued(task)
            && self.scheduler.policy.task[task].cpus_allowed.contains(cpu)
    }
}
