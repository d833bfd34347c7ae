//! `placewise audit`: what the placement decisions in a trace of a real kernel cost, whether the
//! policy of that kernel accounts for them, and what other policies would have decided.
//!
//! The trace names its machine and kernel where `placewise record` wrote it; for others they are
//! options. One pass, in constant memory, whatever the length of the trace.

mod annotate;
pub mod args;
mod difference;
mod element;
pub mod explanation;
mod figures;
mod finding;
pub mod origin;
mod percent;
mod perf_stats;
mod perfetto;
mod problems;
mod report;
mod schedstat;
mod units;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use placewise_audit::{AuditError, Decided, Observer, Options, Stepped};
use placewise_machine::Machine;
use placewise_report::{JsonResult, Part, Recorder, Recording};
use placewise_trace::{Record, TraceReader};

use self::args::{AuditArgs, Format};
use self::difference::Difference;
use self::explanation::{Explanations, Wanted};
use self::figures::Figures;
use self::origin::{bad_trace, kernel, machine, others, trace_name};
use self::perfetto::PerfettoFile;
use self::schedstat::{Counted, Schedstat};
use crate::html_file::HtmlFile;
use crate::input::InputError;
use crate::output_file::{self, OutputFile};

pub fn run(args: &AuditArgs) -> anyhow::Result<()> {
    let text = match &args.after {
        _ if args.html.is_some() => with_page(args)?,
        Some(after) => {
            let before = figures(&AuditArgs { after: None, ..args.clone() })?;
            let after = figures(&AuditArgs { trace: after.clone(), after: None, ..args.clone() })?;
            report::difference(&Difference::new(before, after, args.top), args.format)?
        }
        None if args.annotate => {
            let mut reader = open(args)?;
            let machine = machine(args, &mut reader)?;
            return annotate::run(&mut reader, &machine);
        }
        None => match wanted(args) {
            Some(wanted) => explained(args, wanted)?,
            None => report::render(&figures(args)?, args.top, args.format)?,
        },
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Writes a trace whose header says what it is of for Perfetto, with the decisions in it.
pub fn write_perfetto(trace: &Path, file: OutputFile) -> anyhow::Result<()> {
    let mut watch = Watch::new(None);
    // A file may have the name of standard input.
    let trace = Path::new(".").join(trace);
    audited_into(&AuditArgs::of(trace, None), &mut watch, Some(file)).map(drop)
}

/// A trace, and the machine that its header or `machine` names.
pub fn open_trace(trace: &Path, machine: Option<&str>) -> anyhow::Result<(TraceReader, Machine)> {
    let args =
        AuditArgs { machine: machine.map(str::to_owned), ..AuditArgs::of(trace.into(), None) };
    let mut reader = open(&args)?;
    let machine = origin::machine(&args, &mut reader)?;
    Ok((reader, machine))
}

/// What is printed, once the page is written.
fn with_page(args: &AuditArgs) -> anyhow::Result<String> {
    let page = args.html.as_deref().map(HtmlFile::create).transpose()?;
    let ForPage { printed, result, recordings } = for_page(args, &(0..=u64::MAX))?;
    page.map_or(Ok(()), |page| page.write(&[result], &recordings))?;
    Ok(printed)
}

/// One trace or two for a page: their figures, what happened when, and what is printed of them.
pub struct ForPage {
    pub result: JsonResult,
    pub recordings: Vec<Recording>,
    printed: String,
}

/// Audits the traces, and records a part of each for a page.
pub fn for_page(args: &AuditArgs, part: &Part) -> anyhow::Result<ForPage> {
    let (figures, recording) = recorded(args, part)?;
    let mut recordings = vec![recording];
    let render: Box<dyn Fn(Format) -> anyhow::Result<String> + '_> = match &args.after {
        None => Box::new(move |format| report::render(&figures, args.top, format)),
        Some(after) => {
            let args = AuditArgs { trace: after.clone(), after: None, ..args.clone() };
            let (after, recording) = recorded(&args, part)?;
            recordings.push(recording);
            let difference = Difference::new(figures, after, args.top);
            Box::new(move |format| report::difference(&difference, format))
        }
    };
    let (json, text) = (render(Format::Json)?, render(Format::Table)?);
    let result = JsonResult::parse("audit", json.as_bytes(), Some(text))?;
    Ok(ForPage { result, recordings, printed: render(args.format)? })
}

fn recorded(args: &AuditArgs, part: &Part) -> anyhow::Result<(Figures, Recording)> {
    let mut watch = Watch::new(None);
    watch.records = Some(part.clone());
    let figures = audited(args, &mut watch)?;
    let name = trace_name(&args.trace);
    let recording = watch.recorder.expect("it records").finish(&name);
    if recording.is_empty() {
        return Err(InputError(format!("{name}: has no time in which anything happened")).into());
    }
    Ok((figures, recording))
}

fn open(args: &AuditArgs) -> Result<TraceReader, InputError> {
    TraceReader::open(&args.trace).map_err(|error| bad_trace(&error))
}

/// All figures of one trace.
fn figures(args: &AuditArgs) -> anyhow::Result<Figures> {
    audited(args, &mut Watch::new(None))
}

/// Decisions of one trace, rule by rule.
fn explained(args: &AuditArgs, wanted: Wanted) -> anyhow::Result<String> {
    let mut watch = Watch::new(Some(wanted));
    let figures = audited(args, &mut watch)?;
    let decisions = figures.agreement.shares.wakeups + figures.agreement.shares.forks;
    let explanations = watch.explanations.expect("they are watched for");
    let explained = explanations.finish(&trace_name(&args.trace), decisions)?;
    report::explanations(&explained, &figures.trace.cautions, args.format)
}

fn audited(args: &AuditArgs, watch: &mut Watch) -> anyhow::Result<Figures> {
    // As open as traces are.
    let create = |path: &PathBuf| OutputFile::create(path, output_file::FOR_OWNER);
    audited_into(args, watch, args.perfetto.as_ref().map(create).transpose()?)
}

/// Audits a trace, and writes it for Perfetto where there is a file for that.
fn audited_into(
    args: &AuditArgs,
    watch: &mut Watch,
    file: Option<OutputFile>,
) -> anyhow::Result<Figures> {
    let schedstat = match &args.perf_stats {
        Some(report) => Some(perf_stats::read(report)?),
        None => args.schedstat.as_deref().map(counted).transpose()?,
    };
    let mut reader = open(args)?;
    let machine = machine(args, &mut reader)?;
    let kernel = kernel(args, reader.header())?;
    let others = others(args, &kernel)?;
    let options = Options {
        machine: &machine,
        kernel: &kernel.policy,
        others: &others,
        task: args.task.as_deref(),
    };
    watch.perfetto = file.map(|file| PerfettoFile::new(file, reader.header(), &machine));
    watch.recorder = watch.records.clone().map(|part| Recorder::new(&machine, part));
    let audit = placewise_audit::audit(&mut reader, &options, watch);
    watch.progress.finish_and_clear();
    let audit = audit.map_err(|error| match error {
        AuditError::Trace(error) => bad_trace(&error).into(),
        AuditError::Machine(error) => anyhow::Error::new(error),
        error @ (AuditError::Clock { .. }
        | AuditError::NoTask { .. }
        | AuditError::NoCgroup { .. }) => {
            InputError(format!("{}: {error}", trace_name(&args.trace))).into()
        }
    })?;
    watch.perfetto.take().map_or(Ok(()), PerfettoFile::finish)?;
    Ok(Figures { schedstat, ..Figures::new(args, &kernel, &options, reader.header(), &audit) })
}

/// What the kernel counted from one copy of /proc/schedstat to the next.
fn counted(copies: &[PathBuf]) -> Result<Counted, InputError> {
    let [before, after] = copies else { unreachable!("clap asks for two") };
    let unfit = |problem| {
        let (before, after) = (before.display(), after.display());
        InputError(format!("--schedstat {before} {after}: {problem}"))
    };
    Schedstat::read(before)?.until(&Schedstat::read(after)?).map_err(unfit)
}

fn wanted(args: &AuditArgs) -> Option<Wanted> {
    args.explain.map(Wanted::Number).or(args.at.map(Wanted::Time))
}

/// Shows the progress, keeps the decisions that are to be explained, records for a page, and writes for Perfetto.
struct Watch {
    progress: ProgressBar,
    /// What part of the trace.
    records: Option<Part>,
    recorder: Option<Recorder>,
    explanations: Option<Explanations>,
    perfetto: Option<PerfettoFile>,
}

impl Watch {
    fn new(wanted: Option<Wanted>) -> Self {
        let style = ProgressStyle::with_template("{spinner} {human_pos} events, {per_sec}");
        let progress = ProgressBar::new_spinner();
        Watch {
            progress: progress.with_style(style.expect("the template is well formed")),
            records: None,
            recorder: None,
            explanations: wanted.map(Explanations::new),
            perfetto: None,
        }
    }
}

impl Observer for Watch {
    fn progress(&mut self, events: u64) {
        self.progress.set_position(events);
    }

    fn read(&mut self, record: &Record<'_>) {
        if let Some(perfetto) = &mut self.perfetto {
            perfetto.read(record);
        }
    }

    fn stepped(&mut self, stepped: &Stepped<'_>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.stepped(stepped);
        }
    }

    fn decided(&mut self, decision: &Decided<'_>) {
        if let Some(perfetto) = &mut self.perfetto {
            perfetto.decided(decision);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.decided(decision);
        }
        if let Some(explanations) = &mut self.explanations {
            explanations.look_at(decision);
        }
    }
}
