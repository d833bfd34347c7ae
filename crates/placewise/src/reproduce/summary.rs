//! How well predicted changes follow published ones, in a few figures over all rows.
//!
//! A published change of 5 % or more is an effect, one under 2 % is none; what lies between counts
//! for the rank correlation only. A prediction of no change at all has no sign, so it is wrong where
//! there is an effect.

use serde::Serialize;

use super::verdict::share;
use crate::machine_readable::nine_digits;
use crate::noise::mean;

const EFFECT_PCT: f64 = 5.0;
const NO_EFFECT_PCT: f64 = 2.0;

/// Rates are shares of one; `None` where there is nothing to judge by.
#[derive(Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Rows with a published effect.
    pub significant: usize,
    /// Of these, predicted with the same sign.
    pub sign_right: usize,
    #[serde(serialize_with = "nine_digits")]
    pub sign_rate: Option<f64>,
    /// Rank correlation of predicted and published changes.
    #[serde(serialize_with = "nine_digits")]
    pub spearman: Option<f64>,
    /// Rows without a published effect.
    pub null: usize,
    /// Of these, predicted to change by less than an effect.
    pub null_quiet: usize,
    #[serde(serialize_with = "nine_digits")]
    pub null_rate: Option<f64>,
}

/// One published change and its prediction, in percent.
#[derive(Clone, Copy)]
pub struct Pair {
    pub published: f64,
    pub predicted: f64,
}

impl Summary {
    pub fn of(pairs: &[Pair]) -> Self {
        let count = |holds: fn(&Pair) -> bool| pairs.iter().filter(|pair| holds(pair)).count();
        let significant = count(Pair::has_effect);
        let sign_right = count(|pair| pair.has_effect() && pair.published * pair.predicted > 0.0);
        let null = count(Pair::is_null);
        let null_quiet = count(|pair| pair.is_null() && pair.predicted.abs() < EFFECT_PCT);
        Self {
            significant,
            sign_right,
            sign_rate: share(sign_right, significant),
            spearman: spearman(pairs),
            null,
            null_quiet,
            null_rate: share(null_quiet, null),
        }
    }
}

impl Pair {
    fn has_effect(&self) -> bool {
        self.published.abs() >= EFFECT_PCT
    }

    fn is_null(&self) -> bool {
        self.published.abs() < NO_EFFECT_PCT
    }
}

/// `None` for fewer than two pairs, and where one side never changes.
fn spearman(pairs: &[Pair]) -> Option<f64> {
    let published = ranks(pairs.iter().map(|pair| pair.published));
    let predicted = ranks(pairs.iter().map(|pair| pair.predicted));
    let correlation = pearson(&published, &predicted);
    correlation.is_finite().then_some(correlation)
}

/// Ties share the mean of their ranks.
fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut ordered: Vec<(usize, f64)> = values.enumerate().collect();
    ordered.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut ranks = vec![0.0; ordered.len()];
    let mut below = 0;
    for tied in ordered.chunk_by(|(_, one), (_, other)| one == other) {
        let rank = below as f64 + (tied.len() + 1) as f64 / 2.0;
        tied.iter().for_each(|(place, _)| ranks[*place] = rank);
        below += tied.len();
    }
    ranks
}

fn pearson(x: &[f64], y: &[f64]) -> f64 {
    let (mean_x, mean_y) = (mean(x), mean(y));
    let product = |(x, y): (&f64, &f64)| (x - mean_x) * (y - mean_y);
    let square = |values: &[f64], mean: f64| -> f64 {
        values.iter().map(|value| (value - mean).powi(2)).sum()
    };
    let covariance: f64 = x.iter().zip(y).map(product).sum();
    covariance / (square(x, mean_x) * square(y, mean_y)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(changes: &[(f64, f64)]) -> Vec<Pair> {
        let pair = |&(published, predicted)| Pair { published, predicted };
        changes.iter().map(pair).collect()
    }

    /// By hand. Effects: -20, 5, 50 and -5; the third is predicted with the wrong sign and the last
    /// with none. No effects: 1 and -1.99; the second is predicted to be one.
    #[test]
    fn the_summary_of_a_hand_computed_example() {
        let pairs = pairs(&[
            (-20.0, -3.0),
            (5.0, 1.0),
            (50.0, -1.0),
            (-5.0, 0.0),
            (1.0, 4.9),
            (-1.99, 5.0),
        ]);
        let summary = Summary::of(&pairs);
        assert_eq!((summary.significant, summary.sign_right), (4, 2));
        assert_eq!(summary.sign_rate, Some(0.5));
        assert_eq!((summary.null, summary.null_quiet), (2, 1));
        assert_eq!(summary.null_rate, Some(0.5));
        // Ranks published 1 5 6 2 4 3, predicted 1 4 2 3 5 6; differences squared 0 1 16 1 1 9 = 28.
        let by_hand = 1.0 - 6.0 * 28.0 / (6.0 * 35.0);
        assert!((summary.spearman.unwrap() - by_hand).abs() < 1e-12, "{summary:?}");
    }

    /// Published ranks 1.5 1.5 3 4, predicted 1 2 3 4: 4.5 / sqrt(4.5 * 5).
    #[test]
    fn ties_share_their_ranks() {
        let tied = pairs(&[(1.0, 1.0), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0)]);
        assert!((spearman(&tied).unwrap() - 4.5 / 22.5f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn between_two_and_five_percent_is_neither_effect_nor_null() {
        let summary = Summary::of(&pairs(&[(2.0, 2.0), (-4.99, -4.0)]));
        assert_eq!((summary.significant, summary.null), (0, 0));
        assert_eq!((summary.sign_rate, summary.null_rate), (None, None));
        assert_eq!(summary.spearman, Some(1.0));
    }

    #[test]
    fn without_variation_there_is_no_correlation() {
        assert_eq!(Summary::of(&[]).spearman, None);
        assert_eq!(spearman(&pairs(&[(1.0, 1.0)])), None);
        assert_eq!(spearman(&pairs(&[(1.0, 0.0), (2.0, 0.0)])), None);
    }
}
