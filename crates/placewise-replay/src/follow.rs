//! Follows a trace, CPU by CPU, and takes down what each task computed, whom it woke, and how each of
//! its sleeps ended.
//!
//! Time on a CPU is computing at the speed that the CPU had then: half of a core whose sibling is busy, and a core of
//! a package that is busy enough to slow down, are worth what the machine's figures say. What the machine charged is taken off.
//!
//! A switch that is missing shows when another task turns out to run: who ran before has slept since then if it is woken
//! next, or if its CPU idles before it runs again.

mod wakeups;

use std::collections::HashMap;

use placewise_audit::{Action, PrevState, Step, TaskNumber, Tasks};
use placewise_machine::{Clocks, FULL_CLOCK, Machine};
use placewise_policy::{FIRST_TASK, MeasuredKernel};
use placewise_workload::program::Nanos;

use crate::charges::Charges;
use crate::error::ReplayError;
use crate::followed::{Cause, Followed, FollowedTask, Seen, Span, Wakeup};
use crate::hints::Hints;
use crate::recording::{AtEnd, TaskIndex};

/// Of a thread alone on the fastest core.
const FULL_SPEED: u64 = 100 * 1024;

/// More tasks, and more steps of all of them, are not kept in memory.
const MOST_TASKS: usize = 16_384;
const MOST_STEPS: usize = 24_000_000;

/// Longer than an interrupt takes to another CPU, and much shorter than a tick, at which its task may make way, too.
/// In traces of a virtual machine, which were in view, preempting a task there takes 19 to 25 us in the median, and
/// 49 in nine of ten.
const SOON_NS: Nanos = 100_000;

/// After so many looks nothing is known any more of what was before.
const LONGEST_GAP_NS: Nanos = 100 * Clocks::PERIOD_NS;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Asleep,
    /// Woken, or preempted.
    Queued,
    Runs(u32),
}

/// What is known of a task, and what it is at.
#[derive(Default)]
struct Tracked {
    known: FollowedTask,
    last_wakee: Option<TaskNumber>,
    state: State,
    /// Computed since the last step, times the speed; and when.
    work: u64,
    span: Span,
    /// What is still to be taken off.
    charged: Nanos,
    slept_since: Nanos,
    /// Since when it does not run any more, and where it did, if no switch tells how that ended.
    lost: Option<(Nanos, u32)>,
    /// A wakeup that came before it was switched out.
    early: Option<(Cause, Nanos)>,
    /// Its last sleep was ended by such a wakeup.
    woken_early: bool,
    /// Where the post was made that it has not read yet.
    post_from: Option<u32>,
    /// When it was put on a run queue, and by which CPU.
    enqueued: Option<(Nanos, u32)>,
    /// The CPU that has its lines since then, until it runs.
    lines_on: Option<u32>,
    /// Of the interrupt that is waking it: its CPU, and what placing takes by the machine's figures.
    interrupt: Option<(u32, Nanos)>,
    /// The wakeup that it has made last, unless it has gone on since.
    made_last: Option<u32>,
    /// Whom it has preempted, by that one's wakeup.
    answers: Option<TaskIndex>,
}

#[derive(Default, Clone, Copy)]
struct OnCpu {
    task: Option<TaskIndex>,
    since: Nanos,
    /// When it was seen to idle last.
    idled: Nanos,
    /// Which CPU had the lock of its run queue last.
    locked_by: Option<u32>,
}

pub struct Follower<'a> {
    machine: &'a Machine,
    charges: Charges<'a>,
    hints: &'a Hints,
    siblings: Vec<Vec<usize>>,
    clocks: Option<Clocks>,
    /// When they are looked at next, and that of each package until then.
    next_look: Nanos,
    clock: Vec<u32>,
    cpus: Vec<OnCpu>,
    by_number: HashMap<TaskNumber, TaskIndex>,
    tasks: Vec<Tracked>,
    wakeups: Vec<Wakeup>,
    steps: usize,
    start: Option<Nanos>,
    now: Nanos,
    silent_ns: Nanos,
}

impl<'a> Follower<'a> {
    pub fn new(machine: &'a Machine, kernel: MeasuredKernel, hints: &'a Hints) -> Self {
        let sibling = |at: usize| {
            let core = machine.cpus[at].core;
            let others = machine.cpus_where(|cpu| cpu.core == core);
            others.iter().filter(|&other| other != at && machine.cpus[at].online).collect()
        };
        Follower {
            machine,
            charges: Charges::new(machine, kernel),
            hints,
            siblings: (0..machine.cpus.len()).map(sibling).collect(),
            clocks: Clocks::new(machine),
            next_look: Clocks::PERIOD_NS,
            clock: vec![FULL_CLOCK; machine.nr_packages()],
            cpus: vec![OnCpu::default(); machine.cpus.len()],
            by_number: HashMap::new(),
            tasks: Vec::new(),
            wakeups: Vec::new(),
            steps: 0,
            start: None,
            now: 0,
            silent_ns: 0,
        }
    }

    pub fn step(&mut self, step: &Step, tasks: &Tasks) -> Result<(), ReplayError> {
        let start = *self.start.get_or_insert(step.time_ns);
        self.go_to(self.now.max(step.time_ns.saturating_sub(start)));
        let cpu = step.cpu;
        match step.action {
            Action::Running { task } => self.runs(cpu, task, tasks),
            Action::Waking { task, prev_cpu, outcome } => {
                self.waking(step, task, (prev_cpu, outcome), tasks);
            }
            Action::Wakeup { task, target_cpu } => {
                self.lock(target_cpu, cpu);
                self.woken(task, cpu);
            }
            Action::Fork { parent, child } => self.fork(cpu, parent, child, tasks),
            Action::WakeupNew { task, target_cpu } => self.begins(task, target_cpu, tasks),
            Action::Switch { prev, prev_state, next } => {
                self.switch(cpu, (prev, prev_state), next, tasks);
            }
            Action::Exit { task } => self.exits(task),
            Action::Forgotten { task } => _ = self.by_number.remove(&task),
            Action::Lost { .. } => self.lose(cpu),
            Action::Silence { ns } => self.silent_ns += ns,
            Action::Begin { .. }
            | Action::Decided { .. }
            | Action::Migrate { .. }
            | Action::Exec { .. } => {}
        }
        self.check_size()
    }

    fn check_size(&self) -> Result<(), ReplayError> {
        let refuse = |problem: String| ReplayError::Unfit { file: "trace".into(), problem };
        if self.tasks.len() > MOST_TASKS {
            let problem = format!("more than {MOST_TASKS} tasks; replay a shorter piece of it");
            return Err(refuse(problem));
        }
        if self.steps > MOST_STEPS {
            let problem = format!("more than {MOST_STEPS} steps; replay a shorter piece of it");
            return Err(refuse(problem));
        }
        Ok(())
    }

    /// The recording is over.
    pub fn end(mut self, tasks: &Tasks) -> Followed {
        for cpu in 0..self.cpus.len() {
            self.leave(cpu as u32);
        }
        for at in 0..self.tasks.len() {
            self.close(at as TaskIndex);
            let task = &mut self.tasks[at];
            let idled = |(since, cpu): &(Nanos, u32)| self.cpus[*cpu as usize].idled > *since;
            let lost = task.lost.filter(idled).map(|(since, _)| since);
            let sleeps = (task.state == State::Asleep).then_some(task.slept_since).or(lost);
            task.known.at_end = sleeps.map_or(AtEnd::Runs, |since| AtEnd::Sleeps(self.now - since));
        }
        // Another CPU's interrupt is sent before sched_wakeup, and charged by itself.
        let telling = self.charges.telling(false) as i64;
        for Wakeup { excess, .. } in self.wakeups.iter_mut().filter(|wakeup| wakeup.told) {
            *excess = excess.map(|ns| ns - telling);
        }
        // A number may be another task's by now.
        for (&number, &index) in &self.by_number {
            tasks.name_of(number).clone_into(&mut self.tasks[index as usize].known.name);
        }
        let nr_cpus = self.cpus.len();
        let tasks = self.tasks.into_iter().map(|task| task.known).collect();
        Followed { length_ns: self.now, nr_cpus, tasks, wakeups: self.wakeups }
    }

    fn task(&mut self, index: TaskIndex) -> &mut Tracked {
        &mut self.tasks[index as usize]
    }

    /// The task of this number, seen first on `cpu`; `None` for idle tasks.
    fn index(&mut self, number: TaskNumber, cpu: u32, tasks: &Tasks) -> Option<TaskIndex> {
        if number < FIRST_TASK {
            return None;
        }
        if let Some(&known) = self.by_number.get(&number) {
            return Some(known);
        }
        let index = self.tasks.len() as TaskIndex;
        let task = tasks.get(number);
        let known = FollowedTask {
            number,
            pid: task.pid,
            name: tasks.name_of(number).to_owned(),
            prio: task.prio,
            begins_on: cpu,
            ..FollowedTask::default()
        };
        self.tasks.push(Tracked { known, ..Tracked::default() });
        self.by_number.insert(number, index);
        Some(index)
    }

    fn see(&mut self, index: TaskIndex, seen: Seen) {
        self.steps += 1;
        self.task(index).known.seen.push(seen);
    }

    /// How fast a thread of `cpu` computes beside its siblings.
    fn speed(&self, cpu: usize) -> u64 {
        let busy = self.siblings[cpu].iter().filter(|&&it| self.cpus[it].task.is_some()).count();
        let costs = &self.machine.costs;
        let percent = costs.thread_pct(1 + busy as u32);
        let ticks = costs.tick_ns * u64::from(costs.hz);
        let here = &self.machine.cpus[cpu];
        let clock = self.clock[usize::from(here.package)];
        let speed = u64::from(percent) * u64::from(here.speed * clock / FULL_CLOCK);
        speed - (u128::from(speed) * u128::from(ticks) / 1_000_000_000).min(speed.into()) as u64
    }

    /// Until then packages are as busy as they are now, and their clocks are looked at.
    fn go_to(&mut self, time: Nanos) {
        let Some(mut clocks) = self.clocks.take() else { return self.now = time };
        self.next_look = self.next_look.max(time.saturating_sub(LONGEST_GAP_NS));
        while self.next_look <= time {
            self.now = self.next_look;
            for package in clocks.look(|cpu| self.cpus[cpu].task.is_some()) {
                clocks.cpus_of(package).for_each(|cpu| self.account(cpu as u32));
                self.clock[package] = clocks.of(package);
            }
            self.next_look += Clocks::PERIOD_NS;
        }
        self.clocks = Some(clocks);
        self.now = time;
    }

    /// What so long a time on `cpu` is worth as work.
    fn work_of(&self, cpu: u32, ns: Nanos) -> Nanos {
        ns.saturating_mul(self.speed(cpu as usize)) / FULL_SPEED
    }

    /// What runs on `cpu` and beside it has computed until now.
    fn account(&mut self, cpu: u32) {
        let mut cpus = self.siblings[cpu as usize].clone();
        cpus.push(cpu as usize);
        for at in cpus {
            let OnCpu { task: Some(task), since, .. } = self.cpus[at] else { continue };
            let now = self.now;
            let ran = now.saturating_sub(since);
            let work = ran.saturating_mul(self.speed(at));
            let task = self.task(task);
            task.known.ran_ns += ran;
            let from = if task.work == 0 { since } else { task.span.from };
            task.span = Span { from, until: now, cpu: at as u32 };
            task.work = task.work.saturating_add(work);
            self.cpus[at].since = self.now;
        }
    }

    /// A step of the task that computes here ends.
    fn close(&mut self, index: TaskIndex) {
        if let State::Runs(cpu) = self.tasks[index as usize].state {
            self.account(cpu);
        }
        let task = self.task(index);
        let computed = std::mem::take(&mut task.work) / FULL_SPEED;
        let (ns, span) = (computed.saturating_sub(task.charged), task.span);
        task.charged = task.charged.saturating_sub(computed);
        if ns == 0 {
            return;
        }
        match task.known.seen.last_mut() {
            Some(Seen::Run(before, Span { until, cpu, .. })) => {
                *before = before.saturating_add(ns);
                (*until, *cpu) = (span.until, span.cpu);
            }
            _ => self.see(index, Seen::Run(ns, span)),
        }
    }

    /// `number` turns out to run on `cpu`.
    fn runs(&mut self, cpu: u32, number: TaskNumber, tasks: &Tasks) {
        self.lose(cpu);
        let known = self.by_number.contains_key(&number);
        let Some(index) = self.index(number, cpu, tasks) else { return };
        if !known {
            self.task(index).known.runs_at_once = true;
        }
        self.enter(cpu, index);
    }

    /// Whoever runs on `cpu` is there no longer, and may sleep.
    fn lose(&mut self, cpu: u32) {
        if let Some(index) = self.cpus[cpu as usize].task {
            self.task(index).lost = Some((self.now, cpu));
        }
        self.leave(cpu);
    }

    /// Whoever runs on `cpu` is there no longer.
    fn leave(&mut self, cpu: u32) {
        self.account(cpu);
        if let Some(index) = self.cpus[cpu as usize].task.take() {
            self.task(index).state = State::Queued;
        }
    }

    fn enter(&mut self, cpu: u32, index: TaskIndex) {
        self.account(cpu);
        if self.task(index).state == State::Asleep && !self.task(index).known.runs_at_once {
            // Nobody was seen to wake it.
            self.wake(index, Cause::Arrival { on: None });
        }
        let post_from = self.task(index).post_from.take();
        let line = post_from.map_or(0, |from| self.work_of(cpu, self.charges.line(from, cpu)));
        let task = self.task(index);
        if let Some(Seen::Slept { line_ns, .. }) = task.known.seen.last_mut() {
            *line_ns += line;
        }
        task.woken_early = false;
        task.made_last = None;
        task.lost = None;
        task.state = State::Runs(cpu);
        let on_cpu = &mut self.cpus[cpu as usize];
        (on_cpu.task, on_cpu.since) = (Some(index), self.now);
    }

    fn switch(
        &mut self,
        cpu: u32,
        (prev, prev_state): (TaskNumber, PrevState),
        next: TaskNumber,
        tasks: &Tasks,
    ) {
        let known = self.by_number.contains_key(&prev);
        if let Some(index) = self.index(prev, cpu, tasks) {
            if !known {
                self.task(index).known.runs_at_once = true;
            }
            self.leave(cpu);
            match prev_state {
                PrevState::Runnable => self.preempted(cpu, index, next),
                PrevState::Asleep | PrevState::Stopped => self.sleeps(index, cpu),
                PrevState::Dead => self.dies(index, tasks),
            }
        }
        if prev < FIRST_TASK || prev_state == PrevState::Runnable {
            self.arrived(cpu, prev, next);
        }
        if next < FIRST_TASK {
            self.cpus[cpu as usize].idled = self.now;
        }
        let known = self.by_number.contains_key(&next);
        if let Some(index) = self.index(next, cpu, tasks) {
            self.task(index).known.runs_at_once |= !known;
            if prev < FIRST_TASK {
                self.left_idle(cpu, index);
            }
            let from_sleeper = prev_state == PrevState::Asleep;
            let enqueued_by = self.task(index).lines_on.take();
            let lines = enqueued_by.map_or(0, |by| self.charges.task_lines(by, cpu));
            let switch = self.charges.switch(prev < FIRST_TASK, from_sleeper);
            self.task(index).charged += switch + self.work_of(cpu, lines);
            self.enter(cpu, index);
        }
        self.lock(cpu, cpu);
    }

    /// `by` has the lock of the run queue of `cpu`: its lines come there, on the time of whoever runs there.
    fn lock(&mut self, cpu: u32, by: u32) {
        let Some(queue) = self.cpus.get_mut(cpu as usize) else { return };
        let last = queue.locked_by.replace(by);
        if let (Some(last), Some(pays)) = (last, self.cpus[by as usize].task) {
            let lines = self.charges.lock_lines(last, by);
            self.task(pays).charged += self.work_of(by, lines);
        }
    }

    fn sleeps(&mut self, index: TaskIndex, cpu: u32) {
        self.close(index);
        self.answer(index, cpu);
        let (now, waking_up) = (self.now, self.charges.waking_up());
        let task = self.task(index);
        (task.state, task.charged) = (State::Asleep, waking_up);
        task.slept_since = now;
        if let Some((cause, _)) = task.early.take() {
            self.wake(index, cause);
            self.task(index).woken_early = true;
        }
    }

    fn dies(&mut self, index: TaskIndex, tasks: &Tasks) {
        self.close(index);
        let exit = self.charges.exit();
        let task = self.task(index);
        task.known.exits = true;
        task.known.name = tasks.name_of(task.known.number).to_owned();
        let number = task.known.number;
        if let Some(Seen::Run(last, _)) = task.known.seen.last_mut() {
            *last = last.saturating_sub(exit);
        }
        self.by_number.remove(&number);
    }

    fn exits(&mut self, number: TaskNumber) {
        if let Some(&index) = self.by_number.get(&number) {
            self.task(index).known.exits = true;
        }
    }

    fn fork(&mut self, cpu: u32, parent: TaskNumber, child: TaskNumber, tasks: &Tasks) {
        self.by_number.remove(&child);
        let Some(parent) = self.index(parent, cpu, tasks) else { return };
        let Some(child) = self.index(child, cpu, tasks) else { return };
        self.close(parent);
        let fork = self.charges.fork();
        let forker = self.task(parent);
        if let Some(Seen::Run(before, _)) = forker.known.seen.last_mut() {
            *before = before.saturating_sub(fork);
        }
        let now = self.now;
        let task = self.task(child);
        (task.known.parent, task.known.forked_ns) = (Some(parent), now);
        task.state = State::Queued;
        self.see(parent, Seen::Fork(child));
    }

    fn begins(&mut self, number: TaskNumber, cpu: u32, tasks: &Tasks) {
        let known = self.by_number.contains_key(&number);
        let Some(index) = self.index(number, cpu, tasks) else { return };
        let task = self.task(index);
        task.known.begins_on = cpu;
        task.state = State::Queued;
        // Its fork is not in the trace.
        task.known.runs_at_once |= !known;
    }
}
