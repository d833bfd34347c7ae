//! What the tasks of one class and those of another are to each other.
//!
//! Where they wake each other, and are woken in turn, each wakeup is a **call** or its answer. Where the trace was read
//! with answers in turn, all of these are in it. In others those are missing that came while the caller was awake; what
//! becomes of them (`answers.rs`) depends on whether they are waited for:
//!
//! - Who calls, sleeps for something else, and calls again had its answer in between if it has one at all: there one is
//!   answered **if it waits**. How often it does is drawn with what it does.
//! - All others are **mutual**: who calls again has had its answer.
//!
//! What wakes one of so many that sleep, and answers nothing, is **rare**, and drawn only where it was first done: one
//! who drew such a sleep would wait long for one who draws that it ends.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use placewise_workload::program::Wake;

use super::act::ClassIndex;
use super::peers::Peers;
use crate::recording::{Recording, Step, TaskIndex};

/// Where tasks wake others, and fewer of a hundred of these wakeups are made the other way, those are no answers.
const FEWEST_PCT: u64 = 2;

/// So many calls that were not answered tell what else their callers slept for. Assumed.
const TELLING: u64 = 16;

/// Of so many sleeps of a class that one. Assumed, with traces of servers on one host in view; no published table was.
const RARE: u64 = 100;

/// One class, and another.
pub type Pair = (ClassIndex, ClassIndex);

#[derive(Debug, Default)]
pub struct Pairs {
    /// Those that wake each other, whose calls all have answers, and these again.
    pub mutual: BTreeSet<Pair>,
    /// Those of them whose answers are all in the recording.
    pub in_turn: BTreeSet<Pair>,
    /// Callers and callees where one is answered if it waits, and how.
    pub if_awaited: BTreeMap<Pair, Wake>,
    /// Wakers and wakees of what is not drawn.
    pub rare: BTreeSet<Pair>,
    /// How tasks of the first class wake those of the second.
    pub ways: BTreeMap<Pair, Wake>,
}

impl Pairs {
    pub fn of(recording: &Recording, class_of: &[ClassIndex], peers: &Peers) -> Self {
        let mut pairs = Pairs::default();
        let mut posts: BTreeMap<Pair, u64> = BTreeMap::new();
        let mut sleeps: HashMap<ClassIndex, u64> = HashMap::new();
        for (task, class) in recording.tasks.iter().zip(class_of) {
            for step in &task.steps {
                *sleeps.entry(*class).or_default() += u64::from(step.sleeps());
                let Some((to, wake)) = step.posts() else { continue };
                let pair = (*class, class_of[to as usize]);
                pairs.ways.entry(pair).or_insert(wake);
                *posts.entry(pair).or_default() += 1;
                if matches!(step, Step::Answer(..)) {
                    pairs.in_turn.extend([pair, back(pair)]);
                }
            }
        }
        let elsewhere = elsewhere(recording, class_of);
        let posts_back = |pair: &Pair| posts.get(&back(*pair)).copied().unwrap_or_default();
        let wake_each_other = |pair: &&Pair| {
            let [there, back_again] = [posts[pair], posts_back(pair)];
            there.min(back_again) * 100 >= there.max(back_again) * FEWEST_PCT
        };
        let each_other = || posts.keys().filter(wake_each_other);
        let if_awaited = each_other().filter(|pair| {
            let calls = posts[pair] > posts_back(pair) && elsewhere.contains(pair);
            calls && !pairs.in_turn.contains(pair)
        });
        pairs.if_awaited = if_awaited.map(|pair| (*pair, pairs.ways[&back(*pair)])).collect();
        let is_rare = |(pair, posts): &(&Pair, &u64)| {
            **posts * RARE < sleeps[&pair.1]
                && !pairs.in_turn.contains(pair)
                && !pairs.either_answers_if_awaited(**pair)
        };
        pairs.rare = posts.iter().filter(is_rare).map(|(pair, _)| *pair).collect();
        let is_mutual = |pair: &&Pair| {
            let are_rare = pairs.rare.contains(pair) || pairs.rare.contains(&back(**pair));
            let are_peers = pair.0 == pair.1 && !peers.in_turn.contains(&pair.0);
            !are_rare && !are_peers && !pairs.either_answers_if_awaited(**pair)
        };
        pairs.mutual = each_other().filter(is_mutual).copied().collect();
        pairs
    }

    /// The second answers the first.
    pub fn answers(&self, pair: Pair) -> bool {
        self.mutual.contains(&pair) || self.if_awaited.contains_key(&pair)
    }

    /// One answers the other if that waits.
    fn either_answers_if_awaited(&self, pair: Pair) -> bool {
        self.if_awaited.contains_key(&pair) || self.if_awaited.contains_key(&back(pair))
    }
}

fn back(pair: Pair) -> Pair {
    (pair.1, pair.0)
}

/// Classes whose tasks call those of another, and mostly sleep for something else before they call the same one again, if
/// that has not answered.
fn elsewhere(recording: &Recording, class_of: &[ClassIndex]) -> HashSet<Pair> {
    let class = |task: TaskIndex| class_of[task as usize];
    let mut rounds: HashMap<Pair, [u64; 2]> = HashMap::new();
    for (task, of_task) in recording.tasks.iter().zip(class_of) {
        let (mut sleeps, mut sleeps_for) = (0, HashMap::new());
        // Whom it has called, and how often it had slept for other classes by then.
        let mut called: HashMap<TaskIndex, u64> = HashMap::new();
        for step in &task.steps {
            sleeps += u64::from(step.sleeps());
            if let Step::Await(from) = *step {
                called.remove(&from);
                *sleeps_for.entry(class(from)).or_default() += 1;
            }
            let Some((to, _)) = step.posts() else { continue };
            let for_others = sleeps - sleeps_for.get(&class(to)).copied().unwrap_or(0);
            if let Some(before) = called.insert(to, for_others) {
                let of_pair = rounds.entry((*of_task, class(to))).or_default();
                of_pair[usize::from(for_others > before)] += 1;
            }
        }
    }
    let mostly = |(_, [not, slept]): &(Pair, [u64; 2])| *slept > TELLING.max(*not);
    rounds.into_iter().filter(mostly).map(|(pair, _)| pair).collect()
}
