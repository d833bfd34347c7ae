//! The placement policy, as Rust sees it.
//!
//! `policy/` is C; this crate builds it natively and is the only one that calls
//! into it. [`Placement`] owns the policy's [`State`], which engines read and
//! write directly, by [`CpuId`] and [`TaskId`]; its methods are the policy's
//! entry points. [`kernel`], [`patch`] and [`knob`] hold the kernels, patches and
//! knobs as data, and [`Policy`] names a combination of them. [`topology`] lays a machine out
//! in the state, and [`distance`] names how far its CPUs are from each other. [`own`] compiles and
//! loads what somebody has made of `policy/`, and [`drawn`] makes states to ask it of.

// By which name `drawn` calls us; in the differential test that is the test.
extern crate self as placewise_policy;

mod cpumask;
pub mod distance;
pub mod drawn;
mod ids;
pub mod instructions;
pub mod kernel;
pub mod knob;
mod near;
pub mod own;
pub mod patch;
mod shared_runq;
mod state;
mod table;
pub mod topology;
pub mod weight;

pub use distance::Distance;
pub use ids::{CpuId, TaskId};
pub use kernel::{kernel_for_release, kernel_names, running_release};
pub use knob::{knob_names, two_values_of};
pub use patch::{Policy, PolicyError, patch_names, with_knobs};
pub use shared_runq::share_lists;
pub use state::*;
pub use table::{PerCpu, Table};
