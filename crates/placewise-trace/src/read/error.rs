//! Why a trace cannot be read at all: one line that names the trace and the remedy.

use std::io;
use std::process::ExitStatus;

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
        "{trace}: no scheduler event in {lines} lines, expected text of ftrace, `perf script` or \
         `trace-cmd report` with sched_switch and sched_wakeup{detail}"
    )]
    NoEvent {
        trace: String,
        lines: u64,
        /// The first line that could not be read, or nothing.
        detail: String,
    },
}
