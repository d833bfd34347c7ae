//! What a wakeup decision read and no tracepoint shows: was it sync, and had
//! the two tasks so many wake flips from before the trace that it was wide, or that it was not?
//!
//! Both follow from who wakes whom, and how: a write to a pipe wakes with the lock of a wait queue
//! held, a futex without, and the context of the trace tells these apart. So for each waker's and
//! wakee's names and each context the outcomes of earlier wakeups tell which of the six combinations
//! explains them best; that one is believed for the next. A decision never learns from its own outcome
//! before it is judged.
//!
//! Limit: names and contexts stand for what tasks do; wakeups of pairs beyond the limit are not taken
//! for sync, and are as wide as the flips that were counted make them.

use placewise_trace::Context;

use crate::steps::by_pair::ByPair;
use crate::steps::task::NameId;
use crate::verdict::Hypothesis;

const SCORE_MAX: i8 = 8;
/// So many of a pair's first wakeups are all tried under every hypothesis.
const TRIALS: u32 = 16;
/// Later ones that were explained are, one in so many.
const SAMPLE: u32 = 16;
const CONTEXTS: usize = Context::Unknown as usize + 1;

/// What wakeups have in common that are taken to be alike.
#[derive(Clone, Copy)]
pub struct Sort {
    pub waker: NameId,
    pub wakee: NameId,
    pub context: Context,
}

/// What is believed of those of one sort.
#[derive(Clone, Copy, Default)]
pub struct Belief {
    scores: [i8; Hypothesis::ALL.len()],
    /// After the first.
    seen: Option<u32>,
}

/// What is believed of each sort of wakeups.
#[derive(Default)]
pub struct Beliefs {
    by_context: [ByPair<NameId, Belief>; CONTEXTS],
}

impl Beliefs {
    /// What is believed of wakeups like this one; `None` beyond the limit.
    pub fn of(&mut self, sort: Sort) -> Option<&mut Belief> {
        let pairs = &mut self.by_context[sort.context as usize];
        pairs.id(sort.waker, sort.wakee).map(|pair| pairs.of(pair))
    }
}

impl Belief {
    /// What is believed of a wakeup, if it may have been sync.
    pub fn best(&self, may_be_sync: bool) -> Hypothesis {
        let scores = self.scores;
        let mut best = 0;
        for at in 1..scores.len() {
            if scores[at] > scores[best] && (may_be_sync || !Hypothesis::ALL[at].sync) {
                best = at;
            }
        }
        Hypothesis::ALL[best]
    }

    /// Is it worth trying this wakeup under every hypothesis?
    pub fn wants_trial(&mut self, explained: bool) -> bool {
        let seen = self.seen.map_or(0, |seen| seen.saturating_add(1));
        self.seen = Some(seen);
        !explained || seen < TRIALS || seen.is_multiple_of(SAMPLE)
    }

    /// Which hypotheses explained a wakeup; `None` was not possible.
    pub fn learn(&mut self, explained: [Option<bool>; Hypothesis::ALL.len()]) {
        if explained.iter().flatten().all(|&hit| hit) || !explained.contains(&Some(true)) {
            return;
        }
        for (score, explained) in self.scores.iter_mut().zip(explained) {
            match explained {
                Some(true) => *score = (*score + 1).min(SCORE_MAX),
                Some(false) => *score = (*score - 1).max(-SCORE_MAX),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Flips;

    const SYNC: Hypothesis = Hypothesis { sync: true, flips: Flips::Counted };
    const WIDE: Hypothesis = Hypothesis { sync: false, flips: Flips::Wide };
    const BOTH: Hypothesis = Hypothesis { sync: true, flips: Flips::Wide };
    const ALL: usize = Hypothesis::ALL.len();

    fn sort(waker: NameId, wakee: NameId) -> Sort {
        Sort { waker, wakee, context: Context::Task }
    }

    /// Which hypotheses explain an outcome that only `right` explain.
    fn only(right: &[Hypothesis]) -> [Option<bool>; ALL] {
        Hypothesis::ALL.map(|hypothesis| Some(right.contains(&hypothesis)))
    }

    fn taught(lessons: &[[Option<bool>; ALL]]) -> Beliefs {
        let mut beliefs = Beliefs::default();
        for &lesson in lessons {
            let belief = beliefs.of(sort(1, 2)).unwrap();
            assert!(belief.wants_trial(false));
            belief.learn(lesson);
        }
        beliefs
    }

    fn best(mut beliefs: Beliefs, sort: Sort, may_be_sync: bool) -> Hypothesis {
        beliefs.of(sort).unwrap().best(may_be_sync)
    }

    /// Of the pair that was taught.
    fn scores(mut beliefs: Beliefs) -> [i8; ALL] {
        beliefs.of(sort(1, 2)).unwrap().scores
    }

    #[test]
    fn what_explains_the_outcomes_is_believed() {
        let of = |lessons: &[_]| best(taught(lessons), sort(1, 2), true);
        assert_eq!(of(&[]), Hypothesis::default());
        assert_eq!(of(&[only(&[SYNC, BOTH])]), SYNC, "the simpler of equals");
        assert_eq!(of(&[only(&[WIDE])]), WIDE);
        assert_eq!(of(&[only(&[SYNC]), only(&[WIDE]), only(&[WIDE])]), WIDE);
    }

    #[test]
    fn a_pair_is_in_order() {
        let beliefs = taught(&[only(&[SYNC])]);
        assert_eq!(best(beliefs, sort(2, 1), true), Hypothesis::default());
    }

    #[test]
    fn what_cannot_be_sync_is_not_believed_to_be() {
        let beliefs = taught(&[only(&[SYNC]), only(&[SYNC, WIDE])]);
        assert_eq!(best(beliefs, sort(1, 2), false), WIDE);
    }

    #[test]
    fn an_outcome_that_all_or_none_explain_teaches_nothing() {
        let lessons = [only(&[SYNC]), only(&[]), only(&Hypothesis::ALL)];
        assert_eq!(scores(taught(&lessons)), [-1, 1, -1, -1, -1, -1]);
    }

    /// So that it can change within a few wakeups.
    #[test]
    fn no_belief_is_stronger_than_the_limit() {
        let mut lessons = vec![only(&[SYNC]); 100];
        assert_eq!(scores(taught(&lessons)), [-8, 8, -8, -8, -8, -8]);
        lessons.extend([only(&[WIDE]); 9]);
        assert_eq!(best(taught(&lessons), sort(1, 2), true), WIDE);
    }

    #[test]
    fn later_wakeups_are_tried_when_they_were_not_explained_or_now_and_then() {
        let mut belief = Belief::default();
        let tried = (0..TRIALS).filter(|_| belief.wants_trial(true)).count();
        assert_eq!(tried as u32, TRIALS);
        let later = (0..10 * SAMPLE).filter(|_| belief.wants_trial(true)).count();
        assert_eq!(later, 10);
        assert!(belief.wants_trial(false));
    }

    #[test]
    fn nothing_is_believed_of_pairs_beyond_the_limit() {
        let mut beliefs = Beliefs::default();
        assert!((0..1 << 16).all(|waker| beliefs.of(sort(waker, 2)).is_some()));
        assert!(beliefs.of(sort(u32::MAX, 2)).is_none());
    }
}
