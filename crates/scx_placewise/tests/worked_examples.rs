//! The policy's own tests, which include every worked example, with a BPF build
//! beside the native one.

extern crate placewise_policy as native;
extern crate self as placewise_policy;

mod twin;

pub use native::*;
pub use twin::Placement;

#[path = "../../placewise-policy/tests/balance.rs"]
mod balance;
#[path = "../../placewise-policy/tests/fork.rs"]
mod fork;
#[path = "../../placewise-policy/tests/wakeup/main.rs"]
mod wakeup;
