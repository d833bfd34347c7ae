//! What follows what: counts of each act after the last two, and after how many calls that are not answered, and
//! how long it took after the last.
//!
//! Where what a task did before last is new, the last act alone tells; where that is new too, all acts.

use std::collections::BTreeMap;

use placewise_workload::program::Nanos;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::act::{Act, ClassIndex};

/// What a task did last, and before that, and how many it owes an answer then, as far as it is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct History {
    acts: [Act; 2],
    owes: u8,
}

/// Who owes more has to answer no sooner.
const MOST_OWED: usize = 3;

impl Default for History {
    fn default() -> Self {
        History { acts: [Act::Begin; 2], owes: 0 }
    }
}

impl History {
    pub fn push(&mut self, act: Act) {
        self.acts = [self.last(), act];
    }

    pub fn owes(&mut self, count: usize) {
        self.owes = count.min(MOST_OWED) as u8;
    }

    fn last(&self) -> Act {
        self.acts[1]
    }
}

/// Of the tasks of a class.
#[derive(Debug, Default)]
pub struct Chain {
    after_two: BTreeMap<History, Counts>,
    after_one: BTreeMap<Act, Counts>,
    all: Counts,
    /// By the last act and the next: computing before that, and what it took itself.
    times: BTreeMap<(Act, Act), [Durations; 2]>,
}

/// What a task is drawn to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    pub act: Act,
    /// Before it.
    pub computing: Nanos,
    /// Of a sleep, or since the last arrival.
    pub takes: Nanos,
}

impl Chain {
    pub fn see(&mut self, history: &History, act: Act, computed: Nanos, takes: Nanos) {
        self.after_two.entry(*history).or_default().add(act);
        self.after_one.entry(history.last()).or_default().add(act);
        self.all.add(act);
        let [computing, taken] = self.times.entry((history.last(), act)).or_default();
        computing.add(computed);
        taken.add(takes);
    }

    pub fn forks(&self) -> bool {
        self.all.of.iter().any(|(act, _)| matches!(act, Act::Fork(_)))
    }

    /// `None` where no task of the class has done anything.
    pub fn draw(&self, history: &History, rng: &mut Pcg64Mcg) -> Option<Drawn> {
        let act = self.counts(history).draw(rng)?;
        Some(self.timed(history, act, rng))
    }

    fn counts(&self, history: &History) -> &Counts {
        let counts = self.after_two.get(history).or_else(|| self.after_one.get(&history.last()));
        counts.unwrap_or(&self.all)
    }

    /// Where one of these classes is waited for here, any of them is: who comes first is a matter of chances.
    pub fn awaited(&self, history: &History) -> impl Iterator<Item = ClassIndex> {
        self.counts(history).of.iter().filter_map(|(act, _)| match act {
            Act::Await(class) => Some(*class),
            _ => None,
        })
    }

    /// What is known to come next, with its times.
    pub fn timed(&self, history: &History, act: Act, rng: &mut Pcg64Mcg) -> Drawn {
        let pair = self.times.get(&(history.last(), act));
        let any = || self.times.iter().find(|((_, next), _)| *next == act).map(|(_, times)| times);
        let times = pair.or_else(any);
        let [computing, takes] =
            times.map_or([0; 2], |times| [0, 1].map(|at: usize| times[at].draw(rng)));
        Drawn { act, computing, takes }
    }
}

#[derive(Debug, Default)]
struct Counts {
    total: u64,
    of: Vec<(Act, u64)>,
}

impl Counts {
    fn add(&mut self, act: Act) {
        self.total += 1;
        match self.of.iter_mut().find(|(known, _)| *known == act) {
            Some((_, count)) => *count += 1,
            None => self.of.push((act, 1)),
        }
    }

    fn draw(&self, rng: &mut Pcg64Mcg) -> Option<Act> {
        let mut at = (self.total > 0).then(|| rng.random_range(0..self.total))?;
        let is_it = |(_, count): &&(Act, u64)| match at.checked_sub(*count) {
            Some(left) => {
                at = left;
                false
            }
            None => true,
        };
        self.of.iter().find(is_it).map(|(act, _)| *act)
    }
}

/// A distribution, as values that were seen: all of them, or every second, fourth, ...
#[derive(Debug, Default)]
struct Durations {
    kept: Vec<Nanos>,
    seen: u64,
    /// One of `1 << thinned` is kept.
    thinned: u32,
}

impl Durations {
    const MOST: usize = 512;

    fn add(&mut self, value: Nanos) {
        if self.seen.is_multiple_of(1 << self.thinned) {
            if self.kept.len() == Self::MOST {
                let mut at = 0;
                self.kept.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.thinned += 1;
            }
            self.kept.push(value);
        }
        self.seen += 1;
    }

    fn draw(&self, rng: &mut Pcg64Mcg) -> Nanos {
        if self.kept.is_empty() { 0 } else { self.kept[rng.random_range(0..self.kept.len())] }
    }
}

#[cfg(test)]
mod tests {
    use placewise_workload::program::Wake;
    use rand::SeedableRng;

    use super::*;
    use crate::model::act::Owed;

    #[test]
    fn what_follows_depends_on_the_last_two_acts() {
        let mut chain = Chain::default();
        let mut history = History::default();
        // Two waits, a sleep, two waits, a sleep, ...
        for turn in 0..300 {
            let act = if turn % 3 == 2 { Act::Sleep } else { Act::Await(0) };
            chain.see(&history, act, turn % 3, 7);
            history.push(act);
        }
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let after = |acts| History { acts, owes: 0 };
        for _ in 0..50 {
            let next = chain.draw(&after([Act::Await(0); 2]), &mut rng);
            assert_eq!(next, Some(Drawn { act: Act::Sleep, computing: 2, takes: 7 }));
            let next = chain.draw(&after([Act::Sleep, Act::Await(0)]), &mut rng);
            assert_eq!(next, Some(Drawn { act: Act::Await(0), computing: 1, takes: 7 }));
        }
        assert!(chain.draw(&after([Act::Exit; 2]), &mut rng).is_some(), "any of them");
        assert_eq!(Chain::default().draw(&history, &mut rng), None);
    }

    #[test]
    fn who_owes_an_answer_still_does_not_as_who_has_answered() {
        let mut chain = Chain::default();
        let answer = Act::Answer(0, Owed::Latest, Wake::Plain);
        let acts = [Act::Await(0), answer];
        for (owes, next) in [(1, answer), (0, Act::Await(0))] {
            chain.see(&History { acts, owes }, next, 0, 0);
        }
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let mut next = |owes| chain.draw(&History { acts, owes }, &mut rng).map(|drawn| drawn.act);
        assert!((0..20).all(|_| next(1) == Some(answer)));
        assert!((0..20).all(|_| next(0) == Some(Act::Await(0))));
    }

    #[test]
    fn a_distribution_stays_small_and_keeps_its_quantiles() {
        let mut durations = Durations::default();
        (0..100_000).for_each(|value| durations.add(value));
        assert!(durations.kept.len() <= Durations::MOST);
        let below = durations.kept.iter().filter(|value| **value < 50_000).count();
        let share = below as f64 / durations.kept.len() as f64;
        assert!((share - 0.5).abs() < 0.01, "{share}");
    }
}
