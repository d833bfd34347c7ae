//! Judges the placement decisions in a trace: was each what the policy of its
//! kernel decides, what did it cost, and what would another policy have decided?
//!
//! ```text
//!   reader ─> timeline.rs ─> steps, each wakeup with its outcome
//!                 │
//!                 ├─> reconstruction.rs   the scheduler core, driven by the steps
//!                 │     decide.rs         which wakeups and forks ran a placement
//!                 │     trial.rs          what the policy says, and to what it was told
//!                 │     beliefs.rs affinity.rs scan_limit.rs loads.rs
//!                 │                       what no trace shows
//!                 ├─> recorded.rs         decisions that the trace recorded in full
//!                 └─> cost/               latency, missed idle CPUs, bouncing
//!   audit.rs drives them all; agreement.rs, placements.rs and explain.rs report
//! ```
//!
//! This crate owns neither the rules, which are the policy's, nor time, which is
//! the trace's.

mod affinity;
mod agreement;
mod audit;
mod beliefs;
pub mod cost;
mod decide;
mod explain;
mod inference;
mod loads;
mod placements;
mod reconstruction;
pub mod recorded;
mod scan_limit;
mod step;
mod task;
mod timeline;
mod trial;

pub use agreement::{Agreement, Confusion, Reason, Tally, Went};
pub use audit::{Audit, AuditError, Decided, Observer, Options, Other, audit};
pub use beliefs::Hypothesis;
pub use decide::{Kind, NoPlacement, Placed, Verdict};
pub use explain::{Rule, Sight, explain};
pub use inference::InferenceCounts;
pub use placements::{ByDistance, Moves};
pub use placewise_policy::Distance;
pub use reconstruction::Reconstruction;
pub use step::{Action, Outcome, PrevState, Step};
pub use task::{NameId, PID_MAX, Task, TaskId, Tasks};
pub use timeline::{Repairs, Timeline};
