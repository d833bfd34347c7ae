//! Scheduler traces: the tracepoints as values, and as ftrace text.

mod event;
mod ftrace;

pub use event::{Context, Event, Record, Sink};
pub use ftrace::FtraceWriter;
