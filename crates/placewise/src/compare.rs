//! `placewise compare`: the same workload and seeds under several policies, kernels, environments and
//! on several machines, as a table.
//!
//! What is compared is checked and laid out by [`plan`], simulated by [`simulation`], and printed by
//! [`report`]; the report is the same for any number of jobs.

mod command;
mod plan;
mod progress;
mod simulation;
mod traces;

use std::convert::Infallible;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use clap::ValueEnum;
use clap::builder::RangedU64ValueParser;
use signal_hook::consts::SIGINT;

use crate::comparison::{self, Comparison, Reference};
use crate::effort::Effort;
use crate::exit_status;
use crate::load_balance;
use crate::report::foreign::visible;
use crate::report::{self, Format};
use crate::subject::Subject;
use plan::{Plan, PlannedCase};
use simulation::{OfCase, Simulation, of_combinations, series};
use traces::Traces;

const EXAMPLE: &str = "\
Example:
  placewise compare --machine zen3-2s-nps1 --workload hackbench \\
      --case groups=1 --case groups=2 --policy baseline --policy short-task

`placewise list` names the kernels, policies, workloads and machines there are.
Exit status: 0 on success, 2 when the input is at fault, 1 when something else went wrong, 130
after Ctrl-C, which prints what is complete.";

/// Compare placement policies, kernels, machines and environments on one workload
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct CompareArgs {
    /// Preset, `host`, hwloc XML file, lstopo synthetic string or TOML file (repeatable)
    #[arg(long = "machine", value_name = "MACHINE", default_value = "host")]
    machines: Vec<String>,

    /// Kernel the policies are changes to (repeatable) [default: on `host` the one nearest to the
    /// running kernel, else v6.0]
    #[arg(long = "kernel", value_name = "KERNEL")]
    kernels: Vec<String>,

    /// Machine whose costs all machines have [default: their own, or those of a preset that is near]
    #[arg(long, value_name = "MACHINE")]
    costs_from: Option<String>,

    /// Benchmark, or the path of an rt-app JSON file
    #[arg(long, value_name = "WORKLOAD")]
    workload: String,

    /// Parameters of the benchmark, KEY=VALUE joined by `;` (repeatable) [default: a ladder]
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<String>,

    /// Cgroups of the tasks, and what changes while they run: an environment file (TOML), or `none`
    /// (repeatable) [default: none]
    #[arg(long = "environment", value_name = "FILE")]
    environments: Vec<String>,

    /// Policy: `baseline`, a patch, `hint:A+B`, or several joined by `,` (repeatable); one alone is
    /// compared with `baseline`. The first of all combinations is what the others are compared with
    #[arg(long = "policy", value_name = "POLICY", default_value = "baseline")]
    policies: Vec<String>,

    /// Runs of each case and policy; run i uses seed SEED + i for every one [default: 5]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000))]
    runs: Option<u32>,

    /// For a first look: three runs, with a fifth of warm-up and window each
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    effort: Effort,

    /// Seed of the first run
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Threads to simulate on; the result does not depend on it [default: all CPUs]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    jobs: Option<usize>,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Write the first run of the first case as ftrace text; of several policies each in a file of its
    /// own, such as out.baseline.txt for out.txt
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Add to the trace what each placement decision read and answered
    #[arg(long, requires = "trace")]
    trace_decisions: bool,

    /// Add the figures that say why (wakeups by domain level, migrations, wait time, idle time, what
    /// load balancing did): those that moved most, or all
    #[arg(
        long,
        value_name = "WHICH",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "moved"
    )]
    stats: Option<Stats>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stats {
    /// What moved most, beyond noise; in JSON and CSV everything
    Moved,
    /// Everything, zeros as well
    All,
}

impl CompareArgs {
    fn runs(&self) -> u32 {
        self.runs.unwrap_or(if self.quick { 3 } else { 5 })
    }
}

pub fn run(args: &CompareArgs) -> anyhow::Result<()> {
    let stop = stop_at_interrupt().context("cannot handle signals")?;
    let plan = Plan::new(args)?;
    let traces = Traces::create(&plan, args)?;
    let simulation = Simulation::new(&plan, args, &traces);
    let outcomes = simulation.run(&stop, |so_far| end_early(&plan, args, &so_far))?;
    let text = report::render(&comparison_of(&plan, args, &outcomes), args.format)?;
    // Without one of them, the other is as good as ever.
    let traced = traces.finish();
    let printed = io::stdout().write_all(text.as_bytes());
    traced?;
    Ok(printed?)
}

/// Ctrl-C ends the comparison with what is done; a second one ends it at once.
fn stop_at_interrupt() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let status = i32::from(exit_status::INTERRUPTED);
    signal_hook::flag::register_conditional_shutdown(SIGINT, status, Arc::clone(&stop))?;
    signal_hook::flag::register(SIGINT, Arc::clone(&stop))?;
    Ok(stop)
}

/// Prints what is complete, says what is missing, and ends the process: no trace appears.
fn end_early(plan: &Plan, args: &CompareArgs, so_far: &[OfCase]) -> Infallible {
    let comparison = comparison_of(plan, args, so_far);
    let text = match comparison.rows[..] {
        [] => Ok(String::new()),
        _ => report::render(&comparison, args.format),
    };
    let missing = visible(&comparison.missing.join("; "));
    let _ = writeln!(io::stderr(), "placewise: interrupted; missing: {missing}");
    let print = |text: String| io::stdout().write_all(text.as_bytes());
    let _ = text.map(print).map(|_| io::stdout().flush());
    process::exit(exit_status::INTERRUPTED.into())
}

/// The cases that lack runs, with how many.
fn missing(plan: &Plan, args: &CompareArgs, outcomes: &[OfCase]) -> Vec<String> {
    let lacks = |(case, of_case): (&PlannedCase, &OfCase)| {
        let (done, wanted) = (of_case[0].len(), args.runs() as usize);
        let lacks = wanted.saturating_sub(done);
        let name = if case.name.is_empty() { &args.workload } else { &case.name };
        (lacks > 0).then(|| format!("{lacks} of {wanted} runs of {name}"))
    };
    plan.cases.iter().zip(outcomes).filter_map(lacks).collect()
}

fn comparison_of(plan: &Plan, args: &CompareArgs, outcomes: &[OfCase]) -> Comparison {
    let (mut rows, mut stats) = (Vec::new(), Vec::new());
    let (mut load_balance, mut why) = (Vec::new(), Vec::new());
    let begun = || plan.cases.iter().zip(outcomes).filter(|(_, runs)| !runs[0].is_empty());
    for (case, of_case) in begun() {
        let runs = of_combinations(plan, of_case);
        rows.extend(comparison::rows(&case.name, &series(&runs, |o| &o.figures)));
        if args.stats.is_some() {
            stats.extend(comparison::rows(&case.name, &series(&runs, |o| &o.statistics.figures)));
            load_balance.extend(load_balance::rows(&case.name, &runs));
            why.extend(load_balance::with_counters(&case.name, &runs));
        }
    }
    let runs = || begun().map(|(_, of_case)| of_case[0].len() as u32);
    let machines = plan.described_machines();
    let Subject { machine, kernel, .. } = plan.combinations[0].subject.clone();
    Comparison {
        reference: Reference { machine, costs_of: machines[0].costs_of.clone(), kernel },
        machines,
        subjects: plan.subjects(),
        release: plan.release.clone(),
        workload: args.workload.clone(),
        runs: runs().max().unwrap_or(args.runs()),
        least_runs: runs().min().unwrap_or(args.runs()),
        seed: args.seed,
        quick: args.quick,
        missing: missing(plan, args, outcomes),
        rows,
        stats,
        why,
        tell_all: args.stats == Some(Stats::All),
        load_balance,
        command: command::command(args, plan),
    }
}
