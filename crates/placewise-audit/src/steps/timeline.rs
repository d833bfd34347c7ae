//! From a trace's events to the steps of an audit.
//!
//! A placement is decided at sched_waking, but the trace tells its result only
//! later, in the wakee's sched_migrate_task and sched_wakeup. So the timeline
//! holds back what follows a wakeup until the wakeup has ended, within a bounded
//! window: a step leaves it in the order of the trace, and a wakeup leaves it
//! with its outcome. It looks ahead once more at the very start, to learn what
//! ran on each CPU before the CPU's first event. A switch from an idle task that is not
//! in the trace is put where it mostly is ([`IdleExits`]).
//!
//! Time in which no CPU had an event for long is left out: the machine was
//! suspended, or was not traced, or the clock was set. So much could not go on
//! unseen while anybody waited for a CPU: ticks would have switched tasks.
//!
//! Limit: a wakeup whose end is more than the window away, or lost, has no
//! outcome.

use std::collections::VecDeque;

use placewise_policy::{FIRST_TASK, NR_CPUS};
use placewise_trace::{Context, Decision, Event, Readings, Record};

use crate::steps::idle_exits::{Exit, Given, IdleExits, Way};
use crate::steps::selection::Selection;
use crate::steps::step::{Action, DecisionTasks, PrevState, Step};
use crate::steps::task::{TaskNumber, Tasks};
use crate::steps::wakeup::Outcome;

/// Steps that wait for the end of a wakeup, at most.
const WINDOW: usize = 1 << 16;

/// The same for a trace that is still being made: who looks on does not wait long.
const LIVE_WINDOW: usize = 1 << 12;

/// And no longer, where few events come. Wakeups end within a ms; what an idle CPU runs may show much later.
const LIVE_WAIT_NS: u64 = 100_000_000;

/// Steps that are read before the first is handed out, to see what each CPU ran.
const LOOK_AHEAD: usize = 1 << 13;

/// How finely the phase of the tick is told.
const TICK_PARTS: u64 = 64;

/// Fewer wakeups in one part of the period tell no phase.
const TICK_WAKEUPS: u32 = 4;

/// Longer times without an event are no time of the trace. A running kernel has one every few
/// seconds, for its own threads wake that often.
const LONGEST_SILENCE_NS: u64 = 10_000_000_000;

/// A wakeup that has begun.
#[derive(Clone, Copy)]
struct Begun {
    /// Where its step is, counted from the start of the trace.
    position: u64,
    waking_cpu: u32,
    prev_cpu: u32,
    moved_to: Option<u32>,
}

/// What the timeline had to put right.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repairs {
    /// A CPU ran a task that no event had put there.
    pub missing_switches: u64,
    /// The same, and it had idled: the switch is made up, as long after the wakeup as others are.
    pub missing_idle_exits: u64,
    /// Wakeups that began and did not end in the trace.
    pub wakeups_without_end: u64,
    /// Events with a CPU that the machine does not have, or with an impossible pid.
    pub impossible_events: u64,
    /// Tasks that had to make room for others.
    pub forgotten_tasks: u64,
    /// Times without an event on any CPU, which are left out, and how long they were in all.
    pub silences: u64,
    pub silent_ns: u64,
}

/// Turns records into steps.
pub struct Timeline {
    nr_cpus: u32,
    tick_ns: u64,
    overwritten: bool,
    tasks: Tasks,
    /// Of the events so far.
    latest_ns: Option<u64>,
    /// Steps that wait, at most.
    most: usize,
    longest_wait_ns: u64,
    window: VecDeque<Step>,
    /// How many steps have left the window.
    handed_out: u64,
    begun: Vec<Option<Begun>>,
    /// What runs on each CPU after the last record; `None` before the CPU's first.
    current: Vec<Option<TaskNumber>>,
    idle_exits: IdleExits,
    looked_ahead: bool,
    ended: bool,
    /// Its last step has just been handed out, so that its number may be used again.
    retired: Option<TaskNumber>,
    forgotten: Vec<TaskNumber>,
    repairs: Repairs,
}

impl Timeline {
    /// For a machine with so many CPUs, and a tick of that period. `overwritten`: the oldest events
    /// of some CPUs were.
    pub fn new(nr_cpus: u32, tick_ns: u64, overwritten: bool) -> Self {
        Timeline {
            nr_cpus: nr_cpus.min(NR_CPUS),
            tick_ns,
            overwritten,
            tasks: Tasks::new(),
            latest_ns: None,
            most: WINDOW,
            longest_wait_ns: u64::MAX,
            window: VecDeque::new(),
            handed_out: 0,
            begun: Vec::new(),
            current: vec![None; NR_CPUS as usize],
            idle_exits: IdleExits::new(nr_cpus.min(NR_CPUS)),
            looked_ahead: false,
            ended: false,
            retired: None,
            forgotten: Vec::new(),
            repairs: Repairs::default(),
        }
    }

    /// Only these tasks count.
    pub fn about(self, selection: Selection) -> Self {
        Timeline { tasks: Tasks::of(selection), ..self }
    }

    /// For a trace that is still being made: steps are handed out as they come.
    pub fn live(self) -> Self {
        Timeline { looked_ahead: true, most: LIVE_WINDOW, longest_wait_ns: LIVE_WAIT_NS, ..self }
    }

    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    pub fn repairs(&self) -> Repairs {
        self.repairs
    }

    /// Takes the next event of the trace.
    pub fn push(&mut self, record: &Record<'_>) {
        if record.cpu >= self.nr_cpus {
            self.repairs.impossible_events += 1;
            return;
        }
        if let Event::LostEvents { count } = record.event {
            return self.lost(record, count);
        }
        self.leave_out_silence(record);
        self.follow_current(record);
        if self.push_event(record).is_none() {
            self.repairs.impossible_events += 1;
        }
    }

    /// The trace is over: what is still held back may go.
    pub fn end(&mut self) {
        self.ended = true;
        self.begin_with_what_ran();
        self.repairs.wakeups_without_end += self.begun.iter().flatten().count() as u64;
    }

    /// Nothing was traced between these times: wakeups from before them have ended unseen.
    pub fn untraced(&mut self, from_ns: u64, until_ns: u64) {
        self.repairs.wakeups_without_end += self.begun.drain(..).flatten().count() as u64;
        self.latest_ns = self.latest_ns.max(Some(until_ns));
        self.leave_out(until_ns, until_ns.saturating_sub(from_ns), 0);
    }

    /// The next step, unless one that is still to come might add to it.
    pub fn pop(&mut self) -> Option<Step> {
        if !self.looked_ahead {
            if self.window.len() < LOOK_AHEAD && !self.ended {
                return None;
            }
            self.begin_with_what_ran();
        }
        if self.front_waits()? && !self.ended && !self.has_waited_long() {
            return None;
        }
        if let Some(task) = self.retired.take() {
            self.tasks.reuse(task);
        }
        let step = self.window.pop_front()?;
        self.handed_out += 1;
        self.retired = retired(&step);
        Some(step)
    }

    fn has_waited_long(&self) -> bool {
        let [first, last] = [self.window.front(), self.window.back()];
        let times = first.zip(last).map(|(first, last)| (first.time_ns, last.time_ns));
        let waits = |(first, last): (u64, u64)| last.saturating_sub(first) > self.longest_wait_ns;
        self.window.len() >= self.most || times.is_some_and(waits)
    }

    /// For the end of its wakeup, or for what a CPU runs because of it, which may still come.
    fn front_waits(&self) -> Option<bool> {
        Some(match self.window.front()?.action {
            Action::Waking { task, outcome: None, .. } => {
                let begun = self.begun.get(task as usize).and_then(Option::as_ref);
                begun.is_some_and(|begun| begun.position == self.handed_out)
            }
            Action::Wakeup { target_cpu, .. } => self.idle_exits.waits(target_cpu, self.handed_out),
            _ => false,
        })
    }

    fn step(&mut self, record: &Record<'_>, action: Action) {
        let (time_ns, cpu, context) = (self.time_of(record), record.cpu, record.context);
        self.window.push_back(Step { time_ns, cpu, context, action });
    }

    /// Less the silences before it.
    fn time_of(&self, record: &Record<'_>) -> u64 {
        record.time_ns.saturating_sub(self.repairs.silent_ns)
    }

    fn leave_out_silence(&mut self, record: &Record<'_>) {
        let latest_ns = self.latest_ns.unwrap_or(record.time_ns);
        self.latest_ns = Some(latest_ns.max(record.time_ns));
        let silence_ns = record.time_ns.saturating_sub(latest_ns);
        if silence_ns <= LONGEST_SILENCE_NS {
            return;
        }
        // Ticks keep their phase.
        let ns = silence_ns / self.tick_ns * self.tick_ns;
        self.leave_out(record.time_ns, ns, record.cpu);
    }

    fn leave_out(&mut self, until_ns: u64, ns: u64, cpu: u32) {
        self.repairs.silences += 1;
        self.repairs.silent_ns += ns;
        // What runs by now, each CPU's next event tells.
        self.current.fill(None);
        (0..self.nr_cpus).for_each(|cpu| self.idle_exits.forget(cpu));
        let time_ns = until_ns.saturating_sub(self.repairs.silent_ns);
        let (context, action) = (Context::Unknown, Action::Silence { ns });
        self.window.push_back(Step { time_ns, cpu, context, action });
    }

    fn position_of_next(&self) -> u64 {
        self.handed_out + self.window.len() as u64
    }

    #[inline]
    fn task(
        &mut self,
        record: &Record<'_>,
        pid: u32,
        comm: &str,
        prio: Option<i32>,
        cpu: u32,
    ) -> Option<TaskNumber> {
        if pid == 0 {
            return (cpu < self.nr_cpus).then_some(cpu);
        }
        let task = self.tasks.mention(pid, comm, prio, &mut self.forgotten)?;
        if !self.forgotten.is_empty() {
            self.forget(record);
        }
        Some(task)
    }

    #[cold]
    fn forget(&mut self, record: &Record<'_>) {
        while let Some(task) = self.forgotten.pop() {
            self.repairs.forgotten_tasks += 1;
            self.forget_wakeup(task);
            self.step(record, Action::Forgotten { task });
        }
    }

    fn known_cpu(&self, cpu: u32) -> Option<u32> {
        (cpu < self.nr_cpus).then_some(cpu)
    }

    /// The task in front of a line is the CPU's current one, whatever the events before it said.
    fn follow_current(&mut self, record: &Record<'_>) {
        let comm = if record.comm == "<...>" { "" } else { record.comm };
        let (cpu, pid) = (record.cpu, record.pid);
        let Some(task) = self.task(record, pid, comm, None, cpu) else { return };
        if let Some(tgid) = record.tgid {
            self.tasks.belongs_to(task, tgid);
        }
        let known = self.current[cpu as usize].replace(task);
        if known == Some(task) {
            return;
        }
        if known == Some(cpu) && self.make_up_idle_exit(record, task) {
            return;
        }
        self.repairs.missing_switches += u64::from(known.is_some());
        self.step(record, Action::Running { task });
    }

    /// The CPU had idled, for all that the trace shows.
    #[cold]
    fn make_up_idle_exit(&mut self, record: &Record<'_>, task: TaskNumber) -> bool {
        let cpu = record.cpu;
        let begun = self.begun_for(cpu, task);
        let Some(Exit { time_ns, behind }) = self.idle_exits.unseen(cpu, task, begun) else {
            return false;
        };
        let Some(behind) = behind.checked_sub(self.handed_out) else { return false };
        if begun.is_some() {
            self.end_wakeup(task, cpu, Some(cpu));
        }
        let time_ns = time_ns.min(self.time_of(record));
        let is_later = |step: &Step| step.time_ns > time_ns;
        let after = behind as usize + 1;
        let later = self.window.range(after..).position(is_later);
        let at = later.map_or(self.window.len(), |later| after + later);
        self.shift_positions(at);
        let action = Action::Switch { prev: cpu, prev_state: PrevState::Runnable, next: task };
        self.window.insert(at, Step { time_ns, cpu, context: Context::Unknown, action });
        self.repairs.missing_idle_exits += 1;
        true
    }

    /// When a wakeup began that is to put `task` on `cpu` and has not ended, and its position.
    fn begun_for(&self, cpu: u32, task: TaskNumber) -> Option<(u64, u64)> {
        let begun = (*self.begun.get(task as usize)?)?;
        let step = self.window.get(begun.position.checked_sub(self.handed_out)? as usize)?;
        let is_for = begun.moved_to.unwrap_or(begun.prev_cpu) == cpu;
        is_for.then_some((step.time_ns, begun.position))
    }

    /// An idle CPU is given what the next step wakes.
    #[inline]
    fn give_idle(&mut self, record: &Record<'_>, cpu: u32, task: TaskNumber) {
        if self.current[cpu as usize] != Some(cpu) {
            return;
        }
        let way = Way::of(record, cpu);
        let begun = (way == Way::Polled).then(|| self.begun_for(cpu, task)).flatten();
        let waking_ns = begun.map(|(time_ns, _)| time_ns);
        let (time_ns, position) = (self.time_of(record), self.position_of_next());
        self.idle_exits.given(cpu, Given { task, way, time_ns, waking_ns, position });
    }

    /// What each CPU's first event found running had been there from the start.
    fn begin_with_what_ran(&mut self) {
        if std::mem::replace(&mut self.looked_ahead, true) {
            return;
        }
        let Some(start) = self.window.front().map(|step| step.time_ns) else { return };
        let mut seen = vec![false; self.nr_cpus as usize];
        let mut switched_in: Vec<TaskNumber> = Vec::new();
        let mut first = Vec::new();
        for step in &self.window {
            match step.action {
                Action::Running { task } if !seen[step.cpu as usize] => {
                    seen[step.cpu as usize] = true;
                    // One that had come from elsewhere meanwhile was not there at the start.
                    if task >= FIRST_TASK && !switched_in.contains(&task) {
                        first.push(Step { time_ns: start, ..step.clone() });
                    }
                }
                Action::Switch { next, .. } => switched_in.push(next),
                Action::WakeupNew { task, .. } | Action::Migrate { task, .. } => {
                    switched_in.push(task);
                }
                _ => {}
            }
        }
        let tick_phase_ns = tick_phase(&self.window, self.tick_ns);
        let complete_from_ns = if self.overwritten { last_to_begin(&self.window) } else { start };
        let action = Action::Begin { tick_phase_ns, complete_from_ns };
        first.insert(0, Step { time_ns: start, cpu: 0, context: Context::Unknown, action });
        for step in first.into_iter().rev() {
            self.shift_positions(0);
            self.window.push_front(step);
        }
    }

    /// A step is put into the window: those from there on move on by one.
    fn shift_positions(&mut self, at: usize) {
        for (place, step) in self.window.iter().enumerate().skip(at).rev() {
            let position = self.handed_out + place as u64;
            match step.action {
                Action::Waking { task, .. } => {
                    let begun = self.begun.get_mut(task as usize).and_then(Option::as_mut);
                    let begun = begun.filter(|begun| begun.position == position);
                    begun.into_iter().for_each(|begun| begun.position += 1);
                }
                Action::Wakeup { target_cpu, .. } => self.idle_exits.shift(target_cpu, position),
                _ => {}
            }
        }
    }

    fn lost(&mut self, record: &Record<'_>, count: u64) {
        // Before the first event there is no time.
        if self.latest_ns.is_none() {
            return;
        }
        self.current[record.cpu as usize] = None;
        self.idle_exits.forget(record.cpu);
        self.step(record, Action::Lost { count });
    }

    /// A wakee runs whose sched_wakeup is not in the trace: some tools do not record it.
    fn end_wakeup_unseen(&mut self, task: TaskNumber) {
        if let Some(Some(begun)) = self.begun.get(task as usize) {
            let target_cpu = begun.moved_to.unwrap_or(begun.prev_cpu);
            self.end_wakeup(task, target_cpu, None);
        }
    }

    /// `None`: the event names a CPU or a pid that cannot be.
    fn push_event(&mut self, record: &Record<'_>) -> Option<()> {
        match record.event {
            Event::Waking { comm, pid, prio, target_cpu } => {
                let prev_cpu = self.known_cpu(target_cpu)?;
                let task = self.task(record, pid, comm, Some(prio), prev_cpu)?;
                self.begin_wakeup(record, task, prev_cpu);
                self.step(record, Action::Waking { task, prev_cpu, outcome: None });
            }
            Event::Wakeup { comm, pid, prio, target_cpu } => {
                let target_cpu = self.known_cpu(target_cpu)?;
                let task = self.task(record, pid, comm, Some(prio), target_cpu)?;
                self.give_idle(record, target_cpu, task);
                self.end_wakeup(task, target_cpu, Some(record.cpu));
                self.step(record, Action::Wakeup { task, target_cpu });
            }
            Event::WakeupNew { comm, pid, prio, target_cpu } => {
                let target_cpu = self.known_cpu(target_cpu)?;
                let task = self.task(record, pid, comm, Some(prio), target_cpu)?;
                self.step(record, Action::WakeupNew { task, target_cpu });
            }
            Event::Migrate { comm, pid, prio, from, to } => {
                let (from, to) = (self.known_cpu(from)?, self.known_cpu(to)?);
                let task = self.task(record, pid, comm, Some(prio), from)?;
                let placement = self.move_wakee(record, task, to);
                self.step(record, Action::Migrate { task, from, to, placement });
            }
            Event::Switch { .. } => self.push_switch(record)?,
            Event::Fork { comm, pid, child_comm, child_pid } => {
                let parent = self.task(record, pid, comm, None, record.cpu)?;
                // The kernel has given the pid to a new task, whoever had it before.
                if let Some(old) = self.tasks.find(child_pid) {
                    self.tasks.release_pid(old);
                }
                let child = self.task(record, child_pid, child_comm, None, record.cpu)?;
                self.tasks.forked(parent, child);
                self.step(record, Action::Fork { parent, child });
            }
            Event::Exec { pid, .. } => {
                let task = self.task(record, pid, "", None, record.cpu)?;
                self.step(record, Action::Exec { task });
            }
            Event::Exit { comm, pid, prio } => {
                let task = self.task(record, pid, comm, Some(prio), record.cpu)?;
                self.step(record, Action::Exit { task });
            }
            Event::Decision(ref decision) => {
                let (decision, tasks) = (decision.clone(), self.decision_tasks(decision)?);
                self.step(record, Action::Decided { decision, tasks });
            }
            Event::LostEvents { .. } => {}
        }
        Some(())
    }

    fn decision_tasks(&self, decision: &Decision) -> Option<DecisionTasks> {
        let find = |pid, cpu: u16| if pid == 0 { Some(cpu.into()) } else { self.tasks.find(pid) };
        let prev_curr_pid = match &decision.placement {
            Readings::Wakeup(wakeup) => wakeup.prev_curr_pid,
            Readings::Fork(_) | Readings::Exec(_) => 0,
        };
        for cpu in [decision.waking_cpu, decision.prev_cpu, decision.result_cpu] {
            self.known_cpu(cpu.into())?;
        }
        Some(DecisionTasks {
            placed: self.tasks.find(decision.pid)?,
            waker: find(decision.waker_pid, decision.waking_cpu)?,
            prev_curr: find(prev_curr_pid, decision.prev_cpu).unwrap_or(decision.prev_cpu.into()),
        })
    }

    fn push_switch(&mut self, record: &Record<'_>) -> Option<()> {
        let Event::Switch {
            prev_comm,
            prev_pid,
            prev_prio,
            prev_state,
            next_comm,
            next_pid,
            next_prio,
        } = record.event
        else {
            return None;
        };
        let prev = self.task(record, prev_pid, prev_comm, Some(prev_prio), record.cpu)?;
        let next = self.task(record, next_pid, next_comm, Some(next_prio), record.cpu)?;
        let prev_state = PrevState::parse(prev_state);
        self.end_wakeup_unseen(next);
        self.step(record, Action::Switch { prev, prev_state, next });
        self.current[record.cpu as usize] = Some(next);
        if prev < FIRST_TASK {
            self.idle_exits.seen(record.cpu, self.time_of(record));
        }
        if prev_state == PrevState::Dead {
            self.tasks.release_pid(prev);
        }
        Some(())
    }

    fn begin_wakeup(&mut self, record: &Record<'_>, task: TaskNumber, prev_cpu: u32) {
        self.forget_wakeup(task);
        let at = task as usize;
        if self.begun.len() <= at {
            self.begun.resize(at + 1, None);
        }
        self.begun[at] = Some(Begun {
            position: self.position_of_next(),
            waking_cpu: record.cpu,
            prev_cpu,
            moved_to: None,
        });
    }

    fn forget_wakeup(&mut self, task: TaskNumber) {
        if let Some(begun) = self.begun.get_mut(task as usize) {
            self.repairs.wakeups_without_end += u64::from(begun.take().is_some());
        }
    }

    /// Does this migration belong to a wakeup that has begun?
    fn move_wakee(&mut self, record: &Record<'_>, task: TaskNumber, to: u32) -> bool {
        match self.begun.get_mut(task as usize) {
            Some(Some(begun)) if begun.waking_cpu == record.cpu => {
                begun.moved_to = Some(to);
                true
            }
            _ => false,
        }
    }

    fn end_wakeup(&mut self, task: TaskNumber, target_cpu: u32, woken_by: Option<u32>) {
        let Some(begun) = self.begun.get_mut(task as usize).and_then(Option::take) else { return };
        let Some(at) = begun.position.checked_sub(self.handed_out) else { return };
        if let Some(Action::Waking { outcome, .. }) =
            self.window.get_mut(at as usize).map(|step| &mut step.action)
        {
            *outcome = Some(Outcome {
                cpu: target_cpu,
                migrated: begun.moved_to.is_some() || target_cpu != begun.prev_cpu,
                woken_by,
            });
        }
    }
}

/// A task that is dead and switched out is not mentioned by later steps.
fn retired(step: &Step) -> Option<TaskNumber> {
    match step.action {
        Action::Switch { prev, prev_state: PrevState::Dead, .. } if prev >= FIRST_TASK => {
            Some(prev)
        }
        _ => None,
    }
}

/// When the last CPU, of those that are seen, had its first event.
fn last_to_begin(steps: &VecDeque<Step>) -> u64 {
    let mut seen = [false; NR_CPUS as usize];
    let first = steps.iter().filter(|step| !std::mem::replace(&mut seen[step.cpu as usize], true));
    first.map(|step| step.time_ns).max().unwrap_or(0)
}

/// Soft interrupts that wake somebody mostly follow a tick: where in its period do most?
fn tick_phase(steps: &VecDeque<Step>, tick_ns: u64) -> Option<u64> {
    let mut counts = [0u32; TICK_PARTS as usize];
    for step in steps {
        if matches!(step.action, Action::Waking { .. }) && step.context == Context::SoftInterrupt {
            counts[(step.time_ns % tick_ns * TICK_PARTS / tick_ns) as usize] += 1;
        }
    }
    let total: u32 = counts.iter().sum();
    let most = *counts.iter().max()?;
    let part = counts.iter().position(|&count| count == most)? as u64;
    let clear = most >= TICK_WAKEUPS && most * 4 >= total;
    clear.then_some(part * tick_ns / TICK_PARTS)
}
