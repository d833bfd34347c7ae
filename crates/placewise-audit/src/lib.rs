//! Judges the placement decisions in a trace of a real kernel.

mod affinity;
mod agreement;
mod audit;
mod beliefs;
pub mod cost;
mod decide;
mod distance;
mod explain;
mod inference;
mod placements;
mod queues;
mod reconstruction;
pub mod recorded;
mod step;
mod task;
mod timeline;

pub use agreement::{Agreement, Confusion, Reason, Tally, Went};
pub use audit::{Audit, AuditError, Decided, Observer, Options, Other, audit};
pub use beliefs::Hypothesis;
pub use decide::{Kind, NoPlacement, Placed, Verdict};
pub use distance::Distance;
pub use explain::{Rule, Sight, explain};
pub use inference::InferenceCounts;
pub use placements::{ByDistance, Moves};
pub use reconstruction::Reconstruction;
pub use step::{Action, Outcome, PrevState, Step};
pub use task::{NameId, Task, TaskId, Tasks};
pub use timeline::{Repairs, Timeline};
