//! Draws a recording of a model: its tasks take turns in a time of their own, each doing what its class
//! does next, and what they do is taken down. Each sleep that a post ends is so one that a post has ended.
//!
//! Time here only says who comes before whom, and how many turns there are in a second: those that compute
//! share the CPUs alike, and a factor for each class (`model/fit.rs`) makes it as fast as the recording was. What
//! they wait for is in `draw/waits.rs`.
//!
//! **More clients**: tasks of a name that were there get twins, which begin as they did. Who talked to one
//! of several such tasks alone gets twins as well, and each its own; who talked to several serves the twins
//! too. Where a task of the name is forked, so many are.
//!
//! **Who meets whom**: the tasks of a class that are forked do as those of the recording did, in the order of
//! these, again and again; and call who does as one whom these called.

mod actors;
mod waits;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use placewise_workload::program::{Nanos, Wake};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::act::{Act, ClassIndex, Owed};
use super::learn::{Class, Model};
use crate::measure::Shares;
use crate::recording::{RecordedTask, Recording, Step, TaskIndex, computing};
pub use actors::Draw;
use actors::partners;
use actors::{Actor, Rows, State};

/// No more tasks are drawn, and no more steps of all of them: a draw ends there.
const MOST_TASKS: usize = 16_384;
const MOST_STEPS: usize = 2_000_000;

/// Who is too early looks again after so long.
const EARLY_NS: Nanos = 100_000;

/// Who goes on where all sleep has slept for so long.
const STIRS_NS: Nanos = 1_000;

const SEED: u64 = 1;

/// A time, who was first to name it, and whose it is.
type Due = Reverse<(Nanos, u64, TaskIndex)>;

pub(super) struct Stage<'a> {
    model: &'a Model,
    draw: &'a Draw,
    cpus: usize,
    rng: Pcg64Mcg,
    actors: Vec<Actor>,
    /// Of each class, and how many of them were forked.
    cast: Vec<Vec<TaskIndex>>,
    forked: Vec<usize>,
    rows: Rows,
    pub(super) now: Nanos,
    /// When sleeps are over.
    sleeping: BinaryHeap<Due>,
    /// When those that compute act: in the time of a task that computes.
    computing: BinaryHeap<Due>,
    computed: f64,
    /// Those that compute.
    busy: usize,
    /// Of all actors.
    steps: usize,
    turns: u64,
    /// Stretches of computing that are over.
    stretches: u64,
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

    /// How much of the recording a draw has.
    pub fn shares(&self, drawn: &Recording) -> Shares {
        let mut shares = Shares::default();
        for class in &self.classes {
            shares.note(&class.name, [0, class.stretches], [0, class.computing]);
        }
        for task in &drawn.tasks {
            shares.note(&task.name, [task.stretches(), 0], [task.computing(), 0]);
        }
        shares
    }

    /// Whether the recording has tasks of this name.
    pub fn has(&self, name: &str) -> bool {
        self.classes.iter().any(|class| class.name == name)
    }
}

impl<'a> Stage<'a> {
    pub(super) fn new(model: &'a Model, draw: &'a Draw, cpus: usize) -> Self {
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
            now: 0,
            sleeping: BinaryHeap::new(),
            computing: BinaryHeap::new(),
            computed: 0.0,
            busy: 0,
            steps: 0,
            turns: 0,
            stretches: 0,
        };
        for index in 0..stage.actors.len() as u32 {
            let member = stage.actors[index as usize].member;
            match model.members[member as usize].first {
                // The first step of its script, or none.
                first @ (Act::Await(_) | Act::Rest) => {
                    stage.actors[index as usize].acts = 1;
                    stage.will_await(index, first);
                }
                first => stage.goes_on(index, Some(first)),
            }
        }
        stage
    }

    /// Until it is as long as asked for, or has had so many stretches of computing.
    pub(super) fn play(&mut self, most_stretches: u64) {
        while self.steps < MOST_STEPS && self.stretches < most_stretches {
            let acts = self.computing.peek().map(|Reverse((at, ..))| self.time_of(*at));
            let wakes = self.sleeping.peek().map(|Reverse((time, ..))| *time);
            let Some(next) = acts.into_iter().chain(wakes).min() else {
                if !self.stir() {
                    break;
                }
                continue;
            };
            self.passes(next.min(self.draw.length_ns));
            if next > self.draw.length_ns {
                break;
            }
            let is_woken = wakes == Some(next);
            let due = if is_woken { &mut self.sleeping } else { &mut self.computing };
            let Some(Reverse((_, turn, index))) = due.pop() else { break };
            match is_woken {
                true if self.actors[index as usize].sleep != Some(turn) => {}
                true => self.goes_on(index, None),
                false => self.act(index),
            }
        }
        self.cut_short();
    }

    /// Nobody has computed what is left when it ends, or slept for longer.
    fn cut_short(&mut self) {
        for Reverse((_, turn, index)) in std::mem::take(&mut self.sleeping) {
            let actor = &mut self.actors[index as usize];
            if actor.sleep == Some(turn) {
                actor.steps.pop();
            }
        }
        for Reverse((at, _, index)) in std::mem::take(&mut self.computing) {
            let left = (at as f64 - self.computed).max(0.0) / self.stretch_of(index);
            let steps = &mut self.actors[index as usize].steps;
            if let Some(Step::Run(ns)) = steps.last_mut() {
                *ns = ns.saturating_sub(left as Nanos);
            }
        }
        for index in 0..self.actors.len() as TaskIndex {
            self.leave_out_unanswered(index);
        }
    }

    /// Posts that this one answers in turn, and had not when it ended: in a replay it might answer them, and not one
    /// whose answer is waited for.
    fn leave_out_unanswered(&mut self, index: TaskIndex) {
        let actor = &mut self.actors[index as usize];
        let (mut taken, mut open) =
            (std::mem::take(&mut actor.owed), std::mem::take(&mut actor.posts));
        let answered = |step: &Step| match *step {
            Step::Answer(to, _) => Some(to),
            _ => None,
        };
        let steps = &self.actors[index as usize].steps;
        let answered: BTreeSet<ClassIndex> =
            steps.iter().filter_map(answered).map(|to| self.class_of(to)).collect();
        taken.retain(|from| answered.contains(&self.class_of(*from)));
        open.retain(|from| answered.contains(&self.class_of(*from)));
        for from in taken {
            if self.forget(index, |step| step == Step::Await(from)) {
                open.push_back(from);
            }
        }
        for from in open {
            self.forget(from, |step| matches!(step, Step::Post(to, _) if to == index));
        }
    }

    /// The last such step of a task, if there is one.
    fn forget(&mut self, index: TaskIndex, is_it: impl Fn(Step) -> bool) -> bool {
        let steps = &mut self.actors[index as usize].steps;
        let at = steps.iter().rposition(|step| is_it(*step));
        at.map(|at| steps.remove(at)).is_some()
    }

    /// What each class has computed.
    pub(super) fn computed(&self) -> Vec<Nanos> {
        let mut computed = vec![0; self.model.classes.len()];
        for (actor, index) in self.actors.iter().zip(0..) {
            computed[self.class_of(index) as usize] += computing(&actor.steps);
        }
        computed
    }

    fn stretch_of(&self, index: TaskIndex) -> f64 {
        self.model.classes[self.class_of(index) as usize].stretch
    }

    /// How long a task takes to compute for a nanosecond beside all that do now.
    fn pace(&self) -> f64 {
        (self.busy as f64 / self.cpus as f64).max(1.0)
    }

    fn time_of(&self, computed: Nanos) -> Nanos {
        let left = (computed as f64 - self.computed).max(0.0) * self.pace();
        self.now.saturating_add(left.ceil() as Nanos)
    }

    fn passes(&mut self, until: Nanos) {
        self.computed += until.saturating_sub(self.now) as f64 / self.pace();
        self.now = until;
    }

    /// False where nobody can go on.
    fn stir(&mut self) -> bool {
        let waiting = self.actors.iter().zip(0..).filter(|(actor, _)| actor.state == State::Waits);
        let Some((_, index)) = waiting.min_by_key(|(actor, _)| actor.since) else { return false };
        self.actors[index as usize].state = State::Sleeps;
        self.take_down(index, Step::Sleep(STIRS_NS));
        self.wakes_in(STIRS_NS, index);
        true
    }

    fn class_of(&self, index: TaskIndex) -> ClassIndex {
        self.model.members[self.actors[index as usize].member as usize].class
    }

    fn take_down(&mut self, index: TaskIndex, step: Step) {
        self.steps += 1;
        self.actors[index as usize].steps.push(step);
    }

    fn wakes_in(&mut self, ns: Nanos, index: TaskIndex) {
        self.turns += 1;
        self.actors[index as usize].sleep = Some(self.turns);
        self.sleeping.push(Reverse((self.now.saturating_add(ns.max(1)), self.turns, index)));
    }

    fn acts_in(&mut self, ns: Nanos, index: TaskIndex) {
        self.turns += 1;
        let takes = (ns as f64 * self.stretch_of(index)) as Nanos;
        let at = (self.computed as Nanos).saturating_add(takes.max(1));
        self.computing.push(Reverse((at, self.turns, index)));
    }

    /// It computes until what it does next.
    fn goes_on(&mut self, index: TaskIndex, known: Option<Act>) {
        let own = self.class_of(index);
        let class = &self.model.classes[own as usize];
        let is_mutual =
            |from: &&TaskIndex| self.model.pairs.mutual.contains(&(own, self.class_of(**from)));
        let owed = self.actors[index as usize].owed.iter().filter(is_mutual).count();
        let actor = &mut self.actors[index as usize];
        actor.history.owes(owed);
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
        self.acts_in(next.computing, index);
    }

    fn act(&mut self, index: TaskIndex) {
        if self.is_early(index) {
            return self.acts_in(EARLY_NS, index);
        }
        self.hands_on(index);
        let actor = &mut self.actors[index as usize];
        let Some(next) = actor.next.take() else { return };
        if !matches!(next.act, Act::Await(_)) {
            actor.history.push(next.act);
        }
        match next.act {
            Act::Await(_) | Act::Rest => return self.awaits(index, next.act),
            Act::Contend(wake) => return self.contends(index, wake),
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
                return self.exits(index);
            }
            Act::Fork(class) => self.forks(index, class),
            Act::Answer(class, owed, wake) => match self.owed(index, class, owed) {
                Some(to) if owed == Owed::InTurn => self.post(index, to, Step::Answer(to, wake)),
                Some(to) => self.post(index, to, Step::Post(to, wake)),
                // Its call was before the trace.
                None if owed == Owed::InTurn && self.does_as_recorded(index) => {
                    self.call(index, class, wake);
                }
                None => {}
            },
            Act::Call(class, wake) => self.call(index, class, wake),
            Act::TellParent(wake) => {
                if let Some(parent) = self.actors[index as usize].parent {
                    self.post(index, parent, Step::Post(parent, wake));
                }
            }
            Act::Begin | Act::Compute => {}
        }
        self.goes_on(index, None);
    }

    fn sleeps(&mut self, index: TaskIndex, ns: Nanos, step: Step) {
        self.answers_before_it_sleeps(index);
        self.actors[index as usize].state = State::Sleeps;
        self.busy -= 1;
        self.stretches += 1;
        self.take_down(index, step);
        self.wakes_in(ns, index);
    }

    /// What a task of the recording did first.
    pub(super) fn does_as_recorded(&self, index: TaskIndex) -> bool {
        let actor = &self.actors[index as usize];
        actor.acts <= self.model.members[actor.member as usize].script.len()
    }

    /// Whom it is to take turns with had been forked by then in the recording, and has not been yet. It does not look for
    /// longer than twice as late as that one was.
    fn is_early(&self, index: TaskIndex) -> bool {
        let Actor { member, next, called, .. } = &self.actors[index as usize];
        let Some(Act::Call(class, _)) = next.map(|next| next.act) else { return false };
        let in_turn = self.model.pairs.in_turn.contains(&(self.class_of(index), class));
        if !in_turn || !self.does_as_recorded(index) {
            return false;
        }
        let callees = self.model.members[*member as usize].calls.iter();
        let of_class =
            callees.filter(|callee| self.model.members[**callee as usize].class == class);
        let (unborn, born): (Vec<TaskIndex>, Vec<TaskIndex>) =
            of_class.partition(|callee| self.rows[**callee as usize].is_empty());
        let is_called = |callee: &TaskIndex| {
            self.rows[*callee as usize].iter().any(|task| called.contains(task))
        };
        let is_due =
            |callee: &TaskIndex| self.now < 2 * self.model.members[*callee as usize].task.forked_ns;
        born.iter().all(is_called) && unborn.iter().any(is_due)
    }

    /// Whom it answers: who is answered if it waits only if it does.
    fn owed(&mut self, index: TaskIndex, class: ClassIndex, which: Owed) -> Option<TaskIndex> {
        let own = self.class_of(index);
        let if_awaited = self.model.pairs.if_awaited.contains_key(&(class, own));
        let is_answered = |task: &TaskIndex| {
            let waits = || self.actors[*task as usize].wants(own);
            self.class_of(*task) == class && (!if_awaited || waits())
        };
        let owed = &self.actors[index as usize].owed;
        let at = match which {
            Owed::Latest => owed.iter().rposition(is_answered),
            Owed::Earliest | Owed::InTurn => owed.iter().position(is_answered),
        }?;
        Some(self.actors[index as usize].owed.remove(at))
    }

    fn call(&mut self, index: TaskIndex, class: ClassIndex, wake: Wake) {
        if let Some(to) = self.callee(index, class) {
            self.post(index, to, Step::Post(to, wake));
        }
    }

    /// Somebody of that class, among those that do as whom it called in the recording if there are any: one
    /// that waits, in the middle of a request if there are such. Where nobody does, a call that is answered
    /// waits for its callee, and so does what it did first; any other wakes nobody. Where two take turns a call is
    /// under way between them for good, once one has called: with each of them no more than with others.
    fn callee(&mut self, index: TaskIndex, class: ClassIndex) -> Option<TaskIndex> {
        let actor = |task: TaskIndex| &self.actors[task as usize];
        let calls = &self.model.members[actor(index).member as usize].calls;
        let is_there =
            |task: &TaskIndex| self.class_of(*task) == class && actor(*task).state != State::Gone;
        let known: Vec<TaskIndex> =
            partners(&self.rows, actor(index), calls.iter()).filter(is_there).collect();
        let own = self.class_of(index);
        let in_turn = self.model.pairs.in_turn.contains(&(own, class));
        let all = if known.is_empty() { &self.cast[class as usize] } else { &known };
        let fewest = in_turn.then(|| least_called(actor(index), all));
        let all = fewest.as_ref().unwrap_or(all);
        let among = |wanted: &dyn Fn(&Actor) -> bool| -> Vec<TaskIndex> {
            all.iter().copied().filter(|task| *task != index && wanted(actor(*task))).collect()
        };
        let mut found = among(&|it| it.wants(own) && !it.owed.is_empty());
        if found.is_empty() {
            found = among(&|it| it.wants(own));
        }
        let is_answered = self.model.pairs.answers((own, class));
        if found.is_empty() && (is_answered || self.does_as_recorded(index)) {
            found = among(&|it| it.state != State::Gone);
        }
        let callee = (!found.is_empty()).then(|| found[self.rng.random_range(0..found.len())])?;
        if in_turn {
            self.actors[index as usize].called.push(callee);
        }
        Some(callee)
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

/// Those of them with whom it has the fewest calls under way.
fn least_called(actor: &Actor, all: &[TaskIndex]) -> Vec<TaskIndex> {
    let calls = |task: &TaskIndex| actor.called.iter().filter(|called| *called == task).count();
    let fewest = all.iter().map(calls).min();
    all.iter().copied().filter(|task| Some(calls(task)) == fewest).collect()
}
