//! Scheduler traces: the tracepoints as values, as ftrace text, as pages of the
//! kernel's ring buffers, and for Perfetto.

mod decision;
mod event;
mod ftrace;
mod header;
mod perfetto;
mod read;
pub mod ring;
mod run_queues;

pub use decision::{
    AffineReason, CpuReadings, Decision, DecisionError, Readings, RunQueueReadings, SearchReason,
    SlowPathReadings, TaskReadings, WakeupReadings,
};
pub use event::{Context, Event, Record, Sink};
pub use ftrace::FtraceWriter;
pub use header::{Header, SchedPolicy, TaskLine, with_above};
pub use perfetto::{PerfettoWriter, Placement};
pub use read::{FirstMalformed, Losses, Malformed, SecondTrace, TraceError, TraceReader};
pub use run_queues::{LlcLoad, RunQueues};
