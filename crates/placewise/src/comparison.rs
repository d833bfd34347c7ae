//! What `placewise compare` found: figures of every run, summed up per case, metric and subject: a
//! machine, kernel, environment and policy.
//!
//! A change is relative to the first subject ([`Change`]). Figures that are not finite are left out,
//! never printed.

use placewise_sim::{Better, Figure};
use serde::Serialize;

use crate::change::{self, Change};
use crate::load_balance;
use crate::machine_readable::{direction, nine_digits};
use crate::noise::{Interval, mean, median, std_pct};
use crate::states::States;
use crate::subject::{Axis, DescribedMachine, Subject, differing_axes};

/// Everything a report needs.
#[derive(Serialize)]
pub struct Comparison {
    /// What the others are compared with.
    #[serde(flatten)]
    pub reference: Reference,
    /// Of the running kernel, where the kernel stands for it.
    pub release: Option<String>,
    pub workload: String,
    pub machines: Vec<DescribedMachine>,
    /// In the order of the rows of a case and metric.
    #[serde(skip)]
    pub subjects: Vec<Subject>,
    /// Of the case with the most.
    pub runs: u32,
    /// Of the case with the fewest.
    #[serde(skip)]
    pub least_runs: u32,
    pub seed: u64,
    /// With a fifth of warm-up and window each.
    pub quick: bool,
    /// What was not simulated because of Ctrl-C.
    pub missing: Vec<String>,
    /// One row per case, metric and subject, in that order.
    pub rows: Vec<Row>,
    /// The figures that say why, in the same order; empty unless they were asked for.
    pub stats: Vec<Row>,
    /// The same with what load balancing did, of which texts for people tell what moved.
    #[serde(skip)]
    pub why: Vec<Row>,
    /// Texts tell all of `stats`, not what moved most.
    #[serde(skip)]
    pub tell_all: bool,
    /// What load balancing did, by case, level, idle type and subject; empty unless it was asked for.
    pub load_balance: Vec<load_balance::Row>,
    /// The options of the command that reproduces it.
    #[serde(skip)]
    pub command: Vec<String>,
}

/// The first machine and kernel.
#[derive(Serialize)]
pub struct Reference {
    pub machine: String,
    pub costs_of: String,
    pub kernel: String,
}

impl Comparison {
    /// What tells its subjects apart.
    pub fn axes(&self) -> Vec<Axis> {
        differing_axes(&self.subjects)
    }
}

/// One metric of one subject in one case, over all runs.
#[derive(Serialize)]
pub struct Row {
    pub case: String,
    pub metric: String,
    #[serde(flatten)]
    pub subject: Subject,
    #[serde(serialize_with = "nine_digits")]
    pub mean: Option<f64>,
    #[serde(serialize_with = "nine_digits")]
    pub median: Option<f64>,
    #[serde(serialize_with = "nine_digits")]
    pub std_pct: Option<f64>,
    pub unit: &'static str,
    /// Figures that say why have no good direction.
    #[serde(serialize_with = "direction")]
    pub better: Option<Better>,
    /// Without a good direction the increase; of the first subject, `None`.
    #[serde(serialize_with = "nine_digits")]
    pub change_pct: Option<f64>,
    /// The ends of its 95 % interval; with one run, `None`.
    #[serde(serialize_with = "nine_digits")]
    pub change_low_pct: Option<f64>,
    #[serde(serialize_with = "nine_digits")]
    pub change_high_pct: Option<f64>,
    /// Of the first subject, and with one run, `None`.
    pub significant: Option<bool>,
    /// Whether each run has the figure that the first subject has with its seed; of that, `None`.
    pub identical: Option<bool>,
    pub runs: usize,
    /// What they were, if the runs settled in different ones. Then the median stands for them.
    pub states: Option<States>,
}

impl Row {
    /// The figure that stands for all runs.
    pub fn center(&self) -> Option<f64> {
        if self.states.is_some() { self.median } else { self.mean }
    }

    /// The part of the workload that it is of: `schbench@web` of `schbench@web: time`
    pub fn part(&self) -> Option<&str> {
        self.metric.split_once(": ").map(|(part, _)| part)
    }
}

/// The figures of one subject in one case: one list per run, in the order of the seeds.
pub struct Series<'a> {
    pub subject: &'a Subject,
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
    pairs.map(|(figure, of_subject)| row(case, figure, of_subject, &series[0])).collect()
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
    let change = change(figure, series, baseline);
    let interval = change.and_then(|change| change.interval);
    let beside = baseline.samples(&figure.metric).filter(|_| !std::ptr::eq(series, baseline));
    let both = samples.as_deref().zip(beside.as_deref());
    let differ = || both.and_then(|(own, of_baseline)| change::differ(of_baseline, own));
    Row {
        case: case.to_owned(),
        metric: figure.metric.clone(),
        subject: series.subject.clone(),
        mean: samples.as_deref().map(mean),
        median: samples.as_deref().map(median),
        std_pct: samples.as_deref().and_then(std_pct),
        unit: figure.unit,
        better: figure.better,
        change_pct: change.map(|change| change.pct),
        change_low_pct: interval.map(|Interval { low, .. }| low),
        change_high_pct: interval.map(|Interval { high, .. }| high),
        significant: change.map_or_else(differ, |change| change.is_significant()),
        identical: both.map(|(own, of_baseline)| own == of_baseline),
        runs: series.runs.len(),
        states: samples.as_deref().and_then(States::of),
    }
}

/// `None` for the baseline. Without a good direction, more is positive.
fn change(figure: &Figure, series: &Series, baseline: &Series) -> Option<Change> {
    if std::ptr::eq(series, baseline) {
        return None;
    }
    let (own, of_baseline) = (series.samples(&figure.metric)?, baseline.samples(&figure.metric)?);
    Change::between(&of_baseline, &own, figure.better.unwrap_or(Better::Higher))
}

/// Whether no change of a case needs more runs; `series[0]` is the baseline.
pub fn is_known(series: &[Series], precision: f64) -> bool {
    let figures = figures_by_metric(series);
    let mut changes = figures.iter().flat_map(|figure| {
        series.iter().filter_map(|of_subject| change(figure, of_subject, &series[0]))
    });
    changes.all(|change| change.is_known(precision))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::tests::subject;

    fn figure(metric: &str, value: f64, better: Option<Better>) -> Figure {
        Figure { metric: metric.to_owned(), value, unit: "s", better }
    }

    /// The rows of a baseline and another policy with these values, one per run.
    fn rows_of(better: Option<Better>, baseline: &[f64], other: &[f64]) -> Vec<Row> {
        let runs = |values: &[f64]| -> Vec<Vec<Figure>> {
            values.iter().map(|value| vec![figure("time", *value, better)]).collect()
        };
        let (baseline, other) = (runs(baseline), runs(other));
        let runs = |runs: &'static [Vec<Figure>]| runs.iter().map(Vec::as_slice).collect();
        let subjects = ["baseline", "other"].map(|policy| subject("v6.0", policy));
        let [first, second] = &subjects;
        let baseline = Series { subject: first, runs: runs(baseline.leak()) };
        rows("", &[baseline, Series { subject: second, runs: runs(other.leak()) }])
    }

    #[test]
    fn positive_is_better_in_either_direction() {
        let lower = rows_of(Some(Better::Lower), &[4.0, 4.0], &[3.0, 3.0]);
        assert_eq!(lower[1].change_pct, Some(25.0));
        let higher = rows_of(Some(Better::Higher), &[4.0, 4.0], &[3.0, 3.0]);
        assert_eq!(higher[1].change_pct, Some(-25.0));
    }

    #[test]
    fn the_baseline_has_no_change_and_figures_without_direction_an_increase() {
        let rows = rows_of(Some(Better::Lower), &[4.0, 4.0], &[3.0, 3.0]);
        assert_eq!((rows[0].change_pct, rows[0].significant), (None, None));
        let rows = rows_of(None, &[4.0, 4.0], &[3.0, 3.0]);
        assert_eq!(
            (rows[1].mean, rows[1].change_pct, rows[1].significant),
            (Some(3.0), Some(-25.0), Some(true))
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
        let subject = subject("v6.0", "baseline");
        let series = [
            Series { subject: &subject, runs: vec![&without, &with] },
            Series { subject: &subject, runs: vec![&with, &with] },
        ];
        let means: Vec<Option<f64>> = rows("", &series).iter().map(|row| row.mean).collect();
        assert_eq!(means, [None, Some(1.0)]);
    }
}
