//! The placement policy, as Rust sees it.
//!
//! `policy/` is C; this crate builds it natively and is the only one that calls
//! into it. [`State`] is the policy's state, read and written directly; its
//! methods are the policy's entry points. [`kernel`] and [`patch`] hold the
//! kernels and patches as data, and [`Policy`] names a combination of them.

pub mod kernel;
pub mod patch;
mod state;

pub use kernel::kernel_names;
pub use patch::{Policy, PolicyError, patch_names};
pub use state::*;
