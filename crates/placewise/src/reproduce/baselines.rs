//! How far predicted baselines are from published ones: as figures, and as shapes over the cases.
//!
//! A baseline's factor is by how much prediction and publication differ, whichever is larger: 2 is
//! half or twice. The shape is every case relative to the first of its table, in which what a model
//! gets wrong everywhere cancels out; its factor is that of the two ratios.

use serde::{Serialize, Serializer};

use super::predict::Row;
use super::study::Published;
use crate::machine_readable::round_to_nine_digits;
use crate::noise::median;
use crate::report::grouped;

/// A half too much, or a third too little.
const NEAR: f64 = 1.5;

/// The baselines of one workload on one machine that measure the same.
#[derive(Debug, PartialEq, Serialize)]
pub struct Baselines {
    pub workload: String,
    pub machine: String,
    pub quantity: &'static str,
    pub in_sample: usize,
    pub value: Option<Factors>,
    pub shape: Option<Factors>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Factors {
    pub rows: usize,
    /// Of them, those below [`NEAR`].
    pub near: usize,
    #[serde(serialize_with = "rounded")]
    pub median: f64,
    #[serde(serialize_with = "rounded")]
    pub worst: f64,
}

fn rounded<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    round_to_nine_digits(*value).serialize(serializer)
}

/// A baseline with what it is compared with.
struct Baseline<'a> {
    published: &'a Published,
    quantity: &'static str,
    value: [f64; 2],
    is_in_sample: bool,
}

impl<'a> Baseline<'a> {
    /// `None` for other policies, normalised values, and figures of 0, which no factor leads to.
    fn of(row: &'a Row, is_in_sample: bool) -> Option<Self> {
        let published = &row.published;
        let quantity = published.unit.as_ref()?.quantity().name();
        let value = [published.value?, row.predicted?];
        let comparable = published.is_baseline_figure() && value[1] > 0.0;
        comparable.then_some(Self { published, quantity, value, is_in_sample })
    }
}

/// Of all baselines that are figures.
pub fn together<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Option<Factors> {
    let baselines = rows.into_iter().filter_map(|row| Baseline::of(row, false));
    let factors: Vec<f64> = baselines.map(|one| factor(one.value)).collect();
    Factors::of(&factors)
}

/// One line per workload, machine and quantity. The rows come with whether they are in sample.
pub fn score<'a>(rows: impl IntoIterator<Item = (&'a Row, bool)>) -> Vec<Baselines> {
    let baselines = rows.into_iter().filter_map(|(row, in_sample)| Baseline::of(row, in_sample));
    let baselines: Vec<Baseline> = baselines.collect();
    let groups = grouped(&baselines, |one| {
        (&one.published.ran_as.workload, &one.published.ran_as.machine, one.quantity)
    });
    groups.iter().map(|group| of_group(group)).collect()
}

fn of_group(group: &[&Baseline]) -> Baselines {
    let Baseline { published, quantity, .. } = group[0];
    let values: Vec<f64> = group.iter().map(|one| factor(one.value)).collect();
    let tables = grouped(group, |one| {
        (&one.published.series, &one.published.ran_as.kernel, &one.published.ran_as.metric)
    });
    let shapes: Vec<f64> = tables.iter().flat_map(|table| shape(table)).collect();
    Baselines {
        workload: published.ran_as.workload.clone(),
        machine: published.ran_as.machine.clone(),
        quantity,
        in_sample: group.iter().filter(|one| one.is_in_sample).count(),
        value: Factors::of(&values),
        shape: Factors::of(&shapes),
    }
}

fn shape(table: &[&&Baseline]) -> Vec<f64> {
    let first = table[0].value;
    let relative = |one: &&&Baseline| [one.value[0] / first[0], one.value[1] / first[1]];
    table[1..].iter().map(relative).map(factor).collect()
}

/// By how much two figures differ, from 1 on.
pub fn factor([one, other]: [f64; 2]) -> f64 {
    (one / other).max(other / one)
}

impl Factors {
    pub fn of(factors: &[f64]) -> Option<Self> {
        let worst = factors.iter().copied().max_by(f64::total_cmp)?;
        let near = factors.iter().filter(|factor| **factor <= NEAR).count();
        Some(Self { rows: factors.len(), near, median: median(factors), worst })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::study::row;
    use crate::reproduce::unit::Unit;

    fn baseline(machine: &str, case: &str, value: f64, predicted: f64) -> Row {
        let published = row("s", machine, "hackbench", case, "baseline");
        let mut row = Row::unpredicted(Published { value: Some(value), ..published });
        row.predicted = Some(predicted);
        row
    }

    /// By hand. Values 2/1, 3/6 and 16/4 are off by 2, 2 and 4; relative to the first, 3 against 3 and
    /// 8 against 4 of the published 1 : 6 : 4 and the predicted 2 : 3 : 16 are 6 / 1.5 = 4 and 8 / 4 = 2.
    #[test]
    fn factors_and_shapes_of_a_hand_computed_example() {
        let rows = [
            baseline("uma-8", "groups=1", 1.0, 2.0),
            baseline("uma-8", "groups=2", 6.0, 3.0),
            baseline("uma-8", "groups=4", 4.0, 16.0),
        ];
        let scores = score(rows.iter().zip([false, true, false]));
        let factors = |rows, near, median, worst| Some(Factors { rows, near, median, worst });
        assert_eq!(scores.len(), 1);
        assert_eq!((scores[0].quantity, scores[0].in_sample), ("time", 1));
        assert_eq!(scores[0].value, factors(3, 0, 2.0, 4.0));
        assert_eq!(scores[0].shape, factors(2, 0, 3.0, 4.0));
    }

    #[test]
    fn machines_and_what_is_measured_are_apart() {
        let mut counter = baseline("uma-8", "groups=1", 1.0, 3.0);
        counter.published.unit = Unit::parse("count");
        let rows = [
            baseline("uma-8", "groups=1", 1.0, 2.0),
            baseline("x86-12", "groups=1", 1.0, 1.0),
            counter,
        ];
        let scores = score(rows.iter().map(|row| (row, false)));
        let medians: Vec<f64> = scores.iter().map(|one| one.value.unwrap().median).collect();
        assert_eq!(medians, [2.0, 1.0, 3.0]);
        let together = Factors { rows: 3, near: 1, median: 2.0, worst: 3.0 };
        assert_eq!(super::together(&rows), Some(together));
        assert!(scores.iter().all(|one| one.shape.is_none()));
    }

    #[test]
    fn other_policies_and_normalised_or_zero_values_are_none() {
        let with = |change: fn(&mut Row)| {
            let mut row = baseline("uma-8", "groups=1", 1.0, 2.0);
            change(&mut row);
            score([(&row, false)]).len()
        };
        assert_eq!(with(|_| ()), 1);
        assert_eq!(with(|row| row.published.ran_as.policy = "short-task".into()), 0);
        assert_eq!(with(|row| row.published.unit = Unit::parse("normalized")), 0);
        assert_eq!(with(|row| row.published.value = Some(0.0)), 0);
        assert_eq!(with(|row| row.predicted = None), 0);
    }
}
