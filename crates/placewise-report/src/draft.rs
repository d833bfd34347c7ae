//! What is kept of a trace for a page, put together from notes in the order of time.
//!
//! A task waits on the CPU that it was sent to, or preempted on, from then until it runs; waits go
//! to the cells when they end, or move with the task.

use placewise_audit::{Explanation, TaskNumber};
use placewise_policy::FIRST_TASK;

use crate::cells::{BesideIdle, Cells};
use crate::columns::Columns;
use crate::explained::{Explained, MostExpensive};
use crate::latency::Latencies;
use crate::note::{Event, Note, Start, Who};
use crate::recording::{Recording, Shape};
use crate::runs::{Class, Runs, What};
use crate::threads::Threads;
use crate::wakeups::Wakeups;

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
    wait: Option<Wait>,
    /// How it was placed, until it runs.
    placed: Class,
    explained: Option<Explained>,
}

/// All that the page will show.
pub struct Draft {
    shape: Shape,
    now: u64,
    is_inside: bool,
    silences: Vec<(u64, u64)>,
    running: Vec<Option<Running>>,
    known: Vec<Known>,
    beside_idle: BesideIdle,
    cells: Cells,
    runs: Runs,
    wakeups: Wakeups,
    latencies: Latencies,
    threads: Threads,
    explained: MostExpensive,
}

impl Draft {
    pub fn new(shape: Shape, llcs: usize) -> Self {
        let cpus = shape.nr_cpus();
        Draft {
            shape,
            now: 0,
            is_inside: false,
            silences: Vec::new(),
            running: vec![None; cpus],
            known: Vec::new(),
            beside_idle: BesideIdle::default(),
            cells: Cells::new(cpus),
            runs: Runs::new(cpus),
            wakeups: Wakeups::new(),
            latencies: Latencies::new(llcs),
            threads: Threads::new(llcs),
            explained: MostExpensive::default(),
        }
    }

    /// The trace is over; `start_ns`: when the timeline begins, as the trace has it.
    pub fn finish(mut self, name: &str, start_ns: u64, now: u64) -> Recording {
        self.advance(now);
        for cpu in 0..self.running.len() {
            self.end_run(cpu as u32);
        }
        for task in 0..self.known.len() {
            self.end_wait(task as TaskNumber);
        }
        let mut columns = Columns::default();
        Recording {
            name: name.to_owned(),
            start_ns,
            duration_ns: self.now,
            shape: self.shape,
            silences: self.silences,
            threads: self.threads.list(),
            levels: self.cells.levels(&mut columns),
            idle_strip: self.cells.idle_strip(&mut columns),
            runs: self.runs.columns(&mut columns),
            wakeups: self.wakeups.columns(&mut columns),
            latencies: self.latencies.distributions(|name| self.threads.name(name)),
            residency: self.threads.residency(),
            moves: self.threads.moves().into_iter().map(<[u64]>::to_vec).collect(),
            explained: self.explained.list(),
            columns: columns.bytes,
        }
    }

    pub fn take(&mut self, Note { now, is_inside, cpu, event }: Note) {
        self.advance(now);
        self.is_inside = is_inside;
        match event {
            Event::Silence { ns } => self.silences.push((now, ns)),
            Event::Name { id, name } => self.threads.learn(id, name),
            Event::Running(start) => {
                self.end_run(cpu);
                self.known(start.who.task).wait = None;
                self.begin_run(cpu, start);
            }
            Event::Switch { prev, is_runnable, next } => {
                self.end_run(cpu);
                if is_runnable {
                    self.begin_wait(prev, cpu, false);
                }
                self.begin_run(cpu, next);
            }
            Event::Woken { who, cpu: target } => {
                self.begin_wait(who.task, target, true);
                self.woken(cpu, target, who);
            }
            Event::Moved { task, to } => self.move_wait(task, to),
            Event::Forgotten { task } => self.forget(task),
            Event::Placed { task, class, explanation } => self.placed(task, class, explanation),
            Event::BesideIdle(tasks) => self.beside_idle = tasks,
        }
    }

    fn advance(&mut self, now: u64) {
        if now > self.now && self.beside_idle != BesideIdle::default() {
            self.cells.beside_idle(self.now, now, self.beside_idle);
        }
        self.now = now;
    }

    fn known(&mut self, task: TaskNumber) -> &mut Known {
        let at = task as usize;
        if self.known.len() <= at {
            self.known.resize_with(at + 1, Known::default);
        }
        &mut self.known[at]
    }

    fn begin_run(&mut self, cpu: u32, Start { who, last_cpu, distance }: Start) {
        if who.task < FIRST_TASK {
            return;
        }
        let waited_ns = self.waited(cpu, who);
        let class = Class { distance, ..std::mem::take(&mut self.known(who.task).placed) };
        if let Some(last_cpu) = last_cpu.filter(|last_cpu| *last_cpu != cpu && self.is_inside) {
            self.threads.moved(self.shape.llc(last_cpu), self.shape.llc(cpu));
        }
        let what = What { thread: self.threads.index(who), class: class.byte() };
        self.running[cpu as usize] = Some(Running { from: self.now, waited_ns, what });
    }

    /// The wait of a task is over; for how long it was.
    fn waited(&mut self, cpu: u32, who: Who) -> u64 {
        let Some(wait) = self.end_wait(who.task) else { return 0 };
        let ns = self.now - wait.began;
        if wait.is_wakeup && self.is_inside {
            self.latencies.record(who.name, self.shape.llc(cpu), ns);
        }
        if let Some(explained) = self.known(who.task).explained.take() {
            self.explained.waited(explained, ns);
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

    fn woken(&mut self, waking_cpu: u32, cpu: u32, who: Who) {
        if self.is_inside && self.shape.llc(waking_cpu) != self.shape.llc(cpu) {
            let thread = self.threads.index(who);
            self.wakeups.push(self.now, waking_cpu, cpu, thread);
            self.cells.arrive(cpu, self.now);
        }
    }

    fn placed(&mut self, task: TaskNumber, class: Class, why: Option<Box<Explanation>>) {
        let at_ns = self.now;
        let known = self.known(task);
        known.placed = class;
        known.explained = why.map(|explanation| Explained { explanation, at_ns });
    }

    fn forget(&mut self, task: TaskNumber) {
        self.end_wait(task);
        *self.known(task) = Known::default();
        self.threads.forget(task);
    }
}
