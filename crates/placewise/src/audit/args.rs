//! The arguments of `placewise audit`.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::RangedU64ValueParser;

use super::explanation::parse_time;

const EXAMPLE: &str = "\
Examples:
  placewise audit trace.txt.zst
  placewise audit trace.txt --policy short-task --policy hint:wake_affine
  placewise audit trace.txt --at 5.544334
  placewise audit before.txt.zst after.txt.zst
  perf script | placewise audit - --machine host --kernel v6.12
  placewise audit trace.txt --annotate | less
  placewise audit trace.txt --perfetto trace.perfetto-trace

`placewise record` writes traces that say which machine and kernel they are from.
Exit status: 0 on success, 2 when the input is at fault, 1 when something else went wrong.";

/// The kernel is the one that the trace's header names.
pub const AUTO: &str = "auto";

/// Judge the placement decisions in a scheduler trace
#[derive(Clone, clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct AuditArgs {
    /// Text of ftrace, `perf script` or `trace-cmd report`, plain or compressed with gzip or zstd,
    /// or a trace.dat; `-` for standard input
    pub trace: PathBuf,

    /// Another trace of the same load, after a change: print the figures of both side by side
    #[arg(conflicts_with_all = ["explain", "at", "annotate", "policies"])]
    pub after: Option<PathBuf>,

    /// Machine of the trace: preset, `host`, hwloc XML file, lstopo synthetic string or TOML file
    /// [default: the header of the trace]
    #[arg(long, value_name = "MACHINE")]
    pub machine: Option<String>,

    /// Kernel of the trace; `auto` takes the release in its header
    #[arg(long, value_name = "KERNEL", default_value = AUTO)]
    pub kernel: String,

    /// A knob of the kernel that was set when the trace was made (repeatable)
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub knobs: Vec<String>,

    /// Also ask this policy, a change to the kernel of the trace: patches, `hint:A+B`, `set:NAME=VALUE`
    /// and the directory of one of your own, joined by `,` (repeatable)
    #[arg(long = "policy", value_name = "POLICY")]
    pub policies: Vec<String>,

    /// Only these tasks count: a name, a pattern such as `kworker/*`, the pid of a thread or of a
    /// process, or the path of a cgroup, such as `/system.slice/web.service`
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,

    /// Copies of /proc/schedstat from before and after the trace, to put beside it
    #[arg(long, value_names = ["BEFORE", "AFTER"], num_args = 2, conflicts_with_all = ["task", "after", "explain", "at", "annotate"])]
    pub schedstat: Option<Vec<PathBuf>>,

    /// What `perf sched stats report` printed for the time of the trace, to put beside it
    #[arg(long, value_name = "REPORT", conflicts_with_all = ["schedstat", "task", "after", "explain", "at", "annotate"])]
    pub perf_stats: Option<PathBuf>,

    /// Rows of each list that has no end
    #[arg(long, value_name = "N", default_value_t = TOP, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub top: usize,

    /// Show the N-th decision step by step instead
    #[arg(long, value_name = "N", conflicts_with = "at", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub explain: Option<u64>,

    /// Show the decisions at this time of the trace, in seconds, or the first after it, step by step
    /// instead
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub at: Option<u64>,

    /// Print the trace instead, with the LLC of each CPU, and marks where a task changes it
    #[arg(long, conflicts_with_all = ["explain", "at", "policies", "task", "format", "top", "kernel", "knobs"])]
    pub annotate: bool,

    /// Also write the trace for Perfetto (ui.perfetto.dev), with each decision and its reasons
    #[arg(long, value_name = "FILE", conflicts_with_all = ["after", "annotate"])]
    pub perfetto: Option<PathBuf>,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Write a page to look at there, too: one HTML file that needs nothing beside it
    #[arg(long, value_name = "FILE.html", conflicts_with_all = ["explain", "at", "annotate"])]
    pub html: Option<PathBuf>,
}

/// Rows of a list, unless asked otherwise.
const TOP: usize = 3;

impl AuditArgs {
    /// As if nothing but traces were given.
    pub fn of(trace: PathBuf, after: Option<PathBuf>) -> Self {
        AuditArgs {
            trace,
            after,
            machine: None,
            kernel: AUTO.to_owned(),
            knobs: Vec::new(),
            policies: Vec::new(),
            task: None,
            schedstat: None,
            perf_stats: None,
            top: TOP,
            explain: None,
            at: None,
            annotate: false,
            perfetto: None,
            format: Format::Table,
            html: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For the terminal
    Table,
    /// Pipe tables
    Markdown,
    /// One row per figure
    Csv,
    /// Everything, for programs
    Json,
}
