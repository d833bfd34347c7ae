//! How long the tasks of each name ran, how long they waited to, and the longest wait of each.
//!
//! A wait goes from the moment a task could run, woken, new or preempted, to the moment it does,
//! as in `perf sched latency`; behind whom or for which reason does not matter here.
//!
//! Limits: waits that last beyond the trace, or end in a gap of it, are left out. Tasks of one name
//! are told together.

use placewise_machine::CpuSet;
use placewise_policy::{FIRST_TASK, NR_CPUS};
use serde::Serialize;

use crate::steps::by_name::ByName;
use crate::steps::by_number::ByTask;
use crate::steps::step::{Action, PrevState, Step};
use crate::steps::task::{NameId, TaskNumber, Tasks};

/// Tasks of one name, and how they fared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TurnsOfName {
    pub name: String,
    pub run_ns: u64,
    /// Times that one of them was switched in.
    pub switched_in: u64,
    pub waits: u64,
    pub waited_ns: u64,
    pub worst_wait: Option<WorstWait>,
}

/// The longest wait of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorstWait {
    pub pid: u32,
    pub wait_ns: u64,
    /// When it began, as the trace has it.
    pub time_ns: u64,
    pub cpu: u32,
}

/// The turns of one name: of the tasks that count, but for the CPUs.
#[derive(Clone, Copy, Default)]
pub struct Turns {
    pub run_ns: u64,
    pub switched_in: u64,
    pub forks: u64,
    waits: u64,
    waited_ns: u64,
    worst: WorstWait,
    /// Where all its tasks ran, and whether any ran on two CPUs.
    pub cpus: CpuSet,
    pub moved: bool,
}

#[derive(Clone, Copy, Default)]
struct Turn {
    /// It could run since then, and does not.
    waits_since: Option<u64>,
    /// Where it ran last, and under which name.
    cpu: Option<u16>,
    name: NameId,
}

#[derive(Clone, Copy)]
struct Current {
    /// None: it is not known.
    task: Option<TaskNumber>,
    since: u64,
}

pub struct TurnMeter {
    tasks: ByTask<Turn>,
    names: ByName<Turns>,
    current: Vec<Current>,
    idle_entries: u64,
}

impl Default for TurnMeter {
    fn default() -> Self {
        TurnMeter {
            tasks: ByTask::default(),
            names: ByName::default(),
            current: (0..NR_CPUS).map(|idle| Current { task: Some(idle), since: 0 }).collect(),
            idle_entries: 0,
        }
    }
}

impl TurnMeter {
    /// A step that made `current` run on its CPU, or left it there, if that is known. `silent_ns`:
    /// what the times of the trace are later by.
    pub fn step(
        &mut self,
        now: u64,
        silent_ns: u64,
        step: &Step,
        current: Option<TaskNumber>,
        tasks: &Tasks,
    ) {
        match step.action {
            Action::Waking { task, .. } | Action::Wakeup { task, .. } => self.could_run(task, now),
            Action::WakeupNew { task, .. } => {
                *self.tasks.of(task) = Turn { waits_since: Some(now), ..Turn::default() };
                self.names.of(tasks.get(task).name).forks += 1;
            }
            Action::Switch { prev, prev_state, .. } if prev >= FIRST_TASK => {
                let runnable = prev_state == PrevState::Runnable;
                self.tasks.of(prev).waits_since = runnable.then_some(now);
            }
            Action::Forgotten { task } => *self.tasks.of(task) = Turn::default(),
            _ => {}
        }
        let before = self.current[step.cpu as usize].task;
        if let Some(task) = current.filter(|_| before != current) {
            self.leaves(step.cpu, now, tasks);
            self.comes(step, now, silent_ns, task, tasks);
        }
    }

    fn could_run(&mut self, task: TaskNumber, now: u64) {
        let turn = self.tasks.of(task);
        if turn.waits_since.is_none()
            && turn.cpu.is_none_or(|cpu| self.current[usize::from(cpu)].task != Some(task))
        {
            turn.waits_since = Some(now);
        }
    }

    /// What runs on a CPU has run until now.
    fn leaves(&mut self, cpu: u32, now: u64, tasks: &Tasks) {
        let current = &mut self.current[cpu as usize];
        let Some(task) = current.task else { return };
        let since = std::mem::replace(&mut current.since, now);
        if task >= FIRST_TASK && tasks.get(task).counts {
            self.names.of(tasks.get(task).name).run_ns += now - since;
        }
    }

    fn comes(&mut self, step: &Step, now: u64, silent_ns: u64, task: TaskNumber, tasks: &Tasks) {
        let cpu = step.cpu;
        // The first that is seen where nothing was known has run since then.
        let was_known = self.current[cpu as usize].task.replace(task).is_some();
        if task < FIRST_TASK {
            self.idle_entries += u64::from(was_known);
            return;
        }
        let entry = tasks.get(task);
        let turn = self.tasks.of(task);
        let turns = self.names.of(entry.name);
        if (turn.cpu, turn.name) != (Some(cpu as u16), entry.name) {
            turns.moved |= turn.cpu.is_some_and(|before| u32::from(before) != cpu);
            (turn.cpu, turn.name) = (Some(cpu as u16), entry.name);
            turns.cpus.insert(cpu as usize);
        }
        let waited_since = turn.waits_since.take();
        if !entry.counts {
            return;
        }
        turns.switched_in += 1;
        let seen = matches!(step.action, Action::Switch { .. });
        let Some(since) = waited_since.filter(|_| seen) else { return };
        let wait_ns = now - since;
        turns.waits += 1;
        turns.waited_ns += wait_ns;
        if turns.worst.wait_ns < wait_ns {
            let time_ns = since + silent_ns;
            turns.worst = WorstWait { pid: entry.pid, wait_ns, time_ns, cpu };
        }
    }

    /// What runs has run until now: the trace is over.
    pub fn end(&mut self, now: u64, tasks: &Tasks) {
        (0..NR_CPUS).for_each(|cpu| self.leaves(cpu, now, tasks));
    }

    /// From now on it is not known what runs on a CPU.
    pub fn lose_sight_of(&mut self, cpu: u32, now: u64, tasks: &Tasks) {
        self.leaves(cpu, now, tasks);
        self.current[cpu as usize] = Current { task: None, since: now };
    }

    /// All waits end, nobody knows when.
    pub fn forget_waits(&mut self) {
        self.tasks.iter_mut().for_each(|turn| turn.waits_since = None);
    }

    pub fn of(&self, name: NameId) -> Turns {
        self.names.get(name).copied().unwrap_or_default()
    }

    /// How often a CPU began to idle.
    pub fn idle_entries(&self) -> u64 {
        self.idle_entries
    }

    /// Those that waited longest first, then those that ran longest.
    pub fn report(&self, tasks: &Tasks) -> Vec<TurnsOfName> {
        let ran = self.names.iter().filter(|(_, turns)| turns.switched_in > 0);
        let mut names: Vec<TurnsOfName> = ran
            .map(|(name, turns)| TurnsOfName {
                name: tasks.name(name).into(),
                run_ns: turns.run_ns,
                switched_in: turns.switched_in,
                waits: turns.waits,
                waited_ns: turns.waited_ns,
                worst_wait: Some(turns.worst).filter(|worst| worst.wait_ns > 0),
            })
            .collect();
        let rank = |of: &TurnsOfName| std::cmp::Reverse((of.waited_ns, of.run_ns));
        names.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.name.cmp(&b.name)));
        names
    }
}
