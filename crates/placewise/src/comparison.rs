//! What `placewise compare` found: figures of every run, summed up per case, metric and policy.
//!
//! A change is relative to the first policy and positive where the policy is better, whichever
//! direction of the figure is the good one. Figures that are not finite are left out, never
//! printed.

use serde::{Serialize, Serializer};

use crate::load_balance;
use crate::noise::{is_significant, mean, sample_std};
use placewise_sim::{Better, Figure};

/// Everything a report needs.
#[derive(Serialize)]
pub struct Comparison {
    pub machine: String,
    /// Whose costs the machine has.
    pub costs_of: String,
    pub kernel: String,
    pub workload: String,
    pub runs: u32,
    pub seed: u64,
    /// One row per case, metric and policy, in that order.
    pub rows: Vec<Row>,
    /// The figures that say why, in the same order; empty unless they were asked for.
    pub stats: Vec<Row>,
    /// What load balancing did, by case, level, idle type and policy; empty unless it was asked for.
    pub load_balance: Vec<load_balance::Row>,
    #[serde(skip)]
    pub machine_shape: String,
    /// The options of the command that reproduces it.
    #[serde(skip)]
    pub command: Vec<String>,
}

/// One metric of one policy in one case, over all runs.
#[derive(Serialize)]
pub struct Row {
    pub case: String,
    pub metric: String,
    pub policy: String,
    #[serde(serialize_with = "nine_digits")]
    pub mean: Option<f64>,
    #[serde(serialize_with = "nine_digits")]
    pub std_pct: Option<f64>,
    pub unit: &'static str,
    /// Figures that say why have no good direction, and so no change.
    #[serde(serialize_with = "direction")]
    pub better: Option<Better>,
    /// Of the first policy, `None`.
    #[serde(serialize_with = "nine_digits")]
    pub change_pct: Option<f64>,
    /// Of the first policy, and with one run, `None`.
    pub significant: Option<bool>,
}

/// The figures of one policy in one case: one list per run, in the order of the seeds.
pub struct Series<'a> {
    pub policy: &'a str,
    pub runs: Vec<&'a [Figure]>,
}

impl Series<'_> {
    /// One figure over all runs; `None` if a run lacks it or it is not finite there.
    fn samples(&self, metric: &str) -> Option<Vec<f64>> {
        let value_in = |run: &&[Figure]| run.iter().find(|f| f.metric == metric).map(|f| f.value);
        let samples: Option<Vec<f64>> = self.runs.iter().map(value_in).collect();
        samples.filter(|samples| samples.iter().all(|value| value.is_finite()))
    }
}

/// The rows of one case; `series[0]` is the baseline.
pub fn rows(case: &str, series: &[Series]) -> Vec<Row> {
    let figures = figures_by_metric(series);
    let pairs = figures.into_iter().flat_map(|figure| series.iter().map(move |s| (figure, s)));
    pairs.map(|(figure, of_policy)| row(case, figure, of_policy, &series[0])).collect()
}

/// One figure of each metric, in the order they first come: a run without a sample lacks it.
fn figures_by_metric<'a>(series: &[Series<'a>]) -> Vec<&'a Figure> {
    let mut figures: Vec<&Figure> = Vec::new();
    for figure in series.iter().flat_map(|s| &s.runs).copied().flatten() {
        if !figures.iter().any(|known| known.metric == figure.metric) {
            figures.push(figure);
        }
    }
    figures
}

fn row(case: &str, figure: &Figure, series: &Series, baseline: &Series) -> Row {
    let samples = series.samples(&figure.metric);
    let mut row = Row {
        case: case.to_owned(),
        metric: figure.metric.clone(),
        policy: series.policy.to_owned(),
        mean: samples.as_deref().map(mean),
        std_pct: samples.as_deref().and_then(std_pct),
        unit: figure.unit,
        better: figure.better,
        change_pct: None,
        significant: None,
    };
    if std::ptr::eq(series, baseline) {
        return row;
    }
    let baseline = baseline.samples(&figure.metric);
    if let (Some(baseline), Some(samples), Some(better)) = (baseline, samples, figure.better) {
        row.change_pct = change_pct(mean(&baseline), mean(&samples), better);
        row.significant = is_significant(&baseline, &samples);
    }
    row
}

pub fn std_pct(samples: &[f64]) -> Option<f64> {
    finite(100.0 * sample_std(samples)? / mean(samples).abs())
}

/// Positive is better.
pub fn change_pct(baseline: f64, value: f64, better: Better) -> Option<f64> {
    let gain = match better {
        Better::Higher => value - baseline,
        Better::Lower => baseline - value,
    };
    finite(100.0 * gain / baseline.abs())
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// What machine-readable formats print of a figure: enough, without the noise of the last bits.
pub fn round_to_nine_digits(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

pub fn nine_digits<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(round_to_nine_digits).serialize(serializer)
}

pub fn direction_name(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    }
}

pub fn direction<S: Serializer>(better: &Option<Better>, serializer: S) -> Result<S::Ok, S::Error> {
    better.map(direction_name).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(metric: &str, value: f64, better: Option<Better>) -> Figure {
        Figure { metric: metric.to_owned(), value, unit: "s", better }
    }

    /// The rows of a baseline and another policy with these values, one per run.
    fn rows_of(better: Option<Better>, baseline: &[f64], other: &[f64]) -> Vec<Row> {
        let runs = |values: &[f64]| -> Vec<Vec<Figure>> {
            values.iter().map(|value| vec![figure("time", *value, better)]).collect()
        };
        let (baseline, other) = (runs(baseline), runs(other));
        let series = |policy, runs: &'static [Vec<Figure>]| Series {
            policy,
            runs: runs.iter().map(Vec::as_slice).collect(),
        };
        rows("", &[series("baseline", baseline.leak()), series("other", other.leak())])
    }

    #[test]
    fn positive_is_better_in_either_direction() {
        let lower = rows_of(Some(Better::Lower), &[4.0, 4.0], &[3.0, 3.0]);
        assert_eq!(lower[1].change_pct, Some(25.0));
        let higher = rows_of(Some(Better::Higher), &[4.0, 4.0], &[3.0, 3.0]);
        assert_eq!(higher[1].change_pct, Some(-25.0));
    }

    #[test]
    fn the_baseline_and_figures_without_direction_have_no_change() {
        let rows = rows_of(Some(Better::Lower), &[4.0, 4.0], &[3.0, 3.0]);
        assert_eq!((rows[0].change_pct, rows[0].significant), (None, None));
        let rows = rows_of(None, &[4.0, 4.0], &[3.0, 3.0]);
        assert_eq!(
            (rows[1].mean, rows[1].change_pct, rows[1].significant),
            (Some(3.0), None, None)
        );
    }

    #[test]
    fn what_is_not_finite_is_left_out() {
        let rows = rows_of(Some(Better::Lower), &[0.0, 0.0], &[1.0, f64::NAN]);
        assert_eq!((rows[0].mean, rows[0].std_pct), (Some(0.0), None));
        assert_eq!((rows[1].mean, rows[1].change_pct), (None, None));
        let from_zero = rows_of(Some(Better::Lower), &[0.0, 0.0], &[1.0, 1.0]);
        assert_eq!(from_zero[1].change_pct, None);
    }

    #[test]
    fn a_figure_that_one_run_lacks_is_a_row_without_a_mean() {
        let (with, without) = (vec![figure("time", 1.0, None)], vec![]);
        let series = [
            Series { policy: "baseline", runs: vec![&without, &with] },
            Series { policy: "other", runs: vec![&with, &with] },
        ];
        let means: Vec<Option<f64>> = rows("", &series).iter().map(|row| row.mean).collect();
        assert_eq!(means, [None, Some(1.0)]);
    }
}
