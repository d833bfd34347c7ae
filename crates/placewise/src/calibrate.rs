//! `placewise calibrate`: cost figures of a machine fitted to baselines that were published for it.
//!
//! The `rows` of the tables are baselines only, the `figures` those that are marked for it. A `predictor`
//! says what comes out under other costs. `effects` tries each figure at its bounds, and what the rows
//! can tell of it (`told_apart`) decides whether it is fitted (`fit`, by the `objective`) or left; the
//! `report` says both.

mod effects;
mod figures;
mod fit;
mod objective;
mod predictor;
mod report;
mod rows;
mod told_apart;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use placewise_machine::{Machine, load, presets, to_toml};

use self::figures::{Factors, Figure};
use self::objective::Objective;
use self::predictor::{Predictor, Runs};
use self::report::Report;
use self::told_apart::Told;
use crate::input::InputError;
use crate::output_file::{self, OutputFile};
use crate::report::{TableOrJson, json};

const EXAMPLE: &str = "\
Example:
  placewise calibrate icx-2s --on studies/hints_icx_hackbench_fork.csv \\
      --on studies/hints_icx_tbench_fork.csv -o icx.toml
  placewise calibrate mine.toml --on baselines.csv --figure wakeup_ns --figure context_switch_ns

Only baseline rows of the machine are read, and of these only such as have a value of their own:
what is normalized to another row has no scale. Figures that the rows cannot tell apart are named
and left.
Exit status: 0 on success, 2 when the input is at fault, 1 when something else went wrong.";

const COMMENT: &str = "\
Calibrated by `placewise calibrate`: figures that begin with `calibrated: on` were fitted to the
baselines of the tables that are named there.";

/// Fit a machine's calibrated costs to published baselines
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct CalibrateArgs {
    /// Preset or machine file whose costs are fitted
    machine: String,

    /// Study with baselines of the machine; several are fitted together
    #[arg(long, value_name = "FILE.csv", required = true)]
    on: Vec<PathBuf>,

    /// Fit this figure, too, which is not marked `calibrated`
    #[arg(long = "figure", value_name = "NAME")]
    figures: Vec<String>,

    /// Machine file to write, with the figures that were found
    #[arg(short, long, value_name = "FILE.toml")]
    output: Option<PathBuf>,

    /// The most sets of costs to simulate all rows under [default: 15, and 15 for each figure]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    budget: Option<usize>,

    /// Runs of each row under each of them; run i uses seed SEED + i
    #[arg(long, default_value_t = 3, value_parser = RangedU64ValueParser::<u32>::new().range(2..=10_000))]
    runs: u32,

    /// Seed of the first run
    #[arg(long, default_value_t = 1, value_parser = RangedU64ValueParser::<u64>::new().range(..=1 << 62))]
    seed: u64,

    /// Threads to simulate on; the result does not depend on it [default: all CPUs]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    jobs: Option<usize>,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = TableOrJson::Table)]
    format: TableOrJson,
}

pub fn run(args: &CalibrateArgs) -> anyhow::Result<()> {
    let machine = load(&args.machine)?;
    let figures = figures::select(&machine, &args.machine, &args.figures)?;
    let budget = budget(args, figures.len())?;
    let (rows, mut left_out) = rows::read(&args.on, &args.machine, &machine)?;
    let create = |path| OutputFile::create(path, output_file::FOR_ALL);
    let output = args.output.as_deref().map(create).transpose()?;

    let runs = Runs { runs: args.runs, seed: args.seed, jobs: args.jobs };
    let (mut predictor, not_planned) = Predictor::new(&args.machine, &machine, rows, runs, budget)?;
    left_out.extend(not_planned);
    left_out.extend(predictor.keep_predicted());
    if predictor.published().next().is_none() {
        let reason = left_out.last().map_or("there is none", |one| &one.reason);
        return Err(InputError(format!("--on: no row can be predicted: {reason}")).into());
    }
    let report = calibrate(args, &machine, &figures, budget, &mut predictor)?;
    drop(predictor);
    let report = Report { left_out: report::left_out(&left_out), ..report };
    if let Some(mut output) = output {
        let calibrated = with_sources(&machine, &report);
        output.write_all(to_toml(&calibrated, COMMENT).as_bytes())?;
        output.finish()?;
    }
    let text = match args.format {
        TableOrJson::Table => report::terminal(&report),
        TableOrJson::Json => json::render(&report)?,
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// How many sets of costs may be simulated: enough to try each figure at its bounds, and to fit all.
fn budget(args: &CalibrateArgs, figures: usize) -> Result<usize, InputError> {
    let least = effects::evaluations(figures) + fit::least_evaluations(figures);
    match args.budget {
        None => Ok(15 * (figures + 1)),
        Some(budget) if budget < least => Err(InputError(format!(
            "--budget {budget}: is too little for {figures} figures, which take at least {least}"
        ))),
        Some(budget) => Ok(budget),
    }
}

fn calibrate(
    args: &CalibrateArgs,
    machine: &Machine,
    figures: &[Figure],
    budget: usize,
    predictor: &mut Predictor,
) -> anyhow::Result<Report> {
    let published: Vec<_> = predictor.published().cloned().collect();
    let objective = Objective::of(published.iter());
    let before = predictor.predict(&Factors::new());
    let effects = effects::effects(predictor, figures);
    let is_fitted = |(figure, effect): (&Figure, &effects::Effect)| {
        (effect.told == Told::Apart).then(|| figure.clone())
    };
    let fitted: Vec<Figure> = figures.iter().zip(&effects).filter_map(is_fitted).collect();
    let left = budget - effects::evaluations(figures.len());
    let found = fit::fit(&fitted, left, |factors| objective.value(&predictor.predict(factors)))?;
    let after = predictor.predict(&found);

    let rows = report::rows(published.iter(), &before, &after);
    let figures = report::figures(machine, figures, &effects, &found)?;
    let [before, after] = [before, after].map(|predictions| objective.value(&predictions));
    Ok(Report {
        machine: machine.name.clone(),
        costs_of: machine.costs_of.clone(),
        runs: args.runs,
        seed: args.seed,
        evaluations: predictor.evaluations(),
        on: report::tables(&rows),
        left_out: Vec::new(),
        objective: report::BeforeAfter { before, after },
        fits: report::fits(&rows),
        provenance: report::provenance(&figures, &rows, &place(args)),
        figures,
        factors: found,
        rows,
    })
}

/// The file that the figures stand in, or are to.
fn place(args: &CalibrateArgs) -> String {
    let is_preset = presets().iter().any(|preset| preset.name == args.machine);
    match (&args.output, is_preset) {
        (Some(path), _) => path.display().to_string(),
        (None, true) => format!("machines/{}.toml", args.machine),
        (None, false) => args.machine.clone(),
    }
}

/// The machine with the figures found, each of which says what it was fitted to.
fn with_sources(machine: &Machine, report: &Report) -> Machine {
    let mut machine = Machine { costs: machine.costs.scaled(&report.factors), ..machine.clone() };
    for figure in report.figures.iter().filter(|figure| figure.is_fitted()) {
        let source = report::source(figure, &report.on);
        machine.cost_sources.insert(figure.name().to_owned(), source);
    }
    machine
}
