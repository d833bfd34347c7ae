//! From what an rt-app file says to the programs the simulator runs.
//!
//! Main creates all tasks. They wait for each other before their first phase, as rt-app's do, so
//! that timers of equal period expire together; forked tasks start at once. Mutexes are followed
//! through each task, so that a file that must lock up is refused instead of simulated.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{Action, Event};
use super::global::{Global, LONGEST_SECONDS};
use super::json::Place;
use super::objects::{Names, Objects, events, suspended_name, timers, unique_timers};
use super::parts;
use super::task::{Phase, Task};
use crate::error::{WorkloadError, quoted, suggestion};
use crate::program::{FOREVER, Nanos, Object, Op, Program, ProgramId, Window, Workload};

/// The barrier at which all tasks wait for each other before their first phase.
const TOGETHER: Object = Object::shared(0);

/// Loop counters of a program.
const TASK_LOOP: u8 = 0;
const PHASE_LOOP: u8 = 1;

pub(super) fn compile(
    name: &str,
    global: &Global,
    tasks: &[Task],
) -> Result<Workload, WorkloadError> {
    check_ends(global, tasks)?;
    let forked = forked_tasks(tasks)?;
    let mut objects = Objects::default();
    for task in tasks {
        objects.add(task, forked.contains_key(task.name.as_str()))?;
    }
    let mut programs = vec![Program::new("rt-app", Vec::new())];
    let (parts, of_tasks) = parts::of(tasks);
    for (task, of_task) in tasks.iter().zip(&of_tasks) {
        let program = Compiler::new(&objects, &forked, task).program(true)?;
        programs.push(of_task.for_instances(program));
    }
    for (task, of_task) in tasks.iter().zip(&of_tasks) {
        if forked.contains_key(task.name.as_str()) {
            let program = Compiler::new(&objects, &forked, task).program(false)?;
            programs.push(Program { part: of_task.whole, ..program });
        }
    }
    programs[0].ops = main(tasks, &objects);

    let longest = LONGEST_SECONDS as Nanos * 1_000_000_000;
    let window = Window { measure: global.duration.unwrap_or(longest), ..Window::default() };
    let instances = tasks.iter().map(|task| task.instances).sum();
    Ok(Workload {
        mutexes: objects.mutexes.len() as u32,
        conditions: objects.conditions.len() as u32,
        barriers: std::iter::once(instances).chain(objects.barrier_parties()).collect(),
        timers: objects.all_timers,
        metrics: parts::METRICS.to_vec(),
        parts,
        ..Workload::new(name, programs, window)
    })
}

/// Task i of the file runs program i + 1.
fn main(tasks: &[Task], objects: &Objects) -> Vec<Op> {
    let mut ops = Vec::new();
    let mut base = objects.shared_timers.len() as u32;
    for (program, task) in (1..).zip(tasks).filter(|(_, task)| task.instances > 0) {
        let step = unique_timers(task).len() as u32;
        ops.push(Op::Fork { program, count: task.instances, base, step });
        base += task.instances * step;
    }
    ops.extend([Op::Start, Op::Join, Op::Exit]);
    ops
}

/// Without a duration every task must come to its end; with one, every endless loop must get on.
fn check_ends(global: &Global, tasks: &[Task]) -> Result<(), WorkloadError> {
    for task in tasks {
        let endless_phase = task.phases.iter().find(|phase| phase.times == FOREVER);
        if global.duration.is_none() && (task.times == FOREVER || endless_phase.is_some()) {
            return Err(task.place.wrong(
                "the task loops for ever, as without a `loop`, and there is no end; set `duration` in `global` to seconds, or `loop`",
            ));
        }
        let stuck = match endless_phase {
            Some(phase) => (!phase.takes_time()).then_some(&phase.place),
            None => (task.times == FOREVER && !task.phases.iter().any(Phase::takes_time))
                .then_some(&task.place),
        };
        if let Some(place) = stuck {
            return Err(place.wrong(
                "an endless loop needs an event that takes time: run, runtime, sleep or timer",
            ));
        }
    }
    Ok(())
}

/// The tasks that fork events name, each with the program of its forked copies.
fn forked_tasks(tasks: &[Task]) -> Result<BTreeMap<&str, ProgramId>, WorkloadError> {
    let mut index = BTreeMap::new();
    for (number, task) in tasks.iter().enumerate() {
        index.insert(task.name.as_str(), number);
    }
    let mut forks: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
    let mut is_forked = vec![false; tasks.len()];
    for (forker, event, name) in tasks.iter().enumerate().flat_map(|(forker, task)| {
        let forks = events(task).filter_map(|event| match &event.action {
            Action::Fork(name) => Some((event, name.as_str())),
            _ => None,
        });
        forks.map(move |(event, name)| (forker, event, name))
    }) {
        let Some(&child) = index.get(name) else {
            let known: Vec<&str> = index.keys().copied().collect();
            let problem = format!("no task has this name; {}", suggestion(name, &known));
            return Err(event.place.wrong(problem));
        };
        forks[forker].push(child);
        is_forked[child] = true;
    }
    check_acyclic(tasks, &forks)?;
    let forked = tasks.iter().zip(is_forked).filter(|(_, forked)| *forked);
    let programs = tasks.len() as ProgramId + 1..;
    Ok(forked.zip(programs).map(|((task, _), program)| (task.name.as_str(), program)).collect())
}

/// Tasks that fork each other in a circle would never stop to multiply.
fn check_acyclic(tasks: &[Task], forks: &[Vec<usize>]) -> Result<(), WorkloadError> {
    let mut forkers = vec![0; tasks.len()];
    forks.iter().flatten().for_each(|child| forkers[*child] += 1);
    let mut free: Vec<usize> = (0..tasks.len()).filter(|task| forkers[*task] == 0).collect();
    while let Some(task) = free.pop() {
        for child in &forks[task] {
            forkers[*child] -= 1;
            if forkers[*child] == 0 {
                free.push(*child);
            }
        }
    }
    match forkers.iter().position(|forkers| *forkers > 0) {
        None => Ok(()),
        Some(task) => Err(tasks[task]
            .place
            .wrong("the task is forked, in the end, by itself; break the circle")),
    }
}

/// Compiles one task.
struct Compiler<'a> {
    objects: &'a Objects,
    forked: &'a BTreeMap<&'a str, ProgramId>,
    task: &'a Task,
    unique_timers: Names,
    ops: Vec<Op>,
    /// The mutexes the task holds at this point of its program.
    held: BTreeSet<&'a str>,
}

impl<'a> Compiler<'a> {
    fn new(objects: &'a Objects, forked: &'a BTreeMap<&'a str, ProgramId>, task: &'a Task) -> Self {
        let unique_timers = unique_timers(task);
        Self { objects, forked, task, unique_timers, ops: Vec::new(), held: BTreeSet::new() }
    }

    /// `together`: wait for the other tasks before the first phase.
    fn program(mut self, together: bool) -> Result<Program, WorkloadError> {
        self.prologue(together);
        let to = self.ops.len() as u32;
        for phase in &self.task.phases {
            self.phase(phase)?;
        }
        if self.task.times != 1 {
            self.check_held(&BTreeSet::new(), &self.task.place)?;
            self.ops.push(Op::Repeat { counter: TASK_LOOP, times: self.task.times, to });
        }
        self.ops.push(Op::Exit);
        Ok(Program {
            nice: self.task.nice,
            policy: self.task.policy,
            cpus: self.task.cpus,
            footprint_kib: Program::TASK_KIB,
            ..Program::new(&self.task.name, self.ops)
        })
    }

    /// rt-app's timers count from the end of the delay.
    fn prologue(&mut self, together: bool) {
        if together {
            self.ops.push(Op::Barrier { barrier: TOGETHER, spin_ns: 0 });
        }
        if let Some(ns) = self.task.delay {
            self.ops.push(Op::Sleep { ns, random_pct: 0 });
        }
        let mut started = Names::default();
        for name in timers(self.task) {
            let known = started.len();
            started.add(name);
            if started.len() > known {
                let timer = self.objects.timer(&self.unique_timers, name);
                self.ops.push(Op::StartTimer { timer });
            }
        }
    }

    fn phase(&mut self, phase: &'a Phase) -> Result<(), WorkloadError> {
        let held_before = self.held.clone();
        let to = self.ops.len() as u32;
        for event in &phase.events {
            self.event(event)?;
        }
        if phase.times != 1 {
            self.check_held(&held_before, &phase.place)?;
            self.ops.push(Op::Repeat { counter: PHASE_LOOP, times: phase.times, to });
        }
        Ok(())
    }

    fn event(&mut self, event: &'a Event) -> Result<(), WorkloadError> {
        let place = &event.place;
        match &event.action {
            Action::Run(ns) => self.ops.push(Op::Run { ns: *ns }),
            Action::Runtime(ns) => self.ops.push(Op::Spin { ns: *ns }),
            Action::Sleep(ns) => self.ops.push(Op::Sleep { ns: *ns, random_pct: 0 }),
            Action::Timer { name, period, absolute } => {
                let timer = self.objects.timer(&self.unique_timers, name);
                self.ops.push(Op::Timer { timer, period: *period, absolute: *absolute });
            }
            Action::Lock(mutex) => self.lock(mutex, place)?,
            Action::Unlock(mutex) => self.unlock(mutex, place)?,
            Action::Wait { condition, mutex } => self.wait(condition, mutex, place)?,
            Action::Sync { condition, mutex } => self.sync(condition, mutex, place)?,
            Action::Signal(condition) => {
                self.ops.push(Op::Signal { condition: self.objects.conditions.shared(condition) });
            }
            Action::Broadcast(condition) => {
                self.ops
                    .push(Op::Broadcast { condition: self.objects.conditions.shared(condition) });
            }
            Action::Barrier(name) => {
                self.ops.push(Op::Barrier { barrier: self.objects.barrier(name), spin_ns: 0 })
            }
            Action::Suspend(_) | Action::Resume(_) => self.suspend_or_resume(event)?,
            Action::Yield => self.ops.push(Op::Yield),
            Action::Fork(name) => {
                self.ops.push(Op::Fork {
                    program: self.forked[name.as_str()],
                    count: 1,
                    base: 0,
                    step: 0,
                });
            }
        }
        Ok(())
    }

    fn lock(&mut self, mutex: &'a str, place: &Place) -> Result<(), WorkloadError> {
        if self.held.contains(mutex) {
            let problem = format!(
                "the task holds mutex {} here already and would wait for itself",
                quoted(mutex)
            );
            return Err(place.wrong(problem));
        }
        self.held.insert(mutex);
        self.ops.push(Op::Lock { mutex: self.objects.mutexes.shared(mutex) });
        Ok(())
    }

    fn unlock(&mut self, mutex: &'a str, place: &Place) -> Result<(), WorkloadError> {
        self.check_holds(mutex, place)?;
        self.held.remove(mutex);
        self.ops.push(Op::Unlock { mutex: self.objects.mutexes.shared(mutex) });
        Ok(())
    }

    fn wait(
        &mut self,
        condition: &str,
        mutex: &'a str,
        place: &Place,
    ) -> Result<(), WorkloadError> {
        self.check_holds(mutex, place)?;
        self.ops.push(Op::CondWait {
            condition: self.objects.conditions.shared(condition),
            mutex: Some(self.objects.mutexes.shared(mutex)),
        });
        Ok(())
    }

    /// rt-app's tutorial has sync take and release the mutex; files that do so themselves exist.
    fn sync(
        &mut self,
        condition: &str,
        mutex: &'a str,
        place: &Place,
    ) -> Result<(), WorkloadError> {
        let takes_mutex = !self.held.contains(mutex);
        if takes_mutex {
            self.lock(mutex, place)?;
        }
        self.ops.push(Op::Signal { condition: self.objects.conditions.shared(condition) });
        self.wait(condition, mutex, place)?;
        if takes_mutex {
            self.unlock(mutex, place)?;
        }
        Ok(())
    }

    /// Both take the mutex that has the suspended name.
    fn suspend_or_resume(&mut self, event: &'a Event) -> Result<(), WorkloadError> {
        let name = suspended_name(&event.action, self.task);
        self.lock(name, &event.place)?;
        match event.action {
            Action::Suspend(_) => self.wait(name, name, &event.place)?,
            _ => self.ops.push(Op::Broadcast { condition: self.objects.conditions.shared(name) }),
        }
        self.unlock(name, &event.place)
    }

    fn check_holds(&self, mutex: &str, place: &Place) -> Result<(), WorkloadError> {
        match self.held.contains(mutex) {
            true => Ok(()),
            false => Err(place.wrong(format!(
                "the task does not hold mutex {} here; lock it before",
                quoted(mutex)
            ))),
        }
    }

    /// A loop must end with the mutexes it began with.
    fn check_held(&self, before: &BTreeSet<&str>, place: &Place) -> Result<(), WorkloadError> {
        match self.held == *before {
            true => Ok(()),
            false => Err(place.wrong(
                "the loop ends with other mutexes held than it began with; balance lock and unlock",
            )),
        }
    }
}
