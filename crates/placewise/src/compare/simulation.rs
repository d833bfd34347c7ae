//! Simulates the cells of a plan, and adds runs to a case until its changes are known, if asked for.
//!
//! Runs are independent and go wide over threads; their results are ordered by what they are, not by
//! when they came.

use std::ops::Range;

use anyhow::Context;
use placewise_sim::{Figure, Outcome, simulate};
use placewise_trace::{FtraceWriter, Sink};

use super::CompareArgs;
use super::plan::{Cell, Plan};
use super::traces::Traces;
use crate::comparison::{self, Series};
use crate::load_balance::Runs;
use crate::parallel;

/// The runs of each combination in one case.
pub type OfCase = Vec<Vec<Outcome>>;

/// Those of every case.
pub fn simulate_all(
    plan: &Plan,
    args: &CompareArgs,
    traces: &Traces,
) -> anyhow::Result<Vec<OfCase>> {
    let mut outcomes = vec![vec![Vec::new(); plan.combinations.len()]; plan.cases.len()];
    let mut open: Vec<usize> = (0..plan.cases.len()).collect();
    let mut next = Some(0..args.runs);
    while let Some(runs) = next.filter(|_| !open.is_empty()) {
        let cells = cells(&open, plan.combinations.len(), runs.clone());
        let simulate = |cell: &Cell| simulate_cell(plan, *cell, args, traces);
        let done: anyhow::Result<Vec<_>> =
            parallel::map(&cells, args.jobs, simulate)?.into_iter().collect();
        for (cell, outcome) in cells.iter().zip(done?) {
            outcomes[cell.case][cell.combination].push(outcome);
        }
        open.retain(|case| !is_known(plan, &outcomes[*case], args));
        next = args.effort.more(runs.end);
    }
    Ok(outcomes)
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

fn is_known(plan: &Plan, of_case: &OfCase, args: &CompareArgs) -> bool {
    let series = series(&of_combinations(plan, of_case), |outcome| &outcome.figures);
    args.effort.precision.is_none_or(|precision| comparison::is_known(&series, precision))
}

fn simulate_cell(
    plan: &Plan,
    cell: Cell,
    args: &CompareArgs,
    traces: &Traces,
) -> anyhow::Result<Outcome> {
    let scenario = plan.scenario(cell, args.seed);
    let mut file = traces.take(cell);
    let mut writer = file.as_mut().map(|file| traces.writer(file, &scenario, plan, cell));
    let sink = writer.as_mut().map(|writer| writer as &mut dyn Sink);
    let (case, subject) =
        (&plan.cases[cell.case].name, &plan.combinations[cell.combination].subject);
    let outcome = simulate(&scenario, sink)
        .with_context(|| format!("{case} under {}, run {}", subject.policy, cell.run + 1))?;
    // What cannot be written costs the trace, whose file keeps the error, not the figures.
    let _ = writer.map(FtraceWriter::finish);
    if let Some(file) = file {
        traces.put_back(cell, file);
    }
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
