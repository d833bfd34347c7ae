//! Boots what a batch of interventions asks for and records a row per run.
//!
//! `make interventions` builds what it takes. What a boot left is in `target/tmp/interventions` until
//! its rows are recorded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Parser;
use placewise_vm::boot::{self, Parts};
use placewise_vm::host::Host;
use placewise_vm::intervention::{Batch, Boot};
use placewise_vm::rows::{self, Recorded};
use placewise_vm::scenario;

/// Turn knobs of real kernels on emulated machines and record what loads do then
#[derive(Parser)]
struct Cli {
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

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("interventions: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    let batch = selected(cli)?;
    println!("{}", batch.asks);
    for boot in boots(&batch)? {
        let recorded = Recorded::read(&cli.output)?;
        if boot.runs.iter().any(|run| !recorded.has(&boot, run)) {
            record(&boot, &recorded, &cli.output)?;
        }
    }
    Ok(())
}

/// The batch, and of it what was asked for.
fn selected(cli: &Cli) -> anyhow::Result<Batch> {
    let mut batch = Batch::read(&cli.batch)?;
    let wanted = |asked: &Option<String>, name: &str| asked.as_deref().is_none_or(|it| it == name);
    batch.machines.retain(|machine| wanted(&cli.machine, machine));
    batch.kernels.retain(|kernel| wanted(&cli.kernel, kernel));
    batch.loads.retain(|load| wanted(&cli.workload, &load.workload));
    batch.knobs.retain(|knob| wanted(&cli.knob, knob));
    batch.replicates = cli.replicates.unwrap_or(batch.replicates);
    let nothing = batch.machines.is_empty() || batch.kernels.is_empty() || batch.loads.is_empty();
    ensure!(!nothing, "{}: has nothing of that", cli.batch.display());
    Ok(batch)
}

/// All machines and kernels once before any of them again.
fn boots(batch: &Batch) -> anyhow::Result<Vec<Boot>> {
    let machines = scenario::machines(Path::new(env!("CARGO_MANIFEST_DIR")))?;
    let mut boots = Vec::new();
    for replicate in 1..=batch.replicates {
        for name in &batch.machines {
            let machine =
                machines.get(name).with_context(|| format!("no machine is called {name}"))?;
            for kernel in &batch.kernels {
                boots.push(batch.boot((name, machine), kernel, replicate));
            }
        }
    }
    Ok(boots)
}

/// Where a kernel is missing the boot is left out.
fn record(boot: &Boot, recorded: &Recorded, output: &Path) -> anyhow::Result<()> {
    let guest = boot.guest();
    let host = Host::prepare([boot.guest()])?;
    let parts = match Parts::find(&host, &guest) {
        Ok(parts) => parts,
        Err(missing) => {
            println!("{}: left out: {missing}", boot.name());
            return Ok(());
        }
    };
    let directory = directory(boot)?;
    let left = boot::run(&guest, &parts, &directory)
        .with_context(|| format!("{}, kept in {}", boot.name(), directory.display()))?;
    let (rows, unknown) = rows::append(output, boot, recorded, &left)
        .with_context(|| format!("{}\n{}", boot.name(), boot::tail(&left.console)))?;
    fs::remove_dir_all(&directory).with_context(|| directory.display().to_string())?;
    let unknown: Vec<String> = unknown.into_iter().collect();
    let without = if unknown.is_empty() {
        String::new()
    } else {
        format!("; it has no {}", unknown.join(", "))
    };
    println!("{}: {rows} rows{without}", boot.name());
    Ok(())
}

/// Empty, in the directory of the programs.
fn directory(boot: &Boot) -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("this program has no path")?;
    let target = program.ancestors().nth(2).context("this program is not in target/")?;
    let path = target.join("tmp/interventions").join(boot.name());
    if path.exists() {
        fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
    }
    fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
    Ok(path)
}
