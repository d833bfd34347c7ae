//! Boots real kernels on emulated machines and checks what Placewise does there.
//!
//! A scenario is data: a TOML file in `scenarios/` with the machines and kernels to run on, a shell
//! script for the guest, and bounds on the figures that it reports. `machines.toml` has the shapes.
//! `tests/scenarios.rs` makes a test of each scenario on each of its machines and kernels.
//!
//! ```text
//!   scenario ── machine ──────► QEMU arguments ─┐
//!      │  └──── script, files ► initramfs ──────┼──► boot ──► console, figures, traces ──► checks
//!   scripts/fetch-kernel.sh ──► kernel ─────────┘
//! ```
//!
//! Limits: QEMU emulates all CPUs in one host thread (TCG), so that times in the guest say nothing
//! of real ones; tests look at where tasks run, and that they run at all. No caches are emulated.

pub mod boot;
pub mod check;
pub mod figures;
pub mod guest;
pub mod host;
pub mod initramfs;
pub mod instruction_counts;
pub mod intervention;
pub mod machine;
pub mod predict;
pub mod prediction;
pub mod report;
pub mod rows;
pub mod scenario;
pub mod score;
pub mod study;
pub mod summary;
