//! Who is there as a draw begins: the tasks of the recording that were, and their twins.

use std::collections::{BTreeSet, VecDeque};

use placewise_workload::program::{Nanos, Wake};

use crate::model::act::ClassIndex;
use crate::model::chain::{Drawn, History};
use crate::model::learn::Model;
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
    /// For a peer that holds what it wants, and goes on.
    Contends,
    Gone,
}

/// A task that is drawn.
#[derive(Debug)]
pub struct Actor {
    /// It does as this one of the recording.
    pub member: TaskIndex,
    /// Among those that do.
    pub place: usize,
    pub is_twin: bool,
    pub parent: Option<TaskIndex>,
    pub exits: bool,
    pub steps: Vec<Step>,
    pub history: History,
    pub next: Option<Drawn>,
    /// How many it has drawn.
    pub acts: usize,
    pub state: State,
    /// Which turn ends its sleep.
    pub sleep: Option<u64>,
    /// Waits since then, for a task of that class, or of one of `others`; for anybody, where there is none.
    pub since: Nanos,
    pub awaited: Option<ClassIndex>,
    pub others: BTreeSet<ClassIndex>,
    pub last_arrival: Nanos,
    /// Who has posted to it, but what it has taken.
    pub posts: VecDeque<TaskIndex>,
    /// Whose posts it has taken and not answered.
    pub owed: Vec<TaskIndex>,
    /// Peers that want what it holds, and how they are woken.
    pub contenders: Vec<(TaskIndex, Wake)>,
    /// With whom it has begun to take turns, once for each call that is under way between them from then on.
    pub called: Vec<TaskIndex>,
}

impl Actor {
    fn new(member: TaskIndex, place: usize) -> Self {
        Actor {
            member,
            place,
            is_twin: false,
            parent: None,
            exits: false,
            steps: Vec::new(),
            history: History::default(),
            next: None,
            acts: 0,
            state: State::Waits,
            sleep: None,
            since: 0,
            awaited: None,
            others: BTreeSet::new(),
            last_arrival: 0,
            posts: VecDeque::new(),
            owed: Vec::new(),
            contenders: Vec::new(),
            called: Vec::new(),
        }
    }

    /// Whether it waits for a post of a task of that class.
    pub fn wants(&self, class: ClassIndex) -> bool {
        self.state == State::Waits && self.would_take(class)
    }

    pub fn would_take(&self, class: ClassIndex) -> bool {
        self.awaited.is_none_or(|awaited| awaited == class) || self.others.contains(&class)
    }

    pub fn forked(member: TaskIndex, place: usize, parent: TaskIndex, now: Nanos) -> Self {
        let new = Actor::new(member, place);
        Actor { is_twin: true, parent: Some(parent), last_arrival: now, ..new }
    }
}

/// Of each task of the recording those that do as it did: of two tasks that talked to each other, those in
/// the same place talk to each other.
pub type Rows = Vec<Vec<TaskIndex>>;

/// All that were there, in the order of the recording; then each twin with its own.
pub fn at_first(model: &Model, draw: &Draw) -> (Vec<Actor>, Rows) {
    let mut actors = Vec::new();
    let mut rows: Rows = vec![Vec::new(); model.members.len()];
    let there = || model.members.iter().zip(0..).filter(|(member, _)| !member.task.is_forked);
    for (_, index) in there() {
        rows[index as usize].push(actors.len() as TaskIndex);
        actors.push(Actor::new(index, 0));
    }
    for (member, index) in there() {
        for _ in 1..draw.factor(&member.task.name) {
            for twin in with_its_own(model, index) {
                let row = &mut rows[twin as usize];
                let place = row.len();
                row.push(actors.len() as TaskIndex);
                actors.push(Actor { is_twin: true, ..Actor::new(twin, place) });
            }
        }
    }
    for actor in &mut actors {
        let owes = &model.members[actor.member as usize].owes;
        actor.owed = partners(&rows, actor, owes.iter()).collect();
    }
    (actors, rows)
}

/// Whom an actor talks to that does as one who talked to `others`: where these have as many twins, its own;
/// where they have none, or fewer or more, all.
pub fn partners<'a>(
    rows: &'a Rows,
    actor: &Actor,
    others: impl Iterator<Item = &'a TaskIndex>,
) -> impl Iterator<Item = TaskIndex> {
    let (length, place) = (rows[actor.member as usize].len(), actor.place);
    let of_row = move |other: &'a TaskIndex| match &rows[*other as usize][..] {
        row if row.len() == length => &row[place..=place],
        row => row,
    };
    others.flat_map(of_row).copied()
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
        if !is_of_name(partner)
            && is_there(partner)
            && partners.iter().filter(|it| is_of_name(**it)).count() == 1
        {
            own.insert(partner);
        }
    }
    own
}
