//! What a followed trace has of its tasks: what each computed, whom it woke, and how each of its sleeps ended.

use std::collections::HashMap;

use placewise_audit::TaskNumber;
use placewise_workload::program::{Nanos, Wake};

use crate::recording::{AtEnd, TaskIndex};

/// What ended a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A wakeup that another task made, as its place in [`Followed::wakeups`].
    Wakeup(u32),
    /// An interrupt on that CPU, or something that the trace does not show.
    Arrival { on: Option<u32> },
}

/// When a task computed, perhaps not all the while, and where it did last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    pub from: Nanos,
    pub until: Nanos,
    pub cpu: u32,
}

/// A step of a task as the trace shows it.
#[derive(Clone, Copy, Debug)]
pub enum Seen {
    Run(Nanos, Span),
    Wakeup(u32),
    /// `line_ns`: what a cache line takes from where it was woken to where it ran then.
    Slept {
        from: Nanos,
        until: Nanos,
        cause: Cause,
        line_ns: Nanos,
    },
    Fork(TaskIndex),
}

/// A wakeup by a task.
#[derive(Clone, Copy, Debug)]
pub struct Wakeup {
    pub waker: TaskIndex,
    pub wakee: TaskIndex,
    pub wake: Wake,
    pub cpu: u32,
    /// It ended a sleep.
    pub counts: bool,
    /// Its waker has interrupted another CPU, for all that is known.
    pub told: bool,
    /// What the machine's figures say that it takes until its wakee is on a run queue, and how much more it took, where
    /// its waker has put it there; in the end without the interrupt of another CPU.
    pub placing: Nanos,
    pub excess: Option<i64>,
    /// From when its waker had put the wakee on their run queue until that preempted it.
    pub rest: Option<Nanos>,
    /// How much longer than by the machine's figures it took until the wakee ran, on another CPU that idled.
    pub idle_exit: Option<i64>,
    /// From when its waker had put the wakee on the run queue of another CPU until it preempted the task there.
    pub preempted: Option<Nanos>,
    pub seen: Evidence,
    /// Whom it goes to depends on who has posted to its waker.
    pub answers: bool,
}

/// Who wakes and who is woken, by their names, as [`Followed::names`] has them.
pub type Names = (usize, usize);

impl Wakeup {
    pub fn names(&self, names: &[usize]) -> Names {
        (names[self.waker as usize], names[self.wakee as usize])
    }

    /// A message that its wakee found there.
    pub fn silent((waker, wakee): (TaskIndex, TaskIndex), wake: Wake, cpu: u32) -> Self {
        Wakeup {
            waker,
            wakee,
            wake,
            cpu,
            counts: true,
            told: false,
            placing: 0,
            excess: None,
            rest: None,
            idle_exit: None,
            preempted: None,
            seen: Evidence::Silent,
            answers: false,
        }
    }
}

/// How a wakeup is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    Recorded,
    /// Recorded, and its wakee preempted the waker.
    Preempted,
    /// The answer of a wakee that had preempted its waker.
    Likely,
    /// A message that its wakee found there.
    Silent,
}

#[derive(Clone, Debug, Default)]
pub struct FollowedTask {
    pub number: TaskNumber,
    pub pid: u32,
    pub name: String,
    pub prio: i32,
    pub begins_on: u32,
    pub runs_at_once: bool,
    /// Who forked it, and when.
    pub parent: Option<TaskIndex>,
    pub forked_ns: Nanos,
    pub exits: bool,
    pub at_end: AtEnd,
    /// How often a softirq woke it on a CPU that idled.
    pub softirqs_of_idle: u32,
    pub seen: Vec<Seen>,
    /// On CPUs, whatever was computed there.
    pub ran_ns: Nanos,
    /// How often it woke another task than the time before.
    pub flips: u64,
    /// How much longer each took until it was on a run queue, and how much longer until it ran where it interrupted
    /// another task, or nobody.
    pub excesses: Vec<i64>,
    pub rests: Vec<Nanos>,
}

impl FollowedTask {
    /// The CPUs where its stretches of computing ended.
    pub fn ran_on(&self) -> impl Iterator<Item = u32> {
        self.seen.iter().filter_map(|seen| match seen {
            Seen::Run(_, span) => Some(span.cpu),
            _ => None,
        })
    }
}

#[derive(Clone)]
pub struct Followed {
    pub length_ns: Nanos,
    pub nr_cpus: usize,
    pub tasks: Vec<FollowedTask>,
    pub wakeups: Vec<Wakeup>,
}

impl Followed {
    /// Of each task its name's place among all names.
    pub fn names(&self) -> Vec<usize> {
        let mut known: HashMap<&str, usize> = HashMap::new();
        let tasks = self.tasks.iter().zip(0..);
        tasks.map(|(task, next)| *known.entry(task.name.as_str()).or_insert(next)).collect()
    }
}
