//! Scheduler traces: the tracepoints as values, and as ftrace text.

mod decision;
mod event;
mod ftrace;

pub use decision::{
    AffineReason, CpuReadings, Decision, DecisionError, Readings, RunQueueReadings, SearchReason,
    SlowPathReadings, TaskReadings, WakeupReadings,
};
pub use event::{Context, Event, Record, Sink};
pub use ftrace::FtraceWriter;
