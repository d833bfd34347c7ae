//! `placewise audit`: what the placement decisions in a trace of a real kernel cost, whether the
//! policy of that kernel accounts for them, and what other policies would have decided.
//!
//! The trace names its machine and kernel where `placewise record` wrote it; for others they are
//! options. One pass, in constant memory, whatever the length of the trace.

mod annotate;
pub mod args;
mod difference;
mod element;
mod explanation;
mod figures;
mod finding;
pub mod origin;
mod percent;
mod perf_stats;
mod problems;
mod report;
mod schedstat;
mod units;

use std::io::{self, Write};
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};
use placewise_audit::{AuditError, Decided, Observer, Options};
use placewise_trace::TraceReader;

use self::args::AuditArgs;
use self::difference::Difference;
use self::explanation::{Explanations, Wanted};
use self::figures::Figures;
use self::origin::{bad_trace, kernel, machine, others, trace_name};
use self::schedstat::{Counted, Schedstat};
use crate::input::InputError;

pub fn run(args: &AuditArgs) -> anyhow::Result<()> {
    let text = match &args.after {
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
