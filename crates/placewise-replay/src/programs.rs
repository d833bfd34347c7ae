//! A recording as programs of the simulator.
//!
//! ```text
//! task 0      forks a starter for each name in turn, waits until all tasks wait at the gate, opens it, joins
//! starter     forks the tasks of its name that were there, and exits with the last task of that name
//! task        its steps; then it has exited, or sleeps until the end
//! ```
//!
//! A semaphore stands for the wakers of each name of each task: a sleep that one of them ended any of them
//! ends, whoever is first now. Limit: one of another name does not. Names beyond the first
//! [`NAMES`] share a part.

use std::collections::{BTreeSet, HashMap, HashSet};

use placewise_machine::Machine;
use placewise_workload::program::{
    Cgroup, ChannelKind, Metric, Nanos, Object, Op, Part, Program, Window, Workload,
};

use crate::recording::{RecordedCgroup, RecordedTask, Recording, Step, TaskIndex};

/// What task 0 and the starters are called: no task of a kernel is.
pub const STARTER: &str = "[replay]";

/// Names of tasks that have figures of their own.
const NAMES: usize = 12;
const OTHERS: &str = "(others)";

/// Fewer waits have no 99th percentile.
const WAITS_OF_P99: usize = 100;

/// A replay that takes longer than the recording, by this factor, is over.
const LONGEST: u64 = 4;

/// Until the last task that was forked has come to the gate.
const UNTIL_ALL_WAIT: Nanos = 1_000_000;

/// Opened once all tasks are there; never opened.
const BEGIN: Object = Object::shared(0);
const NEVER: Object = Object::shared(1);

/// Which tasks begin on the CPU where they were first seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// Those that are forked, too: nothing is left to chance.
    AsRecorded,
    /// Those that were there: where others go is what the policy is asked.
    WhereTheyWere,
    /// None: on another machine the numbers mean other CPUs.
    Anywhere,
}

struct Build<'a> {
    recording: &'a Recording,
    machine: &'a Machine,
    begins: Begins,
    names: Vec<String>,
    part_of: Vec<u32>,
    /// Of each task that keeps times.
    timers: HashMap<TaskIndex, u32>,
    /// Of the wakers of each name and each wakee.
    semaphores: HashMap<Wait<'a>, u32>,
    /// Who closes semaphores, and of which wakees.
    closers: BTreeSet<(TaskIndex, TaskIndex)>,
    /// Where posts are taken that are answered then.
    inboxes: HashSet<Wait<'a>>,
}

/// The name of wakers, and their wakee.
type Wait<'a> = (&'a str, TaskIndex);

impl Recording {
    pub fn workload(&self, name: &str, machine: &Machine, begins: Begins) -> Workload {
        Build::new(self, machine, begins).workload(name)
    }

    /// Of a task, in a workload of this recording: where tasks are treated otherwise than they were.
    pub fn program<'a>(&self, workload: &'a mut Workload, task: TaskIndex) -> &'a mut Program {
        let before = workload.programs.len() - self.tasks.len();
        &mut workload.programs[before + task as usize]
    }
}

impl<'a> Build<'a> {
    fn new(recording: &'a Recording, machine: &'a Machine, begins: Begins) -> Self {
        let mut names: Vec<String> = recording.names().into_iter().map(|(name, _)| name).collect();
        let has_others = names.len() > NAMES;
        names.truncate(NAMES);
        let number: HashMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
        let others = names.len() as u32;
        let part = |task: &RecordedTask| number.get(task.name.as_str()).copied().unwrap_or(others);
        let part_of = recording.tasks.iter().map(part).collect();
        drop(number);
        names.extend(has_others.then(|| OTHERS.to_owned()));
        let keeps_times =
            |task: &RecordedTask| task.steps.iter().any(|step| matches!(step, Step::Until(_)));
        let keeping = recording.tasks.iter().zip(0..).filter(|(task, _)| keeps_times(task));
        let timers = keeping.map(|(_, index)| index).zip(0..).collect();
        let semaphores = semaphores(recording);
        let closers = closers(recording);
        let inboxes = inboxes(recording);
        Build { recording, machine, begins, names, part_of, timers, semaphores, closers, inboxes }
    }

    fn workload(&self, name: &str) -> Workload {
        let window =
            Window { measure: self.recording.length_ns.max(1) * LONGEST, ..Window::default() };
        let mut programs = vec![self.main()];
        programs.extend((0..self.nr_parts()).map(|part| self.starter(part)));
        let tasks = self.recording.tasks.iter().zip(0..);
        programs.extend(tasks.map(|(task, index)| self.task(task, index)));
        let parts = (0..self.nr_parts()).map(|part| self.part(part)).collect();
        Workload {
            channels: vec![ChannelKind::KernelQueue],
            barriers: (0..self.nr_parts())
                .map(|part| self.tasks_of(part).count() as u32 + 1)
                .collect(),
            gates: 2,
            semaphores: self.nr_closing(),
            timers: self.timers.len() as u32,
            cgroups: self.cgroups(),
            has_waits_for_load: true,
            metrics: vec![Metric::Time { units: 0 }],
            parts,
            ..Workload::new(name, programs, window)
        }
    }

    fn cgroups(&self) -> Vec<Cgroup> {
        let cgroups = &self.recording.cgroups;
        let number = |path: &str| cgroups.iter().position(|it| it.path == path).map(|at| at as u32);
        let cgroup = |RecordedCgroup { path, shares }: &RecordedCgroup| {
            let parent = path.rsplit_once('/').and_then(|(above, _)| number(above));
            Cgroup::new(path.as_str(), parent, *shares)
        };
        cgroups.iter().map(cgroup).collect()
    }

    fn nr_parts(&self) -> u32 {
        self.names.len() as u32
    }

    fn tasks_of(&self, part: u32) -> impl Iterator<Item = (&RecordedTask, TaskIndex)> {
        let tasks = self.recording.tasks.iter().zip(0..);
        tasks.filter(move |(_, index)| self.part_of[*index as usize] == part)
    }

    fn program_of(&self, task: TaskIndex) -> u32 {
        1 + self.nr_parts() + task
    }

    fn main(&self) -> Program {
        let started = Object::shared(0);
        // Each sleeps while the next one works, lest they meet on a CPU.
        let start = |part| [fork(part), Op::Receive { channel: started, bytes: 1 }];
        let mut ops: Vec<Op> = (1..=self.nr_parts()).flat_map(start).collect();
        ops.push(Op::Sleep { ns: UNTIL_ALL_WAIT, random_pct: 0 });
        let timers = 0..self.timers.len() as u32;
        ops.extend(timers.map(|timer| Op::StartTimer { timer: Object::shared(timer) }));
        ops.extend([Op::Start, Op::GateOpen { gate: BEGIN }, Op::Join, Op::Exit]);
        Program::new(STARTER, ops)
    }

    /// Where the starters begin: beside other tasks they would leave the mark of a busy CPU
    /// (`rd->overloaded`), after which CPUs balance before they idle.
    fn out_of_the_way(&self) -> Option<u32> {
        let begin_on =
            |cpu: u32| self.recording.tasks.iter().filter(|task| task.begins_on == cpu).count();
        let online = self.machine.online();
        let quietest = online.iter().min_by_key(|&cpu| begin_on(cpu as u32));
        quietest.map(|cpu| cpu as u32).filter(|_| self.begins != Begins::Anywhere)
    }

    fn starter(&self, part: u32) -> Program {
        let there = self.tasks_of(part).filter(|(task, _)| !task.is_forked);
        let mut ops: Vec<Op> = there.map(|(_, task)| fork(self.program_of(task))).collect();
        let barrier = Object::shared(part);
        ops.extend([
            Op::Start,
            Op::Send { channel: Object::shared(0), bytes: 1 },
            Op::Barrier { barrier, spin_ns: 0 },
            Op::Exit,
        ]);
        let begins_on = self.out_of_the_way();
        Program { part: Some(part), begins_on, ..Program::new(STARTER, ops) }
    }

    fn task(&self, task: &RecordedTask, index: TaskIndex) -> Program {
        let part = self.part_of[index as usize];
        let mut ops = Vec::with_capacity(task.steps.len() * 2 + 4);
        let waits_for_post = matches!(task.steps.first(), Some(Step::Await(_)));
        if !task.is_forked && (task.runs_at_once || !waits_for_post) {
            ops.push(Op::GateWait { gate: BEGIN });
        }
        let mut passed = 0;
        for step in &task.steps {
            ops.extend(step.sleeps().then_some(Op::Count));
            ops.push(self.op(*step, index, ops.len() as u64, &mut passed));
        }
        ops.extend(self.closes(index));
        ops.push(Op::Arrive { barrier: Object::shared(part) });
        ops.extend((!task.exits).then_some(Op::GateWait { gate: NEVER }));
        ops.push(Op::Exit);
        let online = self.machine.online();
        let cpus = task.cpus.map(|cpus| cpus & online).filter(|cpus| !cpus.is_empty());
        Program {
            nice: task.nice,
            policy: task.policy,
            cpus: cpus.filter(|cpus| *cpus != online),
            cgroup: task.cgroup,
            begins_on: match self.begins {
                Begins::AsRecorded => Some(task.begins_on),
                Begins::WhereTheyWere => (!task.is_forked).then_some(task.begins_on),
                Begins::Anywhere => None,
            },
            arrival: task.arrival,
            idle_exit_ns: task.idle_exit_ns,
            preempt_ns: task.preempt_ns,
            interrupted_on: task.interrupted_on,
            wakee_flips: task.wakee_flips,
            part: Some(part),
            ..Program::new(task.name.as_str(), ops)
        }
    }

    fn semaphore(&self, from: TaskIndex, to: TaskIndex) -> Object {
        Object::shared(self.number_of_semaphore(from, to))
    }

    fn number_of_semaphore(&self, from: TaskIndex, to: TaskIndex) -> u32 {
        self.semaphores[&wait(self.recording, (from, to))]
    }

    /// How many close each semaphore.
    fn nr_closing(&self) -> Vec<u32> {
        let mut count = vec![0; self.semaphores.len()];
        for &(from, to) in &self.closers {
            count[self.number_of_semaphore(from, to) as usize] += 1;
        }
        count
    }

    /// Whoever has come to its end keeps what it has not answered: nobody waits for that.
    fn closes(&self, task: TaskIndex) -> impl Iterator<Item = Op> {
        let closed = self.closers.range((task, 0)..=(task, TaskIndex::MAX));
        closed.map(|&(from, to)| Op::Close { semaphore: self.semaphore(from, to) })
    }

    /// Where a task waits for answers of another, if that one answers who asks.
    fn answered_at(&self, task: TaskIndex, other: TaskIndex) -> Option<Object> {
        let is_inbox = self.inboxes.contains(&wait(self.recording, (task, other)));
        is_inbox.then(|| self.semaphore(other, task))
    }

    /// `number`: its place among those of the task. `passed`: the time of the trace until which its timer has run.
    fn op(&self, step: Step, task: TaskIndex, number: u64, passed: &mut Nanos) -> Op {
        let call = || self.recording.tasks[task as usize].calls.of(number);
        match step {
            Step::Run(ns) => Op::Run { ns },
            Step::Post(to, wake) => Op::Post {
                semaphore: self.semaphore(task, to),
                wake,
                call: call(),
                answered_at: self.answered_at(task, to),
            },
            Step::Answer(to, wake) => Op::Answer {
                inbox: self.semaphore(to, task),
                otherwise: self.semaphore(task, to),
                wake,
                call: call(),
            },
            Step::Await(from) => Op::Await {
                semaphore: self.semaphore(from, task),
                lines: self.recording.tasks[task as usize].lines,
            },
            Step::Sleep(ns) => Op::Sleep { ns, random_pct: 0 },
            Step::Fork(child) => fork(self.program_of(child)),
            Step::Until(time) => {
                let period = time.saturating_sub(*passed).max(1);
                *passed += period;
                let timer = Object::shared(self.timers[&task]);
                Op::Timer { timer, period, absolute: true }
            }
        }
    }

    fn part(&self, part: u32) -> Part {
        let steps = || self.tasks_of(part).flat_map(|(task, _)| &task.steps);
        let posts = steps().filter(|step| matches!(step, Step::Await(_))).count();
        let timers = steps().filter(|step| step.sleeps()).count() - posts;
        let mut metrics = vec![Metric::Throughput { unit: "segments/s", scale: 1.0 }];
        for quantile in [0.5, 0.99] {
            let woken = (posts >= WAITS_OF_P99).then_some(Metric::WokenLatency { quantile });
            let timed = (timers >= WAITS_OF_P99).then_some(Metric::WakeupLatency { quantile });
            metrics.extend(woken.into_iter().chain(timed));
        }
        Part { name: self.names[part as usize].clone(), metrics, within: None }
    }
}

/// Where `to` waits for tasks of the name of `from`.
fn wait(recording: &Recording, (from, to): (TaskIndex, TaskIndex)) -> Wait<'_> {
    (recording.tasks[from as usize].name.as_str(), to)
}

/// Of all tasks, with whose they are.
fn steps(recording: &Recording) -> impl Iterator<Item = (TaskIndex, Step)> {
    let tasks = recording.tasks.iter().zip(0..);
    tasks.flat_map(|(task, index)| task.steps.iter().map(move |step| (index, *step)))
}

/// Each two tasks of whom one wakes the other may wait for each other.
fn semaphores(recording: &Recording) -> HashMap<Wait<'_>, u32> {
    let mut semaphores = HashMap::new();
    for (task, step) in steps(recording) {
        let (Step::Post(other, _) | Step::Answer(other, _) | Step::Await(other)) = step else {
            continue;
        };
        for pair in [(task, other), (other, task)] {
            let next = semaphores.len() as u32;
            semaphores.entry(wait(recording, pair)).or_insert(next);
        }
    }
    semaphores
}

/// Who may post to whom, where it depends on who has posted before whether they do.
fn closers(recording: &Recording) -> BTreeSet<(TaskIndex, TaskIndex)> {
    let mut posters = BTreeSet::new();
    let mut answered = HashSet::new();
    for (task, step) in steps(recording) {
        match step {
            Step::Post(other, _) => _ = posters.insert((task, other)),
            Step::Answer(other, _) => {
                let both = [(task, other), (other, task)];
                posters.extend(both);
                answered.extend(both.map(|pair| wait(recording, pair)));
            }
            _ => {}
        }
    }
    posters.retain(|pair| answered.contains(&wait(recording, *pair)));
    posters
}

fn inboxes(recording: &Recording) -> HashSet<Wait<'_>> {
    let inbox = |(task, step)| match step {
        Step::Answer(to, _) => Some(wait(recording, (to, task))),
        _ => None,
    };
    steps(recording).filter_map(inbox).collect()
}

fn fork(program: u32) -> Op {
    Op::Fork { program, count: 1, base: 0, step: 0 }
}
