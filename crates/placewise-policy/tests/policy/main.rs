//! The policy's decisions, each rule with a case in which it decides. `scx_placewise` runs all of this
//! against the BPF build too (its `tests/differential`).

mod balance;
mod balance_legacy;
mod balance_rework_v2;
mod cache_aware;
pub mod common;
mod fork;
mod fork_legacy;
mod overlap;
mod priorities;
mod shared_runq;
mod task_groups;
mod unlike;
mod wakeup;
