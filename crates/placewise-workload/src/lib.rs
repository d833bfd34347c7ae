//! Workloads: what tasks do, compiled to one small task program.
//!
//! A workload is a benchmark model built for a [`Case`] (one module per benchmark, see
//! [`build`]) or an rt-app file ([`from_rt_app`]). Both end in a [`program::Workload`] that the
//! simulator interprets. An [`Environment`] puts its tasks into cgroups and changes what they run
//! on. This crate knows nothing of time, costs or placement.

mod case;
mod check;
mod context_switch1;
mod dbench;
mod environment;
mod error;
mod file;
mod hackbench;
mod lu;
mod mix;
mod model;
mod netperf;
mod parameter;
mod pgbench;
pub mod program;
mod rt_app;
mod schbench;
mod schedpipe;
mod stream;
mod tbench;

pub use case::Case;
pub use environment::Environment;
pub use error::WorkloadError;
pub use file::read_text;
pub use model::{build, canonical, default_cases, names, parameters, summary};
pub use parameter::{Parameter, Value};
pub use rt_app::{from_rt_app, from_rt_app_text};
