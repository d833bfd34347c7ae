//! The machine itself: which CPU sits in which core, LLC, NUMA node and package.

use std::collections::BTreeMap;

use crate::costs::{Costs, Place};
use crate::cpuset::CpuSet;

/// A machine: shape and costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub name: String,
    pub description: String,
    /// Indexed by CPU id.
    pub cpus: Vec<Cpu>,
    /// SLIT distances between the nodes of `Cpu::node`; 10 on the diagonal.
    pub node_distances: Vec<Vec<u32>>,
    /// Beyond this distance the kernel balances neither forks nor wakeups: 30, on AMD Zen 32.
    pub node_reclaim_distance: u32,
    pub costs: Costs,
    /// Whose costs these are: `its own`, or `those of icx-2s`.
    pub costs_of: String,
    /// Where the figure of each field of [`Costs`] comes from.
    pub cost_sources: BTreeMap<String, String>,
}

/// One logical CPU. Core, cluster, LLC, cache, node and package are numbered densely over the machine,
/// counting online CPUs only; of an offline CPU no field but `online` means anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpu {
    pub online: bool,
    pub core: u16,
    /// Cores that share an L2 (x86) or a cluster (arm64); without such a level the core itself.
    pub cluster: u16,
    /// CPUs that share the last-level cache, as far as the kernel's sched domains know.
    pub llc: u16,
    /// CPUs that share it in the hardware: the same, unless the domains split it.
    pub cache: u16,
    pub node: u16,
    pub package: u16,
    /// `arch_scale_cpu_capacity`: 1024 for the strongest CPUs.
    pub capacity: u32,
    /// How fast it computes, whatever the kernel knows of that: 1024 for the fastest CPUs.
    pub speed: u32,
    /// How much the hardware prefers the CPU's core: the higher goes first. Minus the CPU id where
    /// it states no preference, so that the lower number wins.
    pub priority: i32,
}

impl Cpu {
    pub(crate) fn offline() -> Self {
        Self {
            online: false,
            core: 0,
            cluster: 0,
            llc: 0,
            cache: 0,
            node: 0,
            package: 0,
            capacity: 0,
            speed: 0,
            priority: 0,
        }
    }
}

impl Machine {
    /// The CPUs that are online.
    pub fn online(&self) -> CpuSet {
        self.cpus_where(|_| true)
    }

    /// The online CPUs for which `wanted` holds.
    pub fn cpus_where(&self, wanted: impl Fn(&Cpu) -> bool) -> CpuSet {
        let online = self.cpus.iter().enumerate().filter(|(_, cpu)| cpu.online);
        online.filter(|(_, cpu)| wanted(cpu)).map(|(id, _)| id).collect()
    }

    /// Whether the hardware prefers some cores, beyond the default that the lower number wins.
    pub fn has_preference_order(&self) -> bool {
        let mut online = self.cpus.iter().enumerate().filter(|(_, cpu)| cpu.online);
        online.any(|(id, cpu)| cpu.priority != -(id as i32))
    }

    pub fn nr_cores(&self) -> usize {
        self.count(|cpu| cpu.core)
    }

    pub fn nr_llcs(&self) -> usize {
        self.count(|cpu| cpu.llc)
    }

    pub fn nr_caches(&self) -> usize {
        self.count(|cpu| cpu.cache)
    }

    pub fn nr_nodes(&self) -> usize {
        self.node_distances.len()
    }

    pub fn nr_packages(&self) -> usize {
        self.count(|cpu| cpu.package)
    }

    /// Where each CPU sits, by its id.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let place = |(cpu, &Cpu { core, cluster, cache, package, .. })| Place {
            cpu,
            core,
            cluster,
            cache,
            package,
        };
        (0..).zip(&self.cpus).map(place)
    }

    /// Every cost figure in the order of [`Costs`].
    pub fn cost_figures(&self) -> Vec<CostFigure<'_>> {
        let values = toml::Table::try_from(&self.costs).unwrap_or_default();
        let figure = |(name, value): (String, toml::Value)| CostFigure {
            value: value.to_string(),
            source: self.cost_sources.get(&name).map_or("", String::as_str),
            name,
        };
        values.into_iter().map(figure).collect()
    }

    /// Ids are dense, so the highest tells how many there are.
    fn count(&self, id: impl Fn(&Cpu) -> u16) -> usize {
        let online = self.cpus.iter().filter(|cpu| cpu.online);
        online.map(|cpu| usize::from(id(cpu)) + 1).max().unwrap_or(0)
    }
}

/// A cost figure as a machine file gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostFigure<'a> {
    pub name: String,
    /// In the syntax of the machine file.
    pub value: String,
    pub source: &'a str,
}
