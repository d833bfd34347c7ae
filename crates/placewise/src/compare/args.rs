//! The command line of `placewise compare`.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::RangedU64ValueParser;

use crate::effort::Effort;
use crate::report::Format;
use crate::uncertain::Uncertain;

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
    pub machines: Vec<String>,

    /// Kernel the policies are changes to (repeatable) [default: the one that a trace was recorded
    /// under; on `host` the one nearest to the running kernel, else v6.0]
    #[arg(long = "kernel", value_name = "KERNEL")]
    pub kernels: Vec<String>,

    /// Machine whose costs all machines have [default: their own, or those of a preset that is near]
    #[arg(long, value_name = "MACHINE")]
    pub costs_from: Option<String>,

    /// Benchmark, or the path of an rt-app JSON file, of a trace, or of a file of `placewise replay`
    #[arg(long, value_name = "WORKLOAD")]
    pub workload: String,

    /// Parameters of the benchmark, KEY=VALUE joined by `;` (repeatable) [default: a ladder]
    #[arg(long = "case", value_name = "CASE")]
    pub cases: Vec<String>,

    /// Cgroups of the tasks, and what changes while they run: an environment file (TOML), `session`
    /// for one cgroup as a login session has it, or `none`
    /// (repeatable) [default: none]
    #[arg(long = "environment", value_name = "FILE")]
    pub environments: Vec<String>,

    /// Policy: `baseline`, a patch, `hint:A+B`, `set:NAME=VALUE`, one of your own by its directory
    /// (`DIR` with a `/` or `.`, or `NAME=DIR`), or several joined by `,` (repeatable); one alone is compared with `baseline`. The first of all combinations is what the
    /// others are compared with
    #[arg(long = "policy", value_name = "POLICY", default_value = "baseline")]
    pub policies: Vec<String>,

    /// Set a knob of the kernel under every policy, as `set:NAME=VALUE` does under one (repeatable)
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub knobs: Vec<String>,

    /// Runs of each case and policy; run i uses seed SEED + i for every one [default: 5]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000))]
    pub runs: Option<u32>,

    /// For a first look: three runs, with a fifth of warm-up and window each
    #[arg(long)]
    pub quick: bool,

    #[command(flatten)]
    pub effort: Effort,

    #[command(flatten)]
    pub uncertain: Uncertain,

    /// Seed of the first run
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Threads to simulate on; the result does not depend on it [default: all CPUs]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub jobs: Option<usize>,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Write a page to look at there, too: one HTML file that needs nothing beside it; with --trace it
    /// has the CPUs over time of the first two traces, one above the other
    #[arg(long, value_name = "FILE.html")]
    pub html: Option<PathBuf>,

    /// Write the first run of the first case as ftrace text; of several policies each in a file of its
    /// own, such as out.baseline.txt for out.txt
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Write the same run for Perfetto (ui.perfetto.dev), with each decision and its reasons
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,

    /// Add to the trace what each placement decision read and answered
    #[arg(long, requires = "trace")]
    pub trace_decisions: bool,

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
    pub stats: Option<Stats>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Stats {
    /// What moved most, beyond noise; in JSON and CSV everything
    Moved,
    /// Everything, zeros as well
    All,
}

impl CompareArgs {
    pub fn runs(&self) -> u32 {
        self.runs.unwrap_or(if self.quick { 3 } else { 5 })
    }
}
