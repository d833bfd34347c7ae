//! Which wakeups and forks of a trace ran a placement, and what the policy says
//! of each.
//!
//! A wakeup runs none if its wakee was still queued, was switching out on its CPU
//! and went over that CPU's wake list, or slept delayed; if it may run on one CPU
//! only; or if it is no fair task. If the wakee was still on its CPU and the waker
//! waited for it, the decision is made when it has switched out.
//!
//! A delayed task that is woken stays where it is and is enqueued by the waker at
//! once. An ordinary one may look the same: then the lag that the queue was
//! rebuilt with decides which it was.

use placewise_policy::*;
use placewise_run_queue::{Dequeue, Enqueue};
use placewise_trace::Context;

use crate::beliefs::Hypothesis;
use crate::reconstruction::{Reconstruction, Whereabouts, is_fair};
use crate::step::{Outcome, Step};
use crate::task::{TaskId, Tasks};
use crate::trial::Question;

/// From sched_switch until the task is off its CPU, at most.
const SWITCH_NS: u64 = 2_000;

/// A wakeup, as the trace tells it.
#[derive(Clone, Copy, Debug)]
pub struct Wakeup {
    pub waking_cpu: u32,
    pub prev_cpu: u32,
    pub context: Context,
    pub outcome: Outcome,
}

/// Why a wakeup or a fork ran no placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoPlacement {
    /// The wakee had not been switched out.
    StillQueued,
    /// It was switching out, and went over its CPU's wake list.
    StillOnCpu,
    /// It slept, but was still queued (delayed dequeue).
    Delayed,
    /// It may run on one CPU only.
    Bound,
    /// It is no fair task.
    OtherClass,
    /// The trace does not show how it ended.
    NoEnd,
    /// It may have run one, but the events of other CPUs from then were overwritten.
    BeforeComplete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Wakeup,
    Fork,
}

/// One decision of the kernel beside that of the policy.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub kind: Kind,
    pub task: TaskId,
    pub waker: TaskId,
    pub waking_cpu: u32,
    pub prev_cpu: u32,
    /// What the kernel chose.
    pub actual: u32,
    /// What the policy chooses.
    pub predicted: u32,
    /// How the policy came to it.
    pub decision: Decision,
    /// What it was told that the trace does not show.
    pub believed: Hypothesis,
}

/// What a step was.
#[derive(Clone, Copy, Debug)]
pub enum Verdict {
    Nothing,
    NoPlacement(NoPlacement),
    Placed(Placed),
}

impl Reconstruction {
    pub(crate) fn waking(
        &mut self,
        step: &Step,
        task: TaskId,
        prev_cpu: u32,
        outcome: Option<Outcome>,
        tasks: &Tasks,
    ) -> Verdict {
        if task < FIRST_TASK {
            return Verdict::Nothing;
        }
        self.meet(task, prev_cpu, tasks);
        let Some(outcome) = outcome else {
            return Verdict::NoPlacement(NoPlacement::NoEnd);
        };
        let wakeup = Wakeup { waking_cpu: step.cpu, prev_cpu, context: step.context, outcome };
        if self.whereabouts(task) == Whereabouts::Queued && !self.scheduler.is_delayed(task.into())
        {
            return self.wake_queued(task, wakeup);
        }
        self.wake_sleeper(task, &wakeup, tasks)
    }

    /// The wakee is running, or waiting to run.
    fn wake_queued(&mut self, task: TaskId, wakeup: Wakeup) -> Verdict {
        if u32::from(self.scheduler.current(wakeup.prev_cpu.into())) != task {
            return Verdict::NoPlacement(NoPlacement::StillQueued);
        }
        if queued_by_prev_cpu(&wakeup) {
            return Verdict::NoPlacement(NoPlacement::StillOnCpu);
        }
        self.trail(task).spinning = Some(wakeup);
        Verdict::Nothing
    }

    pub(crate) fn wake_sleeper(&mut self, task: TaskId, wakeup: &Wakeup, tasks: &Tasks) -> Verdict {
        if self.scheduler.is_delayed(task.into()) {
            if stayed(wakeup) {
                self.inferred.delayed_by_lag += 1;
                return Verdict::NoPlacement(NoPlacement::Delayed);
            }
            self.take_off_queue(task, Dequeue::Sleep);
        }
        self.scheduler.set_task_cpu(task.into(), wakeup.prev_cpu.into());
        self.trail(task).whereabouts = Whereabouts::Waking;
        let verdict = match self.no_placement(task, wakeup, tasks) {
            Some(reason) => Verdict::NoPlacement(reason),
            None => Verdict::Placed(self.place_wakee(task, wakeup, tasks)),
        };
        self.set_off(task, wakeup, tasks);
        verdict
    }

    /// The wakee goes to its CPU; one that moves, at its migration.
    fn set_off(&mut self, task: TaskId, wakeup: &Wakeup, tasks: &Tasks) {
        let Outcome { cpu, migrated, woken_by } = wakeup.outcome;
        match woken_by {
            None if migrated => self.trail(task).arrives_unseen = true,
            None => self.put_on_queue(task, cpu, Enqueue::Wakeup, tasks),
            Some(by) if !migrated && by == cpu && cpu != wakeup.waking_cpu => self.send(task, cpu),
            Some(_) => {}
        }
    }

    fn no_placement(
        &mut self,
        task: TaskId,
        wakeup: &Wakeup,
        tasks: &Tasks,
    ) -> Option<NoPlacement> {
        if !is_fair(tasks.get(task).prio) {
            return Some(NoPlacement::OtherClass);
        }
        if self.trail(task).bound {
            return Some(NoPlacement::Bound);
        }
        if self.may_be_switching_out(task, wakeup) {
            self.inferred.still_switching_out += 1;
            return Some(NoPlacement::StillOnCpu);
        }
        if !self.must_have_been_delayed(task, wakeup) {
            return None;
        }
        self.inferred.delayed_by_wake_list += 1;
        self.scheduler.spend_lag(task.into());
        Some(NoPlacement::Delayed)
    }

    /// sched_switch is printed before the task is off its CPU: a wakeup right behind it may have
    /// found it there, and gone over that CPU's wake list.
    fn may_be_switching_out(&mut self, task: TaskId, wakeup: &Wakeup) -> bool {
        queued_by_prev_cpu(wakeup) && self.now - self.trail(task).switched_out_at <= SWITCH_NS
    }

    /// The waker enqueued it at once, where an ordinary wakeup would have used the wake list.
    fn must_have_been_delayed(&mut self, task: TaskId, wakeup: &Wakeup) -> bool {
        self.may_have_been_delayed(task, wakeup)
            && wakeup.outcome.woken_by.is_some()
            && wakeup.waking_cpu != wakeup.prev_cpu
            && self.scheduler.policy.ttwu_queue_wakelist(
                task,
                wakeup.waking_cpu,
                wakeup.prev_cpu,
                false,
            )
    }

    fn may_have_been_delayed(&mut self, task: TaskId, wakeup: &Wakeup) -> bool {
        self.scheduler.policy.profile.delayed_dequeue
            && self.trail(task).slept_beside_others
            && stayed(wakeup)
    }

    fn place_wakee(&mut self, task: TaskId, wakeup: &Wakeup, tasks: &Tasks) -> Placed {
        for cpu in [wakeup.waking_cpu, wakeup.prev_cpu] {
            self.catch_up_loads(cpu);
            self.renew_scan_limit(cpu);
        }
        let Wakeup { waking_cpu, prev_cpu, context, .. } = *wakeup;
        let waker = u32::from(self.scheduler.current(waking_cpu.into()));
        let question = Question {
            waker,
            wakee: task,
            waking_cpu,
            prev_cpu,
            interrupt: context.is_interrupt(),
            names: (tasks.get(waker).name, tasks.get(task).name),
            // Timers and interrupts of devices wake for themselves.
            may_be_sync: waker >= FIRST_TASK && !context.is_hard_interrupt(),
        };
        let actual = wakeup.outcome.cpu;
        let (predicted, decision, believed) = self.judge(&question, actual);
        if predicted != actual && self.may_have_been_delayed(task, wakeup) {
            self.inferred.perhaps_delayed += 1;
            self.scheduler.spend_lag(task.into());
        }
        self.correct_scan_limit(&decision, actual);
        self.affinity.judge(task, question.names.1, predicted, actual);
        Placed {
            kind: Kind::Wakeup,
            task,
            waker,
            waking_cpu,
            prev_cpu,
            actual,
            predicted,
            decision,
            believed,
        }
    }

    pub(crate) fn wakeup_new(
        &mut self,
        cpu: u32,
        task: TaskId,
        target_cpu: u32,
        tasks: &Tasks,
    ) -> Verdict {
        self.meet(task, cpu, tasks);
        for each in 0..self.scheduler.policy.root.nr_cpu_ids {
            self.catch_up_loads(each);
        }
        let predicted = self.scheduler.policy.select_task_rq(task, cpu, cpu, WF_FORK, self.now);
        let decision = self.scheduler.policy.decision;
        if self.whereabouts(task) == Whereabouts::Asleep {
            self.scheduler.policy.place_new_task(task, target_cpu);
        }
        self.put_on_queue(task, target_cpu, Enqueue::Fork, tasks);
        if !is_fair(tasks.get(task).prio) {
            return Verdict::NoPlacement(NoPlacement::OtherClass);
        }
        if self.trail(task).bound {
            return Verdict::NoPlacement(NoPlacement::Bound);
        }
        self.affinity.judge(task, tasks.get(task).name, predicted, target_cpu);
        Verdict::Placed(Placed {
            kind: Kind::Fork,
            task,
            waker: decision.waker,
            waking_cpu: cpu,
            prev_cpu: cpu,
            actual: target_cpu,
            predicted,
            decision,
            believed: Hypothesis::default(),
        })
    }
}

/// The wakee did not move, and went over the wake list of its CPU.
fn queued_by_prev_cpu(wakeup: &Wakeup) -> bool {
    let Outcome { migrated, woken_by, .. } = wakeup.outcome;
    !migrated && woken_by == Some(wakeup.prev_cpu) && wakeup.prev_cpu != wakeup.waking_cpu
}

/// The wakee did not move, and nobody but the waker can have enqueued it.
fn stayed(wakeup: &Wakeup) -> bool {
    let Outcome { migrated, woken_by, .. } = wakeup.outcome;
    !migrated && woken_by.is_none_or(|by| by == wakeup.waking_cpu)
}
