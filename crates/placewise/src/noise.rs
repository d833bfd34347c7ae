//! Decides whether a change between two policies is more than noise.
//!
//! The rule: a paired two-sided t-test on the differences run by run (both policies ran with the
//! same seeds), significant at p < 0.05. With one run nothing can be said.
//!
//! Limits: the test takes the differences as normally distributed; workloads that fall into one of
//! several states (hackbench does) need more runs than the test asks for. Out of twenty changes
//! that are pure noise it lets one through.

use statrs::distribution::{ContinuousCDF, StudentsT};

const SIGNIFICANCE_LEVEL: f64 = 0.05;

/// Whether the runs of two policies differ by more than noise; `None` if there is but one run.
pub fn is_significant(baseline: &[f64], other: &[f64]) -> Option<bool> {
    let differences: Vec<f64> = baseline.iter().zip(other).map(|(b, o)| o - b).collect();
    let std = sample_std(&differences)?;
    let mean = mean(&differences);
    if std == 0.0 {
        return Some(mean != 0.0);
    }
    let n = differences.len() as f64;
    let t = mean / (std / n.sqrt());
    let distribution = StudentsT::new(0.0, 1.0, n - 1.0).ok()?;
    let p = 2.0 * distribution.sf(t.abs());
    Some(p < SIGNIFICANCE_LEVEL)
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
