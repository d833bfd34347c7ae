//! Decides what a predicted change is worth beside the published one.
//!
//! A decisive change, 5 % or more and beyond twice the noise of its publication, has to be predicted
//! with its sign; a change under 2 % is a null, and has to be predicted quiet, under 5 %. What lies
//! between is not judged. A prediction under 0.5 %, or with 0 in its interval, has no sign, and so is
//! wrong where the change is decisive. A policy that changes no decision cannot be loud, so it proves
//! nothing by being quiet.

use serde::Serialize;

use super::publication::{self, noise_pct};
use super::study::Published;
use crate::change::Change;
use crate::machine_readable::nine_digits;
use crate::noise::Interval;

const LEAST_SIGN_PCT: f64 = 0.5;

/// The baseline with a patch that does nothing.
const CHANGES_NOTHING: &str = "hint:none";

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Of a decisive change.
    Right,
    Wrong,
    /// No sign, which is wrong, too; more runs may show one.
    Unsigned,
    /// Of a null.
    Quiet,
    Loud,
}

impl Verdict {
    pub fn is_of_decisive(self) -> bool {
        matches!(self, Self::Right | Self::Wrong | Self::Unsigned)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Wrong => "wrong",
            Self::Unsigned => "unsigned",
            Self::Quiet => "quiet",
            Self::Loud => "loud",
        }
    }
}

/// A published change and what is asked of its prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    Sign { change_pct: f64 },
    Quiet,
}

impl Question {
    /// `None` where a row asks for nothing that can be judged.
    pub fn of(row: &Published, baseline: Option<&Published>) -> Option<Self> {
        let change_pct = row.change_pct?;
        if publication::is_decisive(change_pct, noise_pct(row, baseline?)) {
            return Some(Self::Sign { change_pct });
        }
        let is_null = publication::is_null(change_pct) && row.ran_as.policy != CHANGES_NOTHING;
        is_null.then_some(Self::Quiet)
    }

    /// The verdict is known, but for one case in twenty: a sign, or a change within `precision` percent
    /// that has none; quiet or loud. Of a null, no more than that is asked.
    pub fn is_settled(&self, predicted: &Change, precision: f64) -> bool {
        match self {
            Self::Sign { .. } => predicted.is_known(precision),
            Self::Quiet => predicted.interval.is_some_and(|Interval { low, high }| {
                match [low, high].map(publication::has_effect) {
                    [false, false] => true,
                    [true, true] => low * high > 0.0,
                    _ => false,
                }
            }),
        }
    }

    pub fn judge(&self, predicted_pct: f64, interval: Option<Interval>) -> Verdict {
        let has_sign = predicted_pct.abs() >= LEAST_SIGN_PCT
            && !interval.is_some_and(|interval| interval.contains(0.0));
        match self {
            Self::Sign { .. } if !has_sign => Verdict::Unsigned,
            Self::Sign { change_pct } if change_pct * predicted_pct > 0.0 => Verdict::Right,
            Self::Sign { .. } => Verdict::Wrong,
            Self::Quiet if publication::has_effect(predicted_pct) => Verdict::Loud,
            Self::Quiet => Verdict::Quiet,
        }
    }
}

/// How many were right. Rates are shares of one; `None` where there is nothing to judge by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    pub decisive: usize,
    pub decisive_right: usize,
    pub decisive_unsigned: usize,
    #[serde(serialize_with = "nine_digits")]
    pub decisive_rate: Option<f64>,
    pub null_real: usize,
    pub null_real_quiet: usize,
    #[serde(serialize_with = "nine_digits")]
    pub null_real_rate: Option<f64>,
}

impl Tally {
    pub fn of(verdicts: impl IntoIterator<Item = Verdict>) -> Self {
        let mut tally = Self::default();
        for verdict in verdicts {
            let is_decisive = verdict.is_of_decisive();
            tally.decisive += usize::from(is_decisive);
            tally.null_real += usize::from(!is_decisive);
            tally.decisive_right += usize::from(verdict == Verdict::Right);
            tally.decisive_unsigned += usize::from(verdict == Verdict::Unsigned);
            tally.null_real_quiet += usize::from(verdict == Verdict::Quiet);
        }
        tally.decisive_rate = share(tally.decisive_right, tally.decisive);
        tally.null_real_rate = share(tally.null_real_quiet, tally.null_real);
        tally
    }
}

pub fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::study::row;

    fn question(change_pct: f64, policy: &str) -> Option<Question> {
        let mut of_policy = row("s", "uma-8", "hackbench", "groups=1", policy);
        of_policy.change_pct = Some(change_pct);
        let baseline = row("s", "uma-8", "hackbench", "groups=1", "baseline");
        Question::of(&of_policy, Some(&baseline))
    }

    /// Twice the noise of two runs of hackbench is 2 * 1.9 * sqrt(2) = 5.37.
    #[test]
    fn what_is_asked_hangs_on_the_size_of_the_change_and_its_noise() {
        let sign = |change_pct| Some(Question::Sign { change_pct });
        assert_eq!(question(5.38, "p"), sign(5.38));
        assert_eq!(question(-5.38, "p"), sign(-5.38));
        assert_eq!(question(5.36, "p"), None);
        assert_eq!(question(2.0, "p"), None);
        assert_eq!(question(1.99, "p"), Some(Question::Quiet));
    }

    #[test]
    fn a_policy_that_changes_nothing_is_no_null() {
        assert_eq!(question(0.0, "hint:none"), None);
        assert!(question(20.0, "hint:none").is_some());
    }

    #[test]
    fn a_prediction_without_a_sign_is_wrong() {
        let judge = |pct, interval: Option<(f64, f64)>| {
            let interval = interval.and_then(|(low, high)| Interval::between(low, high));
            Question::Sign { change_pct: 20.0 }.judge(pct, interval)
        };
        assert_eq!(judge(0.5, None), Verdict::Right);
        assert_eq!(judge(0.49, None), Verdict::Unsigned);
        assert_eq!(judge(3.0, Some((0.1, 5.9))), Verdict::Right);
        assert_eq!(judge(3.0, Some((-0.1, 6.1))), Verdict::Unsigned);
        assert_eq!(judge(-3.0, None), Verdict::Wrong);
    }

    /// A sign takes an interval without 0; a null one that is quiet or loud throughout, with 0 or not.
    #[test]
    fn a_null_is_settled_before_its_sign_is_known() {
        let settled = |question: Question, low: f64, high: f64| {
            let predicted =
                Change { pct: 0.5 * (low + high), interval: Interval::between(low, high) };
            question.is_settled(&predicted, 1.0)
        };
        let sign = Question::Sign { change_pct: 20.0 };
        let ends = [(-4.0, 4.9), (0.1, 4.0), (5.0, 9.0), (-9.0, -5.0), (4.0, 9.0), (-5.0, 5.0)];
        let both = |question| ends.map(|(low, high)| settled(question, low, high));
        assert_eq!(both(Question::Quiet), [true, true, true, true, false, false]);
        assert_eq!(both(sign), [false, true, true, true, true, false]);
        assert!(settled(sign, -0.9, 0.9), "within the precision there is no sign to be found");
        let one_run = Change { pct: 0.0, interval: None };
        assert!(!sign.is_settled(&one_run, 1.0) && !Question::Quiet.is_settled(&one_run, 1.0));
    }

    #[test]
    fn a_null_is_quiet_under_five_percent() {
        assert_eq!(Question::Quiet.judge(-4.99, None), Verdict::Quiet);
        assert_eq!(Question::Quiet.judge(-5.0, Interval::between(-20.0, 10.0)), Verdict::Loud);
    }

    #[test]
    fn a_tally_counts_signs_and_nulls_apart() {
        use Verdict::{Loud, Quiet, Right, Unsigned, Wrong};
        let tally = Tally::of([Right, Wrong, Unsigned, Right, Right, Quiet, Loud]);
        assert_eq!(tally.decisive_unsigned, 1);
        assert_eq!((tally.decisive, tally.decisive_right), (5, 3));
        assert_eq!((tally.null_real, tally.null_real_quiet), (2, 1));
        assert_eq!((tally.decisive_rate, tally.null_real_rate), (Some(0.6), Some(0.5)));
        assert_eq!(Tally::of([Right]).null_real_rate, None);
    }
}
