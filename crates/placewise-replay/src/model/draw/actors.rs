//! Who is there as a draw begins: the tasks of the recording that were, and their twins.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use placewise_workload::program::Nanos;

use crate::model::chain::{Drawn, History};
use crate::model::learn::{Member, Model};
use crate::recording::{Step, TaskIndex};

/// What is to be drawn.
#[derive(Clone, Debug)]
pub struct Draw {
    pub length_ns: Nanos,
    /// How many tasks there shall be of each of these names for one of the recording.
    pub scale: Vec<(String, u32)>,
}

impl Draw {
    pub fn factor(&self, name: &str) -> u32 {
        self.scale.iter().find(|(scaled, _)| scaled == name).map_or(1, |(_, factor)| *factor)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Computes,
    Sleeps,
    /// For a post.
    Waits,
    Gone,
}

/// A task that is drawn.
#[derive(Debug)]
pub struct Actor {
    /// It does as this one of the recording.
    pub member: TaskIndex,
    pub is_twin: bool,
    pub parent: Option<TaskIndex>,
    pub exits: bool,
    pub steps: Vec<Step>,
    pub history: History,
    pub next: Option<Drawn>,
    /// How many it has drawn.
    pub acts: usize,
    pub state: State,
    /// Waits since then.
    pub since: Nanos,
    pub last_arrival: Nanos,
    /// Who has posted to it, but what it has taken.
    pub posts: VecDeque<TaskIndex>,
    /// Whose posts it has taken and not answered.
    pub owed: Vec<TaskIndex>,
    pub calls: Vec<TaskIndex>,
}

impl Actor {
    fn new(member: TaskIndex) -> Self {
        Actor {
            member,
            is_twin: false,
            parent: None,
            exits: false,
            steps: Vec::new(),
            history: History::default(),
            next: None,
            acts: 0,
            state: State::Waits,
            since: 0,
            last_arrival: 0,
            posts: VecDeque::new(),
            owed: Vec::new(),
            calls: Vec::new(),
        }
    }

    pub fn forked(member: TaskIndex, parent: TaskIndex, now: Nanos) -> Self {
        Actor { is_twin: true, parent: Some(parent), last_arrival: now, ..Actor::new(member) }
    }
}

/// All that were there, in the order of the recording; then each twin with its own.
pub fn at_first(model: &Model, draw: &Draw) -> Vec<Actor> {
    let mut actors = Vec::new();
    // Of each task its actors: those of one row talk to each other.
    let mut rows: BTreeMap<TaskIndex, Vec<TaskIndex>> = BTreeMap::new();
    let there = || model.members.iter().zip(0..).filter(|(member, _)| !member.task.is_forked);
    for (_, index) in there() {
        rows.insert(index, vec![actors.len() as TaskIndex]);
        actors.push(Actor::new(index));
    }
    for (member, index) in there() {
        for _ in 1..draw.factor(&member.task.name) {
            for twin in with_its_own(model, index) {
                if let Some(row) = rows.get_mut(&twin) {
                    row.push(actors.len() as TaskIndex);
                    actors.push(Actor { is_twin: true, ..Actor::new(twin) });
                }
            }
        }
    }
    for (index, row) in &rows {
        for (place, actor) in row.iter().enumerate() {
            let Member { owes, calls, .. } = &model.members[*index as usize];
            let others = |tasks: &mut dyn Iterator<Item = &TaskIndex>| -> Vec<TaskIndex> {
                let rows = tasks.filter_map(|task| rows.get(task));
                rows.flat_map(|other| partners(row.len(), place, other)).collect()
            };
            let (owed, calls) = (others(&mut owes.iter()), others(&mut calls.iter()));
            let actor = &mut actors[*actor as usize];
            (actor.owed, actor.calls) = (owed, calls);
        }
    }
    actors
}

/// Whom the actor in this place of a row of that length talks to in another row: where both have
/// twins, its own; where it has none, all.
fn partners(length: usize, place: usize, other: &[TaskIndex]) -> Vec<TaskIndex> {
    match other.len() {
        same if same == length => vec![other[place]],
        1 => vec![other[0]],
        _ => other.to_vec(),
    }
}

/// A task, and those that talk to it and to no other of its name, where there are others.
fn with_its_own(model: &Model, index: TaskIndex) -> BTreeSet<TaskIndex> {
    let name = &model.members[index as usize].task.name;
    let is_of_name = |task: TaskIndex| &model.members[task as usize].task.name == name;
    let is_there = |task: TaskIndex| !model.members[task as usize].task.is_forked;
    let of_name =
        (0..model.members.len() as TaskIndex).filter(|&it| is_there(it) && is_of_name(it));
    let mut own = BTreeSet::from([index]);
    if of_name.count() == 1 {
        return own;
    }
    for &partner in &model.members[index as usize].partners {
        let partners = &model.members[partner as usize].partners;
        if !is_of_name(partner) && partners.iter().filter(|it| is_of_name(**it)).count() == 1 {
            own.insert(partner);
        }
    }
    own
}
