//! The machine a placement decision is made on: its shape (CPUs, cores, LLCs, NUMA nodes,
//! packages), the cost figures of its hardware, and the sched domains Linux builds from the shape.
//!
//! This crate knows nothing of tasks, time or policy. It reads machines (presets, TOML files, the
//! running host, hwloc XML, lstopo synthetic strings, headers of traces), refuses what it cannot model
//! with one clear line, derives the sched domains, and writes machines as files.

mod clock;
mod costs;
mod cpuset;
pub mod domains;
mod error;
mod export;
mod import;
mod machine;
mod scaled;

pub use clock::{Clocks, FULL_CLOCK};
pub use costs::{
    BandwidthCurve, ByAccess, ByChannel, ByDistance, BySide, ChannelLines, Costs, IdleState, Place,
    RemoteBandwidth, SHORT_COPY_OVERLAP,
};
pub use cpuset::CpuSet;
pub use domains::{
    DomainFlags, DomainRules, DomainSpan, Domains, Group, Level, NumaImbalanceRule, build,
};
pub use error::MachineError;
pub use export::to_toml;
pub use import::cost_bounds::within_bounds;
pub use import::load::{Preset, load, presets};
pub use import::processor::CpuVendor;
pub use import::trace::{TraceCpu, TraceNode, TraceTopology, from_trace};
pub use machine::{CostFigure, Cpu, Machine};
