//! How far predictions are from publications, as one number: the mean over groups of rows that measure
//! the same with one workload of Huber's loss of the logarithm of predicted by published.
//!
//! Twice and half as much are equally far off whatever the unit. A table of thirty rows counts no more
//! than one of two, and a row that the model gets wholly wrong does not outweigh the others.

use std::collections::BTreeMap;

use super::predictor::{Prediction, Predictions};
use crate::reproduce::study::Published;

/// Up to here the loss grows with the square, beyond in proportion: about twice what publications of one
/// case scatter by. In percent, as all logarithms here.
const HUBER: f64 = 10.0;

/// Where costs leave no figure at all, as if it were off by a factor of a thousand.
const NOTHING: f64 = 691.0;

pub struct Objective {
    published: Vec<f64>,
    /// Of each row; they sum up to 1.
    weights: Vec<f64>,
}

/// What rows have in common that count as much as all other such rows.
pub fn group(row: &Published) -> (&str, &'static str) {
    let quantity = row.unit.as_ref().map_or("", |unit| unit.quantity().name());
    (&row.ran_as.workload, quantity)
}

impl Objective {
    /// Of rows with values.
    pub fn of<'a>(rows: impl Iterator<Item = &'a Published> + Clone) -> Self {
        let mut sizes = BTreeMap::new();
        for row in rows.clone() {
            *sizes.entry(group(row)).or_insert(0) += 1;
        }
        let weight = |row: &Published| 1.0 / (sizes.len() * sizes[&group(row)]) as f64;
        Self {
            published: rows.clone().map(|row| row.value.unwrap_or(f64::NAN)).collect(),
            weights: rows.map(weight).collect(),
        }
    }

    pub fn value(&self, predictions: &Predictions) -> f64 {
        let logs = self.logs(predictions);
        logs.iter().zip(&self.weights).map(|(log, weight)| weight * huber(*log)).sum()
    }

    fn logs(&self, predictions: &Predictions) -> Vec<f64> {
        let log = |(published, prediction): (&f64, &Option<Prediction>)| {
            prediction.map_or(NOTHING, |it| 100.0 * (it.value / published).ln())
        };
        self.published.iter().zip(predictions).map(log).collect()
    }
}

fn huber(log: f64) -> f64 {
    match log.abs() {
        far if far > HUBER => HUBER * (far - HUBER / 2.0),
        near => near * near / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::study::row;
    use crate::reproduce::unit::Unit;

    fn published(workload: &str, value: f64, unit: &str) -> Published {
        let row = row("s", "uma-8", workload, "", "baseline");
        Published { value: Some(value), unit: Unit::parse(unit), ..row }
    }

    fn loss(rows: &[(Published, f64)]) -> f64 {
        let predict = |(_, value): &(_, f64)| Some(Prediction { value: *value, error: 0.0 });
        let objective = Objective::of(rows.iter().map(|(row, _)| row));
        objective.value(&rows.iter().map(predict).collect())
    }

    #[test]
    fn twice_and_half_are_equally_far_off_in_any_unit() {
        let of = |value, unit, predicted| loss(&[(published("hackbench", value, unit), predicted)]);
        assert_eq!(of(2.0, "s", 2.0), 0.0);
        assert!((of(2.0, "s", 4.0) - of(2.0, "s", 1.0)).abs() < 1e-9);
        assert!((of(2.0, "s", 4.0) - of(2e6, "us", 4e6)).abs() < 1e-9);
    }

    #[test]
    fn each_group_counts_once_and_what_is_wholly_wrong_in_proportion() {
        let row = |workload: &str, predicted| (published(workload, 1.0, "s"), predicted);
        let off = std::f64::consts::E;
        let alone = loss(&[row("hackbench", off)]);
        assert!((alone - 10.0 * 95.0).abs() < 1e-9, "{alone}");
        let halves = loss(&[row("hackbench", off), row("tbench", 1.0)]);
        let many = [row("hackbench", off), row("tbench", 1.0), row("tbench", 1.0)];
        assert!((halves - alone / 2.0).abs() < 1e-9);
        assert!((loss(&many) - halves).abs() < 1e-9);
        let counted = [row("hackbench", off), (published("hackbench", 1.0, "count"), 1.0)];
        assert!((loss(&counted) - halves).abs() < 1e-9, "counters are a group of their own");
    }
}
