//! Decides how far a figure of a few runs may be from that of all runs there could be.
//!
//! An interval holds the true figure in 95 of 100 cases: that of the difference of two means by
//! Welch's test, that of a median by the order of the runs alone, whatever their distribution.
//! With one run nothing can be said, nor of a median with fewer than seven. How a run goes within its
//! window says nothing of how far the next seed is from it, so that only runs count.
//!
//! Limits: Welch's test takes the runs as normally distributed, and nothing allows for
//! looking at the runs several times while they are added.

use std::f64::consts::FRAC_2_PI;

const CONFIDENCE: f64 = 0.95;

/// Two medians that are both inside of theirs make one figure that is inside of its interval.
const CONFIDENCE_OF_EACH_OF_TWO: f64 = 1.0 - (1.0 - CONFIDENCE) / 2.0;

/// Where a figure lies, but for one case in twenty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Between two ends in either order; `None` unless both are finite.
    pub fn between(one: f64, other: f64) -> Option<Self> {
        let both = Self { low: one.min(other), high: one.max(other) };
        (one.is_finite() && other.is_finite()).then_some(both)
    }

    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    pub fn is_within(&self, low: f64, high: f64) -> bool {
        low <= self.low && self.high <= high
    }
}

/// How far to either side of the difference of two means its interval goes, by Welch's test, or run by
/// run where the runs go in pairs; `None` with fewer than two runs. Both have as many.
pub fn error_of_difference(one: &[f64], other: &[f64]) -> Option<f64> {
    let runs = one.len() as f64;
    let differences: Vec<f64> = one.iter().zip(other).map(|(one, other)| other - one).collect();
    let [one, other, differences] =
        [sample_variance(one)?, sample_variance(other)?, sample_variance(&differences)?];
    let (variance, degrees_of_freedom) = match are_pairs(runs, one, other, differences) {
        true => (differences, runs - 1.0),
        false => {
            let both = one + other;
            (both, both * both / (one * one + other * other) * (runs - 1.0))
        }
    };
    Some(critical_t(degrees_of_freedom) * (variance / runs).sqrt())
}

/// How far to either side of a mean its interval goes; `None` with fewer than two samples.
pub fn error_of_mean(samples: &[f64]) -> Option<f64> {
    let runs = samples.len() as f64;
    Some(critical_t(runs - 1.0) * (sample_variance(samples)? / runs).sqrt())
}

/// A seed that is high under one policy is high under the other: the runs are the same, or correlate
/// by more than chance. Mostly they do not, for one decision that differs changes all that follow.
fn are_pairs(runs: f64, one: f64, other: f64, differences: f64) -> bool {
    let covariance = (one + other - differences) / 2.0;
    let correlate = || {
        let squared_t = critical_t(runs - 2.0).powi(2);
        let squared = covariance * covariance / (one * other);
        covariance > 0.0 && squared * (runs - 2.0 + squared_t) >= squared_t
    };
    differences == 0.0 || runs > 2.0 && correlate()
}

/// The interval of one of two medians; `None` with fewer than seven samples.
pub fn interval_of_median(samples: &[f64]) -> Option<Interval> {
    let n = samples.len();
    // Both ends lie beyond the median if up to `outside` samples fall on one side of it.
    let (mut tail, mut ln_term) = (0.0, n as f64 * 0.5f64.ln());
    let mut outside = 0;
    while 1.0 - 2.0 * (tail + ln_term.exp()) >= CONFIDENCE_OF_EACH_OF_TWO {
        tail += ln_term.exp();
        outside += 1;
        ln_term += ((n + 1 - outside) as f64 / outside as f64).ln();
    }
    let sorted = sorted(samples);
    let low = *sorted.get(outside.checked_sub(1)?)?;
    Interval::between(low, sorted[n - outside])
}

/// The t that CONFIDENCE of Student's distribution lies within. Between whole degrees of freedom its
/// logarithm is interpolated by their inverse, which is too wide by 3 % at most.
fn critical_t(degrees_of_freedom: f64) -> f64 {
    let below = degrees_of_freedom.max(1.0).floor();
    let weight = (below + 1.0) * (1.0 - below / degrees_of_freedom.max(1.0));
    let [below, above] = [below, below + 1.0].map(|whole| critical_t_of_whole(whole as usize).ln());
    (below + (above - below) * weight).exp()
}

fn critical_t_of_whole(degrees_of_freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, 16.0);
    while high - low > 1e-9 {
        let middle = (low + high) / 2.0;
        match share_within(middle, degrees_of_freedom) < CONFIDENCE {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// The share of Student's t-distribution that lies between `-t` and `t`. With whole degrees of
/// freedom it is a finite sum (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn share_within(t: f64, degrees_of_freedom: usize) -> f64 {
    let angle = (t / (degrees_of_freedom as f64).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let is_odd = degrees_of_freedom % 2 == 1;
    // Each term is the one before it, times the next two factors.
    let mut term = if is_odd { sin * cos } else { sin };
    let mut sum = 0.0;
    for factor in (1 + degrees_of_freedom % 2..degrees_of_freedom).step_by(2) {
        sum += term;
        term *= cos * cos * factor as f64 / (factor + 1) as f64;
    }
    if is_odd { FRAC_2_PI * (angle + sum) } else { sum }
}

pub fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

pub fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

/// Between two samples it is interpolated; NaN of none.
pub fn quantile(samples: &[f64], quantile: f64) -> f64 {
    let sorted = sorted(samples);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = quantile * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

pub fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// With n - 1; `None` for fewer than two samples.
fn sample_variance(samples: &[f64]) -> Option<f64> {
    if samples.len() < 2 {
        return None;
    }
    let mean = mean(samples);
    let squares: f64 = samples.iter().map(|x| (x - mean).powi(2)).sum();
    Some(squares / (samples.len() - 1) as f64)
}

/// Standard deviation with n - 1; `None` for fewer than two samples.
pub fn sample_std(samples: &[f64]) -> Option<f64> {
    Some(sample_variance(samples)?.sqrt())
}

/// The standard deviation in percent of the mean.
pub fn std_pct(samples: &[f64]) -> Option<f64> {
    let pct = 100.0 * sample_std(samples)? / mean(samples).abs();
    pct.is_finite().then_some(pct)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_says_nothing() {
        assert_eq!(error_of_difference(&[1.0], &[2.0]), None);
    }

    fn assert_error(one: &[f64], other: &[f64], expected: f64) {
        let error = error_of_difference(one, other).unwrap();
        assert!((error - expected).abs() < 1e-3 * expected.max(1e-3), "{error}, not {expected}");
    }

    /// Of 1 to 5 the variance is 2.5. Equal ones make eight degrees of freedom of five runs each, and
    /// where one is 0 the other keeps its own four; t is 2.306 and 2.776.
    #[test]
    fn runs_without_pairs_are_told_apart_by_welchs_test() {
        let any_order = [3.0, 5.0, 1.0, 2.0, 4.0];
        assert_error(&[1.0, 2.0, 3.0, 4.0, 5.0], &any_order, 2.306);
        assert_error(&[0.0; 5], &any_order, 2.776 * 0.5f64.sqrt());
    }

    /// The differences 1, 1.1 and 0.9 have a variance of 0.01; t of two degrees of freedom is 4.303.
    #[test]
    fn pairs_count_where_they_correlate() {
        assert_error(&[10.0, 20.0, 30.0], &[11.0, 21.1, 30.9], 4.303 * (0.01f64 / 3.0).sqrt());
        assert_error(&[10.0, 20.0, 30.0], &[10.0, 20.0, 30.0], 0.0);
        assert_error(&[3.0, 4.0], &[3.0, 4.0], 0.0);
    }

    /// Of three runs, a correlation of 0.99 is still chance.
    #[test]
    fn pairs_that_may_be_chance_do_not_count() {
        let error = error_of_difference(&[10.0, 20.0, 30.0], &[10.0, 21.5, 30.0]).unwrap();
        assert!(error > 20.0, "{error}");
    }

    /// Of seven samples all are on one side of the median in 2 of 128 cases; of ten, one or none is
    /// on a given side in 11 of 1024, so the ends are the second and the ninth.
    #[test]
    fn the_interval_of_a_median_is_by_the_order_of_the_samples() {
        let up_to = |n: u32| (1..=n).map(f64::from).rev().collect::<Vec<_>>();
        assert_eq!(interval_of_median(&up_to(6)), None);
        assert_eq!(interval_of_median(&up_to(7)), Interval::between(1.0, 7.0));
        assert_eq!(interval_of_median(&up_to(9)), Interval::between(1.0, 9.0));
        assert_eq!(interval_of_median(&up_to(10)), Interval::between(2.0, 9.0));
    }

    #[test]
    fn an_interval_has_finite_ends_in_order() {
        assert_eq!(Interval::between(2.0, -1.0), Some(Interval { low: -1.0, high: 2.0 }));
        assert_eq!(Interval::between(f64::INFINITY, 0.0), None);
        let interval = Interval::between(-1.0, 1.0).unwrap();
        assert!(interval.contains(-1.0) && !interval.contains(1.1));
        assert!(interval.is_within(-1.0, 1.0) && !interval.is_within(-0.9, 2.0));
    }

    #[test]
    fn quantiles_lie_between_samples() {
        let samples = [4.0, 1.0, 2.0, 3.0];
        let quantiles = [0.0, 0.25, 0.5, 1.0].map(|one| quantile(&samples, one));
        assert_eq!(quantiles, [1.0, 1.75, 2.5, 4.0]);
        assert_eq!(median(&samples), 2.5);
        assert!(median(&[]).is_nan());
    }

    /// Critical values of t for a two-sided test as tables give them.
    #[test]
    fn tabled_critical_values_are_found() {
        let table = [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (9, 2.262),
            (10, 2.228),
            (29, 2.045),
            (30, 2.042),
            (120, 1.980),
            (1000, 1.962),
        ];
        for (degrees_of_freedom, t) in table {
            let found = critical_t(f64::from(degrees_of_freedom));
            assert!((found - t).abs() < 0.0005, "{found}, {degrees_of_freedom} degrees of freedom");
        }
    }

    /// By the incomplete beta function.
    #[test]
    fn critical_values_between_whole_degrees_of_freedom_are_hardly_too_wide() {
        for (degrees_of_freedom, t) in [(1.25, 8.028), (1.5, 6.017), (2.5, 3.575), (7.5, 2.333)] {
            let found = critical_t(degrees_of_freedom);
            assert!(found > t && found < 1.03 * t, "{found}, {degrees_of_freedom}");
        }
    }

    #[test]
    fn the_distribution_is_whole() {
        for degrees_of_freedom in [1, 2, 3, 4, 9_999] {
            assert_eq!(share_within(0.0, degrees_of_freedom), 0.0);
            let all = share_within(f64::MAX, degrees_of_freedom);
            assert!((1.0 - all).abs() < 1e-9, "{degrees_of_freedom} degrees of freedom: {all}");
        }
    }

    #[test]
    fn std_is_that_of_a_sample() {
        assert_eq!(sample_std(&[1.0, 3.0]), Some(2f64.sqrt()));
    }
}
