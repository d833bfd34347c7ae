//! Reads scheduler traces as text: ftrace's `trace` and `trace_pipe`, `perf script`, and
//! `trace-cmd report`.
//!
//! Every line says by itself which of them wrote it, so nothing is asked for. [`prefix`] takes what
//! stands before the event, [`events`] the event, [`keys`] and [`compact`] the two ways in which its
//! fields are printed. [`source`] opens, and unpacks [`ahead`] of the rest what is compressed;
//! [`lines`] cuts into lines, [`order`] finds where a second trace begins. Memory does not grow with
//! the length of a trace, and text without events is given up soon.
//!
//! What is missing or cannot be read is never passed over in silence: [`Losses`] counts it, and
//! [`LostEvents`](crate::Event::LostEvents) tells the consumer where events are missing.
//!
//! Limits: timestamps in seconds only (the trace clocks `counter` and `x86-tsc` print none);
//! neither the latency format of `trace-cmd report -l` nor its `-R`. Where tools pad a comm or
//! put space in front of fields, a comm that begins with spaces loses them.

mod ahead;
mod compact;
mod error;
mod events;
mod keys;
mod lines;
pub(crate) mod losses;
mod marks;
mod order;
mod prefix;
mod reader;
pub(crate) mod scan;
mod skip;
mod source;

pub use error::TraceError;
pub use losses::{FirstMalformed, Losses, Malformed};
pub use order::SecondTrace;
pub use reader::TraceReader;
