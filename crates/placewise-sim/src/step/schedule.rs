//! What a CPU runs next: blocking, picking, switching, idling.

use placewise_policy::*;
use placewise_run_queue::{Picked, Ran};

use crate::engine::Engine;
use crate::state::cpu::Activity;
use crate::state::event_queue::Time;
use crate::state::task::TaskState;

impl Engine<'_> {
    /// Brings the current task's run time and virtual time up to now.
    pub(crate) fn account_current(&mut self, cpu: CpuId) {
        let Ran { ns, reschedule } = self.scheduler.account(cpu, self.now);
        let here = &mut self.cpus[cpu];
        here.counters.run_ns += ns;
        here.need_resched |= reschedule;
        here.clock_stands_at = here.clock_stands_at.map(|_| self.now);
        if ns > 0
            && self.confinement.cfs_bandwidth.in_use
            && let Some(current) = self.scheduler.running_fair(cpu)
        {
            self.account_runtime(cpu, current, ns);
        }
    }

    /// As schedule() sees it. Where a wakee has come that preempts, or whom the CPU leaves idle for, it is not updated
    /// once more (RQCF_REQ_SKIP): what the current task did since, idle or not, and what its call did yet, is the next
    /// one's time.
    fn rq_clock(&self, cpu: CpuId) -> Time {
        self.cpus[cpu].clock_stands_at.unwrap_or(self.now)
    }

    /// The current task goes on, unless something else comes first.
    #[inline]
    pub(crate) fn go_on(&mut self, cpu: CpuId, task: TaskId) {
        if self.cpus[cpu].is_undisturbed() {
            return self.advance(cpu, task);
        }
        self.drain_wake_list(cpu);
        if !self.cpus[cpu].interrupts.is_empty() {
            self.begin_interrupt(cpu);
        } else if self.cpus[cpu].need_resched {
            self.give_way(cpu, task);
        } else {
            self.advance(cpu, task);
        }
    }

    /// The current task is to give way: in the kernel schedule() waits for the lock.
    fn give_way(&mut self, cpu: CpuId, task: TaskId) {
        let from = std::mem::take(&mut self.cpus[cpu].preempted_from);
        if from > self.now {
            self.begin(cpu, Activity::Schedule, from);
        } else {
            self.schedule(cpu, task);
        }
    }

    /// The current task, `prev`, blocks, has exited, or is preempted; another one is picked.
    pub(super) fn schedule(&mut self, cpu: CpuId, prev: TaskId) {
        let here = &mut self.cpus[cpu];
        here.counters.schedules += 1;
        if here.clock_stands_at.is_none() {
            self.account_current(cpu);
        }
        self.cpus[cpu].need_resched = false;
        if self.tasks[prev].state == TaskState::Runnable {
            self.put_back(cpu, prev);
        } else {
            self.block(cpu, prev);
        }
        self.pick_next(cpu, prev);
    }

    /// The current task, accounted for, waits again.
    pub(super) fn put_back(&mut self, cpu: CpuId, task: TaskId) {
        self.lock_list(cpu, cpu);
        self.scheduler.put_back(cpu, self.rq_clock(cpu));
        self.tasks[task].queued_since = self.now;
        self.throttle_exhausted(cpu, task);
    }

    /// A task that blocks may stay in the queue; one that has exited leaves it. What its call takes longer for that is
    /// paid for with the switch, and when it runs again.
    fn block(&mut self, cpu: CpuId, task: TaskId) {
        let stays = if self.tasks[task].state == TaskState::Blocked {
            self.cpus[cpu].debt += self.costs.draw(self.costs.scheduler.half_a_sleep());
            let calls = self.owes_until(cpu);
            let [locked, off] = self.costs.scheduler.dequeue_ns;
            self.cpus[cpu].dequeues =
                calls + self.stretched(cpu, locked)..calls + self.stretched(cpu, off);
            self.tasks[task].slept = true;
            self.scheduler.sleep(cpu, 0, self.rq_clock(cpu))
        } else {
            self.scheduler.deactivate(cpu, self.rq_clock(cpu));
            false
        };
        if !stays {
            self.weigh_groups(cpu, task, cpu, self.rq_clock(cpu));
            self.return_runtime(cpu, task);
        }
        self.throttle_exhausted(cpu, task);
    }

    /// The next task; delayed tasks met on the way leave the queue.
    pub(super) fn pick(&mut self, cpu: CpuId) -> Option<TaskId> {
        loop {
            match self.scheduler.pick(cpu, self.rq_clock(cpu))? {
                Picked::Next(task) => return Some(task),
                Picked::Left(task) => self.return_runtime(cpu, task),
            }
        }
    }

    /// Picks what runs after `prev`, which is still current, or looks for work elsewhere.
    pub(super) fn pick_next(&mut self, cpu: CpuId, prev: TaskId) {
        self.lock_run_queue(cpu, cpu);
        match self.pick(cpu) {
            Some(next) => self.switch_to(cpu, prev, next),
            None => self.newidle_balance(cpu),
        }
    }

    /// After a newly-idle balance: what it has brought, or the idle task.
    pub(super) fn pick_after_newidle(&mut self, cpu: CpuId) {
        let prev = self.scheduler.current(cpu);
        match self.pick(cpu) {
            Some(next) => self.switch_to(cpu, prev, next),
            None if prev.is_idle() => self.idle_on(cpu),
            None => self.switch_to_idle(cpu, prev),
        }
    }

    fn switch_to(&mut self, cpu: CpuId, prev: TaskId, next: TaskId) {
        self.take(cpu, next);
        self.account_wait(cpu, next);
        if next == prev {
            return self.go_on(cpu, next);
        }
        if prev == TaskId::idle(cpu) {
            let cpu = &mut self.cpus[cpu];
            cpu.counters.idle_ns += self.now - cpu.idle_task_since;
        }
        self.lock_list(cpu, cpu);
        let figures = self.costs.figures;
        let state = &mut self.tasks[next];
        state.on_cpu = true;
        if let Some(by) = state.lines_on.take() {
            self.cpus[cpu].debt += self.lines(figures.wakeup_lines, by, cpu);
        }
        self.begin_switch(cpu, prev, next);
    }

    /// The run queue's clock goes on from here.
    fn take(&mut self, cpu: CpuId, next: TaskId) {
        self.scheduler.take(cpu, next, self.rq_clock(cpu));
        self.cpus[cpu].clock_stands_at = None;
    }

    /// The task that leaves is dequeued and accounted as in any other switch: until then whoever wakes
    /// it finds it on its CPU, and leaves it there.
    fn switch_to_idle(&mut self, cpu: CpuId, prev: TaskId) {
        let here = &mut self.cpus[cpu];
        here.counters.schedules_idle += 1;
        here.idle_task_since = self.now;
        let idle = TaskId::idle(cpu);
        self.take(cpu, idle);
        self.begin_switch(cpu, prev, idle);
    }

    /// If the task that leaves is preempted, or throttled, a balancing CPU may take it, and run it, before the
    /// switch is over. The idle task has done its part before it leaves.
    fn begin_switch(&mut self, cpu: CpuId, prev: TaskId, next: TaskId) {
        self.trace_switch(cpu, prev, next);
        self.measurement.switches += 1;
        let leaves = &mut self.tasks[prev];
        if leaves.state == TaskState::Runnable && self.scheduler.is_queued(prev) {
            self.scheduler.policy.task[prev].nivcsw += 1;
            leaves.on_cpu = false;
        }
        self.cpus[cpu].prev = leaves.on_cpu.then_some(prev);
        let scheduler = &self.costs.scheduler;
        let figure = match (prev.is_idle(), next.is_idle()) {
            (true, _) => 0,
            (false, true) => scheduler.switch_to_idle_ns,
            (false, false) => scheduler.context_switch_ns,
        };
        let more = self.costs.draw(figure);
        let end = self.pay(cpu, more);
        self.cpus[cpu].lock.keep_until(end);
        self.begin(cpu, Activity::Switch, end);
    }

    fn account_wait(&mut self, cpu: CpuId, task: TaskId) {
        let waited = self.add_wait(cpu, task);
        self.cpus[cpu].counters.timeslices += 1;
        let statistics = &mut self.tasks[task].statistics;
        statistics.wait_count += 1;
        statistics.wait_max = statistics.wait_max.max(waited);
    }

    /// Adds the time a task has waited so far to the CPU where it waited.
    pub(super) fn add_wait(&mut self, cpu: CpuId, task: TaskId) -> Time {
        let waited = self.now - self.tasks[task].queued_since;
        self.cpus[cpu].counters.wait_ns += waited;
        self.tasks[task].statistics.wait_sum += waited;
        waited
    }

    /// finish_task_switch: the previous task is off the CPU, the current one begins.
    pub(crate) fn switch_done(&mut self, cpu: CpuId) {
        if let Some(prev) = self.cpus[cpu].prev.take() {
            // It slept delayed, and may have been moved, woken and picked meanwhile.
            let home = self.scheduler.cpu_of(prev);
            let left = &mut self.tasks[prev];
            left.on_cpu = self.scheduler.current(home) == prev;
            if left.state == TaskState::Exited {
                self.scheduler.policy.task_dead(prev.into());
            }
            if let Some((waker, context)) = left.spinner.take() {
                self.select(waker, context, prev);
            }
        }
        match self.scheduler.running(cpu) {
            None => self.idle_loop(cpu),
            Some(task) => {
                self.settle(cpu, task);
                self.go_on(cpu, task);
            }
        }
    }

    /// The idle task looks for something to do, and rests if there is nothing.
    pub(crate) fn idle_loop(&mut self, cpu: CpuId) {
        if let Some((waits, work)) = self.take_wake_list(cpu) {
            let end = self.pay(cpu, 0) + waits;
            self.cpus[cpu].debt = work;
            return self.begin(cpu, Activity::WakeList, end);
        }
        if !self.cpus[cpu].interrupts.is_empty() {
            self.cpus[cpu].activity = Activity::IdleInterrupt;
            return self.begin_interrupt(cpu);
        }
        self.cpus[cpu].need_resched = false;
        if self.scheduler.policy.rq[cpu].nr_running == 0 {
            return self.enter_idle(cpu);
        }
        self.cpus[cpu].counters.schedules += 1;
        // What comes before schedule_idle(), such as the tick that starts again, is done without the lock.
        let switch = self.costs.draw(self.costs.scheduler.idle_switch_ns);
        let end = self.pay(cpu, switch);
        self.begin(cpu, Activity::Pick, end);
    }

    /// The idle task is in schedule(): others may have taken what there was.
    pub(crate) fn pick_from_idle(&mut self, cpu: CpuId) {
        self.pick_next(cpu, TaskId::idle(cpu));
    }

    /// The idle task has found nothing else to run.
    fn idle_on(&mut self, cpu: CpuId) {
        self.cpus[cpu].need_resched = false;
        if self.cpus[cpu].is_undisturbed() {
            self.enter_idle(cpu);
        } else {
            self.idle_loop(cpu);
        }
    }

    /// An interrupt says that the current task is to give way; that is so unless its operation is about to end.
    pub(super) fn preempt(&mut self, cpu: CpuId) {
        if !self.segment_ends_soon(cpu) {
            self.save_segment(cpu);
            self.give_way(cpu, self.scheduler.current(cpu));
        }
    }
}
