//! Replays of traces: of simulated runs, whose truth is known, and of real kernels.

mod common;
mod read;
mod simulated;
