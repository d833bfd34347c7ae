//! The simulator from outside: scenarios in, outcomes and traces out.
//!
//! Every test of a mechanism names in its comment what would make it fail.

mod balancing;
mod cache_aware;
mod cgroups;
mod changes;
mod common;
mod conservation;
mod decisions;
mod hints;
mod messages;
mod mix;
mod numa;
mod output;
mod patches;
mod placement;
mod properties;
mod rt_app;
mod scheduling;
mod streaming;
mod trace;
mod unlike;
mod wakers;
mod windows;
