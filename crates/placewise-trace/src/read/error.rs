//! Why a trace cannot be read at all: one line that names the trace and the remedy.

use std::io;
use std::process::ExitStatus;

use super::lines::{LONGEST_PASSED_OVER, MOST_BEFORE_EVENTS};
use super::order::SecondTrace;

/// What every trace is.
const TEXT: &str = "text of ftrace, `perf script` or `trace-cmd report`";
const EVENTS: &str = "sched_switch and sched_wakeup";

#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("{trace}: cannot open: {source}")]
    Open { trace: String, source: io::Error },
    #[error("{trace}: line {line}: cannot read on: {source}")]
    Read { trace: String, line: u64, source: io::Error },
    #[error("{trace}: compressed with {format}, which is not read: decompress it first")]
    Compression { trace: String, format: &'static str },
    #[error("{trace}: a file of `perf record`, expected text: give the output of `perf script`")]
    PerfData { trace: String },
    #[error("{trace}: a file of `trace-cmd record` can only be read by name, not from a pipe")]
    TraceDatStream { trace: String },
    #[error(
        "{trace}: a file of `trace-cmd record`, read through `trace-cmd report`: \
         cannot run it, install trace-cmd: {source}"
    )]
    TraceCmd { trace: String, source: io::Error },
    #[error("{trace}: `trace-cmd report` failed, {status}: run it by hand to see why")]
    TraceCmdFailed { trace: String, status: ExitStatus },
    #[error(
        "{trace}: text in UTF-16, as PowerShell redirects it, expected UTF-8: convert it with \
         `iconv -f UTF-16 -t UTF-8`"
    )]
    Utf16 { trace: String },
    #[error("{trace}: line {line}: longer than {} MiB, expected {TEXT}", LONGEST_PASSED_OVER >> 20)]
    EndlessLine { trace: String, line: u64 },
    #[error("{trace}: no scheduler event in {lines} lines, expected {TEXT} with {EVENTS}{detail}")]
    NoEvent {
        trace: String,
        lines: u64,
        /// The first line that could not be read, or nothing.
        detail: String,
    },
    #[error(
        "{trace}: no scheduler event in the first {} MiB ({lines} lines), expected {TEXT} with \
         {EVENTS}{detail}; where they come later, leave out what stands before them",
        MOST_BEFORE_EVENTS >> 20
    )]
    NoEventYet {
        trace: String,
        lines: u64,
        /// The same.
        detail: String,
    },
    #[error(
        "{trace}: line {line}: {sign}: a second trace begins here, or a line before is damaged; \
         expected one trace: give each by itself (`tail -n +{line}` has the second)"
    )]
    SecondTrace {
        trace: String,
        line: u64,
        /// What of the line the first trace cannot hold.
        sign: SecondTrace,
    },
}
