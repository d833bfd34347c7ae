//! Predicts published figures: finds the scenario of each row, simulates each scenario once per
//! seed, and takes every row's figure from the outcomes.
//!
//! What cannot be simulated is left out with the reason, never guessed. Counters of /proc/schedstat
//! are published for whole runs, so those of the window are scaled by the predicted time.

use std::collections::BTreeMap;

use placewise_machine::Machine;
use placewise_policy::Policy;
use placewise_sim::{Better, Figure, Scenario, SimError, simulate};
use placewise_workload as workload;
use placewise_workload::program::Workload;
use serde::Serialize;

use super::study::Published;
use super::unit::{Quantity, Unit};
use crate::comparison::{change_pct, direction_name, nine_digits, std_pct};
use crate::input::InputError;
use crate::noise::mean;
use crate::parallel;

/// A published figure beside its prediction.
#[derive(Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub published: Published,
    /// Whose costs the machine has; `None` if there is no such machine.
    pub costs_of: Option<String>,
    /// In the unit of the published value; `None` also where that is normalised: only changes
    /// compare with those.
    #[serde(serialize_with = "nine_digits")]
    pub predicted: Option<f64>,
    #[serde(serialize_with = "nine_digits")]
    pub predicted_change_pct: Option<f64>,
    #[serde(serialize_with = "nine_digits")]
    pub predicted_spread_pct: Option<f64>,
    /// Why there is no prediction.
    pub not_simulated: Option<String>,
}

/// Which runs to simulate, and on how many threads.
pub struct Runs {
    pub runs: u32,
    pub seed: u64,
    pub jobs: Option<usize>,
}

pub fn predict(published: Vec<Published>, runs: &Runs) -> anyhow::Result<Vec<Row>> {
    let mut plan = Plan::default();
    let planned: Vec<Result<usize, String>> = published.iter().map(|row| plan.add(row)).collect();
    for (row, scenario) in published.iter().zip(&planned) {
        if let Ok(scenario) = scenario {
            check(row, &plan.scenarios[*scenario].workload)?;
        }
    }
    let figures = plan.simulate_all(runs)?;
    let samples: Vec<Result<Samples, String>> = published
        .iter()
        .zip(planned)
        .map(|(row, scenario)| {
            let scenario = scenario?;
            Samples::of(row, &plan.scenarios[scenario].workload, &figures[scenario])
        })
        .collect();
    let baselines = baselines(&published);
    let rows = published.into_iter().zip(&samples).zip(baselines);
    let predicted = |((row, of_row), at): ((Published, _), Option<usize>)| {
        let machine = plan.machines.get(&row.machine).and_then(|loaded| loaded.as_ref().ok());
        let costs_of = machine.map(|machine| machine.costs_of.clone());
        Row { costs_of, ..predicted(row, of_row, at.map(|at| &samples[at])) }
    };
    Ok(rows.map(predicted).collect())
}

/// Refuses a unit and a value that a figure of the workload cannot have. (Counters, which are no
/// such figures, may be zero.)
fn check(row: &Published, workload: &Workload) -> Result<(), InputError> {
    let figure = Measured::by(&row.metric).figure;
    let Some(simulated) = workload.unit_of(&figure).and_then(Unit::parse) else { return Ok(()) };
    let (metric, quantity) = (&row.metric, simulated.quantity());
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

/// For each row, where the row stands that its change is relative to.
fn baselines(rows: &[Published]) -> Vec<Option<usize>> {
    let places: BTreeMap<_, usize> =
        rows.iter().enumerate().map(|(at, row)| ((&row.file, row.identity()), at)).collect();
    let baseline_of = |row: &Published| {
        let is_itself = row.identity() == row.identity_of_baseline();
        let place = places.get(&(&row.file, row.identity_of_baseline())).copied();
        place.filter(|_| !is_itself)
    };
    rows.iter().map(baseline_of).collect()
}

fn predicted(
    published: Published,
    samples: &Result<Samples, String>,
    baseline: Option<&Result<Samples, String>>,
) -> Row {
    let mut row = Row {
        published,
        costs_of: None,
        predicted: None,
        predicted_change_pct: None,
        predicted_spread_pct: None,
        not_simulated: samples.as_ref().err().cloned(),
    };
    if let Ok(samples) = samples {
        let value = samples.value();
        row.predicted = samples.factor.map(|factor| factor * value);
        row.predicted_spread_pct = std_pct(&samples.values);
        if let Some(Ok(baseline)) = baseline {
            // Of a counter without a good direction, more is positive.
            let better = samples.better.or(row.published.better).unwrap_or(Better::Higher);
            row.predicted_change_pct = change_pct(baseline.value(), value, better);
        }
    }
    row
}

/// All that a run reports, its own figures first.
type Figures = Vec<Figure>;

/// Everything about a scenario but the seed, by name.
type Key = [String; 5];

/// The scenarios there are, each once.
#[derive(Default)]
struct Plan {
    /// Or why one cannot be had.
    machines: BTreeMap<String, Result<Machine, String>>,
    places: BTreeMap<Key, usize>,
    scenarios: Vec<Prepared>,
}

struct Prepared {
    machine: String,
    policy: Policy,
    workload: Workload,
}

impl Plan {
    /// The index of the row's scenario, or why there is none.
    fn add(&mut self, row: &Published) -> Result<usize, String> {
        let case = row.simulated_case().map_err(text)?;
        let key = [&row.machine, &row.kernel, &row.workload, &case.to_string(), &row.policy];
        let key = key.map(String::clone);
        if let Some(place) = self.places.get(&key) {
            return Ok(*place);
        }
        let workload = workload::build(&row.workload, &case).map_err(text)?;
        let policy = Policy::parse(&row.kernel, &row.policy).map_err(text)?;
        let load = || placewise_machine::load(&row.machine).map_err(text);
        let machine = self.machines.entry(row.machine.clone()).or_insert_with(load);
        machine.as_ref().map_err(String::clone)?;
        self.scenarios.push(Prepared { machine: row.machine.clone(), policy, workload });
        self.places.insert(key, self.scenarios.len() - 1);
        Ok(self.scenarios.len() - 1)
    }

    /// The figures of each scenario's runs, in the order of the seeds.
    fn simulate_all(&self, runs: &Runs) -> anyhow::Result<Vec<Vec<Result<Figures, SimError>>>> {
        let seeds = || (0..runs.runs).map(|run| runs.seed + u64::from(run));
        let cells: Vec<(&Prepared, u64)> =
            self.scenarios.iter().flat_map(|one| seeds().map(move |seed| (one, seed))).collect();
        let simulate_cell = |(prepared, seed): &(&Prepared, u64)| {
            let Prepared { machine, policy, workload } = prepared;
            let machine = self.machines[machine].as_ref().expect("it is loaded");
            let outcome = simulate(&Scenario { machine, policy, workload, seed: *seed }, None)?;
            Ok([outcome.figures, outcome.statistics.figures].concat())
        };
        let mut figures = parallel::map(&cells, runs.jobs, simulate_cell)?.into_iter();
        let of_scenario = |_| figures.by_ref().take(runs.runs as usize).collect();
        Ok(self.scenarios.iter().map(of_scenario).collect())
    }
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}

/// Which figure of the simulator a published metric is, and what of it over all runs.
#[derive(Debug, PartialEq)]
struct Measured {
    figure: String,
    over_runs: OverRuns,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum OverRuns {
    Mean,
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
            // Of the rates of many runs; the mean over the seeds stands for it.
            (None, "hmean") => "throughput".into(),
            (None, name) => name.into(),
        };
        summary.unwrap_or(Self { figure, over_runs: OverRuns::Mean })
    }
}

/// One figure of every run.
#[derive(Debug)]
struct Samples {
    /// In the simulator's unit.
    values: Vec<f64>,
    /// What 1 of them is in the unit of the row; `None` where that is normalised.
    factor: Option<f64>,
    better: Option<Better>,
    over_runs: OverRuns,
}

impl Samples {
    fn of(
        row: &Published,
        workload: &Workload,
        runs: &[Result<Figures, SimError>],
    ) -> Result<Self, String> {
        let measured = Measured::by(&row.metric);
        let mut samples =
            Self { values: Vec::new(), factor: None, better: None, over_runs: measured.over_runs };
        for figures in runs {
            let figures = figures.as_ref().map_err(|error| error.to_string())?;
            let figure = figure(figures, &measured.figure)
                .ok_or_else(|| format!("metric `{}`: not simulated", row.metric))?;
            samples.factor = factor(row, figure.unit)?;
            samples.better = figure.better;
            samples.values.push(figure.value * whole_runs(&row.metric, workload, figures));
        }
        match samples.values.iter().all(|value| value.is_finite()) {
            true => samples.check_direction(row),
            false => Err(format!("metric `{}`: a run has no finite figure", row.metric)),
        }
    }

    fn value(&self) -> f64 {
        match self.over_runs {
            OverRuns::Mean => mean(&self.values),
            OverRuns::Quantile(quantile) => quantile_of(&self.values, quantile),
        }
    }

    /// A time that is normalised becomes a speed; nothing else changes its good direction.
    fn check_direction(self, row: &Published) -> Result<Self, String> {
        match (self.better, row.better) {
            (Some(own), Some(published)) if own != published && !row.is_normalized() => {
                let (own, metric) = (direction_name(own), &row.metric);
                Err(format!("metric `{metric}`: better is `{own}`, the row says otherwise"))
            }
            _ => Ok(self),
        }
    }
}

/// Between two values it is interpolated; NaN of none.
fn quantile_of(values: &[f64], quantile: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = quantile * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// What 1 in the simulator's unit is in the row's; `None` where that is normalised.
fn factor(row: &Published, simulated: &str) -> Result<Option<f64>, String> {
    match &row.unit {
        None => Ok(Some(1.0)),
        Some(_) if row.is_normalized() => Ok(None),
        Some(unit) => {
            let factor = Unit::parse(simulated).and_then(|simulated| simulated.in_unit(unit));
            let (metric, unit) = (&row.metric, unit.written());
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
        Some(time) if metric.starts_with("schedstat_") => {
            let seconds = |ns: u64| ns as f64 / 1e9;
            let window = &workload.window;
            let measured = time.value - seconds(window.warm_up);
            time.value / measured.min(seconds(window.measure))
        }
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(case: &str, metric: &str, policy: &str) -> Published {
        Published {
            file: "a.csv".into(),
            line: 2,
            series: "s".into(),
            machine: "uma-8".into(),
            kernel: "v6.0".into(),
            workload: "hackbench".into(),
            case: case.into(),
            metric: metric.into(),
            policy: policy.into(),
            value: None,
            unit: Unit::parse("s"),
            better: None,
            spread_pct: None,
            change_pct: None,
        }
    }

    #[test]
    fn rows_of_one_scenario_share_it() {
        let mut plan = Plan::default();
        let mut place = |case, metric, policy| plan.add(&published(case, metric, policy)).unwrap();
        assert_eq!(place("groups=1;fds=2", "time", "baseline"), 0);
        assert_eq!(place("groups=1;fds=2", "idle_share", "baseline"), 0);
        assert_eq!(
            place("fds=2;groups=1", "time", "baseline"),
            0,
            "the order of keys is no matter"
        );
        assert_eq!(place("groups=1;fds=2", "time", "short-task"), 1);
        assert_eq!(place("groups=2;fds=2", "time", "baseline"), 2);
        assert_eq!(plan.scenarios.len(), 3);
    }

    #[test]
    fn what_cannot_be_simulated_says_why() {
        let reason = |change: fn(&mut Published)| {
            let mut row = published("groups=1", "time", "baseline");
            change(&mut row);
            Plan::default().add(&row).unwrap_err()
        };
        assert!(reason(|row| row.machine = "vax".into()).contains("vax"));
        assert!(reason(|row| row.kernel = "v9.9".into()).contains("v9.9"));
        assert!(reason(|row| row.workload = "kernbench".into()).contains("kernbench"));
        assert!(reason(|row| row.case = "groups=none".into()).contains("groups"));
        assert!(reason(|row| row.policy = "magic".into()).contains("magic"));
    }

    #[test]
    fn changes_are_relative_to_the_baseline_of_the_same_file_case_and_metric() {
        let mut rows = vec![
            published("groups=1", "time", "short-task"),
            published("groups=1", "time", "baseline"),
            published("groups=2", "time", "baseline"),
            published("groups=2", "time", "short-task"),
            published("groups=2", "idle_share", "short-task"),
            published("groups=2", "time", "hint:none"),
        ];
        rows[5].file = "b.csv".into();
        assert_eq!(baselines(&rows), [Some(1), None, None, Some(2), None, None]);
    }

    fn samples(value: f64, better: Better) -> Result<Samples, String> {
        let (better, over_runs) = (Some(better), OverRuns::Mean);
        Ok(Samples { values: vec![value], factor: Some(1.0), better, over_runs })
    }

    #[test]
    fn metrics_of_lu_are_summaries_over_runs_and_threads_per_node() {
        let measured = |figure: &str, over_runs| Measured { figure: figure.into(), over_runs };
        for (metric, expected) in [
            ("rate_median", measured("throughput", OverRuns::Quantile(0.5))),
            ("time_q3", measured("time", OverRuns::Quantile(0.75))),
            ("time", measured("time", OverRuns::Mean)),
            ("rate_of_change", measured("rate_of_change", OverRuns::Mean)),
            ("lu_threads_column_2_of_4_printed", measured("lu.C.x_on_node_2", OverRuns::Mean)),
            ("copy", measured("copy", OverRuns::Mean)),
        ] {
            assert_eq!(Measured::by(metric), expected);
        }
        let samples = |quantile| Samples {
            values: vec![4.0, 1.0, 2.0, 3.0],
            factor: None,
            better: None,
            over_runs: OverRuns::Quantile(quantile),
        };
        let values = [0.0, 0.25, 0.5, 1.0].map(|quantile| samples(quantile).value());
        assert_eq!(values, [1.0, 1.75, 2.5, 4.0]);
    }

    #[test]
    fn units_and_values_of_the_studies_fit_their_metrics() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
        let mut checked = 0;
        for file in std::fs::read_dir(directory).unwrap() {
            let mut plan = Plan::default();
            for row in super::super::study::read(&file.unwrap().path()).unwrap() {
                if let Ok(scenario) = plan.add(&row) {
                    check(&row, &plan.scenarios[scenario].workload).unwrap();
                    checked += 1;
                }
            }
        }
        assert!(checked > 900, "{checked}");
    }

    #[test]
    fn rows_of_single_runs_share_the_scenario_of_all_runs() {
        let mut plan = Plan::default();
        let mut place = |case| plan.add(&published(case, "time", "baseline")).unwrap();
        assert_eq!(place("groups=1;fds=2"), place("groups=1;fds=2;run=3"));
    }

    #[test]
    fn normalised_values_have_a_change_but_no_prediction() {
        let mut row = published("groups=1", "time", "short-task");
        row.better = Some(Better::Higher);
        let (baseline, other) = (samples(4.0, Better::Lower), samples(3.0, Better::Lower));
        let as_it_is = predicted(row.clone(), &other, Some(&baseline));
        assert_eq!((as_it_is.predicted, as_it_is.predicted_change_pct), (Some(3.0), Some(25.0)));
        assert!(samples(3.0, Better::Lower).unwrap().check_direction(&row).is_err());
        row.unit = Unit::parse("normalized");
        assert_eq!(factor(&row, "s"), Ok(None));
        let other = Samples { factor: None, ..other.unwrap() }.check_direction(&row);
        let normalised = predicted(row, &other, Some(&baseline));
        assert_eq!((normalised.predicted, normalised.predicted_change_pct), (None, Some(25.0)));
    }

    #[test]
    fn counters_are_scaled_from_the_window_to_the_whole_run() {
        let row = published("groups=1;fds=2;warmup_ms=10;window_ms=20", "time", "baseline");
        let mut plan = Plan::default();
        plan.add(&row).unwrap();
        let runs = Runs { runs: 1, seed: 1, jobs: Some(1) };
        let figures = plan.simulate_all(&runs).unwrap();
        let (workload, figures) = (&plan.scenarios[0].workload, figures[0][0].as_ref().unwrap());
        let time = figure(figures, "time").unwrap().value;
        let factor = whole_runs("schedstat_schedule_called", workload, figures);
        assert!((factor - time / 0.02).abs() < 1e-9 * factor, "{factor}, {time}");
        assert_eq!(whole_runs("time", workload, figures), 1.0);
        assert_eq!(whole_runs("idle_share", workload, figures), 1.0);
    }
}
