//! `placewise compare`: the same workload and seeds under several policies, kernels, environments and
//! on several machines, as a table.
//!
//! What is compared is checked and laid out by [`plan`], simulated by [`simulation`], and printed by
//! [`report`]; the report is the same for any number of jobs.

mod command;
mod plan;
mod simulation;
mod traces;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::RangedU64ValueParser;

use crate::comparison::{self, Comparison, Reference};
use crate::effort::Effort;
use crate::load_balance;
use crate::report::{self, Format};
use crate::subject::Subject;
use plan::Plan;
use simulation::{OfCase, of_combinations, series};
use traces::Traces;

const EXAMPLE: &str = "\
Example:
  placewise compare --machine zen3-2s-nps1 --workload hackbench \\
      --case groups=1 --case groups=2 --policy baseline --policy short-task

`placewise list` names the kernels, policies, workloads and machines there are.
Exit status: 0 on success, 2 when the input is at fault, 1 when something else went wrong.";

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

    /// Runs of each case and policy; run i uses seed SEED + i for every one
    #[arg(long, default_value_t = 5, value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000))]
    runs: u32,

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

pub fn run(args: &CompareArgs) -> anyhow::Result<()> {
    let plan = Plan::new(args)?;
    let traces = Traces::create(&plan, args)?;
    let outcomes = simulation::simulate_all(&plan, args, &traces)?;
    let comparison = comparison_of(&plan, args, &outcomes);
    let text = report::render(&comparison, args.format)?;
    // Without one of them, the other is as good as ever.
    let traced = traces.finish();
    let printed = io::stdout().write_all(text.as_bytes());
    traced?;
    Ok(printed?)
}

fn comparison_of(plan: &Plan, args: &CompareArgs, outcomes: &[OfCase]) -> Comparison {
    let (mut rows, mut stats) = (Vec::new(), Vec::new());
    let (mut load_balance, mut why) = (Vec::new(), Vec::new());
    for (case, of_case) in plan.cases.iter().zip(outcomes) {
        let runs = of_combinations(plan, of_case);
        rows.extend(comparison::rows(&case.name, &series(&runs, |o| &o.figures)));
        if args.stats.is_some() {
            stats.extend(comparison::rows(&case.name, &series(&runs, |o| &o.statistics.figures)));
            load_balance.extend(load_balance::rows(&case.name, &runs));
            why.extend(load_balance::with_counters(&case.name, &runs));
        }
    }
    let runs = || outcomes.iter().map(|of_case| of_case[0].len() as u32);
    let machines = plan.described_machines();
    let Subject { machine, kernel, .. } = plan.combinations[0].subject.clone();
    Comparison {
        reference: Reference { machine, costs_of: machines[0].costs_of.clone(), kernel },
        machines,
        subjects: plan.subjects(),
        release: plan.release.clone(),
        workload: args.workload.clone(),
        runs: runs().max().unwrap_or(args.runs),
        least_runs: runs().min().unwrap_or(args.runs),
        seed: args.seed,
        rows,
        stats,
        why,
        tell_all: args.stats == Some(Stats::All),
        load_balance,
        command: command::command(args, plan),
    }
}
