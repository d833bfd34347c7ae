//! The machine as it is at the moment: what of it is online, busy and in use.

use placewise_machine::{Domains, Machine};
use placewise_policy::CpuId;

use crate::state::event_queue::Time;
use crate::state::hotplug::Hotplug;
use crate::state::memory_bandwidth::MemoryBandwidth;

pub struct Hardware<'a> {
    /// As it booted.
    pub machine: &'a Machine,
    pub domains: Domains,
    pub hotplug: Hotplug,
    pub memory: MemoryBandwidth,
    /// By LLC; at last that of the CPUs that are offline.
    pub llcs: Vec<LlcActivity>,
    /// Where the next device interrupt arrives.
    pub interrupt_cpu: CpuId,
}

/// The CPUs of an LLC that are not idle.
#[derive(Clone, Copy, Debug, Default)]
pub struct LlcActivity {
    pub busy: u32,
    /// When a CPU went idle last.
    since: Time,
}

impl<'a> Hardware<'a> {
    pub fn new(machine: &'a Machine, domains: Domains, nr_llcs: u32) -> Self {
        Hardware {
            machine,
            domains,
            hotplug: Hotplug::default(),
            memory: MemoryBandwidth::new(machine),
            llcs: vec![LlcActivity::default(); nr_llcs as usize + 1],
            interrupt_cpu: CpuId::default(),
        }
    }
}

impl LlcActivity {
    pub fn wake(&mut self) {
        self.busy += 1;
    }

    pub fn rest(&mut self, now: Time) {
        self.busy -= 1;
        self.since = now;
    }

    /// Have all its CPUs been idle for `time`?
    pub fn has_rested_for(&self, time: Time, now: Time) -> bool {
        self.busy == 0 && now - self.since >= time
    }
}
