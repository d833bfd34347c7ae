//! The scheduler core of the engines: what happens to a task that is enqueued,
//! picked, put back, put to sleep or moved, whoever drives it.
//!
//! ```text
//!   scheduler.rs   the policy's state and the run queues, kept in step
//!   run_queue.rs   the order of one CPU: cfs.rs or eevdf.rs, a level each
//!   hierarchy.rs   several levels: task groups
//! ```
//!
//! The simulator adds time and what things cost, the auditor what a trace does
//! not show.

mod cfs;
mod eevdf;
mod hierarchy;
#[cfg(feature = "invariants")]
pub mod invariants;
mod run_queue;
mod scheduler;
mod waiting;

pub use run_queue::{Dequeue, Enqueue};
pub use scheduler::{Picked, Ran, Scheduler};
