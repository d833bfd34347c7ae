//! Takes recorded decisions again.
//!
//! A decision event carries what the decision read and no other event shows.
//! [`apply`] puts these readings into a state of the same machine and policy, in
//! place of what the state holds; [`select`] asks the policy. Whatever else the
//! state knows does not matter to the answer, but what it knew is lost where a
//! reading stands now. So [`RecordedDecisions`] has a state of its own. The
//! answer must always be what the trace shows to have happened.

mod readings;

use placewise_machine::Machine;
use placewise_policy::*;
use placewise_trace::{Decision, Readings};

pub use self::readings::{apply, select, wrong_idle_cpus};
use crate::steps::by_number::ByTask;
use crate::steps::step::{Action, DecisionTasks, Step};
use crate::steps::task::TaskNumber;
use crate::verdict::{Hypothesis, Kind, Placed};

/// The decisions that a trace has recorded, taken again under one policy.
pub struct RecordedDecisions {
    /// Made with the first decision: most traces have none.
    state: Option<Placement>,
    boot: Box<dyn Fn() -> Placement>,
    trails: ByTask<Trail>,
}

/// What is known of a task's placement before all of it is.
#[derive(Clone, Copy, Default)]
struct Trail {
    /// Where its wakeup puts it.
    woken_on: Option<u32>,
    /// A fork that has been decided, but not carried out.
    fork: Option<Placed>,
}

impl RecordedDecisions {
    pub fn new(machine: &Machine, policy: &Policy) -> Self {
        let (machine, profile) = (machine.clone(), policy.profile);
        let boot = move || {
            let booted = topology::boot(&machine, &profile);
            booted.expect("the reconstruction has booted the same machine").0
        };
        RecordedDecisions { state: None, boot: Box::new(boot), trails: ByTask::default() }
    }

    /// A decision of which it is now known what came of it, beside the policy's answer.
    #[inline]
    pub fn step(&mut self, step: &Step) -> Option<Placed> {
        match &step.action {
            Action::Waking { task, outcome, .. } => {
                self.trails.of(*task).woken_on = outcome.map(|outcome| outcome.cpu);
                None
            }
            Action::Fork { child, .. } => {
                *self.trails.of(*child) = Trail::default();
                None
            }
            Action::WakeupNew { task, target_cpu } => self.carry_out_fork(*task, *target_cpu),
            Action::Decided { decision, tasks } => self.decide(decision, *tasks),
            _ => None,
        }
    }

    fn carry_out_fork(&mut self, child: TaskNumber, target_cpu: u32) -> Option<Placed> {
        let placed = self.trails.of(child).fork.take()?;
        Some(Placed { actual: target_cpu, ..placed })
    }

    fn decide(&mut self, decision: &Decision, tasks: DecisionTasks) -> Option<Placed> {
        let (kind, sync) = match &decision.placement {
            Readings::Wakeup(wakeup) => (Kind::Wakeup, wakeup.sync),
            Readings::Fork(_) => (Kind::Fork, false),
            Readings::Exec(_) => return None,
        };
        // A task that may run on one CPU is not placed.
        if decision.allowed.len() == 1 {
            return None;
        }
        let state = self.state.get_or_insert_with(&self.boot);
        let predicted = select(decision, state, tasks);
        let taken = state.decision;
        let trail = self.trails.of(tasks.placed);
        let placed = Placed {
            kind,
            task: tasks.placed,
            waker: tasks.waker,
            waking_cpu: decision.waking_cpu.into(),
            prev_cpu: decision.prev_cpu.into(),
            actual: trail.woken_on.unwrap_or(decision.result_cpu.into()),
            predicted,
            decision: taken,
            believed: Hypothesis { sync, ..Hypothesis::default() },
        };
        if kind == Kind::Fork {
            trail.fork = Some(placed);
            return None;
        }
        Some(placed)
    }
}

#[cfg(test)]
mod tests {
    use placewise_machine::load;
    use placewise_trace::Context;

    use super::readings::wrong_idle_cpus;
    use super::*;
    use crate::steps::task::TaskNumber;
    use crate::steps::wakeup::Outcome;

    const WAKEE: TaskNumber = FIRST_TASK;
    const WAKER: TaskNumber = FIRST_TASK + 1;

    /// A sync waker on CPU 0 of LLC 0, which is busy, and a wakee that was last on the idle CPU 4.
    const WAKEUP: &str = "pid=200 waker_pid=100 waking_cpu=0 prev_cpu=4 jiffies=250 cpus=0-7 idle=4-7 \
        sched_idle= allowed=0-15 hint=0 idle_policy=0 placement=wakeup sync=1 interrupt=0 \
        waking_nr_running=1 waking_h_nr_delayed=0 waking_load=1024 waking_has_idle_cores=0 \
        waking_nr_idle_scan=4 prev_nr_running=0 prev_h_nr_delayed=0 prev_load=0 \
        prev_has_idle_cores=1 prev_nr_idle_scan=4 avg_idle=1000000 wake_avg_idle=500000 \
        wake_stamp=0 avg_scan_cost=0 waker_per_cpu_kthread=0 waker_wakee_flips=0 \
        waker_wakee_flip_decay_ts=0 waker_last_wakee=0 waker_load=1024 waker_sum_exec_runtime=0 \
        waker_nvcsw=0 waker_run_length_avg=0 wakee_wakee_flips=0 wakee_wakee_flip_decay_ts=0 \
        wakee_last_wakee=0 wakee_load=1024 wakee_sum_exec_runtime=0 wakee_nvcsw=0 \
        wakee_run_length_avg=0 wakee_recent_used_cpu=0 wakee_util_est=0 prev_curr_pid=0 \
        prev_curr_wakee_flips=0 prev_curr_wakee_flip_decay_ts=0 prev_curr_last_wakee=0 \
        prev_curr_load=0 prev_curr_sum_exec_runtime=0 prev_curr_nvcsw=0 prev_curr_run_length_avg=0 \
        target_cpu=0 result_cpu=0 affine=sync search=failed";

    const FORK: &str = "pid=200 waker_pid=100 waking_cpu=0 prev_cpu=0 jiffies=0 cpus=0-15 idle=1-15 \
        sched_idle= allowed=0-15 hint=0 idle_policy=0 placement=fork load=1024 runnable=0 util=0 \
        util_est=0 imbalanced_groups= rq=0:1/1/0/1024/512/512/0/1/- target_cpu=0 result_cpu=4 \
        affine=not_tried search=none";

    fn decision(text: &str, changes: &[(&str, &str)]) -> Decision {
        let mut text = text.to_owned();
        for (from, to) in changes {
            assert!(text.contains(from), "{from}");
            text = text.replacen(from, to, 1);
        }
        Decision::parse(&text).unwrap()
    }

    fn recorded(kernel: &str) -> RecordedDecisions {
        let machine = load("numa:2 l3:2 core:2 pu:2").unwrap();
        RecordedDecisions::new(&machine, &Policy::parse(kernel, "baseline").unwrap())
    }

    fn step(action: Action) -> Step {
        Step { time_ns: 0, cpu: 0, context: Context::Task, action }
    }

    fn decided(decision: Decision) -> Step {
        let tasks = DecisionTasks { placed: WAKEE, waker: WAKER, prev_curr: 4 };
        step(Action::Decided { decision: Box::new(decision), tasks })
    }

    fn answer(kernel: &str, changes: &[(&str, &str)]) -> Option<u32> {
        let placed = recorded(kernel).step(&decided(decision(WAKEUP, changes)));
        placed.map(|placed| placed.predicted)
    }

    #[test]
    fn each_reading_counts() {
        assert_eq!(answer("v6.0", &[]), Some(0));
        assert_eq!(answer("v6.0", &[("sync=1", "sync=0")]), Some(4), "the idle previous CPU");
        assert_eq!(answer("v6.0", &[("waking_nr_running=1", "waking_nr_running=2")]), Some(4));
        let idle = [("idle=4-7", "idle=2,4-7")];
        assert_eq!(answer("v6.0", &idle), Some(2));
        assert_eq!(answer("v6.0", &[idle[0], ("allowed=0-15", "allowed=0-1,3-15")]), Some(0));
        assert_eq!(
            answer("v6.0", &[idle[0], ("waking_nr_idle_scan=4", "waking_nr_idle_scan=0")]),
            Some(0)
        );
    }

    /// What one decision reads is not left over for the next.
    #[test]
    fn decisions_do_not_know_of_each_other() {
        let mut recorded = recorded("v6.0");
        let mut answer = |changes: &[(&str, &str)]| {
            recorded.step(&decided(decision(WAKEUP, changes))).unwrap().predicted
        };
        assert_eq!(answer(&[("idle=4-7", "idle=2,4-7")]), 2);
        assert_eq!(answer(&[]), 0);
        assert_eq!(answer(&[("sync=1", "sync=0")]), 4);
        assert_eq!(answer(&[]), 0);
    }

    #[test]
    fn the_largest_cost_of_a_scan_is_a_cost() {
        let largest = ("avg_scan_cost=0", "avg_scan_cost=18446744073709551615");
        assert_eq!(answer("v5.10", &[largest]), Some(0));
    }

    #[test]
    fn a_task_that_may_run_on_one_cpu_is_not_placed() {
        assert_eq!(answer("v6.0", &[("allowed=0-15", "allowed=4")]), None);
    }

    /// Whatever the decision says that it answered.
    #[test]
    fn a_wakeup_went_where_the_trace_shows() {
        let mut recorded = recorded("v6.0");
        let outcome = Some(Outcome { cpu: 6, migrated: true, woken_by: Some(0) });
        assert!(
            recorded.step(&step(Action::Waking { task: WAKEE, prev_cpu: 4, outcome })).is_none()
        );
        let placed = recorded.step(&decided(decision(WAKEUP, &[]))).unwrap();
        assert_eq!((placed.kind, placed.actual, placed.predicted), (Kind::Wakeup, 6, 0));
        assert_eq!((placed.waker, placed.believed.sync), (WAKER, true));
    }

    #[test]
    fn a_fork_counts_once_it_has_been_carried_out() {
        let mut recorded = recorded("v6.0");
        let wakeup_new = step(Action::WakeupNew { task: WAKEE, target_cpu: 9 });
        assert!(recorded.step(&decided(decision(FORK, &[]))).is_none());
        let placed = recorded.step(&wakeup_new).unwrap();
        assert_eq!((placed.kind, placed.actual), (Kind::Fork, 9));
        assert!(recorded.step(&wakeup_new).is_none(), "once");
        // Another child gets the number before it has woken.
        recorded.step(&decided(decision(FORK, &[])));
        recorded.step(&step(Action::Fork { parent: WAKER, child: WAKEE }));
        assert!(recorded.step(&wakeup_new).is_none());
    }

    #[test]
    fn an_exec_is_no_wakeup_and_no_fork() {
        let exec = decision(FORK, &[("placement=fork", "placement=exec")]);
        assert!(recorded("v6.0").step(&decided(exec)).is_none());
    }

    #[test]
    fn idle_cpus_are_compared_where_the_decision_speaks_of_them() {
        let machine = load("numa:2 l3:2 core:2 pu:2").unwrap();
        let policy = Policy::parse("v6.0", "baseline").unwrap();
        let (state, _) = topology::boot(&machine, &policy.profile).unwrap();
        // All CPUs are idle; of 0 to 7 it has 4 to 7.
        assert_eq!(wrong_idle_cpus(&decision(WAKEUP, &[]), &state), 4);
    }
}
