//! Workloads: what tasks do, compiled to one small task program.
//!
//! A workload is a model built for a [`Case`], or an rt-app file ([`from_rt_app`]). Both end in a
//! [`program::Workload`] that the simulator interprets. An [`Environment`] puts its tasks into
//! cgroups and changes what they run on. This crate knows nothing of time, costs or placement.
//!
//! ```text
//! case.rs ─> registry.rs ─> benchmark/  one module per benchmark ─┐
//!                 └───────> mix.rs      several of them at once ──┼─> program.rs
//! rt_app/ ────────────────────────────────────────────────────────┘
//! ```

mod benchmark;
mod case;
mod check;
mod environment;
mod error;
mod file;
mod mix;
mod model;
mod parameter;
pub mod program;
mod registry;
mod rt_app;

pub use case::Case;
pub use environment::Environment;
pub use error::WorkloadError;
pub use file::read_text;
pub use parameter::{BINDING, Parameter, Value};
pub use registry::{build, canonical, default_cases, names, parameters, summary};
pub use rt_app::{from_rt_app, from_rt_app_text};
