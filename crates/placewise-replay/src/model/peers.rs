//! Tasks of one class that wake each other.
//!
//! As often one way as the other, and not in turn: they hand on a lock. Who holds it next depends on who wants it then:
//! what is kept is that a task waits for it. Limit: so it is with queues among peers. The others have messages for each
//! other.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::act::ClassIndex;
use crate::recording::{Recording, Step, TaskIndex};

/// Classes whose tasks wake each other: in turn, or to hand on.
#[derive(Default)]
pub struct Peers {
    pub in_turn: HashSet<ClassIndex>,
    pub handing_on: HashSet<ClassIndex>,
}

impl Peers {
    pub fn of(recording: &Recording, class_of: &[ClassIndex]) -> Self {
        // Of each two tasks of a class the posts of the first and of the second; of a class those in turn.
        let mut posts: BTreeMap<(TaskIndex, TaskIndex), [u64; 2]> = BTreeMap::new();
        let mut in_turn: HashMap<ClassIndex, u64> = HashMap::new();
        for ((task, index), class) in recording.tasks.iter().zip(0..).zip(class_of) {
            let mut called = HashSet::new();
            for step in &task.steps {
                if let Step::Await(from) = step {
                    called.remove(from);
                }
                let Some((to, _)) = step.posts() else { continue };
                if class_of[to as usize] == *class {
                    let of_pair = posts.entry((index.min(to), index.max(to))).or_default();
                    of_pair[usize::from(index > to)] += 1;
                    *in_turn.entry(*class).or_default() += u64::from(called.insert(to));
                }
            }
        }
        let mut counts: HashMap<ClassIndex, [u64; 2]> = HashMap::new();
        for ((one, _), [there, back]) in posts {
            let [all, both_ways] = counts.entry(class_of[one as usize]).or_default();
            *all += there + back;
            *both_ways += 2 * there.min(back);
        }
        let mut peers = Peers::default();
        for (class, [all, both_ways]) in counts {
            if 4 * in_turn[&class] >= 3 * all {
                peers.in_turn.insert(class);
            } else if 2 * both_ways >= all {
                peers.handing_on.insert(class);
            }
        }
        peers
    }
}
