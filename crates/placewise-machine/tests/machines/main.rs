//! Machines as they come from files and presets, and the sched domains that kernels make of them.

mod import;
mod presets;
