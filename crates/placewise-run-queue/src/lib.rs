//! The scheduler core of the engines: what happens to a task that is enqueued,
//! picked, put back, put to sleep or moved, whoever drives it.
//!
//! ```text
//!   scheduler.rs   the policy's state and the run queues, kept in step
//!   run_queue.rs   the order of one CPU
//!   hierarchy.rs   several levels: task groups
//!   flat.rs        task groups on one level
//!   queue.rs       one level: cfs.rs or eevdf.rs
//!   entity.rs      what they know of tasks and task groups
//! ```
//!
//! The simulator adds time and what things cost, the auditor what a trace does
//! not show.

mod cfs;
mod eevdf;
mod entity;
mod flat;
mod hierarchy;
#[cfg(feature = "invariants")]
pub mod invariants;
mod queue;
mod row;
mod run_queue;
mod scheduler;
mod waiting;

pub use entity::{Dequeue, Enqueue, EnqueuedBy};
pub use scheduler::{Picked, Preemption, Ran, Scheduler};
