//! A simulator of Linux task placement.
//!
//! [`simulate`] runs a workload on a machine under a policy and returns the
//! workload's figures with the kernel's own counters. Time is integer
//! nanoseconds; the same inputs give the same outcome and the same trace, byte
//! for byte. Where a task runs is decided by the C policy, and when by the run
//! queues of the scheduler core; this crate owns time and costs.
//!
//! ```text
//!   scenario.rs   what is run, and what is refused
//!   engine.rs     the parts of a run, and what each event starts
//!   state/        the parts, none of which knows the engine
//!   step/         what an event does to them
//!   read/         what is told of them: counters, figures, traces
//!   outcome.rs    what a run reports
//!   observe/      what must hold after each event, for tests
//! ```

mod engine;
mod error;
mod load_balance;
#[cfg(feature = "invariants")]
mod observe;
mod outcome;
mod read;
mod scenario;
mod state;
mod step;

pub use engine::{simulate, simulate_after};
pub use error::SimError;
pub use load_balance::LoadBalance;
#[doc(hidden)]
#[cfg(feature = "invariants")]
pub use observe::invariants::{Audit, simulate_checked};
#[doc(hidden)]
#[cfg(feature = "invariants")]
pub use observe::missed_idle::{MissedIdle, simulate_watched};
pub use outcome::{Better, COLUMNS, Figure, Outcome, Statistics, TaskAccount};
pub use scenario::Scenario;
pub use state::newidle_memory::NewidleMemory;
