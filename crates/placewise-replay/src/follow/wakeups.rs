//! How wakeups show in a trace: who makes each, what it took, whether it ended a sleep, and how its wakee came to run.
//!
//! A wakeup may come while its task has not been switched out yet. Then either it did not sleep, and
//! the wakeup is none, or that sleep was over as it began: what follows tells.
//!
//! A wakee that preempts another CPU's task soon after its wakeup does so because of it: its waker has interrupted
//! that CPU.
//!
//! A wakee that preempts its waker, and sleeps before the waker goes on, may have answered it: nobody
//! was asleep to be woken then. That answer is taken down as a wakeup that is only likely.

use placewise_audit::{Outcome, Step, TaskNumber, Tasks};
use placewise_policy::FIRST_TASK;
use placewise_workload::program::{Nanos, Wake};

use super::{Follower, SOON_NS, State};
use crate::followed::{Cause, Evidence, Seen, Wakeup};
use crate::hints::Hint;
use crate::recording::TaskIndex;

impl Follower<'_> {
    pub(super) fn waking(
        &mut self,
        step: &Step,
        number: TaskNumber,
        (prev_cpu, outcome): (u32, Option<Outcome>),
        tasks: &Tasks,
    ) {
        self.flips(step.cpu, number);
        let Some(index) = self.index(number, prev_cpu, tasks) else { return };
        let telling = outcome.map_or(0, |outcome| self.telling(step.cpu, outcome));
        let cause = self.cause(step, (index, number), (prev_cpu, telling), tasks);
        let task = &self.tasks[index as usize];
        match task.state {
            State::Asleep => self.wake(index, cause),
            State::Runs(_) => self.task(index).early = Some((cause, self.now)),
            State::Queued if task.woken_early => self.wake_again(index, cause),
            State::Queued => self.slept_unseen(index, cause),
        }
    }

    /// Whoever is current wakes, for all that the kernel counts.
    fn flips(&mut self, cpu: u32, wakee: TaskNumber) {
        if let Some(current) = self.cpus[cpu as usize].task {
            let waker = self.task(current);
            waker.known.flips += u64::from(waker.last_wakee.replace(wakee) != Some(wakee));
        }
    }

    /// Who makes the wakeup of a step, which has told another CPU in so much time; a task takes it as a step of its own.
    fn cause(
        &mut self,
        step: &Step,
        (wakee, number): (TaskIndex, TaskNumber),
        (prev_cpu, telling): (u32, Nanos),
        tasks: &Tasks,
    ) -> Cause {
        let is_softirq = step.context.is_interrupt() && !step.context.is_hard_interrupt();
        self.task(wakee).interrupt = None;
        let Some(waker) = self.cpus[step.cpu as usize].task else {
            let placing = self.placing(prev_cpu, step.cpu, Hint::default());
            let task = self.task(wakee);
            task.known.softirqs_of_idle += u32::from(is_softirq);
            task.interrupt = Some((step.cpu, placing));
            return Cause::Arrival { on: Some(step.cpu) };
        };
        let names =
            (tasks.get(self.tasks[waker as usize].known.number).name, tasks.get(number).name);
        let hint = self.hints.wakeup((step.time_ns + self.silent_ns, number), names);
        let placing = self.placing(prev_cpu, step.cpu, hint);
        let takes = placing + self.charges.queueing() + telling;
        if waker == wakee || step.context.is_hard_interrupt() {
            let interrupt = self.charges.interrupt();
            self.task(waker).charged += takes + interrupt;
            self.task(wakee).interrupt = Some((step.cpu, placing));
            return Cause::Arrival { on: Some(step.cpu) };
        }
        let wake = if is_softirq { Wake::Softirq } else { hint.wake };
        self.close(waker);
        let at = self.wakeups.len() as u32;
        self.wakeups.push(Wakeup {
            counts: false,
            told: telling > 0,
            placing,
            seen: Evidence::Recorded,
            ..Wakeup::silent((waker, wakee), wake, step.cpu)
        });
        self.see(waker, Seen::Wakeup(at));
        self.task(waker).charged += takes;
        self.task(waker).made_last = Some(at);
        Cause::Wakeup(at)
    }

    /// A wakeup on `cpu` of a task that slept on `prev_cpu`, until that is put on a run queue.
    fn placing(&self, prev_cpu: u32, cpu: u32, hint: Hint) -> Nanos {
        let lines = self.charges.task_lines(prev_cpu, cpu) + self.charges.scan(hint);
        self.charges.placing(hint) + self.work_of(cpu, lines)
    }

    /// What a waker has spent to tell the CPU of its wakee at once: one that takes it from its wake list, or idles.
    fn telling(&self, cpu: u32, outcome: Outcome) -> Nanos {
        let idles = self.cpus[outcome.cpu as usize].task.is_none();
        let listed = outcome.woken_by == Some(outcome.cpu);
        match outcome.cpu != cpu && (idles || listed) {
            true => self.charges.telling(idles),
            false => 0,
        }
    }

    pub(super) fn wake(&mut self, index: TaskIndex, cause: Cause) {
        let until = self.now;
        let from = std::mem::replace(&mut self.task(index).slept_since, until);
        self.see(index, Seen::Slept { from, until, cause, line_ns: 0 });
        let post_from = match cause {
            Cause::Wakeup(at) => {
                self.wakeups[at as usize].counts = true;
                Some(self.wakeups[at as usize].cpu)
            }
            Cause::Arrival { .. } => None,
        };
        let timed = self.charges.timed_sleep();
        let task = self.task(index);
        task.post_from = post_from;
        task.state = State::Queued;
        if matches!(cause, Cause::Arrival { .. }) {
            // The call was before the sleep.
            if let [.., Seen::Run(before, _), Seen::Slept { .. }] = &mut task.known.seen[..] {
                *before = before.saturating_sub(timed);
            }
        }
    }

    /// The wakeup before was no end of the sleep; this one is.
    fn wake_again(&mut self, index: TaskIndex, by: Cause) {
        let now = self.now;
        let task = self.task(index);
        task.woken_early = false;
        let Some(Seen::Slept { until, cause, .. }) = task.known.seen.last_mut() else { return };
        *until = now;
        if let Cause::Wakeup(before) = std::mem::replace(cause, by) {
            self.wakeups[before as usize].counts = false;
        }
        if let Cause::Wakeup(at) = by {
            self.wakeups[at as usize].counts = true;
            self.task(index).post_from = Some(self.wakeups[at as usize].cpu);
        }
    }

    /// A wakeup of who waits for a CPU, for all that was seen: none but those that sleep are woken.
    fn slept_unseen(&mut self, index: TaskIndex, cause: Cause) {
        if let Some((since, _)) = self.task(index).lost.take() {
            self.task(index).slept_since = since;
            self.wake(index, cause);
        }
    }

    /// sched_wakeup: the CPU `by` has put a task on a run queue. If it has not slept, the wakeup that was to come is
    /// none.
    pub(super) fn woken(&mut self, number: TaskNumber, by: u32) {
        let Some(&index) = self.by_number.get(&number) else { return };
        let now = self.now;
        let task = self.task(index);
        task.enqueued = Some((now, by));
        task.lines_on = Some(by);
        let (early, interrupt) = (task.early.take(), task.interrupt.take());
        let Some(&Seen::Slept { until, cause, .. }) = task.known.seen.last() else { return };
        if early.is_some() || task.woken_early {
            return;
        }
        let took = self.work_of(by, now - until) as i64;
        let beyond = |placing: Nanos| took - placing as i64;
        match cause {
            Cause::Wakeup(at) => {
                let Wakeup { cpu, placing, excess, .. } = &mut self.wakeups[at as usize];
                *excess = (*cpu == by).then(|| beyond(*placing));
            }
            Cause::Arrival { .. } => {
                if let Some((_, placing)) = interrupt.filter(|(cpu, _)| *cpu == by) {
                    self.interrupted(index, by, beyond(placing));
                }
            }
        }
    }

    /// An interrupt on `cpu` took so much longer to put a task on a run queue, on the time of who ran there.
    fn interrupted(&mut self, index: TaskIndex, cpu: u32, excess: i64) {
        self.task(index).known.excesses.push(excess);
        if let Some(other) = self.cpus[cpu as usize].task {
            self.task(other).charged += excess.max(0) as Nanos;
        }
    }

    /// `cpu` has idled, and runs a task that another CPU has told it of.
    pub(super) fn left_idle(&mut self, cpu: u32, index: TaskIndex) {
        let Some(&Seen::Slept { until, cause: Cause::Wakeup(at), .. }) =
            self.tasks[index as usize].known.seen.last()
        else {
            return;
        };
        let (wakeup, took) = (&mut self.wakeups[at as usize], self.now - until);
        if wakeup.cpu != cpu && wakeup.told && took < SOON_NS {
            let figures = wakeup.placing + self.charges.leaving_idle(wakeup.cpu, cpu);
            wakeup.idle_exit = Some(took as i64 - figures as i64);
        }
    }

    /// `next` runs where an interrupt has just woken it, which was on the time of `prev`.
    pub(super) fn arrived(&mut self, cpu: u32, prev: TaskNumber, next: TaskNumber) {
        let Some(&index) = self.by_number.get(&next) else { return };
        let last = self.tasks[index as usize].known.seen.last();
        let Some(Seen::Slept { cause: Cause::Arrival { .. }, .. }) = last else { return };
        let Some(since) = self.since_queued(index, cpu) else { return };
        let figures = if prev < FIRST_TASK { self.charges.leaving_the_idle_task() } else { 0 };
        let rest = self.work_of(cpu, since).saturating_sub(figures);
        self.task(index).known.rests.push(rest);
        if let Some(&prev) = self.by_number.get(&prev) {
            self.task(prev).charged += rest;
        }
    }

    /// A task makes way for `next`, perhaps for whom it has just woken.
    pub(super) fn preempted(&mut self, cpu: u32, index: TaskIndex, next: TaskNumber) {
        self.task(index).state = State::Queued;
        self.tell_of_preemption(cpu, next);
        let Some(at) = self.task(index).made_last else { return };
        let wakee = self.wakeups[at as usize].wakee;
        if self.wakeups[at as usize].counts && self.by_number.get(&next) == Some(&wakee) {
            self.wakeups[at as usize].rest = self.since_queued(wakee, cpu);
            self.wakeups[at as usize].seen = Evidence::Preempted;
            self.task(wakee).answers = Some(index);
        }
    }

    /// `next` preempts a task of `cpu`, perhaps as another CPU has just woken it.
    fn tell_of_preemption(&mut self, cpu: u32, next: TaskNumber) {
        let Some(&next) = self.by_number.get(&next) else { return };
        let Some(&Seen::Slept { until, cause: Cause::Wakeup(at), .. }) =
            self.tasks[next as usize].known.seen.last()
        else {
            return;
        };
        let since_queued = self.since_queued(next, self.wakeups[at as usize].cpu);
        let wakeup = &mut self.wakeups[at as usize];
        if wakeup.cpu != cpu && !wakeup.told && self.now - until < SOON_NS {
            wakeup.preempted = since_queued;
            wakeup.told = true;
            let waker = wakeup.waker;
            self.task(waker).charged += self.charges.telling(false);
        }
    }

    /// How long ago `cpu` put a task on a run queue, if that was soon before.
    fn since_queued(&self, index: TaskIndex, cpu: u32) -> Option<Nanos> {
        let (at, by) = self.tasks[index as usize].enqueued?;
        Some(self.now - at).filter(|&since| by == cpu && since < SOON_NS)
    }

    /// A task sleeps that had preempted its waker, which has not gone on since.
    pub(super) fn answer(&mut self, index: TaskIndex, cpu: u32) {
        let Some(waker) = self.task(index).answers.take() else { return };
        if self.task(waker).state != State::Queued || self.task(waker).made_last.is_none() {
            return;
        }
        let at = self.wakeups.len() as u32;
        let seen = Evidence::Likely;
        self.wakeups.push(Wakeup { seen, ..Wakeup::silent((index, waker), Wake::Sync, cpu) });
        let (from, until) = (self.now, self.now);
        self.see(index, Seen::Wakeup(at));
        self.close(waker);
        self.see(waker, Seen::Slept { from, until, cause: Cause::Wakeup(at), line_ns: 0 });
    }
}
