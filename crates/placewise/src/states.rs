//! Decides whether the runs of one scenario settled in two states instead of scattering about one
//! figure.
//!
//! The rule: sorted, the runs fall apart at their widest gap if it is at least a tenth of their
//! median and more than three times as wide as what either side spans. That takes six runs: of fewer,
//! too many that are merely noisy would pass. Of six normally distributed ones about one in thirty does,
//! of ten one in a thousand.
//!
//! Limits: of three states two are taken for one, or none is found.

use serde::Serialize;

use crate::noise::{median, sorted};

const LEAST_RUNS: usize = 6;
const LEAST_GAP: f64 = 0.1;
const GAP_TO_SPAN: f64 = 3.0;

/// Two states that runs settled in.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct States {
    lower: State,
    upper: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct State {
    runs: usize,
    median: f64,
}

impl States {
    /// `None` where all runs are in one state.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let runs = sorted(samples);
        let gap = |at: usize| runs[at] - runs[at - 1];
        let lower = (1..runs.len()).max_by(|one, other| gap(*one).total_cmp(&gap(*other)))?;
        let span = |state: &[f64]| state[state.len() - 1] - state[0];
        let widest = span(&runs[..lower]).max(span(&runs[lower..]));
        let fall_apart = runs.len() >= LEAST_RUNS
            && gap(lower) >= LEAST_GAP * median(&runs).abs()
            && gap(lower) > GAP_TO_SPAN * widest;
        let state = |runs: &[f64]| State { runs: runs.len(), median: median(runs) };
        let (lower, upper) = runs.split_at(lower);
        fall_apart.then(|| Self { lower: state(lower), upper: state(upper) })
    }

    /// `1 of 9 runs: 31 s, the others 5.2 s`
    pub fn told(&self, figure: impl Fn(f64) -> String) -> String {
        let (fewer, others) = match self.upper.runs <= self.lower.runs {
            true => (self.upper, self.lower),
            false => (self.lower, self.upper),
        };
        let (number, all) = (fewer.runs, fewer.runs + others.runs);
        let [fewer, others] = [fewer, others].map(|state| figure(state.median));
        format!("{number} of {all} runs: {fewer}, the others {others}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(samples: &[f64]) -> Option<String> {
        States::of(samples).map(|states| states.told(|value| format!("{value} s")))
    }

    #[test]
    fn a_run_far_from_all_others_is_in_a_state_of_its_own() {
        let with = [5.25, 5.0, 31.0, 5.5, 5.25, 5.0];
        assert_eq!(told(&with).unwrap(), "1 of 6 runs: 31 s, the others 5.25 s");
        let two_low = [9.0, 5.0, 9.0, 9.0, 5.0, 9.0];
        assert_eq!(told(&two_low).unwrap(), "2 of 6 runs: 5 s, the others 9 s");
    }

    /// Each fails one condition of the rule.
    #[test]
    fn noise_has_one_state() {
        assert_eq!(told(&[5.0, 5.0, 31.0, 5.0, 5.0]), None, "five runs");
        assert_eq!(told(&[5.0, 5.0, 5.49, 5.0, 5.0, 5.0]), None, "a gap of a tenth");
        assert_eq!(told(&[5.0, 6.0, 9.0, 5.5, 5.5, 5.5]), None, "three times the span");
        assert!(told(&[5.0, 6.0, 9.1, 5.5, 5.5, 5.5]).is_some());
        assert_eq!(told(&[2.0; 9]), None);
        assert_eq!(told(&[]), None);
    }
}
