//! The machine as it is at the moment: what of it is online, busy and in use.

use placewise_machine::{Clocks, Domains, Machine};
use placewise_policy::CpuId;

use crate::state::event_queue::Time;
use crate::state::hotplug::Hotplug;
use crate::state::memory_bandwidth::MemoryBandwidth;
use crate::state::numa_balancing::AddressSpaces;

pub struct Hardware<'a> {
    /// As it booted.
    pub machine: &'a Machine,
    pub domains: Domains,
    pub hotplug: Hotplug,
    pub memory: MemoryBandwidth,
    /// `None` where they stay as they are.
    pub clocks: Option<Clocks>,
    pub address_spaces: AddressSpaces,
    /// By cache.
    pub caches: Vec<CacheActivity>,
    /// Where the next device interrupt arrives.
    pub interrupt_cpu: CpuId,
}

/// The CPUs of a last-level cache that are not idle.
#[derive(Clone, Copy, Debug, Default)]
pub struct CacheActivity {
    pub busy: u32,
    /// When a CPU went idle last.
    since: Time,
}

impl<'a> Hardware<'a> {
    pub fn new(machine: &'a Machine, domains: Domains) -> Self {
        Hardware {
            machine,
            domains,
            hotplug: Hotplug::default(),
            memory: MemoryBandwidth::new(machine),
            clocks: Clocks::new(machine),
            address_spaces: AddressSpaces::new(),
            caches: vec![CacheActivity::default(); machine.nr_caches()],
            interrupt_cpu: CpuId::default(),
        }
    }

    /// That of the cache of `cpu`.
    pub fn cache_of(&mut self, cpu: CpuId) -> &mut CacheActivity {
        &mut self.caches[usize::from(self.memory.places[cpu].cache)]
    }
}

impl CacheActivity {
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
