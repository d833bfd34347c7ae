//! Makes a model of a recording.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use placewise_workload::program::{Nanos, Wake};

use super::act::{Act, ClassIndex, Owed};
use super::answers::Answers;
use super::chain::{Chain, Drawn, History};
use crate::recording::{RecordedCgroup, RecordedTask, Recording, Step, TaskIndex};

/// So much of what a task did first it does as it did.
const FIRST_ACTS: usize = 256;

/// Fewer acts do not tell what follows what.
const FEWEST_ACTS: usize = 16;

/// Where it did so many times that, its class does not begin anew now and then.
const MANY: usize = 16;

#[derive(Debug, Default)]
pub struct Class {
    pub name: String,
    pub chain: Chain,
    /// What its tasks computed, and in how many stretches: with those that an answer ended which woke nobody.
    pub computing: Nanos,
    pub stretches: u64,
    /// How much longer than its computing a task takes, as what it computes is shared out in a draw.
    pub stretch: f64,
    /// Those of its tasks that were forked.
    pub children: Vec<TaskIndex>,
}

/// A task of the recording, as far as it differs from others of its class.
#[derive(Debug)]
pub struct Member {
    /// Without steps.
    pub task: RecordedTask,
    pub class: ClassIndex,
    /// What it did first.
    pub first: Act,
    /// What it did first, in its order.
    pub script: Vec<Drawn>,
    /// Whom it wakes unasked.
    pub calls: BTreeSet<TaskIndex>,
    /// Whom it wakes, and who wakes it.
    pub partners: BTreeSet<TaskIndex>,
    /// Who wakes it.
    pub wakers: BTreeSet<TaskIndex>,
    /// Whose posts it had not answered as the trace began.
    pub owes: Vec<TaskIndex>,
}

/// What a recording can be drawn of.
#[derive(Debug)]
pub struct Model {
    pub(super) length_ns: Nanos,
    pub(super) cgroups: Vec<RecordedCgroup>,
    pub(super) classes: Vec<Class>,
    pub(super) members: Vec<Member>,
    /// Classes whose tasks call those of another, and answer these.
    pub(super) mutual: BTreeSet<(ClassIndex, ClassIndex)>,
}

impl Model {
    /// `cpus`: of the machine that it was recorded on.
    pub fn of(recording: &Recording, cpus: usize) -> Self {
        let (class_of, mut classes) = classes(recording);
        let answers = Answers::of(recording, &class_of);
        let parents = parents(recording);
        let (mut partners, mut wakers) = partners(recording);
        let mut members = Vec::with_capacity(recording.tasks.len());
        for (task, index) in recording.tasks.iter().zip(0..) {
            let class = class_of[index as usize];
            let of_class = &mut classes[class as usize];
            of_class.children.extend(task.is_forked.then_some(index));
            of_class.computing += task.computing();
            of_class.stretches += u64::from(task.exits);
            let mut reader = TaskReader {
                class_of: &class_of,
                parent: parents.get(&index).copied(),
                chain: &mut of_class.chain,
                history: History::default(),
                first: None,
                script: Vec::new(),
                is_long: task.steps.len() > MANY * FIRST_ACTS,
                computed: 0,
                last_arrival: task.forked_ns,
                longest_between: None,
                last_sleep: None,
                owed: answers.owed_at_first(index),
                calls: BTreeSet::new(),
            };
            let owes = reader.owed.clone();
            answers.steps(index, &task.steps, |step| {
                of_class.stretches += u64::from(step.sleeps());
                match step {
                    Step::Await(from) => reader.awaits(from, answers.hands_on(from, index)),
                    _ => reader.step(step),
                }
                let owed = reader.owed.iter().filter(|from| answers.is_mutual(index, **from));
                reader.history.owes(owed.count());
            });
            reader.end(task, recording.length_ns);
            let (first, calls) = (reader.first.unwrap_or(Act::Rest), reader.calls);
            let script = reader.script;
            let task = RecordedTask { steps: Vec::new(), ..task.clone() };
            let partners = std::mem::take(&mut partners[index as usize]);
            let wakers = std::mem::take(&mut wakers[index as usize]);
            members.push(Member { task, class, first, script, calls, partners, wakers, owes });
        }
        let mut model = Model {
            length_ns: recording.length_ns,
            cgroups: recording.cgroups.clone(),
            classes,
            members,
            mutual: answers.mutual().collect(),
        };
        model.fit_stretches(cpus);
        model
    }
}

/// The class of each task, and the classes.
fn classes(recording: &Recording) -> (Vec<ClassIndex>, Vec<Class>) {
    let name = |task: TaskIndex| recording.tasks[task as usize].name.as_str();
    let waker = |task: &RecordedTask| {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for step in &task.steps {
            if let Step::Await(from) = *step {
                *counts.entry(name(from)).or_default() += 1;
            }
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.map(|(name, _)| name)
    };
    let mut known = HashMap::new();
    let mut classes = Vec::new();
    let mut class_of = Vec::with_capacity(recording.tasks.len());
    for task in &recording.tasks {
        let class = *known.entry((task.name.as_str(), waker(task))).or_insert_with(|| {
            classes.push(Class { name: task.name.clone(), stretch: 1.0, ..Class::default() });
            classes.len() as ClassIndex - 1
        });
        class_of.push(class);
    }
    (class_of, classes)
}

fn parents(recording: &Recording) -> BTreeMap<TaskIndex, TaskIndex> {
    let forks = recording.tasks.iter().zip(0..).flat_map(|(task, parent)| {
        task.steps.iter().filter_map(move |step| match *step {
            Step::Fork(child) => Some((child, parent)),
            _ => None,
        })
    });
    forks.collect()
}

/// Of each task whom it wakes or is woken by, and by whom it is.
fn partners(recording: &Recording) -> (Vec<BTreeSet<TaskIndex>>, Vec<BTreeSet<TaskIndex>>) {
    let mut partners = vec![BTreeSet::new(); recording.tasks.len()];
    let mut wakers = partners.clone();
    for (task, index) in recording.tasks.iter().zip(0..) {
        for step in &task.steps {
            if let Step::Post(to, _) = *step {
                partners[index as usize].insert(to);
                partners[to as usize].insert(index);
                wakers[to as usize].insert(index);
            }
        }
    }
    (partners, wakers)
}

/// Takes a task's steps for what a task of its class does.
struct TaskReader<'a> {
    class_of: &'a [ClassIndex],
    parent: Option<TaskIndex>,
    chain: &'a mut Chain,
    history: History,
    first: Option<Act>,
    script: Vec<Drawn>,
    is_long: bool,
    /// Since the last act.
    computed: Nanos,
    last_arrival: Nanos,
    /// Between two arrivals, if all its sleeps so far were for such.
    longest_between: Option<Nanos>,
    last_sleep: Option<Act>,
    owed: Vec<TaskIndex>,
    calls: BTreeSet<TaskIndex>,
}

impl TaskReader<'_> {
    fn step(&mut self, step: Step) {
        let class = |task: TaskIndex| self.class_of[task as usize];
        match step {
            Step::Run(ns) => self.computed = self.computed.saturating_add(ns),
            Step::Await(from) => self.awaits(from, None),
            Step::Post(to, wake) | Step::Answer(to, wake) => {
                let act = self.post(to, wake);
                self.act(act, 0);
            }
            Step::Sleep(ns) => self.act(Act::Sleep, ns),
            Step::Until(time) => {
                let since = time.saturating_sub(std::mem::replace(&mut self.last_arrival, time));
                self.act(Act::Arrival, since);
            }
            Step::Fork(child) => {
                let child = class(child);
                self.act(Act::Fork(child), 0);
            }
        }
    }

    /// `hands_on`: how, if that is what ended the sleep.
    fn awaits(&mut self, from: TaskIndex, hands_on: Option<Wake>) {
        if let Some(wake) = hands_on {
            return self.act(Act::Contend(wake), 0);
        }
        self.act(Act::Await(self.class_of[from as usize]), 0);
        self.owed.retain(|task| *task != from);
        self.owed.push(from);
    }

    fn post(&mut self, to: TaskIndex, wake: Wake) -> Act {
        let class = self.class_of[to as usize];
        if let Some(at) = self.owed.iter().rposition(|task| *task == to) {
            let of_class = |task: &TaskIndex| self.class_of[*task as usize] == class;
            let is_latest = !self.owed[at + 1..].iter().any(of_class);
            self.owed.remove(at);
            let owed = if is_latest { Owed::Latest } else { Owed::Earliest };
            return Act::Answer(class, owed, wake);
        }
        if self.parent == Some(to) {
            return Act::TellParent(wake);
        }
        self.calls.insert(to);
        Act::Call(class, wake)
    }

    fn act(&mut self, act: Act, takes: Nanos) {
        self.first.get_or_insert(act);
        if matches!(act, Act::Arrival | Act::Await(_) | Act::Contend(_) | Act::Sleep) {
            let is_alone = act == Act::Arrival && self.last_sleep.is_none_or(|last| last == act);
            let longest = self.longest_between.unwrap_or(0).max(takes);
            self.longest_between = Some(longest).filter(|_| is_alone);
            self.last_sleep = Some(act);
        }
        let computing = std::mem::take(&mut self.computed);
        let is_early = self.script.len() < FIRST_ACTS;
        if is_early {
            self.script.push(Drawn { act, computing, takes });
        }
        // Who sleeps computes for so long once, and who never does goes on.
        let is_once = act == Act::Compute && self.last_sleep.is_some();
        if !(is_once || is_early && self.is_long) {
            self.chain.see(&self.history, act, computing, takes);
        }
        self.history.push(act);
    }

    /// Who was there still, and has forked or did little, waits: it does not go on by itself. Who waits for
    /// arrivals alone has had no more before the end: that tells of a time only if none before was longer.
    fn end(&mut self, task: &RecordedTask, length_ns: Nanos) {
        let did_little = self.script.len() < FEWEST_ACTS && self.last_sleep != Some(Act::Sleep);
        if task.exits {
            self.act(Act::Exit, 0);
        } else if task.runs_at_end {
            self.act(Act::Compute, 0);
        } else if self.chain.forks() {
            self.act(Act::Rest, 0);
        } else if let Some(longest) = self.longest_between {
            let left = length_ns.saturating_sub(self.last_arrival);
            if left > longest {
                self.act(Act::Arrival, left + 1);
            }
        } else if did_little {
            self.act(Act::Rest, 0);
        }
    }
}
