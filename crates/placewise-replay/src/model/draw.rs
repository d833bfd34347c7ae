//! Draws a recording of a model: its tasks take turns in a time of their own, each doing what its class
//! does next, and what they do is taken down. Each sleep that a post ends is so one that a post has ended.
//!
//! Time here only says who comes before whom, and how many turns there are in a second: where more tasks
//! compute than there are CPUs all are slower, and a factor, the same for all, makes the whole as fast as
//! the recording was. Where all sleep, who has slept longest goes on.
//!
//! **Posts that are missing**: a caller and its callee are drawn apart. Where one has drawn fewer posts than the
//! other waits for, both wait, and all that wait for them. Who of those has waited longest is posted to
//! then, by one of those whom it waits for: as if that had done so before it slept.
//!
//! **More clients**: tasks of a name that were there get twins, which begin as they did. Who talked to one
//! of several such tasks alone gets twins as well, and each its own; who talked to several serves the twins
//! too. Where a task of the name is forked, so many are.
//!
//! **Who meets whom**: the tasks of a class that are forked do as those of the recording did, in the order of
//! these, again and again; and call who does as one whom these called.

mod actors;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use placewise_workload::program::{Nanos, Wake};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::act::{Act, ClassIndex, Owed};
use super::learn::{Class, Model};
use crate::recording::{RecordedTask, Recording, Step, TaskIndex};
pub use actors::Draw;
use actors::partners;
use actors::{Actor, Rows, State};

/// No more tasks are drawn, and no more steps of all of them: a draw ends there.
const MOST_TASKS: usize = 16_384;
const MOST_STEPS: usize = 2_000_000;

/// How many stretches of computing tell how fast a draw is, and how often that is corrected.
const TELLING_SEGMENTS: u64 = 50_000;
const CORRECTIONS: usize = 6;
const CORRECTED: f64 = 0.01;

/// Who goes on where all sleep has slept for so long.
const STIRS_NS: Nanos = 1_000;

const SEED: u64 = 1;

/// What an actor has come to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// It has computed, and does what it has drawn.
    Acts,
    /// Its sleep is over.
    Wakes,
}

struct Stage<'a> {
    model: &'a Model,
    draw: &'a Draw,
    cpus: usize,
    rng: Pcg64Mcg,
    actors: Vec<Actor>,
    /// Of each class, and how many of them were forked.
    cast: Vec<Vec<TaskIndex>>,
    forked: Vec<usize>,
    rows: Rows,
    due: BinaryHeap<Reverse<(Nanos, u64, TaskIndex, Phase)>>,
    now: Nanos,
    /// Those that compute.
    busy: usize,
    /// Of all actors.
    steps: usize,
    turns: u64,
    /// Stretches of computing that ended in a sleep, or in a post that was there already.
    segments: u64,
}

impl Model {
    /// `cpus`: of the machine of the recording. Ends early where it would be too large.
    pub fn draw(&self, draw: &Draw, cpus: usize) -> Recording {
        let mut stage = Stage::new(self, draw, cpus);
        stage.play(u64::MAX);
        stage.recording()
    }

    /// From the first event of the recording to the last.
    pub fn length_ns(&self) -> Nanos {
        self.length_ns
    }

    /// What part of the recording's stretches of computing a draw has; more than 1 where it has more.
    pub fn share(&self, drawn: &Recording) -> f64 {
        drawn.segments() as f64 / self.segments.max(1) as f64
    }

    /// Whether the recording has tasks of this name.
    pub fn has(&self, name: &str) -> bool {
        self.classes.iter().any(|class| class.name == name)
    }

    /// So that as many sleeps are drawn in a second as were recorded.
    pub(super) fn fit_stretch(&mut self, cpus: usize) {
        let recorded = self.segments as f64 / self.length_ns.max(1) as f64;
        let mut best = (f64::INFINITY, self.stretch);
        for _ in 0..CORRECTIONS {
            let draw = Draw { length_ns: self.length_ns, scale: Vec::new() };
            let mut stage = Stage::new(self, &draw, cpus);
            stage.play(TELLING_SEGMENTS);
            let drawn = stage.segments as f64 / stage.now.max(1) as f64;
            let ratio = (drawn / recorded).clamp(0.1, 10.0);
            let off = ratio.ln().abs();
            if off + CORRECTED >= best.0 {
                break;
            }
            best = (off, self.stretch);
            self.stretch *= ratio;
        }
        self.stretch = best.1;
    }
}

impl<'a> Stage<'a> {
    fn new(model: &'a Model, draw: &'a Draw, cpus: usize) -> Self {
        let (actors, rows) = actors::at_first(model, draw);
        let mut cast = vec![Vec::new(); model.classes.len()];
        for (actor, index) in actors.iter().zip(0..) {
            cast[model.members[actor.member as usize].class as usize].push(index);
        }
        let mut stage = Stage {
            model,
            draw,
            cpus: cpus.max(1),
            rng: Pcg64Mcg::seed_from_u64(SEED),
            actors,
            cast,
            forked: vec![0; model.classes.len()],
            rows,
            due: BinaryHeap::new(),
            now: 0,
            busy: 0,
            steps: 0,
            turns: 0,
            segments: 0,
        };
        for index in 0..stage.actors.len() as u32 {
            let member = stage.actors[index as usize].member;
            match model.members[member as usize].first {
                // The first step of its script.
                Act::Await => stage.actors[index as usize].acts = 1,
                first => stage.goes_on(index, Some(first)),
            }
        }
        stage
    }

    /// Until it is as long as asked for, or has had so many sleeps.
    fn play(&mut self, most_segments: u64) {
        while self.steps < MOST_STEPS && self.segments < most_segments {
            let Some(Reverse((time, _, index, phase))) = self.due.pop() else {
                if !self.stir() {
                    break;
                }
                continue;
            };
            if time > self.draw.length_ns {
                self.now = self.draw.length_ns;
                return;
            }
            self.now = time;
            match phase {
                Phase::Acts => self.act(index),
                Phase::Wakes => self.goes_on(index, None),
            }
        }
    }

    /// False where nobody can go on.
    fn stir(&mut self) -> bool {
        let waiting = self.actors.iter().zip(0..).filter(|(actor, _)| actor.state == State::Waits);
        let Some((_, index)) = waiting.min_by_key(|(actor, _)| actor.since) else { return false };
        self.actors[index as usize].state = State::Sleeps;
        self.take_down(index, Step::Sleep(STIRS_NS));
        self.due_in(STIRS_NS, index, Phase::Wakes);
        true
    }

    fn class_of(&self, index: TaskIndex) -> ClassIndex {
        self.model.members[self.actors[index as usize].member as usize].class
    }

    fn take_down(&mut self, index: TaskIndex, step: Step) {
        self.steps += 1;
        self.actors[index as usize].steps.push(step);
    }

    fn due_in(&mut self, ns: Nanos, index: TaskIndex, phase: Phase) {
        self.turns += 1;
        self.due.push(Reverse((self.now.saturating_add(ns.max(1)), self.turns, index, phase)));
    }

    /// It computes until what it does next.
    fn goes_on(&mut self, index: TaskIndex, known: Option<Act>) {
        let class = &self.model.classes[self.class_of(index) as usize];
        let actor = &mut self.actors[index as usize];
        self.busy += usize::from(actor.state != State::Computes);
        actor.state = State::Computes;
        let script = &self.model.members[actor.member as usize].script;
        let next = match (script.get(actor.acts), known) {
            (Some(next), _) => Some(*next),
            (None, Some(act)) => Some(class.chain.timed(&actor.history, act, &mut self.rng)),
            (None, None) => class.chain.draw(&actor.history, &mut self.rng),
        };
        actor.acts += 1;
        let Some(next) = next else {
            // Nobody knows what it does: nothing.
            actor.state = State::Gone;
            self.busy -= 1;
            return;
        };
        actor.next = Some(next);
        if next.computing > 0 {
            self.take_down(index, Step::Run(next.computing));
        }
        let crowded = (self.busy as f64 / self.cpus as f64).max(1.0);
        let takes = next.computing as f64 * crowded * self.model.stretch;
        self.due_in(takes as Nanos, index, Phase::Acts);
    }

    fn act(&mut self, index: TaskIndex) {
        let actor = &mut self.actors[index as usize];
        let Some(next) = actor.next.take() else { return };
        if next.act != Act::Await {
            actor.history.push(next.act);
        }
        match next.act {
            Act::Await => return self.awaits(index),
            Act::Sleep => return self.sleeps(index, next.takes, Step::Sleep(next.takes)),
            Act::Arrival => {
                actor.last_arrival = actor.last_arrival.saturating_add(next.takes);
                let until = actor.last_arrival;
                let left = until.saturating_sub(self.now);
                return self.sleeps(index, left, Step::Until(until));
            }
            Act::Exit => {
                actor.state = State::Gone;
                actor.exits = true;
                self.busy -= 1;
                return;
            }
            Act::Fork(class) => self.forks(index, class),
            Act::Answer(class, owed, wake) => {
                if let Some(to) = self.owed(index, class, owed) {
                    self.post(index, to, wake);
                }
            }
            Act::Call(class, wake) => {
                if let Some(to) = self.callee(index, class) {
                    self.post(index, to, wake);
                }
            }
            Act::TellParent(wake) => {
                if let Some(parent) = self.actors[index as usize].parent {
                    self.post(index, parent, wake);
                }
            }
            Act::Begin | Act::Woken(_) => {}
        }
        self.goes_on(index, None);
    }

    fn awaits(&mut self, index: TaskIndex) {
        let now = self.now;
        let actor = &mut self.actors[index as usize];
        match actor.posts.pop_front() {
            Some(from) => self.woken(index, from),
            None => {
                (actor.state, actor.since) = (State::Waits, now);
                self.busy -= 1;
                self.make_up(index);
            }
        }
    }

    /// Makes up for a missing post, if this one waits for nobody who goes on.
    fn make_up(&mut self, index: TaskIndex) {
        let Some(all) = self.wait_in_vain(index) else { return };
        let waiting_waker = |task: TaskIndex| self.wakers(task).find(|waker| all.contains(waker));
        let missed = all.iter().filter_map(|&task| Some((task, waiting_waker(task)?)));
        let longest = missed.min_by_key(|(task, _)| (self.actors[*task as usize].since, *task));
        if let Some((task, waker)) = longest {
            self.post(waker, task, Wake::Plain);
        }
    }

    /// All that this one waits for, themselves or by others, and itself; `None` if one of them goes on.
    fn wait_in_vain(&self, index: TaskIndex) -> Option<BTreeSet<TaskIndex>> {
        let mut all = BTreeSet::from([index]);
        let mut left = vec![index];
        while let Some(task) = left.pop() {
            for waker in self.wakers(task) {
                match self.actors[waker as usize].state {
                    State::Waits if all.insert(waker) => left.push(waker),
                    State::Waits | State::Gone => {}
                    State::Computes | State::Sleeps => return None,
                }
            }
        }
        Some(all)
    }

    fn wakers(&self, index: TaskIndex) -> impl Iterator<Item = TaskIndex> {
        let actor = &self.actors[index as usize];
        partners(&self.rows, actor, self.model.members[actor.member as usize].wakers.iter())
    }

    fn sleeps(&mut self, index: TaskIndex, ns: Nanos, step: Step) {
        self.actors[index as usize].state = State::Sleeps;
        self.busy -= 1;
        self.segments += 1;
        self.take_down(index, step);
        self.due_in(ns, index, Phase::Wakes);
    }

    /// A post of `from` is taken.
    fn woken(&mut self, index: TaskIndex, from: TaskIndex) {
        let class = self.class_of(from);
        self.segments += 1;
        self.take_down(index, Step::Await(from));
        let actor = &mut self.actors[index as usize];
        actor.history.push(Act::Await);
        actor.history.push(Act::Woken(class));
        actor.owed.retain(|task| *task != from);
        actor.owed.push(from);
        self.goes_on(index, None);
    }

    fn post(&mut self, from: TaskIndex, to: TaskIndex, wake: Wake) {
        let state = self.actors[to as usize].state;
        if state == State::Gone {
            return;
        }
        self.take_down(from, Step::Post(to, wake));
        match state {
            State::Waits => self.woken(to, from),
            _ => self.actors[to as usize].posts.push_back(from),
        }
    }

    fn owed(&mut self, index: TaskIndex, class: ClassIndex, which: Owed) -> Option<TaskIndex> {
        let owed = &self.actors[index as usize].owed;
        let is_of_class = |task: &TaskIndex| self.class_of(*task) == class;
        let at = match which {
            Owed::Latest => owed.iter().rposition(is_of_class),
            Owed::Earliest => owed.iter().position(is_of_class),
        }?;
        Some(self.actors[index as usize].owed.remove(at))
    }

    /// Somebody of that class, among those that do as whom it called in the recording if there are any: one
    /// that waits, in the middle of a request if there are such. Where nobody does, a call that is answered
    /// waits for its callee; any other wakes nobody.
    fn callee(&mut self, index: TaskIndex, class: ClassIndex) -> Option<TaskIndex> {
        let actor = |task: TaskIndex| &self.actors[task as usize];
        let calls = &self.model.members[actor(index).member as usize].calls;
        let is_there =
            |task: &TaskIndex| self.class_of(*task) == class && actor(*task).state != State::Gone;
        let known: Vec<TaskIndex> =
            partners(&self.rows, actor(index), calls.iter()).filter(is_there).collect();
        let all = if known.is_empty() { &self.cast[class as usize] } else { &known };
        let among = |wanted: &dyn Fn(&Actor) -> bool| -> Vec<TaskIndex> {
            all.iter().copied().filter(|task| *task != index && wanted(actor(*task))).collect()
        };
        let mut found = among(&|it| it.state == State::Waits && !it.owed.is_empty());
        if found.is_empty() {
            found = among(&|it| it.state == State::Waits);
        }
        if found.is_empty() && self.model.mutual.contains(&(self.class_of(index), class)) {
            found = among(&|it| it.state != State::Gone);
        }
        (!found.is_empty()).then(|| found[self.rng.random_range(0..found.len())])
    }

    fn forks(&mut self, index: TaskIndex, class: ClassIndex) {
        let Class { name, children, .. } = &self.model.classes[class as usize];
        let next = self.forked[class as usize] % children.len().max(1);
        let Some(&member) = children.get(next) else { return };
        self.forked[class as usize] += 1;
        for _ in 0..self.draw.factor(name) {
            if self.actors.len() >= MOST_TASKS {
                self.steps = MOST_STEPS;
                return;
            }
            let child = self.actors.len() as TaskIndex;
            self.take_down(index, Step::Fork(child));
            let row = &mut self.rows[member as usize];
            self.actors.push(Actor::forked(member, row.len(), index, self.now));
            row.push(child);
            self.cast[class as usize].push(child);
            self.goes_on(child, None);
        }
    }

    fn recording(self) -> Recording {
        let Stage { model, now, .. } = self;
        let task = |actor: Actor| {
            let of = &model.members[actor.member as usize].task;
            RecordedTask {
                pid: if actor.is_twin { 0 } else { of.pid },
                is_forked: actor.parent.is_some(),
                exits: actor.exits,
                runs_at_once: of.runs_at_once && actor.parent.is_none(),
                steps: actor.steps,
                ..of.clone()
            }
        };
        Recording {
            length_ns: now.max(1),
            cgroups: model.cgroups.clone(),
            tasks: self.actors.into_iter().map(task).collect(),
        }
    }
}
