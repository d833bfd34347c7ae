//! Replays of traces: of simulated runs, whose truth is known, and of real kernels.

mod answers;
mod common;
mod model;
mod read;
mod simulated;
