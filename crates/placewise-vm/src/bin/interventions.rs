//! Boots what a batch of interventions asks for and records a row per run; sums up such rows, and says
//! how well the simulator predicts them.
//!
//! `make interventions` builds what it takes. What a boot left is in `target/tmp/interventions` until
//! its rows are recorded.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::{Parser, Subcommand, ValueEnum};
use placewise_vm::boot::{self, Parts};
use placewise_vm::guest::{Clock, Guest};
use placewise_vm::host::Host;
use placewise_vm::intervention::{Batch, Boot};
use placewise_vm::machine::Machine;
use placewise_vm::prediction::Predictions;
use placewise_vm::report::Report;
use placewise_vm::rows::{self, Recorded};
use placewise_vm::{scenario, study, summary};

/// Turn knobs of real kernels on emulated machines and record what loads do then
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Boot, and add a row per run
    Record(RecordArgs),
    /// Print, as CSV, what the knobs of a file of rows change
    Summary { rows: PathBuf },
    /// Print the loads of a file of rows without any knob as a study, for `placewise reproduce`
    Study {
        rows: PathBuf,
        /// Where the machines' files are
        #[arg(long, default_value = "studies/interventions/machines")]
        machines: PathBuf,
    },
    /// Simulate the loads of files of rows, with each knob and with none, and print how well that fits
    Predict(PredictArgs),
    /// Boot, and print what the kernel's primitives take: ns, which are instructions
    Costs {
        #[arg(long)]
        machine: String,
        #[arg(long)]
        kernel: String,
    },
}

#[derive(clap::Args)]
struct RecordArgs {
    /// The batch: machines, kernels, loads and knobs
    batch: PathBuf,
    /// Where to add the rows; runs that it has are not repeated
    #[arg(long, value_name = "FILE.csv")]
    output: PathBuf,
    /// This machine of the batch only
    #[arg(long)]
    machine: Option<String>,
    /// This kernel of the batch only
    #[arg(long)]
    kernel: Option<String>,
    /// This workload of the batch only
    #[arg(long)]
    workload: Option<String>,
    /// This knob of the batch only, and none
    #[arg(long)]
    knob: Option<String>,
    /// Replicates, instead of the batch's number
    #[arg(long)]
    replicates: Option<u32>,
}

#[derive(clap::Args)]
struct PredictArgs {
    #[arg(required = true)]
    rows: Vec<PathBuf>,
    /// Where the machines' files are
    #[arg(long, default_value = "studies/interventions/machines")]
    machines: PathBuf,
    /// Seeds of each load with each knob
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: u64,
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Write the page of predictions there, too
    #[arg(long, value_name = "FILE.md")]
    page: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For the terminal
    Table,
    /// A line for each figure of each load with each knob
    Csv,
    /// Everything, for programs
    Json,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Record(args) => record(&args),
        Command::Summary { rows } => summary::write(&rows, io::stdout().lock()),
        Command::Study { rows, machines: directory } => machines()
            .and_then(|machines| study::write(&rows, &directory, &machines, io::stdout().lock())),
        Command::Predict(args) => predict(&args),
        Command::Costs { machine, kernel } => costs(&machine, kernel),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("interventions: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn predict(args: &PredictArgs) -> anyhow::Result<()> {
    let predictions = Predictions::of(&args.rows, &args.machines, args.runs)?;
    let by_replicates = Predictions::by_replicates(&args.rows)?;
    let report = Report::new(&predictions, &by_replicates, args.runs);
    let text = match args.format {
        Format::Table => report.terminal(),
        Format::Csv => report.csv()?,
        Format::Json => report.json()?,
    };
    if let Some(page) = &args.page {
        fs::write(page, report.page()).with_context(|| page.display().to_string())?;
    }
    io::stdout().lock().write_all(text.as_bytes()).context("standard output")
}

fn record(args: &RecordArgs) -> anyhow::Result<()> {
    let batch = selected(args)?;
    println!("{}", batch.asks);
    for boot in boots(&batch)? {
        let recorded = Recorded::read(&args.output)?;
        if boot.runs.iter().any(|run| !recorded.has(&boot, run)) {
            record_boot(&boot, &recorded, &args.output)?;
        }
    }
    Ok(())
}

/// The batch, and of it what was asked for.
fn selected(args: &RecordArgs) -> anyhow::Result<Batch> {
    let mut batch = Batch::read(&args.batch)?;
    let wanted = |asked: &Option<String>, name: &str| asked.as_deref().is_none_or(|it| it == name);
    batch.machines.retain(|machine| wanted(&args.machine, machine));
    batch.kernels.retain(|kernel| wanted(&args.kernel, kernel));
    batch.loads.retain(|load| wanted(&args.workload, &load.workload));
    batch.knobs.retain(|knob| wanted(&args.knob, knob));
    batch.replicates = args.replicates.unwrap_or(batch.replicates);
    let nothing = batch.machines.is_empty() || batch.kernels.is_empty() || batch.loads.is_empty();
    ensure!(!nothing, "{}: has nothing of that", args.batch.display());
    Ok(batch)
}

/// All machines and kernels once before any of them again.
fn boots(batch: &Batch) -> anyhow::Result<Vec<Boot>> {
    let mut boots = Vec::new();
    for replicate in 1..=batch.replicates {
        for name in &batch.machines {
            let machine = machine(name)?;
            for kernel in &batch.kernels {
                boots.push(batch.boot((name, &machine), kernel, replicate));
            }
        }
    }
    Ok(boots)
}

fn machines() -> anyhow::Result<BTreeMap<String, Machine>> {
    scenario::machines(Path::new(env!("CARGO_MANIFEST_DIR")))
}

fn machine(name: &str) -> anyhow::Result<Machine> {
    machines()?.remove(name).with_context(|| format!("no machine is called {name}"))
}

fn costs(machine_name: &str, kernel: String) -> anyhow::Result<()> {
    let guest = Guest {
        kernel,
        machine: machine(machine_name)?,
        clock: Clock::Parallel { seed: 1 },
        programs: Vec::new(),
        script: "figures costs vm-guest costs\n\
                 turn_knob TTWU_QUEUE 0 || false\n\
                 figures unqueued vm-guest costs --wakes\n"
            .to_owned(),
        limit_seconds: 900,
    };
    let host = Host::prepare([&guest])?;
    let parts = Parts::find(&host, &guest).map_err(anyhow::Error::msg)?;
    let directory = directory(&format!("costs-{machine_name}-{}", guest.kernel))?;
    let left = boot::run(&guest, &parts, &directory)?;
    for (name, ns) in left.figures.numbers_of("costs") {
        println!("{name} {ns}");
    }
    // Of these the waker puts the wakee on its run queue, wherever that is.
    for (name, ns) in left.figures.numbers_of("unqueued") {
        println!("unqueued_{name} {ns}");
    }
    fs::remove_dir_all(&directory).with_context(|| directory.display().to_string())
}

/// Where a kernel is missing the boot is left out.
fn record_boot(boot: &Boot, recorded: &Recorded, output: &Path) -> anyhow::Result<()> {
    let guest = boot.guest();
    let host = Host::prepare([&guest])?;
    let parts = match Parts::find(&host, &guest) {
        Ok(parts) => parts,
        Err(missing) => {
            println!("{}: left out: {missing}", boot.name());
            return Ok(());
        }
    };
    let directory = directory(&boot.name())?;
    let left = boot::run(&guest, &parts, &directory)
        .with_context(|| format!("{}, kept in {}", boot.name(), directory.display()))?;
    let rows = rows::append(output, boot, recorded, &left)
        .with_context(|| format!("{}\n{}", boot.name(), boot::tail(&left.console)))?;
    fs::remove_dir_all(&directory).with_context(|| directory.display().to_string())?;
    println!("{}: {rows} rows", boot.name());
    Ok(())
}

/// Empty, in the directory of the programs.
fn directory(name: &str) -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("this program has no path")?;
    let target = program.ancestors().nth(2).context("this program is not in target/")?;
    let path = target.join("tmp/interventions").join(name);
    if path.exists() {
        fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
    }
    fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
    Ok(path)
}
