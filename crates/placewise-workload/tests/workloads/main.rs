//! Workloads as text in, programs of tasks out.

mod benchmarks;
mod common;
mod documentation;
mod mix;
mod robustness;
mod rt_app;
