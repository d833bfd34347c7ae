//! Judges the placement decisions in a trace of a real kernel.

mod affinity;
mod reconstruction;
mod step;
mod sync;
mod task;
mod timeline;

pub use reconstruction::{Kind, NoPlacement, Placed, Reconstruction, Verdict};
pub use step::{Action, Outcome, PrevState, Step};
pub use task::{NameId, Task, TaskId, Tasks};
pub use timeline::{Repairs, Timeline};
