//! What `placewise compare` found: figures of every run, summed up per case, metric and policy.
//!
//! A change is relative to the first policy and positive where the policy is better, whichever
//! direction of the figure is the good one. Figures that are not finite are left out, never
//! printed.

use serde::{Serialize, Serializer};

use crate::noise::{is_significant, mean, sample_std};
use crate::placewise_sim::{Better, Figure};

/// Everything a report needs.
#[derive(Serialize)]
pub struct Comparison {
    pub machine: String,
    pub kernel: String,
    pub workload: String,
    pub runs: u32,
    pub seed: u64,
    /// One row per case, metric and policy, in that order.
    pub rows: Vec<Row>,
    /// The figures that say why, in the same order; empty unless they were asked for.
    pub stats: Vec<Stat>,
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
    pub metric: &'static str,
    pub policy: String,
    #[serde(serialize_with = "nine_digits")]
    pub mean: Option<f64>,
    #[serde(serialize_with = "nine_digits")]
    pub std_pct: Option<f64>,
    pub unit: &'static str,
    #[serde(serialize_with = "direction")]
    pub better: Better,
    /// Of the first policy, `None`.
    #[serde(serialize_with = "nine_digits")]
    pub change_pct: Option<f64>,
    /// Of the first policy, and with one run, `None`.
    pub significant: Option<bool>,
}

/// A figure that says why: it has no good direction, so nothing is said about changes.
#[derive(Serialize)]
pub struct Stat {
    pub case: String,
    pub metric: &'static str,
    pub policy: String,
    #[serde(serialize_with = "nine_digits")]
    pub mean: Option<f64>,
    #[serde(serialize_with = "nine_digits")]
    pub std_pct: Option<f64>,
    pub unit: &'static str,
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
    per_metric_and_policy(series, |figure, of_policy| row(case, figure, of_policy, &series[0]))
}

/// The same for figures that say why.
pub fn stats(case: &str, series: &[Series]) -> Vec<Stat> {
    per_metric_and_policy(series, |figure, of_policy| stat(case, figure, of_policy))
}

fn per_metric_and_policy<T>(series: &[Series], sum_up: impl Fn(&Figure, &Series) -> T) -> Vec<T> {
    let figures = series.first().and_then(|s| s.runs.first());
    let figures = figures.copied().unwrap_or_default();
    let pairs = figures.iter().flat_map(|figure| series.iter().map(move |s| (figure, s)));
    pairs.map(|(figure, of_policy)| sum_up(figure, of_policy)).collect()
}

fn stat(case: &str, figure: &Figure, series: &Series) -> Stat {
    let samples = series.samples(figure.metric);
    Stat {
        case: case.to_owned(),
        metric: figure.metric,
        policy: series.policy.to_owned(),
        mean: samples.as_deref().map(mean),
        std_pct: samples.as_deref().and_then(std_pct),
        unit: figure.unit,
    }
}

fn row(case: &str, figure: &Figure, series: &Series, baseline: &Series) -> Row {
    let samples = series.samples(figure.metric);
    let is_baseline = std::ptr::eq(series, baseline);
    let pair = baseline.samples(figure.metric).zip(samples.as_ref());
    let pair = pair.filter(|_| !is_baseline);
    Row {
        case: case.to_owned(),
        metric: figure.metric,
        policy: series.policy.to_owned(),
        mean: samples.as_deref().map(mean),
        std_pct: samples.as_deref().and_then(std_pct),
        unit: figure.unit,
        better: figure.better,
        change_pct: pair.as_ref().and_then(|(b, s)| change_pct(mean(b), mean(s), figure.better)),
        significant: pair.as_ref().and_then(|(b, s)| is_significant(b, s)),
    }
}

fn std_pct(samples: &[f64]) -> Option<f64> {
    finite(100.0 * sample_std(samples)? / mean(samples).abs())
}

/// Positive is better.
fn change_pct(baseline: f64, value: f64, better: Better) -> Option<f64> {
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

fn nine_digits<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(round_to_nine_digits).serialize(serializer)
}

pub fn direction_name(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    }
}

fn direction<S: Serializer>(better: &Better, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(direction_name(*better))
}
