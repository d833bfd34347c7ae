//! How noisy published figures are, and so which published changes are more than noise.
//!
//! `studies/noise.toml` says how much a cell of each workload and metric scatters where a publication
//! does not, and how often two publications of one patch agree.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::study::Published;

const EFFECT_PCT: f64 = 5.0;
const NULL_PCT: f64 = 2.0;

/// The most that a prediction can be held to.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    pub same_sign: usize,
    pub rows: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Publications {
    ceiling: Ceiling,
    /// Where neither the row nor its workload and metric have one.
    other_spread_pct: f64,
    /// By workload and metric.
    spread_pct: BTreeMap<String, BTreeMap<String, f64>>,
}

static PUBLICATIONS: LazyLock<Publications> = LazyLock::new(|| {
    let text = include_str!("../../../../studies/noise.toml");
    toml::from_str(text).expect("studies/noise.toml is as a test has read it")
});

pub fn ceiling() -> Ceiling {
    PUBLICATIONS.ceiling
}

/// The standard deviation of a published change, which is that of two cells.
pub fn noise_pct(row: &Published, baseline: &Published) -> f64 {
    spread_pct(baseline).hypot(spread_pct(row))
}

/// The row's own standard deviation, else that usual for its workload and metric.
pub fn spread_pct(row: &Published) -> f64 {
    let of_metric =
        || PUBLICATIONS.spread_pct.get(&row.ran_as.workload)?.get(&row.ran_as.metric).copied();
    row.spread_pct.or_else(of_metric).unwrap_or(PUBLICATIONS.other_spread_pct)
}

/// A published change that a prediction has to have the sign of.
pub fn is_decisive(change_pct: f64, noise_pct: f64) -> bool {
    change_pct.abs() >= EFFECT_PCT && change_pct.abs() > 2.0 * noise_pct
}

pub fn has_effect(change_pct: f64) -> bool {
    change_pct.abs() >= EFFECT_PCT
}

pub fn is_null(change_pct: f64) -> bool {
    change_pct.abs() < NULL_PCT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::study::row;

    /// By hand: 1.9 percent is what hackbench's time scatters by, 4.6 what is assumed of others.
    #[test]
    fn the_noise_of_a_change_is_that_of_both_cells() {
        let with = |workload: &str, spread_pct| {
            let mut row = row("s", "uma-8", workload, "groups=1", "baseline");
            row.spread_pct = spread_pct;
            row
        };
        let noise =
            |baseline, other| noise_pct(&with("hackbench", other), &with("hackbench", baseline));
        assert_eq!(noise(Some(3.0), Some(4.0)), 5.0);
        assert!((noise(None, None) - 1.9 * 2f64.sqrt()).abs() < 1e-9);
        assert!((noise(Some(1.0), None) - 1f64.hypot(1.9)).abs() < 1e-9);
        let other = with("vdso", None);
        assert!((noise_pct(&other, &other) - 4.6 * 2f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn decisive_is_five_percent_and_beyond_twice_the_noise() {
        assert!(is_decisive(5.0, 2.4) && is_decisive(-5.0, 2.4));
        assert!(!is_decisive(4.99, 0.1));
        assert!(!is_decisive(10.0, 5.0) && is_decisive(10.1, 5.0));
        assert!(is_null(-1.99) && !is_null(2.0));
    }
}
