//! Decides whether a change between two policies is more than noise.
//!
//! The rule: a paired two-sided t-test on the differences run by run (both policies ran with the
//! same seeds), significant at p < 0.05. With one run nothing can be said.
//!
//! Limits: the test takes the differences as normally distributed; workloads that fall into one of
//! several states (hackbench does) need more runs than the test asks for. Out of twenty changes
//! that are pure noise it lets one through.

use std::f64::consts::FRAC_2_PI;

const SIGNIFICANCE_LEVEL: f64 = 0.05;

/// Whether the runs of two policies differ by more than noise; `None` if there is but one run.
pub fn is_significant(baseline: &[f64], other: &[f64]) -> Option<bool> {
    let differences: Vec<f64> = baseline.iter().zip(other).map(|(b, o)| o - b).collect();
    let std = sample_std(&differences)?;
    let mean = mean(&differences);
    if std == 0.0 {
        return Some(mean != 0.0);
    }
    let n = differences.len();
    let t = mean / (std / (n as f64).sqrt());
    let p = 1.0 - share_within(t.abs(), n - 1);
    Some(p < SIGNIFICANCE_LEVEL)
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

/// Standard deviation with n - 1; `None` for fewer than two samples.
pub fn sample_std(samples: &[f64]) -> Option<f64> {
    if samples.len() < 2 {
        return None;
    }
    let mean = mean(samples);
    let squares: f64 = samples.iter().map(|x| (x - mean).powi(2)).sum();
    Some((squares / (samples.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_says_nothing() {
        assert_eq!(is_significant(&[1.0], &[2.0]), None);
    }

    #[test]
    fn equal_runs_are_noise_and_a_constant_shift_is_not() {
        assert_eq!(is_significant(&[1.0, 2.0], &[1.0, 2.0]), Some(false));
        assert_eq!(is_significant(&[1.0, 2.0], &[1.5, 2.5]), Some(true));
    }

    /// The runs differ more among themselves than by policy, but seed by seed the shift is steady:
    /// an unpaired test would call this noise.
    #[test]
    fn pairing_finds_a_small_steady_shift() {
        let baseline = [10.0, 20.0, 30.0, 40.0, 50.0];
        let other = [11.0, 20.9, 31.1, 41.0, 51.05];
        assert_eq!(is_significant(&baseline, &other), Some(true));
    }

    /// Critical values of t for a two-sided test as tables give them.
    #[test]
    fn tabled_critical_values_are_on_the_level() {
        let at_5_percent = [
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
        let at_1_percent = [(1, 63.657), (2, 9.925), (3, 5.841), (4, 4.604), (30, 2.750)];
        for (level, table) in [(0.05, &at_5_percent[..]), (0.01, &at_1_percent)] {
            for &(degrees_of_freedom, t) in table {
                let p = |t: f64| 1.0 - share_within(t, degrees_of_freedom);
                let rounding = 0.0005;
                let between = p(t - rounding) > level && level > p(t + rounding);
                assert!(between, "t = {t}, {degrees_of_freedom} degrees of freedom: {}", p(t));
            }
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

    /// t = 2.776 is the critical value for four degrees of freedom.
    #[test]
    fn the_level_is_five_percent_two_sided() {
        let zero = [0.0; 5];
        let with_t = |t: f64| {
            let shift = t * sample_std(&[-2.0, -1.0, 0.0, 1.0, 2.0]).unwrap() / 5f64.sqrt();
            [-2.0, -1.0, 0.0, 1.0, 2.0].map(|x| x + shift)
        };
        assert_eq!(is_significant(&zero, &with_t(2.80)), Some(true));
        assert_eq!(is_significant(&zero, &with_t(-2.80)), Some(true));
        assert_eq!(is_significant(&zero, &with_t(2.75)), Some(false));
    }

    #[test]
    fn std_is_that_of_a_sample() {
        assert_eq!(sample_std(&[1.0, 3.0]), Some(2f64.sqrt()));
    }
}
