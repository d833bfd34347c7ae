//! Predicts published figures: simulates the scenario of each row, and takes every row's figure from
//! the outcomes.
//!
//! All scenarios get the first runs. Those of a published change that is judged get more until its
//! verdict is settled, if asked for. So do those of a baseline that scatters, until it is known, and with it what is
//! compared with it: a change is one of as many runs. What cannot be simulated is left out with the reason, never
//! guessed.

use std::collections::BTreeSet;
use std::path::Path;

use placewise_sim::SimError;
use serde::Serialize;

use super::kept::Kept;
use super::measured::{self, Figures, Samples};
use super::plan::Plan;
use super::study::{self, Published};
use super::verdict::Question;
use crate::change::Change;
use crate::effort::Effort;
use crate::machine_readable::nine_digits;
use crate::noise::{Interval, std_pct};
use crate::states::States;

/// A published figure beside its prediction.
#[derive(Clone, Serialize)]
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
    /// The ends of the 95 % interval of the predicted change.
    #[serde(serialize_with = "nine_digits")]
    pub predicted_change_low_pct: Option<f64>,
    #[serde(serialize_with = "nine_digits")]
    pub predicted_change_high_pct: Option<f64>,
    pub runs: usize,
    /// What they were, if the runs settled in different ones.
    pub states: Option<States>,
}

/// A baseline is known when it is this near, in percent: it is judged by its factor, which is near if it is below 1.5.
const NEAR_PCT: f64 = 25.0;

/// Which runs to simulate, and on how many threads.
pub struct Runs<'a> {
    pub runs: u32,
    pub effort: &'a Effort,
    pub seed: u64,
    pub jobs: Option<usize>,
    /// Where finished ones go, and come from.
    pub resume: Option<&'a Path>,
}

/// `policies` are those that were named beside those of the studies.
pub fn predict(
    published: Vec<Published>,
    policies: &[String],
    runs: &Runs,
) -> anyhow::Result<Vec<Row>> {
    let mut plan = Plan::with_policies(policies);
    let planned: Vec<Result<usize, String>> = published.iter().map(|row| plan.add(row)).collect();
    for (row, scenario) in published.iter().zip(&planned) {
        if let Ok(scenario) = scenario {
            measured::check(row, &plan.scenarios[*scenario].workload)?;
        }
    }
    let baselines = study::baselines(published.iter());
    let predictions = Predictions { published, planned, baselines, plan };
    let kept = runs.resume.map(Kept::open).transpose()?;
    let figures = predictions.simulate(runs, kept.as_ref())?;
    Ok(predictions.rows(&figures))
}

/// The figures of each run of each scenario, in the order of the seeds.
type OfScenarios = Vec<Vec<Result<Figures, SimError>>>;

/// The rows with all that it takes to predict them.
struct Predictions {
    published: Vec<Published>,
    /// The scenario of each row, or why there is none.
    planned: Vec<Result<usize, String>>,
    baselines: Vec<Option<usize>>,
    plan: Plan,
}

impl Predictions {
    fn simulate(&self, runs: &Runs, kept: Option<&Kept>) -> anyhow::Result<OfScenarios> {
        let mut figures: OfScenarios = Vec::new();
        figures.resize_with(self.plan.scenarios.len(), Vec::new);
        let mut open: BTreeSet<usize> = (0..figures.len()).collect();
        let mut next = Some(0..runs.runs);
        while let Some(more) = next.filter(|_| !open.is_empty()) {
            // One that was known for a while catches up.
            let from = |scenario: &usize| figures[*scenario].len() as u32;
            let wanted: Vec<_> = open.iter().map(|one| (*one, from(one)..more.end)).collect();
            for (scenario, outcome) in self.plan.simulate(&wanted, runs.seed, runs.jobs, kept)? {
                figures[scenario].push(outcome);
            }
            open = runs.effort.precision.map(|pct| self.open(&figures, pct)).unwrap_or_default();
            next = runs.effort.more(more.end);
        }
        Ok(figures)
    }

    /// The scenarios that get more runs.
    fn open(&self, figures: &OfScenarios, precision: f64) -> BTreeSet<usize> {
        let mut open = self.unknown(figures, precision);
        let scattered = self.scattered(figures);
        let compared = |row: &usize| {
            let baseline = self.baselines[*row].unwrap_or(*row);
            self.published[*row].value.is_some()
                && self.planned[baseline].as_ref().is_ok_and(|it| scattered.contains(it))
        };
        let rows = (0..self.published.len()).filter(compared);
        open.extend(rows.filter_map(|row| self.planned[row].as_ref().ok()));
        open
    }

    /// The scenarios of baselines that were published as figures, and whose own are not known yet.
    fn scattered(&self, figures: &OfScenarios) -> BTreeSet<usize> {
        let scattered = |row: &usize| {
            self.published[*row].is_baseline_figure()
                && self.samples(*row, figures).is_ok_and(|of| !of.is_known_within(NEAR_PCT))
        };
        let rows = (0..self.published.len()).filter(scattered);
        rows.filter_map(|row| self.planned[row].as_ref().ok().copied()).collect()
    }

    /// The scenarios of changes that are judged and whose verdict is not settled yet.
    fn unknown(&self, figures: &OfScenarios, precision: f64) -> BTreeSet<usize> {
        let scenarios = |row: usize| {
            let baseline = self.baselines[row]?;
            let question = Question::of(&self.published[row], Some(&self.published[baseline]))?;
            let change = self.change(row, &self.samples(row, figures).ok()?, figures)?;
            let both = [self.planned[row].clone().ok()?, self.planned[baseline].clone().ok()?];
            (!question.is_settled(&change, precision)).then_some(both)
        };
        (0..self.published.len()).filter_map(scenarios).flatten().collect()
    }

    fn samples(&self, row: usize, figures: &OfScenarios) -> Result<Samples, String> {
        let scenario = self.planned[row].clone()?;
        let workload = &self.plan.scenarios[scenario].workload;
        Samples::of(&self.published[row], workload, &figures[scenario])
    }

    /// `None` for a row without a baseline, and where either has no finite figure.
    fn change(&self, row: usize, samples: &Samples, figures: &OfScenarios) -> Option<Change> {
        let baseline = self.samples(self.baselines[row]?, figures).ok()?;
        samples.change_from(&baseline, &self.published[row])
    }

    fn rows(&self, figures: &OfScenarios) -> Vec<Row> {
        (0..self.published.len()).map(|row| self.row(row, figures)).collect()
    }

    fn row(&self, at: usize, figures: &OfScenarios) -> Row {
        let published = self.published[at].clone();
        let machine = self.plan.machine(&published.ran_as.machine);
        let samples = self.samples(at, figures);
        let mut row = Row {
            costs_of: machine.map(|machine| machine.costs_of.clone()),
            not_simulated: samples.as_ref().err().cloned(),
            ..Row::unpredicted(published)
        };
        if let Ok(samples) = samples {
            row.fill(&samples, self.change(at, &samples, figures));
        }
        row
    }
}

impl Row {
    pub fn unpredicted(published: Published) -> Self {
        Self {
            published,
            costs_of: None,
            predicted: None,
            predicted_change_pct: None,
            predicted_spread_pct: None,
            not_simulated: None,
            predicted_change_low_pct: None,
            predicted_change_high_pct: None,
            runs: 0,
            states: None,
        }
    }

    fn fill(&mut self, samples: &Samples, change: Option<Change>) {
        let interval = change.and_then(|change| change.interval);
        self.predicted = samples.factor.map(|factor| factor * samples.value());
        self.predicted_spread_pct = std_pct(&samples.values);
        self.predicted_change_pct = change.map(|change| change.pct);
        self.predicted_change_low_pct = interval.map(|Interval { low, .. }| low);
        self.predicted_change_high_pct = interval.map(|Interval { high, .. }| high);
        self.runs = samples.values.len();
        self.states = samples.states();
    }

    pub fn predicted_interval(&self) -> Option<Interval> {
        Interval::between(self.predicted_change_low_pct?, self.predicted_change_high_pct?)
    }
}

#[cfg(test)]
mod tests {
    use placewise_sim::{Better, Figure};

    use super::*;
    use crate::reproduce::study::row;

    const QUICK: &str = "groups=1;fds=2;warmup_ms=1;window_ms=2";

    fn runs_of(change_pct: Option<f64>, budget: u32) -> Vec<usize> {
        let of = |policy| row("s", "uma-8", "hackbench", QUICK, policy);
        let judged = Published { change_pct, ..of("short-task") };
        let effort = Effort::new(Some(1e-9), Some(budget));
        let runs = Runs { runs: 1, effort: &effort, seed: 1, jobs: Some(1), resume: None };
        let alone =
            row("s", "uma-8", "hackbench", "groups=2;fds=2;warmup_ms=1;window_ms=2", "baseline");
        let rows =
            predict(vec![of("baseline"), judged, of("hint:none"), alone], &[], &runs).unwrap();
        rows.iter().map(|row| row.runs).collect()
    }

    /// To be known, a change takes two runs of the policy and its baseline; what nobody published,
    /// and what is too small to be judged, stays at one.
    #[test]
    fn runs_are_added_to_published_changes_only() {
        assert_eq!(runs_of(None, 24), [1, 1, 1, 1]);
        assert_eq!(runs_of(Some(5.0), 24), [1, 1, 1, 1]);
        assert_eq!(runs_of(Some(6.0), 2), [2, 2, 1, 1]);
        let until_known = runs_of(Some(6.0), 24);
        assert!(until_known[0] >= 2 && until_known[0] == until_known[1], "{until_known:?}");
        assert_eq!(until_known[2..], [1, 1]);
    }

    /// The runs of a case's baseline and of a policy, none of whose changes is judged, whose baselines take so long.
    fn runs_beside(times: &[f64]) -> BTreeSet<usize> {
        let of = |policy| row("s", "uma-8", "hackbench", QUICK, policy);
        let other = row("s", "uma-8", "hackbench", "groups=2", "baseline");
        let published = [of("baseline"), of("short-task"), other];
        let published = published.map(|row| Published { value: Some(1.0), ..row }).to_vec();
        let mut plan = Plan::default();
        let planned = published.iter().map(|row| plan.add(row)).collect();
        let baselines = study::baselines(published.iter());
        let predictions = Predictions { published, planned, baselines, plan };
        let runs = |times: &[f64]| times.iter().map(run).collect();
        predictions.open(&vec![runs(times), runs(&[1.0; 4]), runs(&[1.0; 4])], 1.0)
    }

    fn run(time: &f64) -> Result<Figures, SimError> {
        let time =
            Figure { metric: "time".into(), value: *time, unit: "s", better: Some(Better::Lower) };
        Ok(vec![time])
    }

    #[test]
    fn a_baseline_that_scatters_gets_more_runs_as_does_what_is_compared_with_it() {
        let both = BTreeSet::from([0, 1]);
        assert_eq!(runs_beside(&[10.0, 10.1]), BTreeSet::new(), "it is known");
        assert_eq!(runs_beside(&[10.0, 14.0, 8.0, 12.0]), both);
    }
}
