//! Scheduler traces: the tracepoints as values, and as ftrace text.

mod decision;
mod event;
mod ftrace;
mod header;
mod read;

pub use decision::{
    AffineReason, CpuReadings, Decision, DecisionError, Readings, RunQueueReadings, SearchReason,
    SlowPathReadings, TaskReadings, WakeupReadings,
};
pub use event::{Context, Event, Record, Sink};
pub use ftrace::FtraceWriter;
pub use header::{Header, SchedPolicy, TaskLine};
pub use read::{FirstMalformed, Losses, Malformed, SecondTrace, TraceError, TraceReader};
