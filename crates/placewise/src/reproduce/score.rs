//! How well the predictions of many rows fit, row by row and experiment by experiment.
//!
//! Rows of one experiment (a policy with a workload on a machine in a series) are one decision asked
//! many times, so experiments are also counted once each, by the share of their rows that is right. A
//! row that another table of the series repeats counts once.

use std::collections::BTreeSet;

use serde::Serialize;

use super::baselines::{self, Baselines, Factors};
use super::names::Names;
use super::predict::Row;
use super::provenance;
use super::publication::{self, Ceiling};
use super::study::{self, Published};
use super::summary::{Pair, Summary};
use super::trivial::change_of_nearest_case;
use super::verdict::{Question, Tally, Verdict};
use crate::machine_readable::nine_digits;
use crate::report::grouped;

/// A row with what it is worth.
#[derive(Serialize)]
pub struct Scored {
    #[serde(flatten)]
    pub row: Row,
    /// What was chosen with the row's own outcome in view.
    pub in_sample: Vec<&'static str>,
    /// `None` where there is nothing to judge.
    pub verdict: Option<Verdict>,
    #[serde(skip)]
    pub question: Option<Question>,
    /// Another table of the series has it, too.
    #[serde(skip)]
    pub is_repeated: bool,
}

#[derive(Serialize)]
pub struct Score {
    #[serde(flatten)]
    pub summary: Summary,
    #[serde(flatten)]
    pub all: Tally,
    pub in_sample: Tally,
    pub out_of_sample: Tally,
    pub series: Vec<Series>,
    pub experiments: Vec<Experiment>,
    /// Mean rate of the experiments with decisive rows.
    #[serde(serialize_with = "nine_digits")]
    pub experiments_rate: Option<f64>,
    /// Of those without decisive rows in sample.
    #[serde(serialize_with = "nine_digits")]
    pub experiments_out_of_sample_rate: Option<f64>,
    /// The predictor that says nothing ever changes.
    pub no_change: Tally,
    pub nearest_case: NearestCase,
    pub ceiling: Ceiling,
    pub baselines: Vec<Baselines>,
    pub baselines_together: Option<Factors>,
}

/// Rows that have a case elsewhere, by the change published there, and by the simulator.
#[derive(Serialize)]
pub struct NearestCase {
    pub published: Tally,
    pub predicted: Tally,
}

#[derive(Serialize)]
pub struct Experiment {
    pub series: String,
    pub machine: String,
    pub kernel: String,
    pub workload: String,
    pub policy: String,
    /// Of the decisive rows.
    pub decisive_in_sample: usize,
    #[serde(flatten)]
    pub tally: Tally,
}

/// What the rows of a patch series come to.
#[derive(Serialize)]
pub struct Series {
    pub series: String,
    /// Those with decisive rows.
    pub experiments: usize,
    #[serde(serialize_with = "nine_digits")]
    pub experiments_rate: Option<f64>,
    #[serde(flatten)]
    pub tally: Tally,
}

/// The rows with their verdicts.
pub fn judge(rows: Vec<Row>) -> Vec<Scored> {
    let baselines = study::baselines(rows.iter().map(|row| &row.published));
    let questions = rows.iter().zip(baselines).map(|(row, baseline)| {
        Question::of(&row.published, baseline.map(|at| &rows[at].published))
    });
    let questions: Vec<Option<Question>> = questions.collect();
    let mut known = BTreeSet::new();
    let scored = |(row, question): (Row, Option<Question>)| {
        let judge = |question: Question| {
            let predicted = row.predicted_change_pct?;
            Some(question.judge(predicted, row.predicted_interval()))
        };
        let identity = row.published.identity().map(str::to_owned);
        Scored {
            in_sample: provenance::chosen_in_view_of(&row.published),
            verdict: question.and_then(judge),
            question,
            is_repeated: !known.insert((row.published.series.clone(), identity)),
            row,
        }
    };
    rows.into_iter().zip(questions).map(scored).collect()
}

impl Score {
    pub fn of(scored: &[Scored]) -> Self {
        let once: Vec<&Scored> = scored.iter().filter(|one| !one.is_repeated).collect();
        let tally =
            |holds: fn(&Scored) -> bool| tally(once.iter().copied().filter(|one| holds(one)));
        let experiments = experiments(&once);
        let out_of_sample = |one: &&Experiment| one.decisive_in_sample == 0;
        Self {
            summary: Summary::of(&pairs(scored)),
            all: tally(|_| true),
            in_sample: tally(Scored::is_in_sample),
            out_of_sample: tally(|one| !one.is_in_sample()),
            series: series(&once, &experiments),
            experiments_rate: mean_rate(experiments.iter()),
            experiments_out_of_sample_rate: mean_rate(experiments.iter().filter(out_of_sample)),
            experiments,
            no_change: Tally::of(once.iter().filter_map(|one| one.verdict_of(0.0))),
            nearest_case: NearestCase::of(&once),
            ceiling: publication::ceiling(),
            baselines: baselines::score(once.iter().map(|one| (&one.row, one.is_in_sample()))),
            baselines_together: baselines::together(once.iter().map(|one| &one.row)),
        }
    }
}

impl Scored {
    pub fn is_in_sample(&self) -> bool {
        !self.in_sample.is_empty()
    }

    /// Of another prediction, where the row's own has one.
    fn verdict_of(&self, predicted_pct: f64) -> Option<Verdict> {
        self.verdict.and(self.question).map(|question| question.judge(predicted_pct, None))
    }
}

impl NearestCase {
    fn of(scored: &[&Scored]) -> Self {
        let published: Vec<&Published> = scored.iter().map(|one| &one.row.published).collect();
        let both = |one: &&Scored| {
            let change = change_of_nearest_case(&one.row.published, published.iter().copied())?;
            Some((one.verdict_of(change)?, one.verdict?))
        };
        let (published, predicted): (Vec<_>, Vec<_>) = scored.iter().filter_map(both).unzip();
        Self { published: Tally::of(published), predicted: Tally::of(predicted) }
    }
}

fn tally<'a>(scored: impl Iterator<Item = &'a Scored>) -> Tally {
    Tally::of(scored.filter_map(|one| one.verdict))
}

/// Those with rows that are judged.
fn experiments(scored: &[&Scored]) -> Vec<Experiment> {
    let judged: Vec<&Scored> = scored.iter().copied().filter(|one| one.verdict.is_some()).collect();
    let groups = grouped(&judged, |one| one.row.published.experiment());
    groups.iter().map(|rows| experiment(rows)).collect()
}

fn experiment(rows: &[&&Scored]) -> Experiment {
    let Published { series, ran_as, .. } = rows[0].row.published.clone();
    let Names { machine, kernel, workload, policy, .. } = ran_as;
    let in_sample = rows.iter().copied().copied().filter(|one| one.is_in_sample());
    Experiment {
        series,
        machine,
        kernel,
        workload,
        policy,
        decisive_in_sample: tally(in_sample).decisive,
        tally: tally(rows.iter().copied().copied()),
    }
}

/// Those with rows that are judged, in their order.
fn series(scored: &[&Scored], experiments: &[Experiment]) -> Vec<Series> {
    let judged: Vec<&Scored> = scored.iter().copied().filter(|one| one.verdict.is_some()).collect();
    let of_series = |rows: &Vec<&&Scored>| {
        let name = &rows[0].row.published.series;
        let decisive = |one: &&Experiment| one.series == *name && one.tally.decisive > 0;
        Series {
            series: name.clone(),
            experiments: experiments.iter().filter(decisive).count(),
            experiments_rate: mean_rate(experiments.iter().filter(decisive)),
            tally: tally(rows.iter().copied().copied()),
        }
    };
    grouped(&judged, |one| &one.row.published.series).iter().map(of_series).collect()
}

fn mean_rate<'a>(experiments: impl Iterator<Item = &'a Experiment>) -> Option<f64> {
    let rates: Vec<f64> = experiments.filter_map(|one| one.tally.decisive_rate).collect();
    (!rates.is_empty()).then(|| crate::noise::mean(&rates))
}

/// The changes that are both published and predicted.
pub fn pairs<'a>(scored: impl IntoIterator<Item = &'a Scored>) -> Vec<Pair> {
    let pair = |one: &Scored| {
        let published = one.row.published.change_pct?;
        Some(Pair { published, predicted: one.row.predicted_change_pct? })
    };
    scored.into_iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::study::row;

    /// A baseline and a policy with a published and a predicted change.
    fn two(file: &str, series: &str, machine: &str, case: &str, changes: [f64; 2]) -> [Row; 2] {
        let of = |policy| Published {
            file: file.into(),
            ..row(series, machine, "hackbench", case, policy)
        };
        let mut with = Row::unpredicted(of("short-task"));
        with.published.change_pct = Some(changes[0]);
        with.predicted_change_pct = Some(changes[1]);
        [Row::unpredicted(of("baseline")), with]
    }

    fn score(rows: &[[Row; 2]]) -> Score {
        Score::of(&judge(rows.concat()))
    }

    /// By hand: one experiment is right in 1 of 4 rows, the other in 1 of 1. Counted by rows that is
    /// 2 of 5, counted by experiments 5 of 8.
    #[test]
    fn experiments_count_once_each() {
        let score = score(&[
            two("a.csv", "s", "uma-8", "groups=1", [10.0, 10.0]),
            two("a.csv", "s", "uma-8", "groups=2", [10.0, -10.0]),
            two("a.csv", "s", "uma-8", "groups=4", [10.0, 0.0]),
            two("a.csv", "s", "uma-8", "groups=8", [10.0, -3.0]),
            two("b.csv", "s", "x86-12", "groups=1", [-10.0, -3.0]),
            two("b.csv", "s", "x86-12", "groups=2", [1.0, 4.0]),
        ]);
        assert_eq!((score.all.decisive, score.all.decisive_right), (5, 2));
        assert_eq!((score.all.null_real, score.all.null_real_quiet), (1, 1));
        assert_eq!(score.experiments.len(), 2);
        assert_eq!(score.experiments_rate, Some(0.625));
    }

    /// By hand: series s has one experiment with 1 of 2 rows right and one with 1 of 1.
    #[test]
    fn each_series_is_summed_up_alone() {
        let score = score(&[
            two("a.csv", "s", "uma-8", "groups=1", [10.0, 10.0]),
            two("a.csv", "s", "uma-8", "groups=2", [10.0, -10.0]),
            two("a.csv", "s", "x86-12", "groups=1", [10.0, 10.0]),
            two("b.csv", "t", "uma-8", "groups=1", [1.0, 0.0]),
            two("c.csv", "u", "uma-8", "groups=1", [3.0, 0.0]),
        ]);
        let names: Vec<&str> = score.series.iter().map(|one| one.series.as_str()).collect();
        assert_eq!(names, ["s", "t"], "of u nothing is judged");
        let [s, t] = &score.series[..] else { panic!("there are two") };
        assert_eq!((s.experiments, s.experiments_rate), (2, Some(0.75)));
        assert_eq!((s.tally.decisive, s.tally.decisive_right), (3, 2));
        assert_eq!((t.experiments, t.experiments_rate, t.tally.null_real_quiet), (0, None, 1));
    }

    #[test]
    fn a_row_that_another_table_repeats_counts_once() {
        let one = two("a.csv", "s", "uma-8", "groups=1", [10.0, 10.0]);
        let again = two("b.csv", "s", "uma-8", "groups=1", [10.0, 10.0]);
        let elsewhere = two("c.csv", "t", "uma-8", "groups=1", [10.0, 10.0]);
        let score = score(&[one, again, elsewhere]);
        assert_eq!(score.all.decisive, 2);
        assert_eq!(score.summary.significant, 3, "the older figures count all rows");
    }

    /// No change is wrong wherever something changed, and quiet everywhere else. The nearest case is
    /// that of the other machine, so both of its rows with the same load have one.
    #[test]
    fn trivial_predictors_are_judged_as_the_simulator_is() {
        let score = score(&[
            two("a.csv", "s", "uma-8", "groups=1", [10.0, -10.0]),
            two("a.csv", "s", "x86-12", "groups=1", [20.0, 10.0]),
            two("a.csv", "s", "x86-12", "groups=16", [1.0, 10.0]),
        ]);
        assert_eq!((score.no_change.decisive, score.no_change.decisive_right), (2, 0));
        assert_eq!((score.no_change.null_real, score.no_change.null_real_quiet), (1, 1));
        let NearestCase { published, predicted } = score.nearest_case;
        assert_eq!((published.decisive, published.decisive_right), (2, 2));
        assert_eq!((predicted.decisive, predicted.decisive_right), (2, 1));
        assert_eq!((published.null_real, published.null_real_quiet), (1, 0));
    }

    #[test]
    fn rows_in_sample_are_counted_apart() {
        let mut in_view = two("a.csv", "short-task", "spr-112", "instances=112", [300.0, 200.0]);
        in_view.iter_mut().for_each(|row| row.published.ran_as.workload = "context_switch1".into());
        let score = score(&[in_view, two("a.csv", "s", "uma-8", "groups=1", [10.0, -10.0])]);
        assert_eq!((score.in_sample.decisive, score.in_sample.decisive_right), (1, 1));
        assert_eq!((score.out_of_sample.decisive, score.out_of_sample.decisive_right), (1, 0));
        assert_eq!(score.experiments_rate, Some(0.5));
        assert_eq!(score.experiments_out_of_sample_rate, Some(0.0));
    }

    #[test]
    fn what_is_not_predicted_is_not_judged() {
        let mut rows = two("a.csv", "s", "uma-8", "groups=1", [10.0, 10.0]);
        rows[1].predicted_change_pct = None;
        let score = score(&[rows]);
        assert_eq!((score.all.decisive, score.no_change.decisive), (0, 0));
    }
}
