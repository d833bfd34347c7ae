//! `placewise study`: the simulations that a plan asks for, each kept as soon as it is done.
//!
//! A [`plan`] names the values of each axis; each [`cell`] of it is one simulation, addressed by what goes
//! into it. [`rounds`] says which are wanted and lack a result, [`workers`] simulate them, [`results`] keep
//! what came out, and [`rows`] prints it. Other engines than the local one ask for the cells (`--emit`),
//! have them simulated wherever they like (`--cell`), and ask again until there are none.
//!
//! Limit: processes that have no file system in common cannot share a study.

mod cell;
mod plan;
mod progress;
mod results;
mod rounds;
mod rows;
mod workers;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::path::{PathBuf, absolute};

use anyhow::Context;
use clap::builder::RangedU64ValueParser;
use placewise_sim::simulate;

use self::cell::{Cell, Cells};
use self::plan::StudyPlan;
use self::progress::Progress;
use self::results::{Result, Results};
use self::workers::Heard;
use crate::input::InputError;
use crate::parallel;

const EXAMPLE: &str = "\
Examples:
  placewise study plan.toml                      # simulate what has no result yet, on all CPUs
  placewise study plan.toml --figures > rows.jsonl
  placewise study plan.toml --changes            # against the first combination
  placewise study plan.toml --emit               # for an engine: the cells that lack a result
  placewise study plan.toml --cell ID --cell ID  # and what it runs for each, or for a few

A plan:
  machines = [\"zen3-2s-nps1\", \"icx-2s\"]
  policies = [\"baseline\", \"short-task\"]
  runs = 5

  [[workload]]
  name = \"hackbench\"
  cases = [\"groups=1\", \"groups=2\"]

Exit status: 0 on success, also where a simulation has failed, which is a row; 2 when the input is at
fault, 1 when something else went wrong.";

/// Simulate all combinations that a plan asks for, here or on a cluster
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct StudyArgs {
    /// Plan: machines, kernels, workloads, policies and so on, of which all combinations are simulated
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,

    /// Directory that has the results, a file per cell [default: that of the plan, with `.results` behind
    /// the plan's name]
    #[arg(long, value_name = "DIRECTORY")]
    results: Option<PathBuf>,

    /// A further policy, which may be one of your own by its directory (repeatable)
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<String>,

    /// Print the cells that are wanted and have no result yet, as JSON lines
    #[arg(long, group = "what")]
    emit: bool,

    /// Simulate this cell alone, unless it has a result (repeatable)
    #[arg(long = "cell", value_name = "ID", group = "what")]
    cells: Vec<String>,

    /// Print the figures of all cells that are done, as JSON lines
    #[arg(long, group = "what")]
    figures: bool,

    /// Print how the figures change from the first combination to the others, as JSON lines
    #[arg(long, group = "what")]
    changes: bool,

    /// Simulate again what has failed
    #[arg(long, conflicts_with_all = ["figures", "changes"])]
    retry: bool,

    /// Processes to simulate on; the results do not depend on it [default: all CPUs]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    jobs: Option<usize>,
}

pub fn run(args: &StudyArgs) -> anyhow::Result<()> {
    let directory = results_directory(args)?;
    let plan = StudyPlan::read(&args.plan, &args.policies)?;
    let cells = Cells::new(&plan)?;
    let mut results = Results::open(directory)?;
    let asked = named(&cells, &args.cells)?;
    if args.retry {
        let asked = if asked.is_empty() { cells.done(&mut results) } else { asked.clone() };
        forget_failures(&cells, &asked, &mut results)?;
    }
    match args {
        StudyArgs { emit: true, .. } => rows::print_cells(&cells, &cells.open(&mut results)),
        StudyArgs { figures: true, .. } => rows::print_figures(&cells, &mut results),
        StudyArgs { changes: true, .. } => rows::print_changes(&cells, &mut results),
        _ if asked.is_empty() => whole_study(&cells, &mut results, args.jobs),
        _ => simulate_all(&cells, &asked, &mut results, args.jobs),
    }
}

/// From where we are now, which the plan may change.
fn results_directory(args: &StudyArgs) -> anyhow::Result<PathBuf> {
    let beside_plan = || args.plan.with_extension("results");
    let directory = args.results.clone().unwrap_or_else(beside_plan);
    absolute(&directory).with_context(|| format!("{} is nowhere", directory.display()))
}

fn named(cells: &Cells, ids: &[String]) -> anyhow::Result<Vec<Cell>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let known = cells.by_id();
    let cell = |id: &String| {
        known.get(id).copied().ok_or_else(|| {
            let problem = "is no cell of this plan in this build; --emit lists those";
            InputError(format!("--cell {id}: {problem}")).into()
        })
    };
    ids.iter().map(cell).collect()
}

/// Round after round, until nothing is wanted.
fn whole_study(cells: &Cells, results: &mut Results, jobs: Option<usize>) -> anyhow::Result<()> {
    let kept = cells.done(results).len();
    let mut open = cells.open(results);
    while !open.is_empty() {
        simulate_all(cells, &open, results, jobs)?;
        open = cells.open(results);
    }
    let done = cells.done(results);
    let failed = done.iter().filter(|cell| has_failed(cells, **cell, results)).count();
    let of = format!("{} simulated, {kept} there before, {failed} failed", done.len() - kept);
    writeln!(
        io::stdout(),
        "{} cells: {of}; results in {}",
        done.len(),
        results.directory().display()
    )?;
    Ok(())
}

fn has_failed(cells: &Cells, cell: Cell, results: &mut Results) -> bool {
    let result = results.get(&cells.id(cell).to_string());
    matches!(result, Some(Result::Failed(_)))
}

fn forget_failures(cells: &Cells, of: &[Cell], results: &mut Results) -> anyhow::Result<()> {
    for cell in of {
        if has_failed(cells, *cell, results) {
            results.forget(&cells.id(*cell).to_string())?;
        }
    }
    Ok(())
}

/// Those that have no result, each once.
fn simulate_all(
    cells: &Cells,
    asked: &[Cell],
    results: &mut Results,
    jobs: Option<usize>,
) -> anyhow::Result<()> {
    let mut ids = BTreeSet::new();
    let is_open = |cell: &&Cell| {
        let id = cells.id(**cell).to_string();
        !results.is_there(&id) && ids.insert(id)
    };
    let open: Vec<Cell> = asked.iter().filter(is_open).copied().collect();
    let jobs = parallel::threads(jobs);
    let mut progress = Progress::new(&open, jobs);
    let kept = &*results;
    let work = |item: usize| simulate_cell(cells, open[item], kept);
    workers::run(open.len(), jobs, cells.plan.limit, &work, |heard| {
        match heard {
            Heard::Nothing => progress.tick(),
            Heard::Done { item, took } => progress.done(open[item], took),
            Heard::Lost { item, why } => {
                let id = cells.id(open[item]).to_string();
                // Killed after it was written, it is not lost.
                if !kept.is_there(&id) {
                    kept.write(&id, &Result::Failed(why))?;
                }
            }
        }
        Ok(())
    })?;
    progress.clear();
    Ok(())
}

/// In a worker. Another process may have been quicker.
fn simulate_cell(cells: &Cells, cell: Cell, results: &Results) -> anyhow::Result<()> {
    let id = cells.id(cell).to_string();
    if results.is_there(&id) {
        return Ok(());
    }
    panic::set_hook(Box::new(note_panic));
    let simulated = panic::catch_unwind(AssertUnwindSafe(|| simulate(&cells.scenario(cell), None)));
    let outcome = match simulated {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(_) => Err(format!("panicked: {}", PANIC.take())),
    };
    results.write(&id, &Result::of(outcome))
}

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

fn note_panic(panic: &PanicHookInfo<'_>) {
    let at = panic.location().map(|at| format!(" ({at})")).unwrap_or_default();
    PANIC.set(format!("{}{at}", panic.payload_as_str().unwrap_or("no message")));
}
