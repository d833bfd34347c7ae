//! What a wakeup decision read and no tracepoint shows: was it sync, and had
//! the two tasks so many wake flips from before the trace that it was wide?
//!
//! Both follow from who wakes whom, and how: a write to a pipe wakes with the lock of a wait queue
//! held, a futex without, and the context of the trace tells these apart. So for each waker's and
//! wakee's names and each context the outcomes of earlier wakeups tell which of the four combinations
//! explains them best; that one is believed for the next. A decision never learns from its own outcome
//! before it is judged.
//!
//! Limit: names and contexts stand for what tasks do; pairs beyond the limit are taken for neither
//! sync nor wide.

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

#[derive(Clone, Copy, Default)]
struct Pair {
    scores: [i8; Hypothesis::ALL.len()],
    /// After the first.
    seen: Option<u32>,
}

/// What is believed of each sort of wakeups.
#[derive(Default)]
pub struct Beliefs {
    by_context: [ByPair<NameId, Pair>; CONTEXTS],
}

impl Beliefs {
    fn pair(&mut self, sort: Sort) -> Option<&mut Pair> {
        let pairs = &mut self.by_context[sort.context as usize];
        pairs.id(sort.waker, sort.wakee).map(|pair| pairs.of(pair))
    }

    /// What is believed of a wakeup, if it may have been sync.
    pub fn of(&mut self, sort: Sort, may_be_sync: bool) -> Hypothesis {
        let Some(Pair { scores, .. }) = self.pair(sort).copied() else {
            return Hypothesis::default();
        };
        let mut best = 0;
        for at in 1..scores.len() {
            if scores[at] > scores[best] && (may_be_sync || !Hypothesis::ALL[at].sync) {
                best = at;
            }
        }
        Hypothesis::ALL[best]
    }

    /// Is it worth trying this wakeup under every hypothesis?
    pub fn wants_trial(&mut self, sort: Sort, explained: bool) -> bool {
        let Some(pair) = self.pair(sort) else { return false };
        let seen = pair.seen.map_or(0, |seen| seen.saturating_add(1));
        pair.seen = Some(seen);
        !explained || seen < TRIALS || seen.is_multiple_of(SAMPLE)
    }

    /// Which hypotheses explained a wakeup; `None` was not possible.
    pub fn learn(&mut self, sort: Sort, explained: [Option<bool>; 4]) {
        let Some(pair) = self.pair(sort) else { return };
        if explained.iter().flatten().all(|&hit| hit) || !explained.contains(&Some(true)) {
            return;
        }
        for (score, explained) in pair.scores.iter_mut().zip(explained) {
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

    const SYNC: Hypothesis = Hypothesis { sync: true, wide: false };
    const WIDE: Hypothesis = Hypothesis { sync: false, wide: true };
    const BOTH: Hypothesis = Hypothesis { sync: true, wide: true };

    fn sort(waker: NameId, wakee: NameId) -> Sort {
        Sort { waker, wakee, context: Context::Task }
    }

    /// Which hypotheses explain an outcome that only `right` explain.
    fn only(right: &[Hypothesis]) -> [Option<bool>; 4] {
        Hypothesis::ALL.map(|hypothesis| Some(right.contains(&hypothesis)))
    }

    fn taught(lessons: &[[Option<bool>; 4]]) -> Beliefs {
        let mut beliefs = Beliefs::default();
        for &lesson in lessons {
            assert!(beliefs.wants_trial(sort(1, 2), false));
            beliefs.learn(sort(1, 2), lesson);
        }
        beliefs
    }

    /// Of the pair that was taught.
    fn scores(mut beliefs: Beliefs) -> [i8; 4] {
        beliefs.pair(sort(1, 2)).unwrap().scores
    }

    #[test]
    fn what_explains_the_outcomes_is_believed() {
        assert_eq!(Beliefs::default().of(sort(1, 2), true), Hypothesis::default());
        assert_eq!(
            taught(&[only(&[SYNC, BOTH])]).of(sort(1, 2), true),
            SYNC,
            "the simpler of equals"
        );
        assert_eq!(taught(&[only(&[WIDE])]).of(sort(1, 2), true), WIDE);
        let changed = [only(&[SYNC]), only(&[WIDE]), only(&[WIDE])];
        assert_eq!(taught(&changed).of(sort(1, 2), true), WIDE);
    }

    #[test]
    fn a_pair_is_in_order() {
        assert_eq!(taught(&[only(&[SYNC])]).of(sort(2, 1), true), Hypothesis::default());
    }

    #[test]
    fn what_cannot_be_sync_is_not_believed_to_be() {
        let mut beliefs = taught(&[only(&[SYNC]), only(&[SYNC, WIDE])]);
        assert_eq!(beliefs.of(sort(1, 2), false), WIDE);
    }

    #[test]
    fn an_outcome_that_all_or_none_explain_teaches_nothing() {
        let lessons = [only(&[SYNC]), only(&[]), only(&Hypothesis::ALL)];
        assert_eq!(scores(taught(&lessons)), [-1, 1, -1, -1]);
    }

    /// So that it can change within a few wakeups.
    #[test]
    fn no_belief_is_stronger_than_the_limit() {
        let mut lessons = vec![only(&[SYNC]); 100];
        assert_eq!(scores(taught(&lessons)), [-8, 8, -8, -8]);
        lessons.extend([only(&[WIDE]); 9]);
        assert_eq!(taught(&lessons).of(sort(1, 2), true), WIDE);
    }

    #[test]
    fn later_wakeups_are_tried_when_they_were_not_explained_or_now_and_then() {
        let mut beliefs = Beliefs::default();
        let tried = (0..TRIALS).filter(|_| beliefs.wants_trial(sort(1, 2), true)).count();
        assert_eq!(tried as u32, TRIALS);
        let later = (0..10 * SAMPLE).filter(|_| beliefs.wants_trial(sort(1, 2), true)).count();
        assert_eq!(later, 10);
        assert!(beliefs.wants_trial(sort(1, 2), false));
    }

    #[test]
    fn pairs_beyond_the_limit_are_not_learned() {
        let mut beliefs = Beliefs::default();
        for waker in 0..1 << 16 {
            assert!(beliefs.wants_trial(sort(waker, 2), true));
        }
        assert!(!beliefs.wants_trial(sort(u32::MAX, 2), false));
        beliefs.learn(sort(u32::MAX, 2), only(&[SYNC]));
        assert_eq!(beliefs.of(sort(u32::MAX, 2), true), Hypothesis::default());
    }
}
