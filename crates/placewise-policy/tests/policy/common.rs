//! A machine with its sched domains, and tasks queued on it by hand.

pub use placewise_policy::drawn::machine::*;
