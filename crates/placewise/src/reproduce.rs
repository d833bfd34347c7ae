//! `placewise reproduce`: published results beside what the simulator predicts for them.
//!
//! A study is a file of published figures (`study`) in units that can be converted (`unit`), made with
//! the `commands` of its series (`rows` names which rows, `names` what each is of). Its rows
//! (all or a `sample`), and those `asked` for beside them, ask for scenarios (`plan`), whose runs,
//! `kept` or not, give predicted figures (`measured`, `predict`). They are
//! judged (`verdict`) by how noisy publications are (`publication`), beside what trivial predictors
//! say (`trivial`) and by what was in view when the model was made (`provenance`), and summed up
//! (`summary`, `score`, `baselines`). `report` prints all of it and
//! `page` writes the page of accuracy with a `plot`, both with the same `tables`.

mod asked;
pub mod baselines;
mod commands;
mod kept;
pub mod measured;
pub mod names;
mod page;
pub mod plan;
mod plot;
mod predict;
mod provenance;
pub mod publication;
mod report;
mod reproduction;
mod rows;
mod sample;
mod score;
pub mod study;
mod summary;
mod tables;
mod trivial;
pub mod unit;
mod verdict;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::RangedU64ValueParser;
use placewise_report::JsonResult;

use self::page::Page;
use self::predict::Runs;
use self::reproduction::Reproduction;
use self::score::Score;
use crate::effort::Effort;
use crate::html_file::HtmlFile;
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

    /// Predict this policy too, for each case of the studies: as `compare` takes it (repeatable)
    #[arg(long = "policy", value_name = "POLICY")]
    pub policies: Vec<String>,

    #[command(flatten)]
    effort: Effort,

    /// Leave out rows without a published value, which ask for a prediction only, and normalised
    /// ones that no change is relative to
    #[arg(long)]
    only_published: bool,

    /// Of each policy with a workload on a machine in a series, judge at most N cases, spread evenly
    /// over its table, and leave out the rest
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000))]
    sample: Option<usize>,

    /// Seed of the first run
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Threads to simulate on; the result does not depend on it [default: all CPUs]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    jobs: Option<usize>,

    /// Keep runs in this file as they finish, and take those that are there from it: after a stop, the
    /// same command goes on
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Write the page of accuracy there, too: ACCURACY.md with accuracy.svg and accuracy.csv
    #[arg(long, value_name = "DIRECTORY")]
    page: Option<PathBuf>,

    /// Write a page to look at there, too: one HTML file that needs nothing beside it
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
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

pub fn run(args: &ReproduceArgs) -> anyhow::Result<()> {
    check(args)?;
    let studies: Vec<_> =
        args.files.iter().map(|file| study::read(file)).collect::<Result<_, _>>()?;
    let mut rows = studies.concat();
    if args.only_published {
        rows = sample::published(rows);
    }
    if let Some(most) = args.sample {
        rows = sample::sample(rows, most);
    }
    let rows = asked::with_policies(rows, &args.policies)?;
    let page = args.page.as_deref().map(Page::create).transpose()?;
    let html = args.html.as_deref().map(HtmlFile::create).transpose()?;
    let runs = Runs {
        runs: args.runs,
        effort: &args.effort,
        seed: args.seed,
        jobs: args.jobs,
        resume: args.resume.as_deref(),
    };
    let rows = score::judge(predict::predict(rows, &args.policies, &runs)?);
    let (score, runs) = (Score::of(&rows), told_runs(args));
    let reproduction = Reproduction { rows, score, runs };
    let text = match args.format {
        Format::Table => report::terminal(&reproduction),
        Format::Markdown => report::markdown(&reproduction),
        Format::Csv => report::csv(&reproduction)?,
        Format::Json => report::json(&reproduction)?,
    };
    // Without one of them, the other is as good as ever.
    let written = page.map_or(Ok(()), |page| page.write(&reproduction));
    let drawn = html.map_or(Ok(()), |html| {
        let (json, text) = (report::json(&reproduction)?, report::terminal(&reproduction));
        html.write(&[JsonResult::parse("reproduce", json.as_bytes(), Some(text))?], &[])
    });
    let printed = io::stdout().write_all(text.as_bytes());
    written?;
    drawn?;
    Ok(printed?)
}

/// `1 per case and policy, seed 1`
fn told_runs(args: &ReproduceArgs) -> String {
    let sampled = args.sample.map(|most| {
        let cases = if most == 1 { "case" } else { "cases" };
        format!("; at most {most} judged {cases} of each experiment")
    });
    told_runs_of_cases(args) + &sampled.unwrap_or_default()
}

fn told_runs_of_cases(args: &ReproduceArgs) -> String {
    let (runs, first) = (args.runs, args.seed);
    let last = |runs: u32| first + u64::from(runs) - 1;
    match (args.effort.precision, runs) {
        (Some(precision), _) => {
            let most = args.effort.budget();
            format!(
                "{runs} to {most} per case and policy, until each verdict is settled or its change \
                 known to {precision} %, seeds from {first} on"
            )
        }
        (None, 1) => format!("1 per case and policy, seed {first}"),
        (None, n) => format!("{n} per case and policy, seeds {first} to {}", last(n)),
    }
}

fn check(args: &ReproduceArgs) -> Result<(), InputError> {
    args.effort.check(args.runs, args.seed)?;
    let mut known = BTreeSet::new();
    let place = |file: &PathBuf| file.canonicalize().unwrap_or_else(|_| file.clone());
    match args.files.iter().find(|file| !known.insert(place(file))) {
        Some(file) => Err(InputError(format!("{}: is given twice; name it once", file.display()))),
        None => Ok(()),
    }
}
