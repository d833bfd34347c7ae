//! Simulates the cells of a plan, and adds runs to a case until its changes are known, if asked for.
//!
//! Runs are independent and go wide over threads; their results are ordered by what they are, not by
//! when they came. They are begun case by case, and in each run by run, so that whoever stops early
//! has the first cases whole.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use placewise_sim::{Figure, Outcome, simulate};
use placewise_trace::Sink;

use super::args::CompareArgs;
use super::plan::{Cell, Plan};
use super::progress::Progress;
use super::traces::Traces;
use crate::comparison::{self, Series};
use crate::load_balance::Runs;
use crate::parallel;
use crate::report::finished_rows;
use crate::subject::differing_axes;

/// The runs of each combination in one case, in the order of their seeds.
pub type OfCase = Vec<Vec<Outcome>>;

pub struct Simulation<'a> {
    plan: &'a Plan,
    args: &'a CompareArgs,
    traces: &'a Traces,
    progress: Progress,
    /// By case, combination and run; `None` until it is done.
    outcomes: Vec<Vec<Vec<Option<Outcome>>>>,
}

impl<'a> Simulation<'a> {
    pub fn new(plan: &'a Plan, args: &'a CompareArgs, traces: &'a Traces) -> Self {
        let of_case = vec![Vec::new(); plan.combinations.len()];
        let outcomes = vec![of_case; plan.cases.len()];
        Self { plan, args, traces, progress: Progress::start(plan, args), outcomes }
    }

    /// The runs of every case. Once `stop` is up, `stopped` gets those that are done, and does not
    /// return: simulations under way are not waited for.
    pub fn run(
        mut self,
        stop: &Arc<AtomicBool>,
        stopped: impl Fn(Vec<OfCase>) -> Infallible,
    ) -> anyhow::Result<Vec<OfCase>> {
        let mut open: Vec<usize> = (0..self.plan.cases.len()).collect();
        let mut next = Some(0..self.args.runs());
        while let Some(runs) = next.filter(|_| !open.is_empty()) {
            self.simulate_round(&open, runs.clone(), |so_far| {
                if stop.load(Ordering::Relaxed) {
                    so_far.progress.clear();
                    stopped(so_far.whole_runs());
                }
            })?;
            open.retain(|case| !self.is_known(*case));
            next = self.args.effort.more(runs.end);
            for case in &open {
                let more =
                    next.as_ref().map_or(0, |runs| runs.len()) * self.plan.combinations.len();
                self.progress.expect(*case, more as u32);
            }
        }
        self.progress.clear();
        Ok(self.whole_runs())
    }

    /// Of several errors, that of the first cell.
    fn simulate_round(
        &mut self,
        cases: &[usize],
        runs: Range<u32>,
        heard: impl Fn(&Self),
    ) -> anyhow::Result<()> {
        let (plan, args, traces) = (self.plan, self.args, self.traces);
        let cells = cells(cases, plan.combinations.len(), runs.clone());
        for &case in cases {
            for of_combination in &mut self.outcomes[case] {
                of_combination.resize_with(runs.end as usize, || None);
            }
        }
        let timed = |cell: &Cell| {
            let start = Instant::now();
            (simulate_cell(plan, *cell, args, traces), start.elapsed())
        };
        let mut failed: Option<(usize, anyhow::Error)> = None;
        parallel::each(&cells, parallel::threads(args.jobs), timed, |result| {
            match result {
                None => self.progress.tick(),
                Some((at, (Ok(outcome), took))) => self.put(cells[at], outcome, took),
                Some((at, (Err(error), _))) => match &failed {
                    Some((first, _)) if *first < at => {}
                    _ => failed = Some((at, error)),
                },
            }
            heard(self);
        });
        failed.map_or(Ok(()), |(_, error)| Err(error))
    }

    fn put(&mut self, cell: Cell, outcome: Outcome, took: Duration) {
        let of_case = &mut self.outcomes[cell.case];
        of_case[cell.combination][cell.run as usize] = Some(outcome);
        let is_whole = of_case.iter().flatten().all(Option::is_some);
        self.progress.done(cell.case, took);
        if is_whole && self.progress.is_seen() {
            let rows = self.rows(cell.case);
            let axes = differing_axes(&self.plan.subjects());
            self.progress.say(&finished_rows(&rows, &axes));
        }
    }

    fn rows(&self, case: usize) -> Vec<comparison::Row> {
        let runs = self.whole_runs_of(case);
        let runs = of_combinations(self.plan, &runs);
        comparison::rows(&self.plan.cases[case].name, &series(&runs, |outcome| &outcome.figures))
    }

    fn is_known(&self, case: usize) -> bool {
        let runs = self.whole_runs_of(case);
        let series = series(&of_combinations(self.plan, &runs), |outcome| &outcome.figures);
        let precision = self.args.effort.precision;
        precision.is_none_or(|precision| comparison::is_known(&series, precision))
    }

    fn whole_runs(&self) -> Vec<OfCase> {
        (0..self.outcomes.len()).map(|case| self.whole_runs_of(case)).collect()
    }

    /// As many first runs as each combination has: the same seeds.
    fn whole_runs_of(&self, case: usize) -> OfCase {
        let of_case = &self.outcomes[case];
        let done =
            |runs: &Vec<Option<Outcome>>| runs.iter().take_while(|run| run.is_some()).count();
        let whole = of_case.iter().map(done).min().unwrap_or(0);
        of_case.iter().map(|runs| runs[..whole].iter().flatten().cloned().collect()).collect()
    }
}

/// Case by case, and in each run by run.
fn cells(cases: &[usize], nr_combinations: usize, runs: Range<u32>) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &case in cases {
        for run in runs.clone() {
            cells.extend((0..nr_combinations).map(|combination| Cell { case, combination, run }));
        }
    }
    cells
}

fn simulate_cell(
    plan: &Plan,
    cell: Cell,
    args: &CompareArgs,
    traces: &Traces,
) -> anyhow::Result<Outcome> {
    let scenario = plan.scenario(cell, args.seed);
    let mut files = traces.take(cell);
    let mut writers = traces.writers(&mut files, &scenario, plan, cell);
    let sink = writers.as_mut().map(|writers| writers as &mut dyn Sink);
    let (case, subject) =
        (&plan.cases[cell.case].name, &plan.combinations[cell.combination].subject);
    let outcome = simulate(&scenario, sink)
        .with_context(|| format!("{case} under {}, run {}", subject.policy, cell.run + 1))?;
    if let Some(writers) = writers {
        writers.finish();
    }
    traces.put_back(cell, files);
    Ok(outcome)
}

/// The runs of each combination with what they are runs of.
pub fn of_combinations<'a>(plan: &'a Plan, of_case: &'a OfCase) -> Vec<Runs<'a>> {
    let pairs = plan.combinations.iter().zip(of_case);
    pairs.map(|(of, outcomes)| Runs { subject: &of.subject, outcomes }).collect()
}

/// The figures of each combination's runs.
pub fn series<'a>(runs: &[Runs<'a>], figures: fn(&Outcome) -> &[Figure]) -> Vec<Series<'a>> {
    let of_combination = |of: &Runs<'a>| Series {
        subject: of.subject,
        runs: of.outcomes.iter().map(figures).collect(),
    };
    runs.iter().map(of_combination).collect()
}
