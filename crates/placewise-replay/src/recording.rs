//! What a trace is replayed from: each task with its steps, whatever CPU it took them on.

use placewise_machine::CpuSet;
use placewise_workload::program::{Call, Nanos, SchedPolicy, Wake};
use serde::{Deserialize, Serialize};

/// A task of the recording, as its place in [`Recording::tasks`].
pub type TaskIndex = u32;

/// A trace without its placements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// From the first event to the last.
    pub length_ns: Nanos,
    /// The cgroups of tasks, and the autogroups of their sessions, each behind those above it.
    pub cgroups: Vec<RecordedCgroup>,
    pub tasks: Vec<RecordedTask>,
}

/// A cgroup or an autogroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCgroup {
    pub path: String,
    /// What it weighs, as [`placewise_workload::program::Cgroup::shares`].
    pub shares: u32,
}

/// No part of a call that wakes takes longer: an interrupt may, and a hypervisor.
pub const MOST_OF_CALL_NS: u32 = 1_000_000;

/// What calls that wake take beyond the machine's figures: each of these as often, from the shortest on; none takes
/// nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Until the wakee is on a run queue.
    pub queue_ns: Vec<u32>,
    /// From then on.
    pub rest_ns: Vec<u32>,
}

impl Calls {
    /// Each comes up as often in a row of numbers, as evenly as may be, and not in step with the other.
    pub fn of(&self, number: u64) -> Call {
        /// What is behind the point of the golden ratio and of the square root of two.
        const STRIDES: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0x6a09_e667_f3bc_c909];
        let [queue_ns, rest_ns] =
            [(&self.queue_ns, STRIDES[0]), (&self.rest_ns, STRIDES[1])].map(|(figures, stride)| {
                let turn = u128::from(number.wrapping_mul(stride));
                let place = (turn * figures.len() as u128) >> 64;
                figures.get(place as usize).copied().unwrap_or(0)
            });
        Call { queue_ns, rest_ns }
    }
}

/// A task, and what it did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedTask {
    pub name: String,
    /// Its number in the trace; 0 where that is not known.
    pub pid: u32,
    pub nice: i8,
    pub policy: SchedPolicy,
    /// CPUs it may run on, where the trace says so.
    pub cpus: Option<CpuSet>,
    /// Its place in [`Recording::cgroups`], if it is not in the root.
    pub cgroup: Option<u32>,
    /// Cache lines that come with a post to it.
    pub lines: u32,
    /// What its wakeups take beyond the machine's figures.
    pub calls: Calls,
    /// What interrupts that wake it take beyond them.
    pub arrival: Call,
    /// How much longer than by them a CPU that idles takes to run it, once another one has woken it.
    pub idle_exit_ns: i32,
    /// How long after the interrupt is sent it preempts a task of another CPU at the earliest.
    pub preempt_ns: u32,
    /// Where these interrupts come to; where none is named, the CPU that it ran on last.
    pub interrupted_on: Option<u32>,
    /// How often in a second it wakes another task than the time before, if it was there when the trace began: what
    /// the kernel had counted then.
    pub wakee_flips: u32,
    /// Where it was when it was first seen.
    pub begins_on: u32,
    /// It ran, or waited for a CPU, when the trace began. Those that are forked later do not.
    pub runs_at_once: bool,
    /// A step of another task forks it.
    pub is_forked: bool,
    /// When one did, in the time of the trace, and what it did when the trace ended. A replay has a time of its own, and
    /// files do without.
    pub forked_ns: Nanos,
    pub at_end: AtEnd,
    /// It exited before the end of the trace.
    pub exits: bool,
    pub steps: Vec<Step>,
}

/// What a task did when the trace ended, unless it had exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// It ran, or waited for a CPU.
    Runs,
    /// It had slept for so long.
    Sleeps(Nanos),
}

impl Default for AtEnd {
    fn default() -> Self {
        AtEnd::Sleeps(0)
    }
}

/// One step of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Compute, for so long at full speed.
    Run(Nanos),
    /// Wake another task, or keep it from sleeping when it comes to that.
    Post(TaskIndex, #[serde(with = "Way")] Wake),
    /// Post to whose post, of those by tasks of that one's name, was taken longest ago and is not answered yet; to that
    /// one if all are.
    Answer(TaskIndex, #[serde(with = "Way")] Wake),
    /// Sleep until that task has posted, once more than was awaited of it.
    Await(TaskIndex),
    /// Sleep until this time of the trace.
    Until(Nanos),
    /// Sleep for so long.
    Sleep(Nanos),
    Fork(TaskIndex),
}

/// [`Wake`] as files have it.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Wake", rename_all = "snake_case")]
enum Way {
    Plain,
    Sync,
    Softirq,
}

impl Step {
    /// A stretch of computing ends here.
    pub fn sleeps(self) -> bool {
        matches!(self, Step::Await(_) | Step::Until(_) | Step::Sleep(_))
    }

    /// Whom it posts to, or has posted to where it answers, and how.
    pub fn posts(self) -> Option<(TaskIndex, Wake)> {
        match self {
            Step::Post(to, wake) | Step::Answer(to, wake) => Some((to, wake)),
            _ => None,
        }
    }
}

/// What is computed in these steps.
pub fn computing(steps: &[Step]) -> Nanos {
    let of_step = |step: &Step| if let Step::Run(ns) = step { *ns } else { 0 };
    steps.iter().map(of_step).fold(0, Nanos::saturating_add)
}

impl RecordedTask {
    pub fn computing(&self) -> Nanos {
        computing(&self.steps)
    }

    /// Stretches of computing that are over.
    pub fn stretches(&self) -> u64 {
        let sleeps = self.steps.iter().filter(|step| step.sleeps()).count();
        sleeps as u64 + u64::from(self.exits)
    }
}

impl Recording {
    /// Stretches of computing that end in a sleep.
    pub fn segments(&self) -> u64 {
        let of = |task: &RecordedTask| task.steps.iter().filter(|step| step.sleeps()).count();
        self.tasks.iter().map(|task| of(task) as u64).sum()
    }

    /// The names of tasks, in the order of their computing, most first, with that.
    pub fn names(&self) -> Vec<(String, Nanos)> {
        let mut by_name = std::collections::BTreeMap::<&str, Nanos>::new();
        for task in &self.tasks {
            let runs = task.steps.iter().map(|step| match step {
                Step::Run(ns) => *ns,
                _ => 0,
            });
            let all = by_name.entry(&task.name).or_default();
            *all = runs.fold(*all, Nanos::saturating_add);
        }
        let mut names: Vec<(String, Nanos)> =
            by_name.into_iter().map(|(name, ns)| (name.to_owned(), ns)).collect();
        names.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_calls_take_comes_up_as_often_each_and_in_no_step() {
        let calls = Calls { queue_ns: vec![1, 2, 3, 90], rest_ns: vec![5, 6, 70] };
        let drawn: Vec<Call> = (0..1_200).map(|number| calls.of(number)).collect();
        let often = |wanted: &dyn Fn(&Call) -> bool| drawn.iter().filter(|it| wanted(it)).count();
        assert!((295..=305).contains(&often(&|call| call.queue_ns == 90)));
        assert!((395..=405).contains(&often(&|call| call.rest_ns == 70)));
        assert!((90..=110).contains(&often(&|call| (call.queue_ns, call.rest_ns) == (90, 70))));
        assert_eq!(Calls::default().of(7), Call::default());
    }
}
