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
//!
//! What else a decision read and no trace shows is believed by what explains earlier
//! ones: [`beliefs`] and [`scan_limit`].

mod beliefs;
pub mod inference;
mod scan_limit;
mod trial;

use placewise_policy::*;

use self::beliefs::{Beliefs, Sort};
use self::inference::InferenceCounts;
use self::scan_limit::ScanLimits;
use self::trial::{Answer, Question};
use crate::steps::task::{TaskNumber, Tasks};
use crate::steps::wakeup::Wakeup;
use crate::verdict::{Flips, Hypothesis, Kind, NoPlacement, Placed, Verdict};
use crate::world::World;

/// From sched_switch until the task is off its CPU, at most.
const SWITCH_NS: u64 = 2_000;

/// Asks the policy what the kernel decided.
#[derive(Default)]
pub struct Judge {
    beliefs: Beliefs,
    scan_limits: ScanLimits,
    inferred: InferenceCounts,
}

impl Judge {
    /// What had to be inferred for its verdicts.
    pub fn inferred(&self) -> InferenceCounts {
        self.inferred
    }

    /// The wakee slept, but its wakeup found it on its queue.
    pub fn slept_delayed(&mut self, world: &World, task: TaskNumber, wakeup: &Wakeup) -> bool {
        let delayed = world.scheduler.is_delayed(task.into()) && wakeup.stayed();
        self.inferred.delayed_by_lag += u64::from(delayed);
        delayed
    }

    /// The wakee has left its queue, and has no CPU yet.
    pub fn wakeup(
        &mut self,
        world: &mut World,
        task: TaskNumber,
        wakeup: &Wakeup,
        tasks: &Tasks,
    ) -> Verdict {
        match self.no_placement(world, task, wakeup, tasks) {
            Some(reason) => Verdict::NoPlacement(reason),
            None => Verdict::Placed(self.place_wakee(world, task, wakeup, tasks)),
        }
    }

    fn no_placement(
        &mut self,
        world: &mut World,
        task: TaskNumber,
        wakeup: &Wakeup,
        tasks: &Tasks,
    ) -> Option<NoPlacement> {
        if let Some(reason) = never_placed(world, task, tasks) {
            return Some(reason);
        }
        if may_be_switching_out(world, task, wakeup) {
            self.inferred.still_switching_out += 1;
            return Some(NoPlacement::StillOnCpu);
        }
        if !must_have_been_delayed(world, task, wakeup) {
            return None;
        }
        self.inferred.delayed_by_wake_list += 1;
        world.scheduler.spend_lag(task.into());
        Some(NoPlacement::Delayed)
    }

    fn place_wakee(
        &mut self,
        world: &mut World,
        task: TaskNumber,
        wakeup: &Wakeup,
        tasks: &Tasks,
    ) -> Placed {
        let Wakeup { waking_cpu, prev_cpu, context, outcome } = *wakeup;
        for cpu in [waking_cpu, prev_cpu] {
            world.catch_up_loads(cpu);
            self.scan_limits.renew(world, cpu);
        }
        let waker = world.scheduler.current(waking_cpu.into());
        let question = Question {
            waker: waker.into(),
            wakee: task,
            waking_cpu,
            prev_cpu,
            now: world.clock.now,
            sort: Sort {
                waker: tasks.get(waker.into()).name,
                wakee: tasks.get(task).name,
                context,
            },
            // Timers and interrupts of devices wake for themselves.
            may_be_sync: waker >= FIRST_TASK.into() && !context.is_hard_interrupt(),
        };
        let actual = outcome.cpu;
        let policy = &mut world.scheduler.policy;
        let Answer { predicted, decision, believed, is_explained } =
            question.put(policy, &mut self.beliefs, actual);
        self.inferred.believed_sync += u64::from(believed.sync);
        self.inferred.believed_wide += u64::from(believed.flips == Flips::Wide);
        self.inferred.believed_narrow += u64::from(believed.flips == Flips::Narrow);
        let corrected = !is_explained && scan_limit::correct(policy, &decision, actual);
        self.inferred.scan_limits += u64::from(corrected);
        if predicted != actual && may_have_been_delayed(world, task, wakeup) {
            self.inferred.perhaps_delayed += 1;
            world.scheduler.spend_lag(task.into());
        }
        Placed {
            kind: Kind::Wakeup,
            task,
            waker: waker.into(),
            waking_cpu,
            prev_cpu,
            actual,
            predicted,
            decision,
            believed,
        }
    }

    /// The child is on no queue yet.
    pub fn fork(
        &self,
        world: &mut World,
        child: TaskNumber,
        cpu: u32,
        target_cpu: u32,
        tasks: &Tasks,
    ) -> Verdict {
        for each in 0..world.scheduler.policy.root.nr_cpu_ids {
            world.catch_up_loads(each);
        }
        let policy = &mut world.scheduler.policy;
        let predicted = policy.select_task_rq(child, cpu, cpu, WF_FORK, world.clock.now);
        let decision = policy.decision;
        if let Some(reason) = never_placed(world, child, tasks) {
            return Verdict::NoPlacement(reason);
        }
        Verdict::Placed(Placed {
            kind: Kind::Fork,
            task: child,
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

/// The fair class has no choice of a CPU for it.
fn never_placed(world: &mut World, task: TaskNumber, tasks: &Tasks) -> Option<NoPlacement> {
    if !tasks.get(task).is_fair() {
        Some(NoPlacement::OtherClass)
    } else if world.trail(task).bound {
        Some(NoPlacement::Bound)
    } else {
        None
    }
}

/// sched_switch is printed before the task is off its CPU: a wakeup right behind it may have
/// found it there, and gone over that CPU's wake list.
fn may_be_switching_out(world: &mut World, task: TaskNumber, wakeup: &Wakeup) -> bool {
    wakeup.queued_by_prev_cpu() && world.clock.now - world.trail(task).switched_out_at <= SWITCH_NS
}

/// The waker enqueued it at once, where an ordinary wakeup would have used the wake list.
fn must_have_been_delayed(world: &mut World, task: TaskNumber, wakeup: &Wakeup) -> bool {
    let Wakeup { waking_cpu, prev_cpu, .. } = *wakeup;
    may_have_been_delayed(world, task, wakeup)
        && wakeup.outcome.woken_by.is_some()
        && waking_cpu != prev_cpu
        && world.scheduler.policy.ttwu_queue_wakelist(task, waking_cpu, prev_cpu, false)
}

fn may_have_been_delayed(world: &mut World, task: TaskNumber, wakeup: &Wakeup) -> bool {
    world.scheduler.policy.profile.delayed_dequeue
        && world.trail(task).slept_beside_others
        && wakeup.stayed()
}
