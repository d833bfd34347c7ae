//! States that nothing has led to: machines and queues made by hand, or drawn at random.
//!
//! Tests ask the policy of them, the differential test asks both of its builds, and `placewise policy
//! diff` asks the built-in policy and somebody's own.

mod generate;
pub mod machine;

pub use generate::{Drawn, Generator, STATES_PER_MACHINE};
