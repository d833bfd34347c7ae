//! `placewise replay`: a trace as a workload, how far it is to be trusted, and the file that other
//! verbs take.
//!
//! The trace names its machine and kernel where `placewise record` or `compare --trace` wrote it; for
//! others they are options. The replay is always held against the trace: a what-if of a workload that
//! is not even like itself says nothing.

mod mode;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use placewise_machine::Machine;
use placewise_replay::{Compared, Home, Measured, Recording, Replay, Source, Validation};
use placewise_trace::TraceReader;
use serde::Serialize;

pub use self::mode::Mode;
use self::mode::ModeArgs;
use crate::audit::args::AUTO;
use crate::audit::origin::{Kernel, Origin, bad_trace, kernel_of, machine_of};
use crate::input::InputError;
use crate::output_file::{self, OutputFile};
use crate::report::{TableOrJson, json, number, terminal};

const EXAMPLE: &str = "\
Examples:
  placewise replay placewise-trace.txt.zst
  placewise replay trace.txt --machine host --kernel v6.12 -o service.json
  placewise compare --workload service.json --machine zen3-2s-nps1 --policy short-task
  placewise replay trace.txt --mode model --scale web=2 -o twice-the-clients.json

`placewise compare --workload TRACE` replays a trace that names its machine and kernel at once.
Exit status: 0 on success, 2 when the input is at fault, 1 when something else went wrong.";

/// Turn a trace into a workload, and hold its replay against the trace
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct ReplayArgs {
    #[command(flatten)]
    traced: TracedArgs,

    #[command(flatten)]
    mode: ModeArgs,

    /// Write the workload to this file, which `compare --workload` takes
    #[arg(short, long, value_name = "FILE.json")]
    output: Option<PathBuf>,

    /// Write it as an rt-app file, too, if its tasks wait for no other
    #[arg(long, value_name = "FILE.json")]
    rt_app: Option<PathBuf>,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = TableOrJson::Table)]
    format: TableOrJson,
}

/// A trace that is replayed, and what it is of.
#[derive(clap::Args)]
pub struct TracedArgs {
    /// Text of ftrace, `perf script` or `trace-cmd report`, plain or compressed with gzip or zstd
    trace: PathBuf,

    /// Machine of the trace: preset, `host`, hwloc XML file, lstopo synthetic string or TOML file
    /// [default: the header of the trace]
    #[arg(long, value_name = "MACHINE")]
    machine: Option<String>,

    /// Kernel of the trace; `auto` takes the release in its header
    #[arg(long, value_name = "KERNEL", default_value = AUTO)]
    kernel: String,

    /// A knob of the kernel that was set when the trace was made (repeatable)
    #[arg(long = "set", value_name = "NAME=VALUE")]
    knobs: Vec<String>,
}

impl TracedArgs {
    pub fn origin(&self) -> Origin<'_> {
        Origin {
            trace: &self.trace,
            machine: self.machine.as_deref(),
            kernel: &self.kernel,
            policies: &[],
            knobs: &self.knobs,
        }
    }
}

/// What is printed.
#[derive(Serialize)]
struct Report {
    trace: String,
    machine: String,
    costs_of: String,
    kernel: String,
    policy: String,
    length_ns: u64,
    tasks: usize,
    segments: u64,
    is_trusted: bool,
    blamed: Option<String>,
    figures: Vec<Row>,
}

/// A figure of all tasks, or of those of a name.
#[derive(Serialize)]
struct Row {
    task: Option<String>,
    #[serde(flatten)]
    compared: Compared,
    is_off: bool,
}

pub fn run(args: &ReplayArgs) -> anyhow::Result<()> {
    let mode = args.mode.mode()?;
    let create = |path: &PathBuf| OutputFile::create(path, output_file::FOR_ALL);
    let file = args.output.as_ref().map(create).transpose()?;
    let rt_app = args.rt_app.as_ref().map(create).transpose()?;
    let origin = args.traced.origin();
    let Built { replay, validation, machine, kernel, .. } = build(origin, &mode)?;
    if let Some(mut file) = file {
        replay.write(&mut file).context("cannot write the workload")?;
        file.finish()?;
    }
    if let Some(mut file) = rt_app {
        let said = replay.recording.rt_app();
        let said = said.map_err(|problem| InputError(format!("--rt-app: {problem}")))?;
        serde_json::to_writer(&mut file, &said).context("cannot write the rt-app file")?;
        file.finish()?;
    }
    let trace = origin.trace.display().to_string();
    let report = Report::new(trace, &machine, &kernel, &replay.recording, validation);
    let text = match args.format {
        TableOrJson::Table => text(&report),
        TableOrJson::Json => json::render(&report)?,
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// A replay with what it was held against.
pub struct Built {
    pub replay: Replay,
    /// What it was held against.
    pub recorded: Measured,
    pub validation: Validation,
    pub machine: Machine,
    pub kernel: Kernel,
}

/// Refuses what cannot be read twice.
pub fn build(origin: Origin<'_>, mode: &Mode) -> anyhow::Result<Built> {
    if origin.trace == Path::new("-") {
        let problem = "-: a trace is read twice to be replayed; name a file";
        return Err(InputError(problem.into()).into());
    }
    let mut reader = TraceReader::open(origin.trace).map_err(|error| bad_trace(&error))?;
    let machine = machine_of(origin, &mut reader)?;
    let kernel = kernel_of(origin, reader.header())?;
    let source = Source { trace: origin.trace, machine: &machine, kernel: &kernel.policy };
    let (recording, recorded, validation) = mode.replayed(&source)?;
    let replay = Replay {
        recording,
        home: Home::of(&machine),
        kernel: Some(kernel.name.clone()),
        preempt: reader.header().preempt.clone(),
        is_trusted: validation.is_trusted,
        blamed: validation.blamed.clone(),
    };
    Ok(Built { replay, recorded, validation, machine, kernel })
}

/// How traces begin that are compressed, and those of trace-cmd.
const MAGICS: [&[u8]; 3] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x17\x08\x44tracing"];

/// Is this a trace, or a file made of one, and not an rt-app file?
pub fn is_replay(path: &Path) -> bool {
    Replay::is_in(path) || is_trace(path)
}

pub fn is_trace(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4096).read_to_end(&mut head));
    let text = String::from_utf8_lossy(&head);
    let is_text = || head.starts_with(b"#") || text.contains("sched_");
    read.is_ok() && (is_text() || MAGICS.iter().any(|it| head.starts_with(it)))
}

/// The replay that a path names: a file of `placewise replay -o`, or a trace that says what it is of.
/// One that is not like its trace is told on stderr.
pub fn workload(path: &Path, mode: &Mode) -> anyhow::Result<Replay> {
    let replay = if Replay::is_in(path) {
        Replay::read(path)?
    } else {
        let origin = Origin { trace: path, machine: None, kernel: AUTO, policies: &[], knobs: &[] };
        build(origin, mode)?.replay
    };
    if !replay.is_trusted {
        let blamed = replay.blamed.as_deref().map(|name| format!(", `{name}` least of all"));
        let _ = writeln!(
            io::stderr(),
            "placewise: {}: its replay is not like the trace{}: do not trust what follows; \
             `placewise replay` says more",
            path.display(),
            crate::report::foreign::visible(&blamed.unwrap_or_default()),
        );
    }
    Ok(replay)
}

impl Report {
    fn new(
        trace: String,
        machine: &Machine,
        kernel: &Kernel,
        recording: &Recording,
        validation: Validation,
    ) -> Self {
        let row = |task: Option<&String>, compared: Compared| {
            let is_off = compared.is_off();
            Row { task: task.cloned(), compared, is_off }
        };
        let mut figures: Vec<Row> =
            validation.all.into_iter().map(|compared| row(None, compared)).collect();
        for (name, rows) in validation.by_name {
            figures.extend(rows.into_iter().map(|compared| row(Some(&name), compared)));
        }
        Report {
            trace,
            machine: machine.name.clone(),
            costs_of: machine.costs_of.clone(),
            kernel: kernel.name.clone(),
            policy: kernel.policy.name.clone(),
            length_ns: recording.length_ns,
            tasks: recording.tasks.len(),
            segments: recording.segments(),
            is_trusted: validation.is_trusted,
            blamed: validation.blamed,
            figures,
        }
    }
}

/// Names of tasks that the table has.
const NAMES_SHOWN: usize = 6;

/// What the table has of each name.
const FIGURES_OF_NAMES: [&str; 5] =
    ["throughput", "run_time", "latency_p50", "latency_p99", "waited_behind"];

fn text(report: &Report) -> String {
    let Report { trace, machine, kernel, policy, tasks, segments, .. } = report;
    let seconds = number::figure(report.length_ns as f64 / 1e9);
    let head = format!(
        "{trace}: {tasks} tasks, {segments} stretches of computing in {seconds} s; replayed on \
         {machine}, costs {}, {kernel} {policy}",
        report.costs_of,
    );
    let of_all = report.figures.iter().filter(|row| row.task.is_none());
    let mut text = format!("{}\n\n{}\n", wrapped(&head), table(of_all, false));
    let mut names: Vec<&String> =
        report.figures.iter().filter_map(|row| row.task.as_ref()).collect();
    names.dedup();
    names.truncate(NAMES_SHOWN);
    let of_names = report.figures.iter().filter(|row| {
        let is_shown = |task| names.contains(&task);
        row.task.as_ref().is_some_and(is_shown) && FIGURES_OF_NAMES.contains(&row.compared.figure)
    });
    text += &format!("\nby task\n{}\n", table(of_names, true));
    text + "\n" + &wrapped(&verdict(report)) + "\n"
}

fn wrapped(text: &str) -> String {
    textwrap::fill(&crate::report::foreign::visible(text), terminal::lines())
}

fn verdict(report: &Report) -> String {
    if report.is_trusted {
        return "The replay is like the trace, within the limits: the signs of changes can be believed \
                as far as those of other workloads."
            .into();
    }
    let off = report.figures.iter().filter(|row| row.is_off && row.task.is_none());
    let off: Vec<&str> = off.map(|row| row.compared.figure).collect();
    let whose = match &report.blamed {
        Some(name) => format!("most of it is of `{name}`"),
        None => "it is of the tasks of no one name".into(),
    };
    format!(
        "The replay is not like the trace: {} off by more than the limit; {whose}. Do not trust \
         what it says of a change.",
        off.join(", "),
    )
}

fn table<'a>(rows: impl Iterator<Item = &'a Row>, by_task: bool) -> String {
    let mut table = terminal::empty_bare_table();
    let mut header = vec!["", "recorded", "replayed", "error", "limit", ""];
    if by_task {
        header.insert(0, "");
    }
    table.set_header(header);
    let first = if by_task { 2 } else { 1 };
    table.align_right(first..first + 4);
    let mut last: Option<&String> = None;
    for row in rows {
        let task = row.task.as_ref().filter(|task| last != Some(task));
        last = row.task.as_ref();
        let mut cells = cells(row);
        if by_task {
            cells.insert(0, task.cloned().unwrap_or_default());
        }
        table.add_row(cells);
    }
    table.trimmed()
}

fn cells(row: &Row) -> Vec<String> {
    let Compared { figure, unit, recorded, replayed, error, limit } = &row.compared;
    let words = figure.replace('_', " ");
    let name = if unit.is_empty() { words } else { format!("{words}, {unit}") };
    let of_error = if *unit == "%" { " points" } else { " %" };
    let error = error.map_or_else(String::new, |it| number::change(it) + of_error);
    let limit = limit.map_or_else(String::new, number::figure);
    let off = if row.is_off { "off" } else { "" };
    let values = [recorded, replayed].map(|value| number::figure(*value));
    let [recorded, replayed] = values;
    vec![name, recorded, replayed, error, limit, off.to_owned()]
}
