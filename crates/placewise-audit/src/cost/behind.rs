//! Who waited behind whom, on which CPUs, and what was idle meanwhile.
//!
//! The tasks that wait on a CPU are told by their names, and so is the task that runs there: each
//! pair of names has the time that tasks of the first spent waiting while one of the second ran.
//! Every nanosecond of waiting behind another is in one pair, and there in one part of [`Beside`].
//! So is, apart, the time that a wakeup was on its way to the queue of a busy CPU.
//!
//! What waits on a CPU is one entry for all tasks of a role and an affinity. A task that begins to
//! wait takes what the clocks of [`super::idle_beside`] show from the entry's sum, one that ends adds
//! it; the entry is settled when another role runs there, or when nobody waits in it any more.
//!
//! Bounded: pairs beyond those that [`ByPair`] tells apart are in the sum of one without names.

use placewise_machine::CpuSet;
use serde::{Serialize, Serializer};

use super::idle_beside::{AudienceId, Clocks, IdleBesideMeter};
use super::places::{ByNearest, Nearest, Places};
use crate::steps::by_name::ByName;
use crate::steps::by_pair::{ByPair, Place};
use crate::steps::task::{NameId, TaskNumber, Tasks};

/// In a report.
const LISTED: usize = 32;

/// Waiting behind others, by what was idle meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Beside {
    /// A CPU that the task may use, by the nearest one.
    pub idle_ns: ByNearest<u64>,
    /// Only CPUs that it may not use.
    pub forbidden_ns: u64,
    /// No CPU of the machine.
    pub none_idle_ns: u64,
}

impl Beside {
    pub fn total(&self) -> u64 {
        self.idle_ns.total() + self.forbidden_ns + self.none_idle_ns
    }

    pub fn add(&mut self, other: &Beside) {
        self.idle_ns.same_llc += other.idle_ns.same_llc;
        self.idle_ns.same_node += other.idle_ns.same_node;
        self.idle_ns.other_node += other.idle_ns.other_node;
        self.forbidden_ns += other.forbidden_ns;
        self.none_idle_ns += other.none_idle_ns;
    }

    /// A part of it left out.
    pub fn without(&self, part: &Beside) -> Self {
        Beside {
            idle_ns: ByNearest {
                same_llc: self.idle_ns.same_llc - part.idle_ns.same_llc,
                same_node: self.idle_ns.same_node - part.idle_ns.same_node,
                other_node: self.idle_ns.other_node - part.idle_ns.other_node,
            },
            forbidden_ns: self.forbidden_ns - part.forbidden_ns,
            none_idle_ns: self.none_idle_ns - part.none_idle_ns,
        }
    }

    /// What the clocks have counted.
    fn of(clocks: &Clocks) -> Self {
        let &Clocks { now, llc, node, allowed, machine } = clocks;
        Beside {
            idle_ns: ByNearest { same_llc: llc, same_node: node - llc, other_node: allowed - node },
            forbidden_ns: machine - allowed,
            none_idle_ns: now - machine,
        }
    }
}

/// A task as a pair knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Role {
    pub name: NameId,
    pub real_time: bool,
    /// It was forked and has not run yet.
    pub new: bool,
}

impl Role {
    pub fn of(task: TaskNumber, tasks: &Tasks) -> Self {
        let task = tasks.get(task);
        Role { name: task.name, real_time: !task.is_fair(), new: false }
    }
}

impl Place for Role {
    fn place(&self) -> usize {
        self.name as usize * 2 + usize::from(self.new)
    }
}

/// What tasks of one role waited while one of another ran.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits {
    pub beside: Beside,
    /// On its way to the queue, by what was idle when it set off.
    pub on_the_way: Beside,
    /// Where.
    pub cpus: CpuSet,
}

/// Tasks of one name that waited in the queue behind those of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BehindOther {
    pub task: String,
    /// They were forked and had not run yet.
    pub new: bool,
    pub behind: String,
    /// Those are real-time tasks.
    pub real_time: bool,
    pub waited_ns: u64,
    pub beside: Beside,
    #[serde(serialize_with = "list")]
    pub cpus: CpuSet,
}

pub(super) fn list<S: Serializer>(cpus: &CpuSet, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(cpus)
}

/// Tasks of one role and affinity that wait on one CPU.
struct Entry {
    waiter: Role,
    audience: AudienceId,
    tasks: u64,
    /// In [`BehindMeter::pairs`]; `None`: one too many.
    pair: Option<usize>,
    /// What they have waited since it was settled, but for what the clocks show times `tasks`.
    clocks: Clocks,
}

#[derive(Default)]
struct Line {
    runner: Role,
    entries: Vec<Entry>,
}

/// For how long at least one task of a name waited.
#[derive(Clone, Copy, Default)]
struct Elapsed {
    waiting: u64,
    since: u64,
    ns: u64,
}

/// Measures the waits of a trace, pair by pair.
pub struct BehindMeter {
    lines: Vec<Line>,
    /// Waiter, runner.
    pairs: ByPair<Role, Waits>,
    further: Waits,
    elapsed: ByName<Elapsed>,
    /// Time waited while the only idle CPUs were in other LLCs, by the LLC that was waited on.
    crowded_ns: Vec<u64>,
}

impl BehindMeter {
    pub fn new(places: &Places) -> Self {
        BehindMeter {
            lines: (0..placewise_policy::NR_CPUS).map(|_| Line::default()).collect(),
            pairs: ByPair::default(),
            further: Waits::default(),
            elapsed: ByName::default(),
            crowded_ns: vec![0; places.nr_llcs()],
        }
    }

    /// Another task runs on `cpu`.
    #[inline]
    pub fn runs(&mut self, cpu: u32, runner: Role, idle: &IdleBesideMeter, places: &Places) {
        let before = std::mem::replace(&mut self.lines[cpu as usize].runner, runner);
        if before != runner {
            self.runs_another(cpu, runner, idle, places);
        }
    }

    /// What waits there waits behind another role from now on.
    fn runs_another(&mut self, cpu: u32, runner: Role, idle: &IdleBesideMeter, places: &Places) {
        for at in 0..self.lines[cpu as usize].entries.len() {
            self.settle(cpu, at, idle, places);
            let pair = self.pairs.id(self.lines[cpu as usize].entries[at].waiter, runner);
            self.lines[cpu as usize].entries[at].pair = pair;
        }
    }

    /// A task begins to wait behind what runs on `cpu`.
    #[inline]
    pub fn wait(
        &mut self,
        cpu: u32,
        waiter: Role,
        audience: AudienceId,
        now: u64,
        idle: &IdleBesideMeter,
        places: &Places,
    ) {
        let elapsed = self.elapsed.of(waiter.name);
        if elapsed.waiting == 0 {
            elapsed.since = now;
        }
        elapsed.waiting += 1;
        let at = match self.entry(cpu, waiter, audience) {
            Some(at) => at,
            None => {
                let line = &mut self.lines[cpu as usize];
                let pair = self.pairs.id(waiter, line.runner);
                let clocks = Clocks::default();
                line.entries.push(Entry { waiter, audience, tasks: 0, pair, clocks });
                line.entries.len() - 1
            }
        };
        let entry = &mut self.lines[cpu as usize].entries[at];
        entry.tasks += 1;
        entry.clocks.subtract(1, &idle.clocks(audience, places.of(cpu)));
    }

    /// One of those no longer does.
    #[inline]
    pub fn end_wait(
        &mut self,
        cpu: u32,
        waiter: Role,
        audience: AudienceId,
        now: u64,
        idle: &IdleBesideMeter,
        places: &Places,
    ) {
        let elapsed = self.elapsed.of(waiter.name);
        elapsed.waiting -= 1;
        if elapsed.waiting == 0 {
            elapsed.ns += now - elapsed.since;
        }
        let at = self.entry(cpu, waiter, audience).expect("it waits there");
        let entries = &mut self.lines[cpu as usize].entries;
        let entry = &mut entries[at];
        entry.tasks -= 1;
        entry.clocks.add(1, &idle.clocks(audience, places.of(cpu)));
        if entry.tasks == 0 {
            let Entry { pair, clocks, .. } = entries.swap_remove(at);
            self.count(cpu, pair, &clocks, places);
        }
    }

    fn entry(&self, cpu: u32, waiter: Role, audience: AudienceId) -> Option<usize> {
        let entries = &self.lines[cpu as usize].entries;
        entries.iter().position(|entry| entry.waiter == waiter && entry.audience == audience)
    }

    fn settle(&mut self, cpu: u32, at: usize, idle: &IdleBesideMeter, places: &Places) {
        let entry = &mut self.lines[cpu as usize].entries[at];
        let clocks = idle.clocks(entry.audience, places.of(cpu));
        entry.clocks.add(entry.tasks, &clocks);
        let (pair, waited) = (entry.pair, std::mem::take(&mut entry.clocks));
        entry.clocks.subtract(entry.tasks, &clocks);
        self.count(cpu, pair, &waited, places);
    }

    /// What has been waited on `cpu`.
    fn count(&mut self, cpu: u32, pair: Option<usize>, clocks: &Clocks, places: &Places) {
        if clocks.now == 0 {
            return;
        }
        let beside = Beside::of(clocks);
        let waits = match pair {
            Some(pair) => self.pairs.of(pair),
            None => &mut self.further,
        };
        waits.beside.add(&beside);
        waits.cpus.insert(cpu as usize);
        self.crowded_ns[usize::from(places.of(cpu).llc)] +=
            beside.idle_ns.same_node + beside.idle_ns.other_node;
    }

    /// A placement onto a CPU where another ran took so long to its queue.
    pub fn arrived(
        &mut self,
        (waiter, runner): (Role, Role),
        cpu: u16,
        nearest_idle: Option<Nearest>,
        ns: u64,
    ) {
        let waits = match self.pairs.id(waiter, runner) {
            Some(pair) => self.pairs.of(pair),
            None => &mut self.further,
        };
        waits.cpus.insert(cpu.into());
        match nearest_idle {
            Some(nearest) => waits.on_the_way.idle_ns[nearest] += ns,
            None => waits.on_the_way.none_idle_ns += ns,
        }
    }

    /// Settles what waits still: the trace is over.
    pub fn end(&mut self, idle: &IdleBesideMeter, places: &Places) {
        for cpu in 0..self.lines.len() {
            for at in 0..self.lines[cpu].entries.len() {
                self.settle(cpu as u32, at, idle, places);
            }
        }
    }

    /// Waiter, runner and waits of those that waited for any time.
    pub fn pairs(&self) -> impl Iterator<Item = (Role, Role, &Waits)> {
        let further = std::iter::once((Role::default(), Role::default(), &self.further));
        let waited =
            |(_, _, of): &(Role, Role, &Waits)| of.beside.total() + of.on_the_way.total() > 0;
        self.pairs.iter().chain(further).filter(waited)
    }

    /// Those that waited longest first.
    pub fn report(&self, tasks: &Tasks) -> Vec<BehindOther> {
        let mut pairs: Vec<(Role, Role, &Waits)> = self.pairs().collect();
        pairs.retain(|(_, _, of)| of.beside.total() > 0);
        // Equal ones as they came.
        pairs.sort_by_key(|(_, _, of)| std::cmp::Reverse(of.beside.total()));
        pairs.truncate(LISTED);
        let report = |(waiter, runner, of): (Role, Role, &Waits)| BehindOther {
            task: tasks.name(waiter.name).into(),
            new: waiter.new,
            behind: tasks.name(runner.name).into(),
            real_time: runner.real_time,
            waited_ns: of.beside.total(),
            beside: of.beside,
            cpus: of.cpus,
        };
        pairs.into_iter().map(report).collect()
    }

    /// Time in which a task of this name waited.
    pub fn elapsed_ns(&self, name: NameId, now: u64) -> u64 {
        let elapsed = self.elapsed.get(name).copied().unwrap_or_default();
        elapsed.ns + if elapsed.waiting > 0 { now - elapsed.since } else { 0 }
    }

    pub fn crowded_ns(&self) -> &[u64] {
        &self.crowded_ns
    }
}
