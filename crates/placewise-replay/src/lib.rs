//! A recorded trace as a workload: what each task computed, and what it waited for, without where it
//! ran and how long it waited there.
//!
//! ```text
//!   trace ─> read.rs ─┬─> hints.rs    what an audit believes of each wakeup
//!                     └─> follow.rs   each task's computing, posts and sleeps
//!                           └─> answers.rs ─> messages.rs ─> sleeps.rs
//!   Recording (recording.rs) <─> file.rs
//!      ├─> groups.rs     which tasks belong together
//!      └─> programs.rs ─> a workload of the simulator
//!   validate.rs: the replay on the recorded machine, measured (measure.rs) as the trace is
//! ```
//!
//! **Kept**: each task's computing in its order, and who wakes whom after which of it. A wakee that has
//! come to its sleep late finds the post there and does not sleep; one that has come early waits for
//! it. So closed loops stay closed: what is faster is woken sooner. Arrivals that no task causes
//! (timers, devices) keep their times, or, where a task sleeps for about the same time each time, that.
//!
//! **Taken out**: what the recorded machine charged for switches, wakeups and distances, by its cost
//! figures, and what a busy SMT sibling took. `validate.rs` fits what is left of that.
//!
//! **Inferred**: messages that woke nobody, for their reader was awake; which posts are answers to whoever came.
//!
//! **Not known** from the scheduler's events: spinning, which is computing here; who else could have ended
//! a wait; locks; cgroups' quotas; how much of a segment is spent waiting for memory.

mod answers;
mod charges;
mod error;
mod file;
mod follow;
mod followed;
mod groups;
mod hints;
mod measure;
mod messages;
mod model;
mod programs;
mod read;
mod recording;
mod rt_app;
mod sleeps;
mod validate;

pub use error::ReplayError;
pub use file::{Home, Replay};
pub use groups::Group;
pub use measure::{Figures, Measured, Shares};
pub use model::{Draw, Model};
pub use programs::Begins;
pub use read::{Both, Source, read, read_both};
pub use recording::{AtEnd, RecordedCgroup, RecordedTask, Recording, Step, TaskIndex};
pub use validate::{Compared, Fitted, Limits, Validation, replayed, rerun, validate};
