//! The policy in BPF, in the running kernel: as the sched_ext scheduler, and entry point by entry point.
//!
//! [`scheduler`] loads, fills and watches the scheduler of `bpf/`; [`hint`] serves its hints, and
//! [`report`] prints its [`figures`]; [`own`] compiles it with a policy of somebody's own. [`KernelPolicy`] holds the programs of `policy.bpf.c`. All that needs
//! root, a kernel with BPF arenas and its BTF, and a clang for BPF when this crate is built; where one
//! is missing, [`LoadError::Unavailable`] says which.

mod arena;
mod clang;
pub mod exit;
pub mod figures;
pub mod hint;
mod kernel_policy;
mod object;
pub mod own;
pub mod pins;
pub mod report;
pub mod scheduler;
mod shared;
mod socket;

pub use kernel_policy::{KernelPolicy, NR_WAKEUPS, Walk};
pub use object::LoadError;
pub use shared::WakeupToDecide;
