//! Wakeups: claim the wakee, ask the policy for a CPU, then, after the time that
//! took, bring the wakee there.
//!
//! Choosing a CPU and enqueueing on it are two events: in between, others may
//! choose the same CPU. A wakeup runs in the context of the current task, of a
//! softirq that its system call ends in, or of a hard interrupt; a CPU has at
//! most one of the first two and one of the last under way. Between choosing and enqueueing a waker
//! may have to wait for the lock of the run queue, which a switch holds to its end. Who wakes a task that is going to
//! sleep waits for that, too, as long as the task is on its run queue, and chooses then; later it leaves it to its CPU.
//!
//! Limits: a task whose dequeue is delayed is woken at once, also where its CPU switches; the wait for the
//! lock comes after that. So does that of forks and of balancing. One that is not in schedule() yet is left to its CPU
//! as well, where the kernel would have it go on without a switch.

use placewise_policy::*;
use placewise_run_queue::{Enqueue, EnqueuedBy, Preemption};
use placewise_trace::Event;
use placewise_workload::program::Call;

use crate::engine::Engine;
use crate::state::cpu::Activity;
use crate::state::effect::{Effect, Then, WaitQueue};
use crate::state::event_queue::Time;
use crate::state::events::Slot;
use crate::state::task::{Resume, TaskState};
use crate::state::waker::{Placed, WakerContext};

impl Engine<'_> {
    /// The current task of `cpu` wakes those that its operation wakes, then goes on.
    pub(super) fn wake_all(&mut self, cpu: CpuId, task: TaskId, then: Then) {
        let effect = &mut self.cpus[cpu].effect;
        if effect.wakees.is_empty() && effect.call.rest_ns == 0 {
            return self.go_on_as(cpu, task, then);
        }
        effect.then = then;
        self.next_wakee(cpu);
    }

    #[inline(never)]
    fn next_wakee(&mut self, cpu: CpuId) {
        let Effect { sync, context, .. } = self.cpus[cpu].effect;
        while let Some(wakee) = self.cpus[cpu].effect.wakee() {
            self.pause_at_gate(cpu);
            self.cpus[cpu].effect.woken += 1;
            self.tasks[wakee].woken_sync = sync;
            if self.begin_wakeup(cpu, context, wakee) {
                return;
            }
        }
        self.release_wait_queue(cpu);
        let effect = &mut self.cpus[cpu].effect;
        let rest = std::mem::take(&mut effect.call.rest_ns);
        if rest > 0 {
            let end = self.now + self.stretched(cpu, rest.into());
            return self.begin(cpu, Activity::Wakeup, end);
        }
        effect.end();
        let then = effect.then;
        self.go_on_as(cpu, self.scheduler.current(cpu), then);
    }

    /// Nobody is left to be woken by the current task's operation.
    fn go_on_as(&mut self, cpu: CpuId, task: TaskId, then: Then) {
        match then {
            Then::Next => {
                self.tasks[task].next_op();
                self.go_on(cpu, task);
            }
            Then::Again => self.go_on(cpu, task),
            Then::Block(resume) => self.fall_asleep(cpu, task, resume),
            Then::Spin => self.cpus[cpu].activity = Activity::Spinning,
            Then::Exit => {
                self.tasks[task].state = TaskState::Exited;
                self.finished |= task == TaskId::FIRST;
                self.measurement.task_exited(self.tasks[task].part, task, self.now);
                self.schedule(cpu, task);
            }
        }
    }

    /// The current task sleeps, unless it was woken before it came to that.
    #[inline]
    fn fall_asleep(&mut self, cpu: CpuId, task: TaskId, resume: Resume) {
        let state = &mut self.tasks[task];
        if !state.woken_early {
            state.resume = resume;
            state.state = TaskState::Blocked;
            return self.schedule(cpu, task);
        }
        if resume == Resume::Next {
            state.next_op();
        }
        self.go_on(cpu, task);
    }

    /// A wakeup on the current task's time has come to its next step.
    pub(crate) fn wakeup_step_done(&mut self, cpu: CpuId) {
        if let Some(placed) = self.cpus[cpu].placed.take()
            && !self.finish_wakeup(cpu, self.cpus[cpu].effect.context, placed)
        {
            return;
        }
        self.next_wakee(cpu);
    }

    /// try_to_wake_up: true if it takes time, or must wait for the wakee to switch out.
    pub(super) fn begin_wakeup(
        &mut self,
        cpu: CpuId,
        context: WakerContext,
        wakee: TaskId,
    ) -> bool {
        let state = &mut self.tasks[wakee];
        if state.state != TaskState::Blocked {
            state.woken_early = true;
            return false;
        }
        state.claim();
        if context == WakerContext::Task && self.measurement.samples_woken(state.part) {
            state.woken_at = Some(self.now);
        }
        self.measurement.wakeups += 1;
        let target = self.scheduler.cpu_of(wakee);
        self.trace_wakee(cpu, context, wakee, |comm, pid, prio| Event::Waking {
            comm,
            pid,
            prio,
            target_cpu: target.into(),
        });

        if self.scheduler.is_delayed(wakee) {
            self.wake_delayed(cpu, context, wakee);
            // ttwu_runnable() takes the lock, which is owed, and nothing is chosen. What a trace tells is the mean of such
            // wakeups and others.
            let figure = match self.call(cpu, context, wakee).queue_ns {
                0 => self.costs.scheduler.wake_delayed_ns,
                beyond => self.costs.scheduler.wakeup_ns + Time::from(beyond),
            };
            self.step_ends(cpu, context, figure);
        } else if !self.tasks[wakee].on_cpu {
            self.select(cpu, context, wakee);
        } else if !self.is_dequeueing(target)
            && self.scheduler.policy.ttwu_queue_wakelist(
                wakee.into(),
                cpu.into(),
                target.into(),
                true,
            )
        {
            self.queue_on_wake_list(cpu, wakee);
            self.account_wakeup(cpu, wakee);
            self.step_ends(cpu, context, self.costs.scheduler.wakeup_ns);
        } else {
            self.tasks[wakee].spinner = Some((cpu, context));
            if context.holds_up_the_task() {
                let left = self.events.due(Slot::Activity(target)).unwrap_or(self.now);
                self.keep_wait_queue(cpu, left);
                self.cpus[cpu].activity = Activity::Spinning;
            }
        }
        true
    }

    /// Is who leaves that CPU on its run queue still? Whoever wakes it then waits for the lock, and a switch keeps that
    /// to its end; to look for work elsewhere lets it go.
    fn is_dequeueing(&self, cpu: CpuId) -> bool {
        let here = &self.cpus[cpu];
        here.activity == Activity::Switch && here.dequeues.contains(&self.now)
    }

    /// The waker's CPU is busy with this step of the wakeup for the time of `figure`, and with
    /// what earlier steps still owe.
    fn step_ends(&mut self, cpu: CpuId, context: WakerContext, figure: Time) {
        let more = self.costs.draw(figure);
        let end = self.pay(cpu, more);
        self.step_ends_at(cpu, context, end);
    }

    fn step_ends_at(&mut self, cpu: CpuId, context: WakerContext, end: Time) {
        match context {
            WakerContext::Task | WakerContext::Softirq => {
                self.keep_wait_queue(cpu, end);
                self.begin(cpu, Activity::Wakeup, end);
            }
            WakerContext::Interrupt => self.events.arm(Slot::InterruptWakeup(cpu), end),
        }
    }

    /// Until then the current task has the lock of the wait queue whose tasks it wakes.
    fn keep_wait_queue(&mut self, cpu: CpuId, end: Time) {
        if let Some(WaitQueue::Channel(channel)) = self.cpus[cpu].effect.wait_queue {
            self.objects.channels[channel as usize].waking_until = end;
        }
    }

    /// After so many wakeups some kernels let others have the lock.
    fn pause_at_gate(&mut self, cpu: CpuId) {
        let Effect { wait_queue: Some(WaitQueue::Gate(gate)), woken, .. } = self.cpus[cpu].effect
        else {
            return;
        };
        let batch = self.scheduler.policy.profile.wait_queue_batch;
        if woken > 0 && woken.is_multiple_of(batch) {
            self.release_gate(cpu, gate as usize);
        }
    }

    /// All who waited there are woken.
    fn release_wait_queue(&mut self, cpu: CpuId) {
        match self.cpus[cpu].effect.wait_queue {
            Some(WaitQueue::Channel(_)) => self.keep_wait_queue(cpu, self.owes_until(cpu)),
            Some(WaitQueue::Gate(gate)) => {
                self.objects.gates[gate as usize].opening = false;
                self.release_gate(cpu, gate as usize);
            }
            None => return,
        }
        self.cpus[cpu].effect.wait_queue = None;
    }

    /// Choose a CPU now; the wakee gets there once the search has taken its time.
    pub(super) fn select(&mut self, cpu: CpuId, context: WakerContext, wakee: TaskId) {
        let begins = context == WakerContext::Task && self.cpus[cpu].effect.begins();
        if let Some(target) = begins.then(|| self.begins_on(wakee)).flatten() {
            self.set_placed(cpu, context, Placed { wakee, cpu: target, has_turn: false });
            return self.step_ends(cpu, context, self.costs.scheduler.wakeup_ns);
        }
        let prev = self.scheduler.cpu_of(wakee);
        let sync = if self.tasks[wakee].woken_sync { WF_SYNC } else { 0 };
        let interrupt = if context == WakerContext::Task { 0 } else { WF_INTERRUPT };
        let target = self.select_task_rq(cpu, context, wakee, prev, WF_TTWU | sync | interrupt);
        self.count_affine(wakee);
        self.measurement.idle_searches.count(&self.scheduler.policy.decision);
        let figures = self.costs.figures;
        self.scheduler.policy.record_scan_cost(
            cpu.into(),
            u64::from(self.scheduler.policy.decision.timed_scan) * figures.scan_cpu_ns,
        );
        let scan = self.scan(cpu);
        self.set_placed(cpu, context, Placed { wakee, cpu: target, has_turn: false });
        let lines = self.lines(figures.wakeup_lines, prev, cpu);
        let beyond = Time::from(self.call(cpu, context, wakee).queue_ns);
        let scheduler = &self.costs.scheduler;
        let elsewhere = if target == prev { 0 } else { scheduler.wake_elsewhere_ns };
        let wakeup = scheduler.wakeup_ns + elsewhere;
        self.step_ends(cpu, context, wakeup + scan + lines + beyond);
    }

    fn call(&self, cpu: CpuId, context: WakerContext, wakee: TaskId) -> Call {
        match context.holds_up_the_task() {
            true => self.cpus[cpu].effect.call,
            false => self.arrival(wakee),
        }
    }

    fn set_placed(&mut self, cpu: CpuId, context: WakerContext, placed: Placed) {
        match context {
            WakerContext::Task | WakerContext::Softirq => self.cpus[cpu].placed = Some(placed),
            WakerContext::Interrupt => self.cpus[cpu].interrupt_placed = Some(placed),
        }
    }

    /// The wakee goes to the CPU that was chosen for it; false if the waker has to wait for that.
    pub(super) fn finish_wakeup(
        &mut self,
        cpu: CpuId,
        context: WakerContext,
        placed: Placed,
    ) -> bool {
        let Placed { wakee, cpu: mut target, has_turn } = placed;
        if self.confinement.affinity.in_use {
            target = self.still_allowed_cpu(wakee, target);
        }
        self.move_wakee(cpu, context, wakee, target);
        let (on, by) = (target.into(), cpu.into());
        if !has_turn && self.scheduler.policy.ttwu_queue_wakelist(wakee.into(), by, on, false) {
            self.queue_on_wake_list(cpu, wakee);
        } else if !has_turn && self.waits_for_turn(cpu, context, wakee) {
            return false;
        } else {
            self.activate(cpu, context, wakee);
        }
        self.account_wakeup(cpu, wakee);
        true
    }

    /// The waker asks for the lock of its wakee's run queue. If it has to wait it comes back once it has held
    /// that; else the hold is owed.
    fn waits_for_turn(&mut self, cpu: CpuId, context: WakerContext, wakee: TaskId) -> bool {
        let target = self.scheduler.cpu_of(wakee);
        let (waits, hold) = self.turn_of_run_queue(target, cpu);
        if waits == 0 {
            self.cpus[cpu].debt += hold;
            return false;
        }
        self.set_placed(cpu, context, Placed { wakee, cpu: target, has_turn: true });
        self.step_ends_at(cpu, context, self.now + waits + self.stretched(cpu, hold));
        true
    }

    /// A wakee on no run queue leaves the CPU where it slept.
    pub(super) fn move_wakee(
        &mut self,
        cpu: CpuId,
        context: WakerContext,
        wakee: TaskId,
        target: CpuId,
    ) {
        let prev = self.scheduler.cpu_of(wakee);
        if target != prev {
            self.scheduler.set_task_cpu(wakee, target);
            self.tasks[wakee].woken_migrated = true;
            self.tasks[wakee].statistics.migrations += 1;
            self.measurement.migrations.wakeup += 1;
            self.trace_wakee(cpu, context, wakee, |comm, pid, prio| Event::Migrate {
                comm,
                pid,
                prio,
                from: prev.into(),
                to: target.into(),
            });
        }
    }

    /// ttwu_do_activate, by the CPU `by`.
    pub(super) fn activate(&mut self, by: CpuId, context: WakerContext, wakee: TaskId) {
        let target = self.scheduler.cpu_of(wakee);
        self.lock_list(target, by);
        self.enqueue(wakee, Enqueue::Wakeup);
        self.weigh_groups(target, wakee, by, self.now);
        self.tasks[wakee].lines_on = (by != target).then_some(by);
        self.check_preempt(target, wakee, (by, self.enqueued_by(context, wakee)));
        self.scheduler.policy.sample_avg_idle(target.into(), self.now);
        self.trace_wakee(by, context, wakee, |comm, pid, prio| Event::Wakeup {
            comm,
            pid,
            prio,
            target_cpu: target.into(),
        });
    }

    fn wake_delayed(&mut self, cpu: CpuId, context: WakerContext, wakee: TaskId) {
        let target = self.scheduler.cpu_of(wakee);
        self.lock_run_queue(target, cpu);
        if self.scheduler.policy.profile.requeue_updates_curr {
            self.account_current(target);
        }
        self.scheduler.wake_delayed(wakee, self.now);
        self.account_current(target);
        let state = &mut self.tasks[wakee];
        state.state = TaskState::Runnable;
        state.queued_since = self.now;
        self.check_preempt(target, wakee, (cpu, self.enqueued_by(context, wakee)));
        self.trace_wakee(cpu, context, wakee, |comm, pid, prio| Event::Wakeup {
            comm,
            pid,
            prio,
            target_cpu: target.into(),
        });
        self.account_wakeup(cpu, wakee);
    }

    /// Puts a task on the run queue of the CPU it belongs to.
    pub(crate) fn enqueue(&mut self, task: TaskId, why: Enqueue) {
        let cpu = self.scheduler.cpu_of(task);
        self.scheduler.wake_delayed_group(task);
        self.account_current(cpu);
        self.throttle_before_enqueue(cpu, task);
        self.scheduler.enqueue(task, why, self.now);
        let state = &mut self.tasks[task];
        if state.state != TaskState::Blocked {
            state.state = TaskState::Runnable;
        }
        state.queued_since = self.now;
    }

    /// A wake list tells nothing of the waker.
    fn enqueued_by(&self, context: WakerContext, wakee: TaskId) -> EnqueuedBy {
        EnqueuedBy {
            task: context == WakerContext::Task,
            sync: context != WakerContext::Interrupt && self.tasks[wakee].woken_sync,
        }
    }

    /// Does a task that the CPU `by` has enqueued on `cpu` preempt the one that runs there? Lazily: who runs there
    /// is not interrupted, and may give way to others yet until it comes to it.
    pub(super) fn check_preempt(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        (by, enqueued_by): (CpuId, EnqueuedBy),
    ) {
        let lazily =
            self.scheduler.policy.profile.preempt == PREEMPT_LAZY && !self.scheduler.is_rt(task);
        let here = &mut self.cpus[cpu];
        let is_busy = self.scheduler.running(cpu).is_some();
        if is_busy {
            let is_told = here.need_resched && !lazily;
            if !is_told && !self.preempts(cpu, task, enqueued_by) {
                return;
            }
            let here = &mut self.cpus[cpu];
            here.need_resched = true;
            if lazily {
                return;
            }
            here.clock_stands_at = Some(self.now);
            if is_told {
                return;
            }
        } else {
            here.clock_stands_at = Some(self.now);
            let idle_task_is_told = matches!(here.activity, Activity::IdleExit | Activity::Pick);
            if idle_task_is_told {
                return;
            }
        }
        self.tell_of(task, by, cpu);
        // resched_curr() sends it before the lock is released.
        let sent = self.owes_until(by);
        self.cpus[cpu].lock.keep_until(sent);
        if is_busy && by != cpu {
            self.cpus[cpu].preempted_from = self.preempts_from(task, sent);
        }
    }

    /// When a wakee preempts at the earliest; at any time, if its program says nothing of it.
    fn preempts_from(&self, wakee: TaskId, sent: Time) -> Time {
        match self.workload.programs[self.tasks[wakee].program as usize].preempt_ns {
            0 => 0,
            takes => sent + Time::from(takes),
        }
    }

    /// Delayed tasks that are found to stand before it leave the queue.
    fn preempts(&mut self, cpu: CpuId, task: TaskId, enqueued_by: EnqueuedBy) -> bool {
        loop {
            match self.scheduler.preempts(cpu, (task, enqueued_by), self.now) {
                Preemption::Left(sleeper) => self.return_runtime(cpu, sleeper),
                preemption => return preemption == Preemption::Preempts,
            }
        }
    }

    /// `by` takes the lock of a run queue, in turn, and releases it again; the time is owed.
    pub(super) fn lock_run_queue(&mut self, cpu: CpuId, by: CpuId) {
        let (waits, hold) = self.turn_of_run_queue(cpu, by);
        self.owe_turn(by, waits, hold);
    }

    /// How long `by` spins for the lock of a run queue, whatever its speed; and what it does while it holds it.
    pub(super) fn turn_of_run_queue(&mut self, cpu: CpuId, by: CpuId) -> (Time, Time) {
        let hold = self.costs.draw(self.costs.scheduler.rq_lock_hold_ns);
        let (asked, pace) = (self.owes_until(by), self.cpus[by].pace);
        let lock = &mut self.cpus[cpu].lock;
        let lines = self.costs.lock_lines(lock, self.costs.figures.rq_lock_lines, asked, by);
        let hold = hold + pace.share(lines);
        let waits = lock.take(by, asked, pace.time_for(hold));
        self.cpus[by].counters.lock_ns += waits;
        (waits, hold)
    }

    /// The counters of a wakeup made on `cpu`.
    fn account_wakeup(&mut self, cpu: CpuId, wakee: TaskId) {
        let target = self.scheduler.cpu_of(wakee);
        let local = target == cpu;
        let counters = &mut self.cpus[cpu].counters;
        counters.wakeups += 1;
        counters.wakeups_local += u64::from(local);
        if !local {
            self.count_remote(cpu, target);
        }
        let task = &mut self.tasks[wakee];
        task.statistics.wakeups += 1;
        task.statistics.wakeups_sync += u64::from(task.woken_sync);
        task.statistics.wakeups_migrate += u64::from(task.woken_migrated);
        task.statistics.wakeups_local += u64::from(local);
        task.statistics.wakeups_remote += u64::from(!local);
    }

    fn count_remote(&mut self, cpu: CpuId, target: CpuId) {
        let levels = self.scheduler.policy.cpu[cpu].nr_domains as usize;
        for level in 0..levels {
            let span = self.scheduler.policy.domain[cpu][level].span as usize;
            if self.scheduler.policy.span[span].cpus.contains(target) {
                self.scheduler.policy.domain[cpu][level].stats.ttwu_wake_remote += 1;
                return;
            }
        }
    }

    fn count_affine(&mut self, wakee: TaskId) {
        let affine = self.scheduler.policy.decision.affine;
        if u32::from(affine) == AFFINE_NOT_TRIED {
            return;
        }
        let statistics = &mut self.tasks[wakee].statistics;
        statistics.wakeups_affine_attempts += 1;
        statistics.wakeups_affine += u64::from(u32::from(affine) != AFFINE_UNDECIDED);
    }
}
