//! Decides by how much a policy's runs differ from the baseline's, and how well that is known.
//!
//! A change is in percent of the baseline and positive where the policy is better, whichever
//! direction of the figure is the good one. It is that of the means, and its 95 % interval that of
//! their ratio: how far the baseline itself is known counts only for what is left of it. Where either
//! policy's runs settled in different states it is that of the medians, each within its own interval:
//! a seed that settles high under one policy may settle low under the other, so pairs say nothing.
//!
//! More runs are added until a change is known: either its interval leaves out 0, or all of it is too
//! small to matter.

use placewise_sim::Better;

use crate::noise::{Interval, error_of_difference, interval_of_median, mean, median};
use crate::states::States;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    pub pct: f64,
    /// `None` where too few runs are there to tell.
    pub interval: Option<Interval>,
}

impl Change {
    /// `None` where there is no finite change.
    pub fn between(baseline: &[f64], other: &[f64], better: Better) -> Option<Self> {
        let common = baseline.len().min(other.len());
        let (baseline, other) = (&baseline[..common], &other[..common]);
        match States::of(baseline).or(States::of(other)) {
            Some(_) => Self::of_medians(baseline, other, better),
            None => Self::of_means(baseline, other, better),
        }
    }

    fn of_means(baseline: &[f64], other: &[f64], better: Better) -> Option<Self> {
        let (from, to) = (mean(baseline), mean(other));
        let pct = change_pct(from, to, better)?;
        let end = |to: f64| change_pct(from, to, better);
        let interval = || {
            let error = error_of_difference(&relative(baseline), &relative(other))?;
            match error < 1.0 {
                // While it is small, that of a logarithm is that of the figure relative to its mean.
                true => Interval::between(end(to * (-error).exp())?, end(to * error.exp())?),
                // As large as the figure, or of nothing: a ratio says no more than the difference.
                false => {
                    let error = error_of_difference(baseline, other)?;
                    Interval::between(end(to - error)?, end(to + error)?)
                }
            }
        };
        Some(Self { pct, interval: interval() })
    }

    fn of_medians(baseline: &[f64], other: &[f64], better: Better) -> Option<Self> {
        let pct = change_pct(median(baseline), median(other), better)?;
        let interval = || {
            let (baseline, other) = (interval_of_median(baseline)?, interval_of_median(other)?);
            let ends = [(baseline.low, other.high), (baseline.high, other.low)];
            let [one, two] = ends.map(|(baseline, other)| change_pct(baseline, other, better));
            Interval::between(one?, two?)
        };
        Some(Self { pct, interval: interval() })
    }

    /// More than noise; `None` where that cannot be told.
    pub fn is_significant(&self) -> Option<bool> {
        self.interval.map(|interval| !interval.contains(0.0))
    }

    /// No more runs are needed to say which way it goes, or that it is less than `precision` percent.
    pub fn is_known(&self, precision: f64) -> bool {
        let is_small = |interval: Interval| interval.is_within(-precision, precision);
        self.is_significant() == Some(true) || self.interval.is_some_and(is_small)
    }
}

/// In units of their mean.
fn relative(samples: &[f64]) -> Vec<f64> {
    let mean = mean(samples);
    samples.iter().map(|sample| sample / mean).collect()
}

/// Whether runs differ by more than noise, also where there is no change to tell because the baseline is
/// 0; `None` where too few are there.
pub fn differ(baseline: &[f64], other: &[f64]) -> Option<bool> {
    let common = baseline.len().min(other.len());
    let (baseline, other) = (&baseline[..common], &other[..common]);
    error_of_difference(baseline, other).map(|error| (mean(other) - mean(baseline)).abs() > error)
}

/// The figure that stands for all runs: their mean, or where they settled in different states their
/// median.
pub fn center(samples: &[f64]) -> f64 {
    match States::of(samples) {
        Some(_) => median(samples),
        None => mean(samples),
    }
}

/// Positive is better.
pub fn change_pct(baseline: f64, value: f64, better: Better) -> Option<f64> {
    let gain = match better {
        Better::Higher => value - baseline,
        Better::Lower => baseline - value,
    };
    let pct = 100.0 * gain / baseline.abs();
    pct.is_finite().then_some(pct)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn higher(baseline: &[f64], other: &[f64]) -> Change {
        Change::between(baseline, other, Better::Higher).unwrap()
    }

    #[test]
    fn positive_is_better_in_either_direction() {
        let of = |better| Change::between(&[4.0], &[3.0], better).unwrap().pct;
        assert_eq!((of(Better::Lower), of(Better::Higher)), (25.0, -25.0));
    }

    #[test]
    fn one_run_tells_nothing() {
        let change = higher(&[1.0], &[2.0]);
        assert_eq!((change.interval, change.is_significant()), (None, None));
        assert!(!change.is_known(1_000.0));
    }

    #[test]
    fn equal_runs_are_no_change_and_a_steady_one_is_significant() {
        let none = higher(&[1.0, 2.0], &[1.0, 2.0]);
        assert_eq!((none.pct, none.is_significant()), (0.0, Some(false)));
        let shift = higher(&[1.0, 2.0], &[1.5, 3.0]);
        assert_eq!(shift.is_significant(), Some(true));
        assert!(none.is_known(0.1) && shift.is_known(0.1));
    }

    /// The runs differ more among themselves than by policy, but seed by seed the shift is steady:
    /// without pairs it would be noise.
    #[test]
    fn pairs_find_a_small_steady_shift() {
        let baseline = [10.0, 20.0, 30.0, 40.0, 50.0];
        let other = [11.0, 20.9, 31.1, 41.0, 51.05];
        assert_eq!(higher(&baseline, &other).is_significant(), Some(true));
    }

    #[test]
    fn runs_differ_from_nothing_too() {
        assert_eq!(differ(&[0.0; 3], &[5.0, 5.0, 6.0]), Some(true));
        assert_eq!(differ(&[0.0; 3], &[0.0, 0.0, 6.0]), Some(false));
        assert_eq!(differ(&[0.0], &[5.0]), None);
    }

    /// By hand: the mean is 103, its error 4.303 * 2 / sqrt(3) = 4.968, of which 4.824 % are
    /// e^-0.04824 and e^0.04824.
    #[test]
    fn the_interval_is_that_of_the_ratio_of_the_means() {
        let change = higher(&[100.0; 3], &[101.0, 103.0, 105.0]);
        let interval = change.interval.unwrap();
        assert_eq!(change.pct, 3.0);
        assert!((interval.low + 1.851).abs() < 1e-3, "{interval:?}");
        assert!((interval.high - 8.091).abs() < 1e-3, "{interval:?}");
        assert_eq!(change.is_significant(), Some(false));
        assert!(!change.is_known(8.0) && change.is_known(8.1));
    }

    /// Whichever of the two is the baseline, their ratio lies within the same factors.
    #[test]
    fn what_the_baseline_may_be_counts_as_what_the_other_may_be() {
        let [few, many] = [[8.0, 12.0, 10.0], [120.0, 100.0, 80.0]];
        let fall = higher(&many, &few).interval.unwrap();
        let rise = higher(&few, &many).interval.unwrap();
        let product = (1.0 + fall.low / 100.0) * (1.0 + rise.high / 100.0);
        assert!((product - 1.0).abs() < 1e-9, "{fall:?} {rise:?}");
    }

    #[test]
    fn a_figure_that_is_gone_has_changed_by_more_than_noise_or_not() {
        let gone = |baseline: &[f64]| higher(baseline, &[0.0; 3]);
        assert_eq!(gone(&[5.0, 5.0, 6.0]).is_significant(), Some(true));
        assert_eq!(gone(&[0.0, 0.0, 6.0]).is_significant(), Some(false));
    }

    /// One run of five makes the mean a hundred times as large, and its error as well.
    #[test]
    fn where_the_error_is_as_large_as_the_figure_the_difference_counts() {
        let change = higher(&[1.0; 5], &[1.0, 1.0, 1.0, 1.0, 500.0]);
        assert_eq!(change.is_significant(), Some(false));
        assert!(change.interval.unwrap().low < -100.0);
    }

    /// One of seven runs of the baseline is in a state of its own: the means would say that the policy
    /// halves the time.
    #[test]
    fn medians_stand_for_runs_in_different_states() {
        let baseline = [5.0, 5.1, 5.2, 31.0, 5.2, 5.3, 5.4];
        let other = [5.2, 5.2, 5.2, 5.2, 5.2, 5.2, 5.2];
        let change = Change::between(&baseline, &other, Better::Lower).unwrap();
        assert_eq!((center(&baseline), change.pct), (5.2, 0.0));
        // From the least to the greatest run: 5.2 against 5 and against 31.
        let interval = change.interval.unwrap();
        assert!((interval.low + 4.0).abs() < 1e-9, "{interval:?}");
        assert!((interval.high - 100.0 * 25.8 / 31.0).abs() < 1e-9, "{interval:?}");
    }

    /// Where one policy ran more often, its further runs have no partner.
    #[test]
    fn only_common_seeds_are_compared() {
        assert_eq!(higher(&[1.0, 1.0, 100.0], &[2.0, 2.0]), higher(&[1.0, 1.0], &[2.0, 2.0]));
    }
}
