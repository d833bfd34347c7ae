//! Workloads: what tasks do, compiled to one small task program.

pub mod program;
