//! Decides which figure of the simulator a published metric is, and takes it from the runs.
//!
//! Counters of /proc/schedstat and of searches are published for whole runs, so those of the window are scaled by the
//! predicted time.

use placewise_sim::{Better, Figure, SimError};
use placewise_workload::program::Workload;

use super::study::Published;
use super::unit::{Quantity, Unit};
use crate::change::{Change, center, change_pct};
use crate::input::InputError;
use crate::machine_readable::direction_name;
use crate::noise::{self, mean, quantile, sorted};
use crate::states::States;

/// All that a run reports, its own figures first.
pub type Figures = Vec<Figure>;

/// Refuses a unit and a value that a figure of the workload cannot have. (Counters, which are no
/// such figures, may be zero.)
pub fn check(row: &Published, workload: &Workload) -> Result<(), InputError> {
    let figure = Measured::by(&row.ran_as.metric).figure;
    let Some(simulated) = workload.unit_of(&figure).and_then(Unit::parse) else { return Ok(()) };
    let (metric, quantity) = (&row.ran_as.metric, simulated.quantity());
    match &row.unit {
        Some(unit) if !row.is_normalized() && simulated.in_unit(unit).is_none() => {
            let (known, found) = (Unit::known(Some(quantity)), unit.written());
            let problem = format!("expected {known} for metric `{metric}`, found `{found}`");
            Err(row.wrong("unit", &problem))
        }
        _ if row.value == Some(0.0) && quantity != Quantity::Share => {
            let problem = format!("expected more than 0 for metric `{metric}`, found 0");
            Err(row.wrong("value", &problem))
        }
        _ => Ok(()),
    }
}

/// Which figure of the simulator a published metric is, and what of it over all runs.
#[derive(Debug, PartialEq)]
struct Measured {
    figure: String,
    over_runs: OverRuns,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum OverRuns {
    Center,
    Quantile(f64),
}

impl Measured {
    /// Most metrics go by the simulator's own names; those of lu are summaries over runs, and the
    /// mean numbers of threads on each node.
    fn by(metric: &str) -> Self {
        const QUANTILES: [(&str, f64); 5] =
            [("min", 0.0), ("q1", 0.25), ("median", 0.5), ("q3", 0.75), ("max", 1.0)];
        let quantile = |name| QUANTILES.iter().find(|known| known.0 == name).map(|known| known.1);
        let summary = metric.split_once('_').and_then(|(what, of_runs)| {
            let figure = match what {
                "rate" => "throughput",
                "time" => "time",
                _ => return None,
            };
            let over_runs = OverRuns::Quantile(quantile(of_runs)?);
            Some(Self { figure: figure.into(), over_runs })
        });
        let column = metric.strip_prefix("lu_threads_column_");
        let node = column.and_then(|column| column.strip_suffix("_of_4_printed"));
        let figure = match (node, metric) {
            (Some(node), _) => format!("lu.C.x_on_node_{node}"),
            // Means of many runs, some without the worst; the mean over the seeds stands for them.
            (None, "hmean" | "throughput_bhmean99") => "throughput".into(),
            (None, "time_bamean99") => "time".into(),
            (None, name) => name.into(),
        };
        summary.unwrap_or(Self { figure, over_runs: OverRuns::Center })
    }
}

/// One figure of every run.
#[derive(Debug)]
pub struct Samples {
    /// In the simulator's unit.
    pub values: Vec<f64>,
    /// What 1 of them is in the unit of the row; `None` where that is normalised.
    pub factor: Option<f64>,
    better: Option<Better>,
    over_runs: OverRuns,
}

impl Samples {
    pub fn of(
        row: &Published,
        workload: &Workload,
        runs: &[Result<Figures, SimError>],
    ) -> Result<Self, String> {
        let measured = Measured::by(&row.ran_as.metric);
        let mut samples =
            Self { values: Vec::new(), factor: None, better: None, over_runs: measured.over_runs };
        for figures in runs {
            let figures = figures.as_ref().map_err(|error| error.to_string())?;
            let figure = figure(figures, &measured.figure)
                .ok_or_else(|| format!("metric `{}`: not simulated", row.ran_as.metric))?;
            samples.factor = factor(row, figure.unit)?;
            samples.better = figure.better;
            samples.values.push(figure.value * whole_runs(&row.ran_as.metric, workload, figures));
        }
        match samples.values.iter().all(|value| value.is_finite()) {
            true => samples.check_direction(row),
            false => Err(format!("metric `{}`: a run has no finite figure", row.ran_as.metric)),
        }
    }

    /// The interval of their mean goes no further to either side.
    pub fn is_known_within(&self, pct: f64) -> bool {
        let error = noise::error_of_mean(&self.values);
        error.is_some_and(|error| 100.0 * error <= pct * mean(&self.values).abs())
    }

    pub fn value(&self) -> f64 {
        match self.over_runs {
            OverRuns::Center => center(&self.values),
            OverRuns::Quantile(at) => quantile_of_three(&self.values, at),
        }
    }

    /// Of a metric without a good direction, more is positive.
    pub fn change_from(&self, baseline: &Self, row: &Published) -> Option<Change> {
        let better = self.better.or(row.better).unwrap_or(Better::Higher);
        let of_center = Change::between(&baseline.values, &self.values, better)?;
        match self.over_runs {
            OverRuns::Center => Some(of_center),
            // Of its ends, a few runs tell less than of their center.
            OverRuns::Quantile(_) => {
                let pct = change_pct(baseline.value(), self.value(), better)?;
                Some(Change { pct, ..of_center })
            }
        }
    }

    /// In the row's unit.
    pub fn states(&self) -> Option<States> {
        let in_unit = |value: &f64| value * self.factor.unwrap_or(1.0);
        States::of(&self.values.iter().map(in_unit).collect::<Vec<_>>())
    }

    /// A time that is normalised becomes a speed; nothing else changes its good direction.
    fn check_direction(self, row: &Published) -> Result<Self, String> {
        match (self.better, row.better) {
            (Some(own), Some(published)) if own != published && !row.is_normalized() => {
                let (own, metric) = (direction_name(own), &row.ran_as.metric);
                Err(format!("metric `{metric}`: better is `{own}`, the row says otherwise"))
            }
            _ => Ok(self),
        }
    }
}

/// That of any three of the runs, in the mean. The ends of many runs lie further out than those of few, and published
/// ones are of three: each quarter that is published of lu is half way between the numbers beside it.
fn quantile_of_three(runs: &[f64], at: f64) -> f64 {
    if runs.len() < 3 {
        return quantile(runs, at);
    }
    let others = runs.len() - 1;
    let pairs = |of: usize| (of * of.saturating_sub(1) / 2) as f64;
    let mut three = [0.0; 3];
    for (below, run) in sorted(runs).iter().enumerate() {
        let above = others - below;
        // In how many threes it is the least, the middle and the greatest.
        let threes = [pairs(above), (below * above) as f64, pairs(below)];
        three.iter_mut().zip(threes).for_each(|(sum, times)| *sum += times * run);
    }
    let all = pairs(others) * (others + 1) as f64 / 3.0;
    quantile(&three.map(|sum| sum / all), at)
}

/// What 1 in the simulator's unit is in the row's; `None` where that is normalised.
fn factor(row: &Published, simulated: &str) -> Result<Option<f64>, String> {
    match &row.unit {
        None => Ok(Some(1.0)),
        Some(_) if row.is_normalized() => Ok(None),
        Some(unit) => {
            let factor = Unit::parse(simulated).and_then(|simulated| simulated.in_unit(unit));
            let (metric, unit) = (&row.ran_as.metric, unit.written());
            let problem = || format!("metric `{metric}`: is in {simulated}, not in `{unit}`");
            factor.map(Some).ok_or_else(problem)
        }
    }
}

fn figure<'a>(figures: &'a [Figure], name: &str) -> Option<&'a Figure> {
    figures.iter().find(|figure| figure.metric == name)
}

/// How many times the measured window a published figure spans: counters are given for the whole
/// run, whose time is itself taken from the rate in the window.
fn whole_runs(metric: &str, workload: &Workload, figures: &[Figure]) -> f64 {
    match figure(figures, "time") {
        Some(time) if is_counter(metric) => {
            let seconds = |ns: u64| ns as f64 / 1e9;
            let warm_up = figure(figures, "warm_up").map_or(0.0, |warm_up| warm_up.value);
            time.value / (time.value - warm_up).min(seconds(workload.window.measure))
        }
        _ => 1.0,
    }
}

/// What is counted from the beginning of a run to its end.
fn is_counter(metric: &str) -> bool {
    const OF_SEARCHES: [&str; 4] = ["sis_search", "sis_domain_search", "sis_scanned", "sis_failed"];
    metric.starts_with("schedstat_") || OF_SEARCHES.contains(&metric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::plan::Plan;
    use crate::reproduce::study::{self, row};

    fn samples(values: &[f64], over_runs: OverRuns) -> Samples {
        let better = Some(Better::Lower);
        Samples { values: values.to_vec(), factor: Some(1.0), better, over_runs }
    }

    #[test]
    fn metrics_of_lu_are_summaries_over_runs_and_threads_per_node() {
        let measured = |figure: &str, over_runs| Measured { figure: figure.into(), over_runs };
        for (metric, expected) in [
            ("rate_median", measured("throughput", OverRuns::Quantile(0.5))),
            ("time_q3", measured("time", OverRuns::Quantile(0.75))),
            ("time", measured("time", OverRuns::Center)),
            ("time_min", measured("time", OverRuns::Quantile(0.0))),
            ("time_bamean99", measured("time", OverRuns::Center)),
            ("rate_of_change", measured("rate_of_change", OverRuns::Center)),
            ("lu_threads_column_2_of_4_printed", measured("lu.C.x_on_node_2", OverRuns::Center)),
            ("copy", measured("copy", OverRuns::Center)),
        ] {
            assert_eq!(Measured::by(metric), expected);
        }
        let of_runs = |at| samples(&[4.0, 1.0, 2.0, 3.0], OverRuns::Quantile(at));
        // Of 1, 2, 3 and 4 without each of them in turn.
        let values = [0.0, 0.25, 0.5, 1.0].map(|at| of_runs(at).value());
        assert_eq!(values, [1.25, 1.875, 2.5, 3.75]);
        assert_eq!(samples(&[4.0, 1.0], OverRuns::Quantile(1.0)).value(), 4.0);
        assert_eq!(samples(&[4.0, 1.0, 2.0], OverRuns::Quantile(0.0)).value(), 1.0);
    }

    /// The quarter of any three of 1 to 4 is 1.875, of 10 times that 18.75.
    #[test]
    fn a_change_of_quantiles_is_that_of_the_quantiles() {
        let baseline = samples(&[10.0, 20.0, 30.0, 40.0], OverRuns::Quantile(0.25));
        let other = samples(&[1.0, 2.0, 3.0, 4.0], OverRuns::Quantile(0.25));
        let row = row("s", "uma-8", "lu", "", "lb-rework");
        let change = other.change_from(&baseline, &row).unwrap();
        assert_eq!(change.pct, 90.0);
        assert_eq!(change.is_significant(), Some(true));
    }

    #[test]
    fn units_and_values_of_the_studies_fit_their_metrics() {
        let (mut plan, mut checked) = (Plan::default(), 0);
        for row in study::all() {
            if let Ok(scenario) = plan.add(&row) {
                check(&row, &plan.scenarios[scenario].workload).unwrap();
                checked += 1;
            }
        }
        assert!(checked > 900, "{checked}");
    }

    #[test]
    fn only_normalised_values_may_have_another_good_direction() {
        let mut row = row("s", "uma-8", "hackbench", "groups=1", "short-task");
        row.better = Some(Better::Higher);
        let time = || samples(&[3.0], OverRuns::Center);
        assert!(time().check_direction(&row).is_err());
        row.unit = Unit::parse("normalized");
        assert_eq!(factor(&row, "s"), Ok(None));
        let faster = time().check_direction(&row).unwrap();
        let change = faster.change_from(&samples(&[4.0], OverRuns::Center), &row).unwrap();
        assert_eq!(change.pct, 25.0);
    }

    #[test]
    fn counters_are_scaled_from_the_window_to_the_whole_run() {
        let row =
            row("s", "uma-8", "hackbench", "groups=1;fds=2;warmup_ms=10;window_ms=20", "baseline");
        let mut plan = Plan::default();
        plan.add(&row).unwrap();
        let figures = plan.simulate(&[(0, 0..1)], 1, Some(1), None).unwrap();
        let (workload, figures) = (&plan.scenarios[0].workload, figures[0].1.as_ref().unwrap());
        let time = figure(figures, "time").unwrap().value;
        let factor = whole_runs("schedstat_schedule_called", workload, figures);
        assert!((factor - time / 0.02).abs() < 1e-9 * factor, "{factor}, {time}");
        assert_eq!(whole_runs("sis_scanned", workload, figures), factor);
        assert_eq!(whole_runs("sis_success_rate", workload, figures), 1.0);
        assert_eq!(whole_runs("time", workload, figures), 1.0);
        assert_eq!(whole_runs("idle_share", workload, figures), 1.0);
    }
}
