//! Judges the placement decisions in a trace: was each what the policy of its
//! kernel decides, what did it cost, and what would another policy have decided?
//!
//! ```text
//!   reader ─> steps/ ─┬─> world/ ───> judge/ ─┬─> verdict.rs ─┬─> cost/
//!                     └─> recorded/ ──────────┘               └─> report/
//! ```
//!
//! - `steps/`: the trace, each wakeup with its outcome.
//! - `world/`: the scheduler core, driven by the steps; `judge/`: which of them ran a
//!   placement, what the policy says, and what no trace shows. `reconstruction.rs` is
//!   one of each, under one policy.
//! - `recorded/`: decisions that the trace recorded in full.
//! - `cost/`: latency, missed idle CPUs, bouncing; `report/`: moves, agreement, other
//!   policies, why a decision was taken.
//! - `explanation.rs`: a decision as people are told it.
//! - `meter.rs`: what needs no policy, at any moment of a trace.
//!
//! `audit.rs` drives them all, in one pass.
//!
//! This crate owns neither the rules, which are the policy's, nor time, which is
//! the trace's.

mod audit;
pub mod cost;
mod explanation;
mod judge;
mod meter;
mod reconstruction;
pub mod recorded;
mod report;
mod steps;
pub mod task_groups;
mod verdict;
mod world;

pub use audit::{Audit, AuditError, Decided, Observer, Options, Stepped, audit};
pub use explanation::Explanation;
pub use judge::inference::InferenceCounts;
pub use meter::{Meter, Moment};
pub use placewise_policy::Distance;
pub use reconstruction::Reconstruction;
pub use report::agreement::{
    Agreement, Confusion, Reason, Tally, Went, affine_reason, search_reason,
};
pub use report::explain::{Rule, Sight, explain};
pub use report::moves::{ByDistance, Moves};
pub use report::other::Other;
pub use steps::step::{Action, DecisionTasks, PrevState, Step};
pub use steps::task::{NameId, PID_MAX, Task, TaskNumber, Tasks};
pub use steps::timeline::{Repairs, Timeline};
pub use steps::wakeup::Outcome;
pub use verdict::{Flips, Hypothesis, Kind, NoPlacement, Placed, Verdict};
pub use world::stated::Stated;
