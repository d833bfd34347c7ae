//! Follows a trace, CPU by CPU, and takes down what each task computed, whom it woke, and how each of
//! its sleeps ended.
//!
//! Time on a CPU is computing at the speed that the CPU had then: half of a core whose sibling is busy
//! is worth what the machine's figures say. What the machine charged is taken off.
//!
//! A switch that is missing shows when another task turns out to run: who ran before has slept since then if it is woken
//! next, or if its CPU idles before it runs again.
//!
//! A wakeup may come while its task has not been switched out yet. Then either it did not sleep, and
//! the wakeup is none, or that sleep was over as it began: what follows tells.
//!
//! A wakee that preempts another CPU's task soon after its wakeup does so because of it: its waker has interrupted
//! that CPU.
//!
//! A wakee that preempts its waker, and sleeps before the waker goes on, may have answered it: nobody
//! was asleep to be woken then. That answer is taken down as a wakeup that is only likely.

use std::collections::HashMap;

use placewise_audit::{Action, Outcome, PrevState, Step, TaskNumber, Tasks};
use placewise_machine::Machine;
use placewise_policy::{FIRST_TASK, MeasuredKernel};
use placewise_workload::program::{Nanos, Wake};

use crate::charges::Charges;
use crate::error::ReplayError;
use crate::hints::{Hint, Hints};
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Asleep,
    /// Woken, or preempted.
    Queued,
    Runs(u32),
}

#[derive(Debug, Clone)]
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
    /// How much longer each took until it was on a run queue, and how much longer until it ran where it interrupted
    /// another task, or nobody.
    pub excesses: Vec<i64>,
    pub rests: Vec<Nanos>,
    /// The wakeup that it has made last, unless it has gone on since.
    made_last: Option<u32>,
    /// Whom it has preempted, by that one's wakeup.
    answers: Option<TaskIndex>,
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
    cpus: Vec<OnCpu>,
    by_number: HashMap<TaskNumber, TaskIndex>,
    tasks: Vec<FollowedTask>,
    wakeups: Vec<Wakeup>,
    steps: usize,
    start: Option<Nanos>,
    now: Nanos,
    silent_ns: Nanos,
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
        self.now = self.now.max(step.time_ns.saturating_sub(start));
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
            task.at_end = sleeps.map_or(AtEnd::Runs, |since| AtEnd::Sleeps(self.now - since));
        }
        // Another CPU's interrupt is sent before sched_wakeup, and charged by itself.
        let telling = self.charges.telling(false) as i64;
        for Wakeup { excess, .. } in self.wakeups.iter_mut().filter(|wakeup| wakeup.told) {
            *excess = excess.map(|ns| ns - telling);
        }
        // A number may be another task's by now.
        for (&number, &index) in &self.by_number {
            tasks.name_of(number).clone_into(&mut self.tasks[index as usize].name);
        }
        let nr_cpus = self.cpus.len();
        Followed { length_ns: self.now, nr_cpus, tasks: self.tasks, wakeups: self.wakeups }
    }

    fn task(&mut self, index: TaskIndex) -> &mut FollowedTask {
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
        self.tasks.push(FollowedTask {
            number,
            pid: task.pid,
            name: tasks.name_of(number).to_owned(),
            prio: task.prio,
            begins_on: cpu,
            runs_at_once: false,
            parent: None,
            forked_ns: 0,
            exits: false,
            at_end: AtEnd::default(),
            softirqs_of_idle: 0,
            seen: Vec::new(),
            ran_ns: 0,
            flips: 0,
            last_wakee: None,
            state: State::Asleep,
            work: 0,
            span: Span::default(),
            charged: 0,
            slept_since: 0,
            lost: None,
            early: None,
            woken_early: false,
            post_from: None,
            enqueued: None,
            lines_on: None,
            interrupt: None,
            excesses: Vec::new(),
            rests: Vec::new(),
            made_last: None,
            answers: None,
        });
        self.by_number.insert(number, index);
        Some(index)
    }

    fn see(&mut self, index: TaskIndex, seen: Seen) {
        self.steps += 1;
        self.task(index).seen.push(seen);
    }

    /// How fast a thread of `cpu` computes beside its siblings.
    fn speed(&self, cpu: usize) -> u64 {
        let busy = self.siblings[cpu].iter().filter(|&&it| self.cpus[it].task.is_some()).count();
        let costs = &self.machine.costs;
        let percent = costs.thread_pct(1 + busy as u32);
        let ticks = costs.tick_ns * u64::from(costs.hz);
        let speed = u64::from(percent) * u64::from(self.machine.cpus[cpu].speed);
        speed - (u128::from(speed) * u128::from(ticks) / 1_000_000_000).min(speed.into()) as u64
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
            task.ran_ns += ran;
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
        match task.seen.last_mut() {
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
            self.task(index).runs_at_once = true;
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
        if self.task(index).state == State::Asleep && !self.task(index).runs_at_once {
            // Nobody was seen to wake it.
            self.wake(index, Cause::Arrival { on: None });
        }
        let post_from = self.task(index).post_from.take();
        let line = post_from.map_or(0, |from| self.work_of(cpu, self.charges.line(from, cpu)));
        let task = self.task(index);
        if let Some(Seen::Slept { line_ns, .. }) = task.seen.last_mut() {
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
                self.task(index).runs_at_once = true;
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
            self.task(index).runs_at_once |= !known;
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

    /// A task makes way for `next`, perhaps for whom it has just woken.
    fn preempted(&mut self, cpu: u32, index: TaskIndex, next: TaskNumber) {
        self.task(index).state = State::Queued;
        self.tell_of_preemption(cpu, next);
        let Some(at) = self.task(index).made_last else { return };
        let wakee = self.wakeups[at as usize].wakee;
        if self.wakeups[at as usize].counts && self.by_number.get(&next) == Some(&wakee) {
            self.wakeups[at as usize].rest = self.since_queued(wakee, cpu);
            self.wakeups[at as usize].seen = Evidence::Preempted;
            self.task(wakee).answers = Some(index);
        }
    }

    /// `next` runs where an interrupt has just woken it, which was on the time of `prev`.
    fn arrived(&mut self, cpu: u32, prev: TaskNumber, next: TaskNumber) {
        let Some(&index) = self.by_number.get(&next) else { return };
        let last = self.tasks[index as usize].seen.last();
        let Some(Seen::Slept { cause: Cause::Arrival { .. }, .. }) = last else { return };
        let Some(since) = self.since_queued(index, cpu) else { return };
        let figures = if prev < FIRST_TASK { self.charges.leaving_the_idle_task() } else { 0 };
        let rest = self.work_of(cpu, since).saturating_sub(figures);
        self.task(index).rests.push(rest);
        if let Some(&prev) = self.by_number.get(&prev) {
            self.task(prev).charged += rest;
        }
    }

    /// `cpu` has idled, and runs a task that another CPU has told it of.
    fn left_idle(&mut self, cpu: u32, index: TaskIndex) {
        let Some(&Seen::Slept { until, cause: Cause::Wakeup(at), .. }) =
            self.tasks[index as usize].seen.last()
        else {
            return;
        };
        let (wakeup, took) = (&mut self.wakeups[at as usize], self.now - until);
        if wakeup.cpu != cpu && wakeup.told && took < SOON_NS {
            let figures = wakeup.placing + self.charges.leaving_idle(wakeup.cpu, cpu);
            wakeup.idle_exit = Some(took as i64 - figures as i64);
        }
    }

    /// How long ago `cpu` put a task on a run queue, if that was soon before.
    fn since_queued(&self, index: TaskIndex, cpu: u32) -> Option<Nanos> {
        let (at, by) = self.tasks[index as usize].enqueued?;
        Some(self.now - at).filter(|&since| by == cpu && since < SOON_NS)
    }

    /// `next` preempts a task of `cpu`, perhaps as another CPU has just woken it.
    fn tell_of_preemption(&mut self, cpu: u32, next: TaskNumber) {
        let Some(&next) = self.by_number.get(&next) else { return };
        let Some(&Seen::Slept { until, cause: Cause::Wakeup(at), .. }) =
            self.tasks[next as usize].seen.last()
        else {
            return;
        };
        let since_queued = self.since_queued(next, self.wakeups[at as usize].cpu);
        let wakeup = &mut self.wakeups[at as usize];
        if wakeup.cpu != cpu && !wakeup.told && self.now - until < SOON_NS {
            wakeup.preempted = since_queued;
            wakeup.told = true;
            let waker = wakeup.waker;
            self.task(waker).charged += self.charges.telling(false);
        }
    }

    /// A task sleeps that had preempted its waker, which has not gone on since.
    fn answer(&mut self, index: TaskIndex, cpu: u32) {
        let Some(waker) = self.task(index).answers.take() else { return };
        if self.task(waker).state != State::Queued || self.task(waker).made_last.is_none() {
            return;
        }
        let at = self.wakeups.len() as u32;
        let seen = Evidence::Likely;
        self.wakeups.push(Wakeup { seen, ..Wakeup::silent((index, waker), Wake::Sync, cpu) });
        let (from, until) = (self.now, self.now);
        self.see(index, Seen::Wakeup(at));
        self.close(waker);
        self.see(waker, Seen::Slept { from, until, cause: Cause::Wakeup(at), line_ns: 0 });
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
        task.exits = true;
        task.name = tasks.name_of(task.number).to_owned();
        let number = task.number;
        if let Some(Seen::Run(last, _)) = task.seen.last_mut() {
            *last = last.saturating_sub(exit);
        }
        self.by_number.remove(&number);
    }

    fn exits(&mut self, number: TaskNumber) {
        if let Some(&index) = self.by_number.get(&number) {
            self.task(index).exits = true;
        }
    }

    fn wake(&mut self, index: TaskIndex, cause: Cause) {
        let until = self.now;
        let from = std::mem::replace(&mut self.task(index).slept_since, until);
        self.see(index, Seen::Slept { from, until, cause, line_ns: 0 });
        let post_from = match cause {
            Cause::Wakeup(at) => {
                self.wakeups[at as usize].counts = true;
                Some(self.wakeups[at as usize].cpu)
            }
            Cause::Arrival { .. } => None,
        };
        let timed = self.charges.timed_sleep();
        let task = self.task(index);
        task.post_from = post_from;
        task.state = State::Queued;
        if matches!(cause, Cause::Arrival { .. }) {
            // The call was before the sleep.
            if let [.., Seen::Run(before, _), Seen::Slept { .. }] = &mut task.seen[..] {
                *before = before.saturating_sub(timed);
            }
        }
    }

    fn waking(
        &mut self,
        step: &Step,
        number: TaskNumber,
        (prev_cpu, outcome): (u32, Option<Outcome>),
        tasks: &Tasks,
    ) {
        self.flips(step.cpu, number);
        let Some(index) = self.index(number, prev_cpu, tasks) else { return };
        let telling = outcome.map_or(0, |outcome| self.telling(step.cpu, outcome));
        let cause = self.cause(step, (index, number), (prev_cpu, telling), tasks);
        let task = &self.tasks[index as usize];
        match task.state {
            State::Asleep => self.wake(index, cause),
            State::Runs(_) => self.task(index).early = Some((cause, self.now)),
            State::Queued if task.woken_early => self.wake_again(index, cause),
            State::Queued => self.slept_unseen(index, cause),
        }
    }

    /// A wakeup of who waits for a CPU, for all that was seen: none but those that sleep are woken.
    fn slept_unseen(&mut self, index: TaskIndex, cause: Cause) {
        if let Some((since, _)) = self.task(index).lost.take() {
            self.task(index).slept_since = since;
            self.wake(index, cause);
        }
    }

    /// Whoever is current wakes, for all that the kernel counts.
    fn flips(&mut self, cpu: u32, wakee: TaskNumber) {
        if let Some(current) = self.cpus[cpu as usize].task {
            let waker = self.task(current);
            waker.flips += u64::from(waker.last_wakee.replace(wakee) != Some(wakee));
        }
    }

    /// The wakeup before was no end of the sleep; this one is.
    fn wake_again(&mut self, index: TaskIndex, by: Cause) {
        let now = self.now;
        let task = self.task(index);
        task.woken_early = false;
        let Some(Seen::Slept { until, cause, .. }) = task.seen.last_mut() else { return };
        *until = now;
        if let Cause::Wakeup(before) = std::mem::replace(cause, by) {
            self.wakeups[before as usize].counts = false;
        }
        if let Cause::Wakeup(at) = by {
            self.wakeups[at as usize].counts = true;
            self.task(index).post_from = Some(self.wakeups[at as usize].cpu);
        }
    }

    /// What a waker has spent to tell the CPU of its wakee at once: one that takes it from its wake list, or idles.
    fn telling(&self, cpu: u32, outcome: Outcome) -> Nanos {
        let idles = self.cpus[outcome.cpu as usize].task.is_none();
        let listed = outcome.woken_by == Some(outcome.cpu);
        match outcome.cpu != cpu && (idles || listed) {
            true => self.charges.telling(idles),
            false => 0,
        }
    }

    /// A wakeup on `cpu` of a task that slept on `prev_cpu`, until that is put on a run queue.
    fn placing(&self, prev_cpu: u32, cpu: u32, hint: Hint) -> Nanos {
        let lines = self.charges.task_lines(prev_cpu, cpu) + self.charges.scan(hint);
        self.charges.placing(hint) + self.work_of(cpu, lines)
    }

    /// Who makes the wakeup of a step, which has told another CPU in so much time; a task takes it as a step of its own.
    fn cause(
        &mut self,
        step: &Step,
        (wakee, number): (TaskIndex, TaskNumber),
        (prev_cpu, telling): (u32, Nanos),
        tasks: &Tasks,
    ) -> Cause {
        let is_softirq = step.context.is_interrupt() && !step.context.is_hard_interrupt();
        self.task(wakee).interrupt = None;
        let Some(waker) = self.cpus[step.cpu as usize].task else {
            let placing = self.placing(prev_cpu, step.cpu, Hint::default());
            let task = self.task(wakee);
            task.softirqs_of_idle += u32::from(is_softirq);
            task.interrupt = Some((step.cpu, placing));
            return Cause::Arrival { on: Some(step.cpu) };
        };
        let names = (tasks.get(self.tasks[waker as usize].number).name, tasks.get(number).name);
        let hint = self.hints.wakeup((step.time_ns + self.silent_ns, number), names);
        let placing = self.placing(prev_cpu, step.cpu, hint);
        let takes = placing + self.charges.queueing() + telling;
        if waker == wakee || step.context.is_hard_interrupt() {
            let interrupt = self.charges.interrupt();
            self.task(waker).charged += takes + interrupt;
            self.task(wakee).interrupt = Some((step.cpu, placing));
            return Cause::Arrival { on: Some(step.cpu) };
        }
        let wake = if is_softirq { Wake::Softirq } else { hint.wake };
        self.close(waker);
        let at = self.wakeups.len() as u32;
        let (cpu, seen) = (step.cpu, Evidence::Recorded);
        let told = telling > 0;
        self.wakeups.push(Wakeup {
            waker,
            wakee,
            wake,
            cpu,
            counts: false,
            told,
            placing,
            excess: None,
            rest: None,
            idle_exit: None,
            preempted: None,
            seen,
            answers: false,
        });
        self.see(waker, Seen::Wakeup(at));
        self.task(waker).charged += takes;
        self.task(waker).made_last = Some(at);
        Cause::Wakeup(at)
    }

    /// sched_wakeup: the CPU `by` has put a task on a run queue. If it has not slept, the wakeup that was to come is
    /// none.
    fn woken(&mut self, number: TaskNumber, by: u32) {
        let Some(&index) = self.by_number.get(&number) else { return };
        let now = self.now;
        let task = self.task(index);
        task.enqueued = Some((now, by));
        task.lines_on = Some(by);
        let (early, interrupt) = (task.early.take(), task.interrupt.take());
        let Some(&Seen::Slept { until, cause, .. }) = task.seen.last() else { return };
        if early.is_some() || task.woken_early {
            return;
        }
        let took = self.work_of(by, now - until) as i64;
        let beyond = |placing: Nanos| took - placing as i64;
        match cause {
            Cause::Wakeup(at) => {
                let Wakeup { cpu, placing, excess, .. } = &mut self.wakeups[at as usize];
                *excess = (*cpu == by).then(|| beyond(*placing));
            }
            Cause::Arrival { .. } => {
                if let Some((_, placing)) = interrupt.filter(|(cpu, _)| *cpu == by) {
                    self.interrupted(index, by, beyond(placing));
                }
            }
        }
    }

    /// An interrupt on `cpu` took so much longer to put a task on a run queue, on the time of who ran there.
    fn interrupted(&mut self, index: TaskIndex, cpu: u32, excess: i64) {
        self.task(index).excesses.push(excess);
        if let Some(other) = self.cpus[cpu as usize].task {
            self.task(other).charged += excess.max(0) as Nanos;
        }
    }

    fn fork(&mut self, cpu: u32, parent: TaskNumber, child: TaskNumber, tasks: &Tasks) {
        self.by_number.remove(&child);
        let Some(parent) = self.index(parent, cpu, tasks) else { return };
        let Some(child) = self.index(child, cpu, tasks) else { return };
        self.close(parent);
        let fork = self.charges.fork();
        let forker = self.task(parent);
        if let Some(Seen::Run(before, _)) = forker.seen.last_mut() {
            *before = before.saturating_sub(fork);
        }
        let now = self.now;
        let task = self.task(child);
        (task.parent, task.forked_ns) = (Some(parent), now);
        task.state = State::Queued;
        self.see(parent, Seen::Fork(child));
    }

    fn begins(&mut self, number: TaskNumber, cpu: u32, tasks: &Tasks) {
        let known = self.by_number.contains_key(&number);
        let Some(index) = self.index(number, cpu, tasks) else { return };
        let task = self.task(index);
        task.begins_on = cpu;
        task.state = State::Queued;
        // Its fork is not in the trace.
        task.runs_at_once |= !known;
    }
}
