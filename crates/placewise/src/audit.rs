//! `placewise audit`: what the placement decisions in a trace of a real kernel cost, whether the
//! policy of that kernel accounts for them, and what other policies would have decided.
//!
//! The trace names its machine and kernel where `placewise record` wrote it; for others they are
//! options. One pass, in constant memory, whatever the length of the trace.

mod annotate;
mod explanation;
mod figures;
mod finding;
mod report;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::RangedU64ValueParser;
use indicatif::{ProgressBar, ProgressStyle};
use placewise_audit::{AuditError, Decided, Observer, Options};
use placewise_machine::Machine;
use placewise_policy::{Policy, kernel, kernel_names};
use placewise_trace::{Header, TraceError, TraceReader};

use crate::input::InputError;
use explanation::{Explanations, Wanted};
use figures::Figures;

const EXAMPLE: &str = "\
Examples:
  placewise audit trace.txt.zst
  placewise audit trace.txt --policy short-task --policy hint:wake_affine
  placewise audit trace.txt --at 5.544334
  perf script | placewise audit - --machine host --kernel v6.12
  placewise audit trace.txt --annotate | less

`placewise record` writes traces that say which machine and kernel they are from.
Exit status: 0 on success, 2 when the input is at fault, 1 when something else went wrong.";

/// The kernel is the one that the trace's header names.
const AUTO: &str = "auto";

/// Judge the placement decisions in a scheduler trace
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct AuditArgs {
    /// Text of ftrace, `perf script` or `trace-cmd report`, plain or compressed with gzip or zstd,
    /// or a trace.dat; `-` for standard input
    trace: PathBuf,

    /// Machine of the trace: preset, `host`, hwloc XML file, lstopo synthetic string or TOML file
    /// [default: the header of the trace]
    #[arg(long, value_name = "MACHINE")]
    machine: Option<String>,

    /// Kernel of the trace; `auto` takes the release in its header
    #[arg(long, value_name = "KERNEL", default_value = AUTO)]
    kernel: String,

    /// Also ask this policy, a change to the kernel of the trace: patches and `hint:A+B` joined by
    /// `,` (repeatable)
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<String>,

    /// Only decisions about tasks of this name
    #[arg(long, value_name = "NAME")]
    task: Option<String>,

    /// Rows of each list that has no end
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    top: usize,

    /// Show the N-th decision step by step instead
    #[arg(long, value_name = "N", conflicts_with = "at", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    explain: Option<u64>,

    /// Show the decisions at this time of the trace, in seconds, or the first after it, step by step
    /// instead
    #[arg(long, value_name = "TIME", value_parser = explanation::parse_time)]
    at: Option<u64>,

    /// Print the trace instead, with the LLC of each CPU, and marks where a task changes it
    #[arg(long, conflicts_with_all = ["explain", "at", "policies", "task", "format", "top", "kernel"])]
    annotate: bool,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For the terminal
    Table,
    /// Pipe tables
    Markdown,
    /// One row per figure
    Csv,
    /// Everything, for programs
    Json,
}

pub fn run(args: &AuditArgs) -> anyhow::Result<()> {
    let mut reader = TraceReader::open(&args.trace).map_err(|error| bad_trace(&error))?;
    let machine = machine(args, &mut reader)?;
    if args.annotate {
        return annotate::run(&mut reader, &machine);
    }
    let kernel = kernel(args, reader.header())?;
    let others = others(&kernel, &args.policies)?;
    let options = Options {
        machine: &machine,
        kernel: &kernel.policy,
        others: &others,
        task: args.task.as_deref(),
    };
    let mut watch = Watch::new(wanted(args));
    let audit = placewise_audit::audit(&mut reader, &options, &mut watch);
    watch.progress.finish_and_clear();
    let audit = audit.map_err(|error| match error {
        AuditError::Trace(error) => bad_trace(&error).into(),
        AuditError::Machine(error) => anyhow::Error::new(error),
        error @ AuditError::Clock { .. } => {
            InputError(format!("{}: {error}", trace_name(&args.trace))).into()
        }
    })?;
    let text = match watch.explanations {
        Some(explanations) => {
            let explained = explanations.finish(args, audit.agreement.decisions())?;
            report::explanations(&explained, args.format)?
        }
        None => {
            let header = reader.header();
            let figures = Figures::new(args, &kernel, &options, header, &audit);
            report::render(&figures, args.top, args.format)?
        }
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn bad_trace(error: &TraceError) -> InputError {
    InputError(error.to_string())
}

fn trace_name(path: &Path) -> String {
    match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

fn machine(args: &AuditArgs, reader: &mut TraceReader) -> anyhow::Result<Machine> {
    let trace = trace_name(&args.trace);
    let topology = &reader.header().topology;
    match &args.machine {
        Some(machine) => Ok(placewise_machine::load(machine)?),
        None if topology.cpus.is_empty() => {
            // It may be no trace at all.
            reader.next_record().map_err(|error| bad_trace(&error))?;
            let problem = "its header does not describe the machine; name it with --machine";
            Err(InputError(format!("{trace}: {problem}")).into())
        }
        None => Ok(placewise_machine::from_trace(&trace, topology)?),
    }
}

/// The kernel whose policy is compared with the trace.
struct Kernel {
    name: String,
    /// Why this one, if it was not asked for.
    release: Option<String>,
    policy: Policy,
}

fn kernel(args: &AuditArgs, header: &Header) -> anyhow::Result<Kernel> {
    let (name, release) = match args.kernel.as_str() {
        AUTO => kernel_of_header(args, header)?,
        name => (name, None),
    };
    // Only simulated kernels have been changed by a policy.
    let policy = Policy::parse(name, header.policy.as_deref().unwrap_or("baseline"))?;
    Ok(Kernel { name: name.to_owned(), release, policy })
}

fn kernel_of_header<'a>(
    args: &AuditArgs,
    header: &'a Header,
) -> Result<(&'a str, Option<String>), InputError> {
    let refuse = |why: String| {
        let (trace, known) = (trace_name(&args.trace), kernel_names().join(", "));
        InputError(format!("{trace}: {why}; name a kernel with --kernel: {known}"))
    };
    let release = header.kernel.as_deref();
    let release = release.ok_or_else(|| refuse("its header names no kernel release".into()))?;
    let name = kernel::kernel_for_release(release);
    let name = name.ok_or_else(|| refuse(format!("no kernel stands for release `{release}`")))?;
    Ok((name, Some(release.to_owned())))
}

fn others(kernel: &Kernel, specs: &[String]) -> anyhow::Result<Vec<Policy>> {
    let mut policies: Vec<Policy> = Vec::new();
    for spec in specs {
        if policies.iter().any(|other| other.name == *spec) {
            let problem = format!("--policy {spec}: is given twice; name each policy once");
            return Err(InputError(problem).into());
        }
        policies.push(Policy::parse(&kernel.name, spec)?);
    }
    Ok(policies)
}

fn wanted(args: &AuditArgs) -> Option<Wanted> {
    args.explain.map(Wanted::Number).or(args.at.map(Wanted::Time))
}

/// Shows the progress, and keeps the decisions that are to be explained.
struct Watch {
    progress: ProgressBar,
    explanations: Option<Explanations>,
}

impl Watch {
    fn new(wanted: Option<Wanted>) -> Self {
        let style = ProgressStyle::with_template("{spinner} {human_pos} events, {per_sec}");
        let progress = ProgressBar::new_spinner();
        Watch {
            progress: progress.with_style(style.expect("the template is well formed")),
            explanations: wanted.map(Explanations::new),
        }
    }
}

impl Observer for Watch {
    fn progress(&mut self, events: u64) {
        self.progress.set_position(events);
    }

    fn decided(&mut self, decision: &Decided<'_>) {
        if let Some(explanations) = &mut self.explanations {
            explanations.look_at(decision);
        }
    }
}
