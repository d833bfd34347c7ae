//! Tasks that change LLC, and wakeups that reach across LLCs.
//!
//! A task changes LLC when it is switched in on another LLC than the one it last
//! ran on, whatever took it there. A wakeup reaches across LLCs when its wakee
//! gets a CPU outside the LLC of the waking CPU, be it placed there or bound to
//! it; those by tasks are told by the names of waker and wakee, those from
//! interrupts and idle CPUs have no waker.
//!
//! Bounded: the tasks listed are the 32 with the most changes, which is exact;
//! pairs of names are counted apart up to 65,536, first come, and wakeups of
//! further pairs are told in one sum.

use std::cmp::Reverse;

use serde::Serialize;

use crate::steps::by_name::ByName;
use crate::steps::by_number::ByTask;
use crate::steps::by_pair::ByPair;
use crate::steps::task::{NameId, TaskNumber, Tasks};

/// Tasks, and pairs of names, in a report.
const LISTED: usize = 32;

/// A mean of fewer times says little of others.
const ENOUGH_FOR_A_MEAN: u64 = 30;

const NSEC_PER_SEC: f64 = 1e9;

/// A task that changed LLC often.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BouncingTask {
    pub pid: u32,
    pub name: String,
    pub llc_changes: u64,
    /// From its first switch-in to its end, or that of the trace.
    pub lifetime_ns: u64,
    pub llc_changes_per_second: f64,
}

/// All tasks of one name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BouncingName {
    pub name: String,
    pub llc_changes: u64,
    /// Of the trace's time.
    pub llc_changes_per_second: f64,
}

/// Wakeups between tasks of two names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WakerWakee {
    #[serde(skip)]
    pub wakee_id: NameId,
    pub waker: String,
    pub wakee: String,
    pub wakeups: u64,
    pub across_llcs: u64,
    /// The part of `wakeups` that reached across LLCs, 0 to 1.
    pub share_across_llcs: f64,
    /// Those of `across_llcs` that went to CPUs that ran nothing, and how long their wakees took to
    /// run.
    pub onto_idle: u64,
    pub onto_idle_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BouncingReport {
    pub llc_changes: u64,
    /// Of the trace's time.
    pub llc_changes_per_second: f64,
    /// Those with the most changes first.
    pub tasks: Vec<BouncingTask>,
    /// Most changes first.
    pub names: Vec<BouncingName>,
    /// Wakeups by tasks that sent their wakees to a CPU.
    pub wakeups_by_tasks: u64,
    pub across_llcs: u64,
    /// Those with the most wakeups across LLCs first.
    pub pairs: Vec<WakerWakee>,
    /// Wakeups of pairs beyond those that are told apart.
    pub wakeups_of_further_pairs: u64,
    /// How long wakees took to run on CPUs of their waker's LLC that ran nothing, on average; 0 where
    /// these are too few to compare with.
    pub within_llc_mean_ns: u64,
}

/// A task, as it was when it last ran: its number may be another's before its end is known.
#[derive(Clone, Copy, Default)]
struct Life {
    pid: u32,
    name: NameId,
    llc: Option<u16>,
    llc_changes: u64,
    began_ns: u64,
    /// The waker's name, if a task woke it.
    waker: Option<NameId>,
    /// The wakeup that sent it to a CPU, while it waits.
    sent: Option<SentBy>,
}

#[derive(Clone, Copy)]
struct SentBy {
    /// `None`: beyond those that are told apart.
    pair: Option<usize>,
    across_llcs: bool,
}

/// Times of many wakeups.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: u64,
    ns: u64,
}

impl Sum {
    fn mean_ns(self) -> u64 {
        if self.count < ENOUGH_FOR_A_MEAN { 0 } else { self.ns / self.count }
    }
}

/// What is left of a task.
#[derive(Clone, Copy)]
struct Ended {
    pid: u32,
    name: NameId,
    llc_changes: u64,
    lifetime_ns: u64,
}

#[derive(Clone, Copy, Default)]
struct Wakeups {
    wakeups: u64,
    across_llcs: u64,
    onto_idle: Sum,
}

/// Counts LLC changes and wakeups across LLCs.
#[derive(Default)]
pub struct BouncingCounter {
    lives: ByTask<Life>,
    /// The most bouncing of the tasks that have ended, most changes first.
    ended: Vec<Ended>,
    names: ByName<u64>,
    llc_changes: u64,
    /// Waker, wakee.
    pairs: ByPair<NameId, Wakeups>,
    wakeups_by_tasks: u64,
    across_llcs: u64,
    wakeups_of_further_pairs: u64,
    within_llc: Sum,
}

impl BouncingCounter {
    pub fn switched_in(&mut self, task: TaskNumber, llc: u16, now: u64, tasks: &Tasks) {
        let life = self.lives.of(task);
        let entry = tasks.get(task);
        (life.pid, life.name) = (entry.pid, entry.name);
        match life.llc.replace(llc) {
            None => life.began_ns = now,
            Some(before) if before != llc && entry.counts => {
                life.llc_changes += 1;
                self.llc_changes += 1;
                *self.names.of(life.name) += 1;
            }
            Some(_) => {}
        }
    }

    /// `waker` wakes `task`; `None`: no task does.
    pub fn woken(&mut self, task: TaskNumber, waker: Option<TaskNumber>, tasks: &Tasks) {
        self.lives.of(task).waker = waker.map(|waker| tasks.get(waker).name);
    }

    /// The wakeup sends it to a CPU: it is placed there, or has no other.
    pub fn sent(&mut self, task: TaskNumber, across_llcs: bool, tasks: &Tasks) {
        let Some(waker) = self.lives.of(task).waker.take() else { return };
        let wakee = tasks.get(task).name;
        self.wakeups_by_tasks += 1;
        self.across_llcs += u64::from(across_llcs);
        let pair = self.pairs.id(waker, wakee);
        match pair {
            Some(pair) => {
                let of_pair = self.pairs.of(pair);
                of_pair.wakeups += 1;
                of_pair.across_llcs += u64::from(across_llcs);
            }
            None => self.wakeups_of_further_pairs += 1,
        }
        self.lives.of(task).sent = Some(SentBy { pair, across_llcs });
    }

    /// The task runs; if it had nobody before it, so long after its wakeup.
    pub fn reached(&mut self, task: TaskNumber, onto_idle_ns: Option<u64>) {
        let sent = self.lives.of(task).sent.take();
        let Some(ns) = onto_idle_ns else { return };
        let sum = match sent {
            Some(SentBy { across_llcs: false, .. }) => &mut self.within_llc,
            Some(SentBy { pair: Some(pair), .. }) => &mut self.pairs.of(pair).onto_idle,
            _ => return,
        };
        sum.count += 1;
        sum.ns += ns;
    }

    /// The task ends; its number may become another's.
    pub fn end(&mut self, task: TaskNumber, now: u64) {
        let life = std::mem::take(self.lives.of(task));
        list(&mut self.ended, &life, now);
    }

    pub fn report(&self, now: u64, duration_ns: u64, tasks: &Tasks) -> BouncingReport {
        let mut bouncing = self.ended.clone();
        for life in self.lives.iter() {
            list(&mut bouncing, life, now);
        }
        let of_name = |(name, &llc_changes): (&str, &u64)| BouncingName {
            name: name.into(),
            llc_changes,
            llc_changes_per_second: per_second(llc_changes, duration_ns),
        };
        BouncingReport {
            llc_changes: self.llc_changes,
            llc_changes_per_second: per_second(self.llc_changes, duration_ns),
            tasks: bouncing.iter().map(|ended| ended.report(tasks)).collect(),
            names: self.names.most_first(tasks, |&n| n).into_iter().map(of_name).collect(),
            wakeups_by_tasks: self.wakeups_by_tasks,
            across_llcs: self.across_llcs,
            pairs: self.pairs_across_llcs(tasks),
            wakeups_of_further_pairs: self.wakeups_of_further_pairs,
            within_llc_mean_ns: self.within_llc.mean_ns(),
        }
    }

    fn pairs_across_llcs(&self, tasks: &Tasks) -> Vec<WakerWakee> {
        let across = self.pairs.iter().filter(|(_, _, of)| of.across_llcs > 0);
        let mut pairs: Vec<(NameId, NameId, &Wakeups)> = across.collect();
        pairs.sort_by_key(|&(waker, wakee, of)| (Reverse(of.across_llcs), waker, wakee));
        pairs.truncate(LISTED);
        let report = |(waker, wakee, of): (NameId, NameId, &Wakeups)| WakerWakee {
            wakee_id: wakee,
            waker: tasks.name(waker).into(),
            wakee: tasks.name(wakee).into(),
            wakeups: of.wakeups,
            across_llcs: of.across_llcs,
            share_across_llcs: of.across_llcs as f64 / of.wakeups as f64,
            onto_idle: of.onto_idle.count,
            onto_idle_ns: of.onto_idle.ns,
        };
        pairs.into_iter().map(report).collect()
    }
}

impl Ended {
    fn report(&self, tasks: &Tasks) -> BouncingTask {
        BouncingTask {
            pid: self.pid,
            name: tasks.name(self.name).into(),
            llc_changes: self.llc_changes,
            lifetime_ns: self.lifetime_ns,
            llc_changes_per_second: per_second(self.llc_changes, self.lifetime_ns),
        }
    }

    fn rank(&self) -> impl Ord + use<> {
        (Reverse(self.llc_changes), self.pid, self.lifetime_ns)
    }
}

/// Puts a task into its place in the list, if it deserves one.
fn list(bouncing: &mut Vec<Ended>, life: &Life, now: u64) {
    if life.llc_changes == 0 {
        return;
    }
    let ended = Ended {
        pid: life.pid,
        name: life.name,
        llc_changes: life.llc_changes,
        lifetime_ns: now - life.began_ns,
    };
    let at = bouncing.partition_point(|other| other.rank() <= ended.rank());
    if at < LISTED {
        bouncing.truncate(LISTED - 1);
        bouncing.insert(at, ended);
    }
}

fn per_second(count: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { count as f64 * NSEC_PER_SEC / ns as f64 }
}
