//! `placewise audit`: what the placement decisions in a trace of a real kernel cost, whether the
//! policy of that kernel accounts for them, and what other policies would have decided.
//!
//! The trace names its machine and kernel where `placewise record` wrote it; for others they are
//! options. One pass, in constant memory, whatever the length of the trace.

mod annotate;
pub mod args;
mod explanation;
mod figures;
mod finding;
mod origin;
mod percent;
mod report;

use std::io::{self, Write};

use indicatif::{ProgressBar, ProgressStyle};
use placewise_audit::{AuditError, Decided, Observer, Options};
use placewise_trace::TraceReader;

use self::args::AuditArgs;
use self::explanation::{Explanations, Wanted};
use self::figures::Figures;
use self::origin::{bad_trace, kernel, machine, others, trace_name};
use crate::input::InputError;

pub fn run(args: &AuditArgs) -> anyhow::Result<()> {
    let mut reader = TraceReader::open(&args.trace).map_err(|error| bad_trace(&error))?;
    let machine = machine(args, &mut reader)?;
    if args.annotate {
        return annotate::run(&mut reader, &machine);
    }
    let kernel = kernel(args, reader.header())?;
    let others = others(args, &kernel)?;
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
            let explained =
                explanations.finish(&trace_name(&args.trace), audit.agreement.decisions())?;
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
