//! How many runs a case gets: a fixed number, or as many as it takes to know its changes.
//!
//! Runs are added by doubling, so that they are looked at a few times only: each look is another
//! chance for noise to pass for a change.

use std::ops::Range;

use clap::builder::RangedU64ValueParser;

use crate::input::InputError;

#[derive(Clone, clap::Args)]
pub struct Effort {
    /// Add runs until each change is known: its 95 % interval leaves out 0, or is within ±PCT
    #[arg(long, value_name = "PCT", value_parser = precision)]
    pub precision: Option<f64>,

    /// With --precision, the most runs of a case and policy [default: 24]
    #[arg(long, value_name = "N", requires = "precision", value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000))]
    budget: Option<u32>,
}

pub fn precision(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(pct) if pct > 0.0 && pct <= 100.0 => Ok(pct),
        _ => Err("expected a number of percent above 0 and up to 100, such as 1".to_owned()),
    }
}

impl Effort {
    pub fn new(precision: Option<f64>, budget: Option<u32>) -> Self {
        Self { precision, budget }
    }

    pub fn budget(&self) -> u32 {
        self.budget.unwrap_or(24)
    }

    /// Refuses seeds beyond the last that there is, and a budget that the first runs exceed.
    pub fn check(&self, runs: u32, seed: u64) -> Result<(), InputError> {
        let most = if self.precision.is_some() { self.budget() } else { runs };
        if most < runs {
            let problem = format!("--budget {most}: is less than --runs {runs}");
            return Err(InputError(problem));
        }
        match seed.checked_add(u64::from(most) - 1) {
            Some(_) => Ok(()),
            None => Err(InputError(format!("--seed {seed}: too large for {most} runs"))),
        }
    }

    /// The runs to add after the first `done`; `None` where these are all.
    pub fn more(&self, done: u32) -> Option<Range<u32>> {
        self.precision?;
        let all = (2 * done).min(self.budget());
        (all > done).then_some(done..all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effort(precision: Option<f64>, budget: u32) -> Effort {
        Effort { precision, budget: Some(budget) }
    }

    #[test]
    fn runs_double_until_the_budget_ends() {
        let until_known = effort(Some(1.0), 10);
        let more = [1, 3, 6, 10].map(|done| until_known.more(done));
        assert_eq!(more, [Some(1..2), Some(3..6), Some(6..10), None]);
        assert_eq!(effort(None, 10).more(1), None);
    }

    #[test]
    fn seeds_end_with_the_last_there_is() {
        assert!(effort(None, 24).check(2, u64::MAX - 1).is_ok());
        assert!(effort(None, 24).check(3, u64::MAX - 1).is_err());
        assert!(effort(Some(1.0), 24).check(1, u64::MAX - 1).is_err());
        assert!(effort(Some(1.0), 2).check(3, 1).unwrap_err().0.contains("--budget 2"));
    }
}
