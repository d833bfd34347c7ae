//! What a CPU runs next: blocking, picking, switching, idling.

use placewise_policy::*;

use crate::engine::Engine;
use crate::state::cpu::Activity;
use crate::state::event_queue::Time;
use crate::state::task::TaskState;
use placewise_run_queue::{Picked, Ran};

impl Engine<'_> {
    /// Brings the current task's run time and virtual time up to now.
    pub(crate) fn account_current(&mut self, cpu: u32) {
        let Ran { ns, reschedule } = self.scheduler.account(cpu, self.now);
        let here = &mut self.cpus[cpu as usize];
        here.counters.run_ns += ns;
        here.need_resched |= reschedule;
        if ns > 0
            && self.confinement.cfs_bandwidth.in_use
            && let Some(current) = self.scheduler.running_fair(cpu)
        {
            self.account_runtime(cpu, current, ns);
        }
    }

    /// The current task goes on, unless something else comes first.
    pub(super) fn go_on(&mut self, cpu: u32) {
        self.drain_wake_list(cpu);
        if !self.cpus[cpu as usize].interrupts.is_empty() {
            self.begin_interrupt(cpu);
        } else if self.cpus[cpu as usize].need_resched {
            self.schedule(cpu);
        } else {
            self.pay_debt(cpu);
            self.advance(cpu);
        }
    }

    /// What the kernel did on the task's time is added to its next segment.
    fn pay_debt(&mut self, cpu: u32) {
        let debt = std::mem::take(&mut self.cpus[cpu as usize].debt);
        let task = self.scheduler.current(cpu);
        self.tasks[task as usize].work_left += debt;
    }

    /// The current task blocks, has exited, or is preempted; another one is picked.
    pub(super) fn schedule(&mut self, cpu: u32) {
        let prev = self.scheduler.current(cpu);
        self.cpus[cpu as usize].counters.schedules += 1;
        self.account_current(cpu);
        self.cpus[cpu as usize].need_resched = false;
        if self.tasks[prev as usize].state == TaskState::Runnable {
            self.put_back(cpu, prev);
        } else {
            self.block(cpu, prev);
        }
        self.pick_next(cpu, prev);
    }

    /// The current task, accounted up to now, waits again.
    pub(super) fn put_back(&mut self, cpu: u32, task: u32) {
        self.scheduler.put_back(cpu, self.now);
        self.tasks[task as usize].queued_since = self.now;
        self.throttle_exhausted(cpu, task);
    }

    /// A task that blocks may stay in the queue; one that has exited leaves it.
    fn block(&mut self, cpu: u32, task: u32) {
        let stays = match self.tasks[task as usize].state {
            TaskState::Blocked => self.scheduler.sleep(cpu, 0, self.now),
            _ => {
                self.scheduler.deactivate(cpu, self.now);
                false
            }
        };
        if !stays {
            self.return_runtime(cpu, task);
        }
        self.throttle_exhausted(cpu, task);
    }

    /// The next task; delayed tasks met on the way leave the queue.
    pub(super) fn pick(&mut self, cpu: u32) -> Option<u32> {
        loop {
            match self.scheduler.pick(cpu, self.now)? {
                Picked::Next(task) => return Some(task),
                Picked::Left(task) => self.return_runtime(cpu, task),
            }
        }
    }

    /// Picks what runs after `prev`, which is still current, or looks for work elsewhere.
    pub(super) fn pick_next(&mut self, cpu: u32, prev: u32) {
        self.lock_run_queue(cpu, cpu);
        match self.pick(cpu) {
            Some(next) => self.switch_to(cpu, prev, next),
            None => self.newidle_balance(cpu),
        }
    }

    /// After a newly-idle balance: what it has brought, or the idle task.
    pub(super) fn pick_after_newidle(&mut self, cpu: u32) {
        let prev = self.scheduler.current(cpu);
        match self.pick(cpu) {
            Some(next) => self.switch_to(cpu, prev, next),
            None => self.switch_to_idle(cpu, prev),
        }
    }

    fn switch_to(&mut self, cpu: u32, prev: u32, next: u32) {
        self.scheduler.take(cpu, next, self.now);
        self.account_wait(cpu, next);
        if next == prev {
            return self.go_on(cpu);
        }
        if prev == cpu {
            let cpu = &mut self.cpus[cpu as usize];
            cpu.counters.idle_ns += self.now - cpu.idle_task_since;
        }
        self.leave_runnable(prev);
        let figures = self.costs.figures;
        let figure =
            if prev < FIRST_TASK { figures.idle_switch_ns } else { figures.context_switch_ns };
        self.tasks[next as usize].on_cpu = true;
        self.begin_switch(cpu, prev, next, figure);
    }

    /// If the previous task is preempted, or throttled, a balancing CPU may take it, and run it,
    /// before the switch is over.
    fn leave_runnable(&mut self, prev: u32) {
        if self.tasks[prev as usize].state == TaskState::Runnable && self.scheduler.is_queued(prev)
        {
            self.scheduler.policy.task[prev as usize].nivcsw += 1;
            self.tasks[prev as usize].on_cpu = false;
        }
    }

    fn switch_to_idle(&mut self, cpu: u32, prev: u32) {
        self.leave_runnable(prev);
        self.cpus[cpu as usize].counters.schedules_idle += 1;
        self.cpus[cpu as usize].idle_task_since = self.now;
        self.scheduler.take(cpu, cpu, self.now);
        self.begin_switch(cpu, prev, cpu, self.costs.figures.idle_switch_ns);
    }

    fn begin_switch(&mut self, cpu: u32, prev: u32, next: u32, figure: Time) {
        self.trace_switch(cpu, prev, next);
        self.measurement.switches += 1;
        self.cpus[cpu as usize].prev = self.tasks[prev as usize].on_cpu.then_some(prev);
        let debt = std::mem::take(&mut self.cpus[cpu as usize].debt);
        let work = debt + self.costs.draw(figure);
        let end = self.now + self.stretched(cpu, work);
        self.begin(cpu, Activity::Switch, end);
    }

    fn account_wait(&mut self, cpu: u32, task: u32) {
        let waited = self.add_wait(cpu, task);
        self.cpus[cpu as usize].counters.timeslices += 1;
        let statistics = &mut self.tasks[task as usize].statistics;
        statistics.wait_count += 1;
        statistics.wait_max = statistics.wait_max.max(waited);
    }

    /// Adds the time a task has waited so far to the CPU where it waited.
    pub(super) fn add_wait(&mut self, cpu: u32, task: u32) -> Time {
        let waited = self.now - self.tasks[task as usize].queued_since;
        self.cpus[cpu as usize].counters.wait_ns += waited;
        self.tasks[task as usize].statistics.wait_sum += waited;
        waited
    }

    /// finish_task_switch: the previous task is off the CPU, the current one begins.
    pub(crate) fn switch_done(&mut self, cpu: u32) {
        if let Some(prev) = self.cpus[cpu as usize].prev.take() {
            // It slept delayed, and may have been moved, woken and picked meanwhile.
            let home = self.scheduler.cpu_of(prev);
            self.tasks[prev as usize].on_cpu = self.scheduler.current(home) == prev;
            if self.tasks[prev as usize].state == TaskState::Exited {
                self.scheduler.policy.task_dead(prev);
            }
            self.resume_spinner(prev);
        }
        match self.scheduler.running(cpu) {
            None => self.idle_loop(cpu),
            Some(task) => {
                self.settle(cpu, task);
                self.go_on(cpu);
            }
        }
    }

    /// The idle task looks for something to do, and rests if there is nothing.
    pub(crate) fn idle_loop(&mut self, cpu: u32) {
        if self.take_wake_list(cpu) {
            let debt = std::mem::take(&mut self.cpus[cpu as usize].debt);
            return self.begin(cpu, Activity::WakeList, self.now + debt);
        }
        if !self.cpus[cpu as usize].interrupts.is_empty() {
            self.cpus[cpu as usize].activity = Activity::IdleInterrupt;
            return self.begin_interrupt(cpu);
        }
        self.cpus[cpu as usize].need_resched = false;
        if self.scheduler.policy.rq[cpu as usize].nr_running == 0 {
            return self.enter_idle(cpu);
        }
        self.cpus[cpu as usize].counters.schedules += 1;
        self.lock_run_queue(cpu, cpu);
        match self.pick(cpu) {
            Some(next) => self.switch_to(cpu, cpu, next),
            None => self.enter_idle(cpu),
        }
    }

    /// The current task is to give way; at once, unless its operation is about to end.
    pub(super) fn preempt(&mut self, cpu: u32) {
        if !self.segment_ends_soon(cpu) {
            self.save_segment(cpu);
            self.schedule(cpu);
        }
    }
}
