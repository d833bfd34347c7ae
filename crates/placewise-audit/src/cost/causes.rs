//! What kept tasks waiting: the costs of a trace by cause.
//!
//! Every nanosecond that a task waited behind another, queued or on its way there, is told once, for
//! its name, under the first cause that holds:
//!
//! | the task waited | cause |
//! |---|---|
//! | behind a real-time task, being none | [`CauseKind::RealTime`] |
//! | while only CPUs that it may not use were idle | [`CauseKind::Bound`] |
//! | on the one CPU that tasks of its name ever ran on, beside idle CPUs for 100 ms and more | the same |
//! | after a fork, for its first run | [`CauseKind::NewTasks`] |
//! | while a CPU was idle that it may use | [`CauseKind::IdleInLlc`] and its like |
//! | while no CPU was idle | [`CauseKind::Overload`] |
//!
//! Beside these are throttling, and placements on CPUs that ran nothing: wakeups across LLCs have
//! taken longer to run than those within one, and the rest is what idle CPUs took to wake up.
//!
//! Limit: no tracepoint tells where a task may run. That one is bound follows from the header, from
//! its name, or from what it never did.

use std::collections::HashMap;

use placewise_machine::CpuSet;
use serde::Serialize;

use super::behind::{Beside, Role, Waits, list};
use super::bouncing::{BouncingReport, WakerWakee};
use super::turns::{TurnMeter, Turns};
use super::waiting::Waiting;
use super::worst::WorstDecisions;
use crate::steps::by_name::ByName;
use crate::steps::task::{NameId, Tasks};

/// In a report.
const LISTED: usize = 32;

/// Others that a task waited behind, of one cause.
const OTHERS_LISTED: usize = 8;

/// Beside idle CPUs for so long, a task that is free would have been pulled: idle CPUs balance every
/// few milliseconds.
const SURELY_BOUND_NS: u64 = 100_000_000;

/// Why a task waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    RealTime,
    Bound,
    NewTasks,
    IdleInLlc,
    IdleInNode,
    IdleInOtherNode,
    Overload,
    Throttled,
    AcrossLlcs,
    IdleExit,
}

impl CauseKind {
    pub const ALL: [CauseKind; 10] = [
        CauseKind::RealTime,
        CauseKind::Bound,
        CauseKind::NewTasks,
        CauseKind::IdleInLlc,
        CauseKind::IdleInNode,
        CauseKind::IdleInOtherNode,
        CauseKind::Overload,
        CauseKind::Throttled,
        CauseKind::AcrossLlcs,
        CauseKind::IdleExit,
    ];
}

/// Whom a task waited behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Other {
    pub name: String,
    pub cost_ns: u64,
    /// All tasks of this name ran only where the waiting ones were.
    pub stayed_there: bool,
}

/// One cause of what the tasks of one name waited.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    pub cause: CauseKind,
    pub task: String,
    pub cost_ns: u64,
    /// Behind whom, most expensive first; who woke it, across LLCs.
    pub others: Vec<Other>,
    /// How many those are with the ones not listed.
    pub nr_others: u64,
    /// Where it waited.
    #[serde(serialize_with = "list")]
    pub cpus: CpuSet,
    /// What was idle meanwhile.
    pub beside: Beside,
    /// How long tasks of this name ran.
    pub run_ns: u64,
    /// For how long at least one of them waited behind another, for whatever cause.
    pub elapsed_ns: u64,
    /// Wakeups across LLCs, or onto idle CPUs; times that one was throttled.
    pub times: u64,
    /// Tasks that were forked with this name.
    pub forks: u64,
    /// The placement of this name that cost most.
    pub worst_time_ns: Option<u64>,
}

/// Placements of one name on CPUs that ran nothing, and what they took until the task ran.
#[derive(Clone, Copy, Default)]
pub struct IdleExit {
    pub wakeups: u64,
    pub ns: u64,
}

/// What the causes are made from.
pub struct Evidence<'a> {
    pub waiting: &'a Waiting,
    pub turns: &'a TurnMeter,
    pub worst: &'a WorstDecisions,
    pub bouncing: &'a BouncingReport,
    pub idle_exit: &'a ByName<IdleExit>,
    pub tasks: &'a Tasks,
    pub now: u64,
}

impl Evidence<'_> {
    /// Most expensive first.
    pub fn causes(&self) -> Vec<Cause> {
        let mut causes = self.of_waits();
        causes.extend(self.waiting.throttled().names().map(|(name, throttled)| {
            let (cost_ns, times) = (throttled.ns, throttled.times);
            let cause = self.cause(CauseKind::Throttled, name);
            Cause { cost_ns, times, cpus: throttled.cpus, worst_time_ns: None, ..cause }
        }));
        let across = self.bouncing.pairs.iter().filter_map(|pair| self.across_llcs(pair));
        causes.extend(across);
        causes.extend(self.idle_exits(&causes));
        causes.sort_by(|a, b| {
            let order = b.cost_ns.cmp(&a.cost_ns).then(a.cause.cmp(&b.cause));
            order.then_with(|| a.task.cmp(&b.task))
        });
        causes.truncate(LISTED);
        causes
    }

    /// Without what some of them took longer across LLCs.
    fn idle_exits(&self, causes: &[Cause]) -> Vec<Cause> {
        let exits = self.idle_exit.iter().filter(|(_, exit)| exit.ns > 0);
        let exits = exits.map(|(name, exit)| {
            let cause = self.cause(CauseKind::IdleExit, name);
            let told = |of: &&Cause| of.cause == CauseKind::AcrossLlcs && of.task == cause.task;
            let across_ns: u64 = causes.iter().filter(told).map(|of| of.cost_ns).sum();
            let (cost_ns, cpus) = (exit.ns.saturating_sub(across_ns), self.turns.of(name).cpus);
            Cause { cost_ns, times: exit.wakeups, cpus, worst_time_ns: None, ..cause }
        });
        exits.collect()
    }

    fn of_waits(&self) -> Vec<Cause> {
        let mut causes: HashMap<(NameId, CauseKind), Cause> = HashMap::new();
        for (waiter, runner, waits) in self.waiting.behind().pairs() {
            let name = waiter.name;
            for (kind, beside) in self.split(waiter, runner, waits) {
                let cause = causes.entry((name, kind)).or_insert_with(|| self.cause(kind, name));
                cause.beside.add(&beside);
                cause.cpus |= waits.cpus;
                cause.others.push(self.other(waiter, runner, beside.total()));
            }
        }
        let mut causes: Vec<Cause> = causes.into_values().collect();
        causes.iter_mut().for_each(Cause::sum_up);
        causes
    }

    fn cause(&self, kind: CauseKind, name: NameId) -> Cause {
        let turns = self.turns.of(name);
        Cause {
            cause: kind,
            task: self.tasks.name(name).into(),
            cost_ns: 0,
            others: Vec::new(),
            nr_others: 0,
            cpus: CpuSet::EMPTY,
            beside: Beside::default(),
            run_ns: turns.run_ns,
            elapsed_ns: self.waiting.behind().elapsed_ns(name, self.now),
            times: 0,
            forks: turns.forks,
            worst_time_ns: self.worst.time_of(name),
        }
    }

    fn other(&self, waiter: Role, runner: Role, cost_ns: u64) -> Other {
        let Turns { cpus, .. } = self.turns.of(runner.name);
        let stayed_there = cpus.is_subset(&self.turns.of(waiter.name).cpus);
        Other { name: self.tasks.name(runner.name).into(), cost_ns, stayed_there }
    }

    /// The time of a pair by cause.
    fn split(&self, waiter: Role, runner: Role, waits: &Waits) -> Vec<(CauseKind, Beside)> {
        let mut beside = waits.beside;
        beside.add(&waits.on_the_way);
        let stays = !self.turns.of(waiter.name).moved;
        let free_ns = beside.idle_ns.total() + beside.forbidden_ns;
        let bound = match stays && free_ns >= SURELY_BOUND_NS {
            true => Beside { none_idle_ns: 0, ..beside },
            false => Beside { forbidden_ns: beside.forbidden_ns, ..Beside::default() },
        };
        let free = beside.without(&bound);
        let mut causes = match (runner.real_time && !waiter.real_time, waiter.new) {
            (true, _) => vec![(CauseKind::RealTime, beside)],
            (false, true) => vec![(CauseKind::Bound, bound), (CauseKind::NewTasks, free)],
            (false, false) => [vec![(CauseKind::Bound, bound)], by_nearest(&free)].concat(),
        };
        causes.retain(|(_, beside)| beside.total() > 0);
        causes
    }

    /// What wakeups across LLCs took longer than those within one.
    fn across_llcs(&self, pair: &WakerWakee) -> Option<Cause> {
        let within = pair.onto_idle.saturating_mul(self.bouncing.within_llc_mean_ns);
        let cost_ns = pair.onto_idle_ns.checked_sub(within).filter(|&ns| ns > 0)?;
        let name = pair.wakee_id;
        let waker = Other { name: pair.waker.clone(), cost_ns, stayed_there: false };
        let cpus = self.turns.of(name).cpus;
        let (others, times) = (vec![waker], pair.across_llcs);
        let cause = self.cause(CauseKind::AcrossLlcs, name);
        Some(Cause { cost_ns, others, nr_others: 1, times, cpus, ..cause })
    }
}

fn by_nearest(free: &Beside) -> Vec<(CauseKind, Beside)> {
    let mut parts = [Beside::default(); 4];
    parts[0].idle_ns.same_llc = free.idle_ns.same_llc;
    parts[1].idle_ns.same_node = free.idle_ns.same_node;
    parts[2].idle_ns.other_node = free.idle_ns.other_node;
    parts[3].none_idle_ns = free.none_idle_ns;
    let kinds = [
        CauseKind::IdleInLlc,
        CauseKind::IdleInNode,
        CauseKind::IdleInOtherNode,
        CauseKind::Overload,
    ];
    kinds.into_iter().zip(parts).collect()
}

impl Cause {
    fn sum_up(&mut self) {
        self.cost_ns = self.beside.total();
        // A name that ran under two roles, as a real-time task and not, is one.
        self.others.sort_by(|a, b| a.name.cmp(&b.name));
        self.others.dedup_by(|from, into| {
            let same = from.name == into.name;
            into.cost_ns += if same { from.cost_ns } else { 0 };
            same
        });
        self.nr_others = self.others.len() as u64;
        self.others.sort_by_key(|other| std::cmp::Reverse(other.cost_ns));
        self.others.truncate(OTHERS_LISTED);
    }
}
