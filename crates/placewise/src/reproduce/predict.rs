//! Predicts published figures: simulates the scenario of each row, and takes every row's figure from
//! the outcomes.
//!
//! All scenarios get the first runs. Those of a published change that is judged get more until its
//! verdict is settled, if asked for: dear ones up to four, and then only while as many runs again promise to settle
//! it. So do those of a baseline that scatters, until it is known or dear, and with it what is compared with it: a
//! change is one of as many runs. What cannot be simulated is left out with the reason, never guessed.

use std::collections::BTreeSet;
use std::path::Path;

use placewise_sim::SimError;
use serde::Serialize;

use super::kept::Kept;
use super::measured::{self, Figures, Samples};
use super::plan::{EVENTS, Plan};
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

/// So many runs tell how much they scatter: of two, t has so few degrees of freedom that an interval reaches nine
/// spreads to either side, of four 1.6. How much runs of dear cases scatter was in view, no outcome.
const TELLING_RUNS: usize = 3;

/// A baseline is known when it is this near, in percent: it is judged by its factor, which is near if it is below 1.5.
const NEAR_PCT: f64 = 25.0;

/// Which runs to simulate, and on how many threads.
pub struct Runs<'a> {
    pub runs: u32,
    pub effort: &'a Effort,
    /// A scenario that has taken so many events is dear.
    pub events: Option<u64>,
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
            open = runs
                .effort
                .precision
                .map(|pct| self.open(&figures, pct, runs.events))
                .unwrap_or_default();
            next = runs.effort.more(more.end);
        }
        Ok(figures)
    }

    /// The scenarios that get more runs.
    fn open(&self, figures: &OfScenarios, precision: f64, dear: Option<u64>) -> BTreeSet<usize> {
        let mut open = self.unknown(figures, precision, dear);
        let scattered = self.scattered(figures, dear);
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
    fn scattered(&self, figures: &OfScenarios, dear: Option<u64>) -> BTreeSet<usize> {
        let scattered = |row: &usize| {
            self.published[*row].is_baseline_figure()
                && self.samples(*row, figures).is_ok_and(|of| !of.is_known_within(NEAR_PCT))
        };
        let goes_on = |at: &usize| {
            figures[*at].len() < TELLING_RUNS
                || dear.is_none_or(|dear| events(&figures[*at]) < dear)
        };
        let rows = (0..self.published.len()).filter(scattered);
        rows.filter_map(|row| self.planned[row].as_ref().ok().copied()).filter(goes_on).collect()
    }

    /// The scenarios of changes that are judged and whose verdict is not settled yet; dear ones, which
    /// have taken `dear` events, once their runs are telling only if it would be after as many runs again.
    fn unknown(&self, figures: &OfScenarios, precision: f64, dear: Option<u64>) -> BTreeSet<usize> {
        let is_dear = |at: &usize| dear.is_some_and(|dear| events(&figures[*at]) >= dear);
        let scenarios = |row: usize| {
            let baseline = self.baselines[row]?;
            let question = Question::of(&self.published[row], Some(&self.published[baseline]))?;
            let change = self.change(row, &self.samples(row, figures).ok()?, figures)?;
            let both = [self.planned[row].clone().ok()?, self.planned[baseline].clone().ok()?];
            let is_settled = |change: &Change| question.is_settled(change, precision);
            let runs = both.iter().map(|at| figures[*at].len()).min()?;
            let is_promising =
                || runs < TELLING_RUNS || is_settled(&change.after_as_many_runs_again(runs));
            let goes_on = !is_settled(&change) && (!both.iter().any(is_dear) || is_promising());
            goes_on.then_some(both)
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

/// Of all runs of a scenario.
fn events(runs: &[Result<Figures, SimError>]) -> u64 {
    let figures = runs.iter().flatten().flatten();
    figures.filter(|figure| figure.metric == EVENTS).map(|figure| figure.value as u64).sum()
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
        let runs =
            Runs { runs: 1, effort: &effort, events: None, seed: 1, jobs: Some(1), resume: None };
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

    /// Whether a decisive row gets more runs, its runs having taken five events each.
    fn goes_on(baseline: &[f64], other: &[f64], dear: Option<u64>) -> bool {
        let of = |policy| row("s", "uma-8", "hackbench", QUICK, policy);
        let published =
            vec![of("baseline"), Published { change_pct: Some(20.0), ..of("short-task") }];
        let mut plan = Plan::default();
        let planned = published.iter().map(|row| plan.add(row)).collect();
        let baselines = study::baselines(published.iter());
        let predictions = Predictions { published, planned, baselines, plan };
        let figures: OfScenarios =
            [baseline, other].iter().map(|times| times.iter().map(run).collect()).collect();
        !predictions.unknown(&figures, 1.0, dear).is_empty()
    }

    /// The runs of a case's baseline and of a policy, none of whose changes is judged, whose baselines take so long.
    fn runs_beside(times: &[f64], dear: Option<u64>) -> BTreeSet<usize> {
        let of = |policy| row("s", "uma-8", "hackbench", QUICK, policy);
        let other = row("s", "uma-8", "hackbench", "groups=2", "baseline");
        let published = [of("baseline"), of("short-task"), other];
        let published = published.map(|row| Published { value: Some(1.0), ..row }).to_vec();
        let mut plan = Plan::default();
        let planned = published.iter().map(|row| plan.add(row)).collect();
        let baselines = study::baselines(published.iter());
        let predictions = Predictions { published, planned, baselines, plan };
        let runs = |times: &[f64]| times.iter().map(run).collect();
        predictions.open(&vec![runs(times), runs(&[1.0; 4]), runs(&[1.0; 4])], 1.0, dear)
    }

    fn run(time: &f64) -> Result<Figures, SimError> {
        let time =
            Figure { metric: "time".into(), value: *time, unit: "s", better: Some(Better::Lower) };
        let events = Figure { metric: EVENTS.into(), value: 5.0, unit: "count", better: None };
        Ok(vec![time, events])
    }

    #[test]
    fn a_baseline_that_scatters_gets_more_runs_as_does_what_is_compared_with_it() {
        let both = BTreeSet::from([0, 1]);
        assert_eq!(runs_beside(&[10.0, 10.1], None), BTreeSet::new(), "it is known");
        assert_eq!(runs_beside(&[10.0, 14.0, 8.0, 12.0], None), both);
        assert_eq!(runs_beside(&[10.0, 14.0, 8.0, 12.0], Some(20)), BTreeSet::new(), "it is dear");
        assert_eq!(runs_beside(&[10.0, 14.0], Some(10)), both, "two runs do not tell");
    }

    #[test]
    fn what_is_dear_gets_more_runs_only_if_they_promise_to_settle_it() {
        let baseline = [10.0, 11.0, 10.0, 11.0];
        let (promising, hopeless) = ([10.2, 10.1, 9.3, 9.2], [10.4, 10.3, 11.0, 11.4]);
        assert!(goes_on(&baseline, &promising, Some(20)));
        assert!(!goes_on(&baseline, &hopeless, Some(20)));
        assert!(goes_on(&baseline, &hopeless, Some(21)) && goes_on(&baseline, &hopeless, None));
        assert!(!goes_on(&baseline, &[5.0; 4], None), "it is settled");
        let two = |runs: [f64; 4]| goes_on(&baseline[..2], &runs[..2], Some(1));
        assert!(two(hopeless), "two runs promise nothing and rule out nothing");
    }
}
