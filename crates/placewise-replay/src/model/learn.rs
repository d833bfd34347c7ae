//! Makes a model of a recording.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use placewise_workload::program::{Nanos, Wake};

use super::act::{Act, ClassIndex, Owed};
use super::answers::Answers;
use super::chain::{Chain, Drawn, History};
use super::pairs::Pairs;
use crate::recording::{AtEnd, RecordedCgroup, RecordedTask, Recording, Step, TaskIndex};

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
    pub(super) pairs: Pairs,
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
                is_rare: false,
                last_arrival: task.forked_ns,
                sleeps: 0,
                last_sleep: None,
                owed: answers.owed_at_first(index),
                calls: BTreeSet::new(),
            };
            let owes = reader.owed.clone();
            answers.steps(index, &task.steps, |step| {
                of_class.stretches += u64::from(reader.takes(step, index, &answers));
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
            pairs: answers.pairs,
        };
        model.fit_stretches(cpus);
        model
    }
}

/// What a task sleeps for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Sleeps<'a> {
    /// Posts of tasks of a name.
    For(&'a str),
    UntilArrivals,
    ForSoLong,
}

/// The class of each task, and the classes.
fn classes(recording: &Recording) -> (Vec<ClassIndex>, Vec<Class>) {
    let name = |task: TaskIndex| recording.tasks[task as usize].name.as_str();
    let sleep = |step: &Step| match *step {
        Step::Await(from) => Some(Sleeps::For(name(from))),
        Step::Until(_) => Some(Sleeps::UntilArrivals),
        Step::Sleep(_) => Some(Sleeps::ForSoLong),
        _ => None,
    };
    let mostly = |task: &RecordedTask| {
        let mut counts: BTreeMap<Sleeps<'_>, usize> = BTreeMap::new();
        for sleep in task.steps.iter().filter_map(sleep) {
            *counts.entry(sleep).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.map(|(sleep, _)| sleep)
    };
    let mut known = HashMap::new();
    let mut classes = Vec::new();
    let mut class_of = Vec::with_capacity(recording.tasks.len());
    for task in &recording.tasks {
        let class = *known.entry((task.name.as_str(), mostly(task))).or_insert_with(|| {
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
            if let Some((to, _)) = step.posts() {
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
    /// What it does now.
    is_rare: bool,
    last_arrival: Nanos,
    sleeps: usize,
    /// What it slept for last, how often it did since it slept for something else, and the longest of these whiles, or of
    /// the times between these arrivals.
    last_sleep: Option<(Act, usize, Nanos)>,
    owed: Vec<TaskIndex>,
    calls: BTreeSet<TaskIndex>,
}

impl TaskReader<'_> {
    /// What `index` does next; whether it is taken, and a sleep.
    fn takes(&mut self, step: Step, index: TaskIndex, answers: &Answers<'_>) -> bool {
        self.is_rare = match (step, step.posts()) {
            (Step::Await(from), _) => answers.is_rare(from, index),
            (_, Some((to, _))) => answers.is_rare(index, to),
            _ => false,
        };
        if self.is_rare && self.script.len() >= FIRST_ACTS {
            return false;
        }
        let class = |task: TaskIndex| self.class_of[task as usize];
        match step {
            Step::Run(ns) => self.computed = self.computed.saturating_add(ns),
            Step::Post(to, wake) => {
                self.posts(to, wake, answers.is_answered_if_it_waits(index, to));
            }
            Step::Answer(to, wake) => {
                self.owed.retain(|task| *task != to);
                self.act(Act::Answer(class(to), Owed::InTurn, wake), 0);
            }
            Step::Await(from) => match answers.hands_on(from, index) {
                Some(wake) => self.act(Act::Contend(wake), 0),
                None => self.awaits(from, answers.is_answered_if_it_waits(index, from)),
            },
            Step::Sleep(ns) => self.act(Act::Sleep, ns),
            Step::Until(time) => {
                let since = time.saturating_sub(std::mem::replace(&mut self.last_arrival, time));
                self.act(Act::Arrival, since);
            }
            Step::Fork(child) => self.act(Act::Fork(class(child)), 0),
        }
        let owed = self.owed.iter().filter(|from| answers.is_mutual(index, **from));
        self.history.owes(owed.count());
        step.sleeps()
    }

    fn awaits(&mut self, from: TaskIndex, an_answer: bool) {
        self.act(Act::Await(self.class_of[from as usize]), 0);
        if !an_answer {
            self.owed.retain(|task| *task != from);
            self.owed.push(from);
        }
    }

    fn posts(&mut self, to: TaskIndex, wake: Wake, a_call: bool) {
        let class = self.class_of[to as usize];
        let owed = self.owed.iter().rposition(|task| *task == to).filter(|_| !a_call);
        let act = if let Some(at) = owed {
            let of_class = |task: &TaskIndex| self.class_of[*task as usize] == class;
            let is_latest = !self.owed[at + 1..].iter().any(of_class);
            self.owed.remove(at);
            let owed = if is_latest { Owed::Latest } else { Owed::Earliest };
            Act::Answer(class, owed, wake)
        } else if self.parent == Some(to) {
            Act::TellParent(wake)
        } else {
            self.calls.insert(to);
            Act::Call(class, wake)
        };
        self.act(act, 0);
    }

    fn act(&mut self, act: Act, takes: Nanos) {
        self.first.get_or_insert(act);
        if matches!(act, Act::Arrival | Act::Await(_) | Act::Contend(_) | Act::Sleep) {
            let (count, longest) = match self.last_sleep {
                Some((last, count, longest)) if last == act => (count, longest),
                _ => (0, 0),
            };
            self.last_sleep = Some((act, count + 1, longest.max(takes)));
            self.sleeps += 1;
        }
        let computing = std::mem::take(&mut self.computed);
        let is_early = self.script.len() < FIRST_ACTS;
        if is_early {
            self.script.push(Drawn { act, computing, takes });
        }
        // Who sleeps computes for so long once, and who never does goes on.
        let is_once = act == Act::Compute && self.last_sleep.is_some();
        if !(is_once || self.is_rare || is_early && self.is_long) {
            self.chain.see(&self.history, act, computing, takes);
        }
        self.history.push(act);
    }

    /// Who was there still, and has forked or did little, waits: it does not go on by itself. Who mostly waits for
    /// arrivals, or sleeps for a while, does so when the trace ends: that tells of a time only if none before was longer.
    fn end(&mut self, task: &RecordedTask, length_ns: Nanos) {
        let mostly = self.last_sleep.filter(|(_, count, _)| 2 * count > self.sleeps);
        match (task.at_end, mostly) {
            _ if task.exits => self.act(Act::Exit, 0),
            (AtEnd::Runs, _) => self.act(Act::Compute, 0),
            _ if self.chain.forks() => self.act(Act::Rest, 0),
            (AtEnd::Sleeps(slept), Some((act @ (Act::Arrival | Act::Sleep), _, longest))) => {
                let arrival = length_ns.saturating_sub(self.last_arrival);
                let left = if act == Act::Arrival { arrival } else { slept };
                if left > longest {
                    self.act(act, left + 1);
                }
            }
            _ if self.script.len() < FEWEST_ACTS => self.act(Act::Rest, 0),
            _ => {}
        }
    }
}
