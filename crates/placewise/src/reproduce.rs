//! `placewise reproduce`: published results beside what the simulator predicts for them.
//!
//! A study is a file of published figures (`reproduce/study.rs`) in units that can be converted
//! (`reproduce/unit.rs`). Its rows are predicted
//! (`reproduce/predict.rs`), summed up (`reproduce/summary.rs`) and printed
//! (`reproduce/report.rs`).

mod predict;
mod report;
mod study;
mod summary;
mod unit;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::RangedU64ValueParser;

use self::predict::{Row, Runs};
use self::summary::{Pair, Summary};
use crate::input::InputError;

const EXAMPLE: &str = "\
Example:
  placewise reproduce studies/short-task_zen3_hackbench_nps1.csv --runs 3

A study is a CSV file with the columns that `placewise compare --format csv` prints; lines that
start with `#` are comments. A row without a value asks for a prediction only.
Exit status: 0 on success, 2 when the input is at fault, 1 when something else went wrong.";

/// Predict published results and say how well the predictions fit
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct ReproduceArgs {
    /// Study: published figures, one per row
    #[arg(value_name = "FILE.csv", required = true)]
    files: Vec<PathBuf>,

    /// Runs of each case and policy; run i uses seed SEED + i for every policy
    #[arg(long, default_value_t = 1, value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000))]
    runs: u32,

    /// Seed of the first run
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Threads to simulate on; the result does not depend on it [default: all CPUs]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    jobs: Option<usize>,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For the terminal
    Table,
    /// A document with pipe tables
    Markdown,
    /// The rows of the studies with the predictions behind them
    Csv,
    /// Everything, for programs
    Json,
}

/// Everything a report needs.
struct Reproduction {
    rows: Vec<Row>,
    summary: Summary,
    runs: u32,
    seed: u64,
}

pub fn run(args: &ReproduceArgs) -> anyhow::Result<()> {
    check(args)?;
    let studies: Vec<_> =
        args.files.iter().map(|file| study::read(file)).collect::<Result<_, _>>()?;
    let runs = Runs { runs: args.runs, seed: args.seed, jobs: args.jobs };
    let rows = predict::predict(studies.concat(), &runs)?;
    let summary = Summary::of(&pairs(&rows));
    let reproduction = Reproduction { rows, summary, runs: args.runs, seed: args.seed };
    let text = match args.format {
        Format::Table => report::terminal(&reproduction),
        Format::Markdown => report::markdown(&reproduction),
        Format::Csv => report::csv(&reproduction)?,
        Format::Json => report::json(&reproduction)?,
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn check(args: &ReproduceArgs) -> Result<(), InputError> {
    if args.seed.checked_add(u64::from(args.runs) - 1).is_none() {
        let problem = format!("--seed {}: too large for {} runs", args.seed, args.runs);
        return Err(InputError(problem));
    }
    let mut known = BTreeSet::new();
    let place = |file: &PathBuf| file.canonicalize().unwrap_or_else(|_| file.clone());
    match args.files.iter().find(|file| !known.insert(place(file))) {
        Some(file) => Err(InputError(format!("{}: is given twice; name it once", file.display()))),
        None => Ok(()),
    }
}

/// The changes that are both published and predicted.
fn pairs<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<Pair> {
    let pair = |row: &Row| {
        let published = row.published.change_pct?;
        Some(Pair { published, predicted: row.predicted_change_pct? })
    };
    rows.into_iter().filter_map(pair).collect()
}
