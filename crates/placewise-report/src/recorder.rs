//! Looks on while a trace is audited, and keeps what a page draws of it.
//!
//! A task waits on the CPU that it was sent to, or preempted on, from then until it runs; waits go
//! to the cells when they end, or move with the task. Times are those of the audit's steps, from the
//! first one on: where no CPU had an event for long, that time is left out.
//!
//! Of a part of a trace only that part is kept. What is before it and behind it has no length, so it
//! tells no more than who runs and waits when the part begins.

use std::ops::RangeInclusive;

use placewise_audit::cost::places::{ByNearest, Nearest};
use placewise_audit::{
    Action, Decided, Distance, Observer, PrevState, Step, Stepped, TaskNumber, Tasks,
};
use placewise_machine::Machine;
use placewise_policy::FIRST_TASK;

use crate::cells::Cells;
use crate::columns::Columns;
use crate::explained::{Explained, MostExpensive};
use crate::latency::{Distribution, Latencies};
use crate::recording::{Recording, Shape};
use crate::runs::{Class, Runs, What};
use crate::threads::Threads;
use crate::wakeups::Wakeups;

/// Names whose distributions the page shows.
const DISTRIBUTIONS: usize = 12;

/// What runs on a CPU.
#[derive(Clone, Copy)]
struct Running {
    from: u64,
    waited_ns: u64,
    what: What,
}

/// A task that is to run.
#[derive(Clone, Copy)]
struct Wait {
    cpu: u32,
    /// On that CPU.
    from: u64,
    /// Wherever.
    began: u64,
    is_wakeup: bool,
}

/// What is known of a task.
#[derive(Default)]
struct Known {
    last_cpu: Option<u32>,
    wait: Option<Wait>,
    /// How it was placed, until it runs.
    placed: Class,
    explained: Option<Box<Explained>>,
}

/// From when to when, as the trace has it.
pub type Part = RangeInclusive<u64>;

/// An [`Observer`] of one trace.
pub struct Recorder {
    shape: Shape,
    part: Part,
    is_inside: bool,
    start: Option<u64>,
    /// Of the timeline, as the trace has it.
    start_ns: u64,
    now: u64,
    silent_ns: u64,
    silences: Vec<(u64, u64)>,
    running: Vec<Option<Running>>,
    known: Vec<Known>,
    beside_idle: ByNearest<u64>,
    cells: Cells,
    runs: Runs,
    wakeups: Wakeups,
    latencies: Vec<Latencies>,
    threads: Threads,
    explained: MostExpensive,
}

impl Recorder {
    pub fn new(machine: &Machine, part: Part) -> Self {
        let cpus = machine.cpus.len();
        Recorder {
            shape: Shape::of(machine),
            part,
            is_inside: false,
            start: None,
            start_ns: 0,
            now: 0,
            silent_ns: 0,
            silences: Vec::new(),
            running: vec![None; cpus],
            known: Vec::new(),
            beside_idle: ByNearest::default(),
            cells: Cells::new(cpus),
            runs: Runs::new(cpus),
            wakeups: Wakeups::new(),
            latencies: Vec::new(),
            threads: Threads::new(machine.nr_llcs()),
            explained: MostExpensive::default(),
        }
    }

    /// The trace is over.
    pub fn finish(mut self, name: &str) -> Recording {
        for cpu in 0..self.running.len() {
            self.end_run(cpu as u32);
        }
        for task in 0..self.known.len() {
            self.end_wait(task as TaskNumber);
        }
        let mut columns = Columns::default();
        Recording {
            name: name.to_owned(),
            start_ns: self.start_ns,
            duration_ns: self.now,
            shape: self.shape,
            silences: self.silences,
            threads: self.threads.list(),
            levels: self.cells.levels(&mut columns),
            idle_strip: self.cells.idle_strip(&mut columns),
            runs: self.runs.columns(&mut columns),
            wakeups: self.wakeups.columns(&mut columns),
            latencies: distributions(&self.latencies, &self.threads),
            residency: self.threads.residency(),
            moves: self.threads.moves().into_iter().map(<[u64]>::to_vec).collect(),
            explained: self.explained.list(),
            columns: columns.bytes,
        }
    }

    fn known(&mut self, task: TaskNumber) -> &mut Known {
        let at = task as usize;
        if self.known.len() <= at {
            self.known.resize_with(at + 1, Known::default);
        }
        &mut self.known[at]
    }

    fn advance(&mut self, step: &Step) {
        self.is_inside = self.part.contains(&(step.time_ns + self.silent_ns));
        let of_step = |time: u64| time.saturating_sub(self.silent_ns);
        let time_ns = step.time_ns.clamp(of_step(*self.part.start()), of_step(*self.part.end()));
        let start = *self.start.get_or_insert(time_ns);
        let now = time_ns.saturating_sub(start).max(self.now);
        if now == 0 {
            self.start_ns = start + self.silent_ns;
        }
        let ByNearest { same_llc, same_node, other_node } = self.beside_idle;
        if now > self.now && self.beside_idle.total() > 0 {
            self.cells.beside_idle(self.now, now, [same_llc, same_node, other_node]);
        }
        self.now = now;
    }

    fn follow(&mut self, stepped: &Stepped<'_>) {
        let (step, tasks) = (stepped.step, stepped.tasks);
        match step.action {
            Action::Silence { ns } => {
                self.silences.push((self.now, ns));
                self.silent_ns += ns;
            }
            Action::Running { task } => {
                self.end_run(step.cpu);
                self.known(task).wait = None;
                self.begin_run(step.cpu, task, stepped);
            }
            Action::Waking { task, prev_cpu, ref outcome } => {
                let cpu = outcome.as_ref().map_or(prev_cpu, |outcome| outcome.cpu);
                self.begin_wait(task, cpu, true);
                self.woken(step.cpu, cpu, task, tasks);
            }
            Action::WakeupNew { task, target_cpu } => {
                self.begin_wait(task, target_cpu, true);
                self.woken(step.cpu, target_cpu, task, tasks);
            }
            Action::Migrate { task, to, placement: false, .. } => self.move_wait(task, to),
            Action::Switch { prev, prev_state, next } => {
                self.end_run(step.cpu);
                if prev_state == PrevState::Runnable {
                    self.begin_wait(prev, step.cpu, false);
                }
                self.begin_run(step.cpu, next, stepped);
                if prev_state == PrevState::Dead {
                    self.forget(prev);
                }
            }
            Action::Forgotten { task } => self.forget(task),
            _ => {}
        }
    }

    fn begin_run(&mut self, cpu: u32, task: TaskNumber, stepped: &Stepped<'_>) {
        if task < FIRST_TASK {
            return;
        }
        let waited_ns = self.waited(task, stepped.tasks);
        let known = self.known(task);
        let last_cpu = known.last_cpu.replace(cpu);
        let mut class = std::mem::take(&mut known.placed);
        if let Some(last_cpu) = last_cpu {
            class.distance = Distance::of(stepped.state, last_cpu, cpu) as u8 + 1;
            if last_cpu != cpu && self.is_inside {
                self.threads.moved(self.shape.llc(last_cpu), self.shape.llc(cpu));
            }
        }
        let what = What { thread: self.threads.index(task, stepped.tasks), class: class.byte() };
        self.running[cpu as usize] = Some(Running { from: self.now, waited_ns, what });
    }

    /// The wait of a task is over; for how long it was.
    fn waited(&mut self, task: TaskNumber, tasks: &Tasks) -> u64 {
        let Some(wait) = self.end_wait(task) else { return 0 };
        let ns = self.now - wait.began;
        if wait.is_wakeup && self.is_inside {
            let name = tasks.get(task).name as usize;
            if self.latencies.len() <= name {
                self.latencies.resize(name + 1, Latencies::default());
            }
            self.latencies[name].record(ns);
        }
        if let Some(explained) = self.known(task).explained.take() {
            self.explained.waited(*explained, ns);
        }
        ns
    }

    fn end_run(&mut self, cpu: u32) {
        if let Some(Running { from, waited_ns, what }) = self.running[cpu as usize].take()
            && self.now > from
        {
            self.cells.run(cpu, from, self.now, what);
            self.runs.push(cpu, from, self.now, waited_ns, what);
            self.threads.ran(what, self.shape.llc(cpu), self.now - from);
        }
    }

    fn begin_wait(&mut self, task: TaskNumber, cpu: u32, is_wakeup: bool) {
        let now = self.now;
        if task >= FIRST_TASK && self.known(task).wait.is_none() {
            self.known(task).wait = Some(Wait { cpu, from: now, began: now, is_wakeup });
        }
    }

    fn end_wait(&mut self, task: TaskNumber) -> Option<Wait> {
        let wait = self.known(task).wait.take()?;
        self.cells.wait(wait.cpu, wait.from, self.now);
        Some(wait)
    }

    fn move_wait(&mut self, task: TaskNumber, to: u32) {
        if let Some(wait) = self.end_wait(task) {
            self.known(task).wait = Some(Wait { cpu: to, from: self.now, ..wait });
        }
    }

    fn woken(&mut self, waking_cpu: u32, cpu: u32, task: TaskNumber, tasks: &Tasks) {
        if self.is_inside && self.shape.llc(waking_cpu) != self.shape.llc(cpu) {
            let thread = self.threads.index(task, tasks);
            self.wakeups.push(self.now, waking_cpu, cpu, thread);
            self.cells.arrive(cpu, self.now);
        }
    }

    fn forget(&mut self, task: TaskNumber) {
        self.end_wait(task);
        *self.known(task) = Known::default();
        self.threads.forget(task);
    }
}

impl Observer for Recorder {
    fn stepped(&mut self, stepped: &Stepped<'_>) {
        self.advance(stepped.step);
        self.follow(stepped);
        self.beside_idle = stepped.beside_idle();
    }

    fn decided(&mut self, decided: &Decided<'_>) {
        let placed = decided.placed;
        let same_llc = self.shape.llc(placed.predicted) == self.shape.llc(placed.actual);
        let verdict = match placed.predicted == placed.actual {
            true => 1,
            false => {
                if same_llc {
                    2
                } else {
                    3
                }
            }
        };
        let missed = match decided.missed {
            None => 0,
            Some(Nearest::SameLlc) => 1,
            Some(Nearest::SameNode) => 2,
            Some(Nearest::OtherNode) => 3,
        };
        let explained = match missed {
            1.. if self.is_inside => self.explained.explain(decided, self.now),
            _ => None,
        };
        let known = self.known(placed.task);
        known.placed = Class { distance: 0, verdict, missed };
        known.explained = explained;
    }
}

/// Of the names that took longest in all.
fn distributions(latencies: &[Latencies], threads: &Threads) -> Vec<Distribution> {
    let names = latencies.iter().enumerate();
    let mut all: Vec<Distribution> =
        names.map(|(name, of_name)| of_name.distribution(threads.name(name as u32))).collect();
    all.retain(|of_name| of_name.total_ns > 0);
    all.sort_by_key(|of_name| std::cmp::Reverse(of_name.total_ns));
    all.truncate(DISTRIBUTIONS);
    all
}
