//! Reading machines. Each importer says where every CPU sits, in ids of its own; the assembly here
//! turns that into a [`Machine`] with dense ids and refuses shapes that Linux itself would not
//! accept or that the model cannot express.

pub(crate) mod file;
pub(crate) mod host;
pub(crate) mod hwloc;
pub(crate) mod synthetic;
pub(crate) mod trace;

#[cfg(test)]
mod properties;

use std::collections::{BTreeMap, BTreeSet};

use crate::{Costs, Cpu, CpuSet, Machine, MachineError};

/// The capacity of the strongest CPU, SCHED_CAPACITY_SCALE.
const CAPACITY_SCALE: u32 = 1024;
const LOCAL_DISTANCE: u32 = 10;
const REMOTE_DISTANCE: u32 = 20;
/// The kernel stores a SLIT distance in eight bits and keeps 255 for "unreachable".
const MAX_DISTANCE: u32 = 254;
const RECLAIM_DISTANCE: u32 = 30;
const RECLAIM_DISTANCE_ZEN: u32 = 32;

/// Where an online CPU sits, in the importer's ids. Equal ids mean the same object; cores,
/// clusters and LLCs need ids that are unique over the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub core: u32,
    pub cluster: u32,
    pub llc: u32,
    pub node: u32,
    pub package: u32,
    pub capacity: u32,
    /// None: what the capacity says.
    pub speed: Option<u32>,
    /// None: no preference of the hardware.
    pub priority: Option<i32>,
}

/// SLIT distances by the importer's node ids.
pub(crate) type Distances = BTreeMap<(u32, u32), u32>;

/// The shape as an importer found it; `None` is a CPU that is offline.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shape {
    pub cpus: Vec<Option<Place>>,
    /// A missing distance is 10 within a node and 20 between nodes.
    pub distances: Distances,
}

/// What goes with a shape to make a machine.
pub(crate) struct Identity {
    pub name: String,
    pub description: String,
    pub node_reclaim_distance: u32,
    pub costs: Costs,
    pub cost_sources: BTreeMap<String, String>,
}

impl Identity {
    /// For a machine without cost figures of its own. They are those of the preset nearest to the
    /// vendor's current servers, and the description says so.
    pub(crate) fn borrowing_costs(name: &str, description: &str, vendor: &Vendor) -> Self {
        let lender = vendor.cost_preset();
        let (costs, cost_sources) = file::preset_costs(lender);
        Self {
            name: name.to_string(),
            description: format!("{description}; costs of {lender}, not measured on this machine"),
            node_reclaim_distance: vendor.node_reclaim_distance(),
            costs,
            cost_sources,
        }
    }
}

/// The CPU vendor, as far as Linux treats it differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vendor {
    Amd { family: u32 },
    Intel,
    Other,
}

impl Vendor {
    pub(crate) fn new(vendor_id: &str, family: u32) -> Self {
        match vendor_id {
            "AuthenticAMD" => Vendor::Amd { family },
            "GenuineIntel" => Vendor::Intel,
            _ => Vendor::Other,
        }
    }

    fn cost_preset(&self) -> &'static str {
        match self {
            Vendor::Amd { .. } => "zen3-2s-nps1",
            Vendor::Intel => "icx-2s",
            Vendor::Other => "uma-8",
        }
    }

    /// `init_amd_zn` raises the limit so that two sockets at distance 32 still share work.
    fn node_reclaim_distance(&self) -> u32 {
        match self {
            Vendor::Amd { family } if *family >= 0x17 => RECLAIM_DISTANCE_ZEN,
            _ => RECLAIM_DISTANCE,
        }
    }
}

impl Shape {
    /// Intel parts in sub-NUMA clustering report one L3 for all nodes of a package; the kernel
    /// (`match_llc`) cuts it at the node borders.
    pub(crate) fn split_llcs_at_nodes(&mut self) {
        let mut parts: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for place in self.cpus.iter_mut().flatten() {
            let next = parts.len() as u32;
            place.llc = *parts.entry((place.llc, place.node)).or_insert(next);
        }
    }

    pub(crate) fn assemble(self, identity: Identity) -> Result<Machine, MachineError> {
        self.check_size()?;
        self.check_nesting()?;
        let shape = self.without_wide_clusters();
        shape.check_within(("cluster", |p| p.cluster), ("LLC", |p| p.llc))?;
        shape.number(identity)
    }

    fn number(self, identity: Identity) -> Result<Machine, MachineError> {
        let nodes = Numbers::ascending(self.places().map(|place| place.node));
        let packages = Numbers::ascending(self.places().map(|place| place.package));
        let cores = Numbers::as_seen(self.places().map(|place| place.core));
        let clusters = Numbers::as_seen(self.places().map(|place| place.cluster));
        let llcs = Numbers::as_seen(self.places().map(|place| place.llc));
        let node_distances = self.distance_table(&nodes)?;
        let cpus = self.cpus.iter().enumerate().map(|(id, place)| match place {
            None => Cpu::offline(),
            Some(place) => Cpu {
                online: true,
                core: cores.of(place.core),
                cluster: clusters.of(place.cluster),
                llc: llcs.of(place.llc),
                node: nodes.of(place.node),
                package: packages.of(place.package),
                capacity: place.capacity,
                speed: place.speed.unwrap_or(place.capacity),
                priority: place.priority.unwrap_or(-(id as i32)),
            },
        });
        Ok(Machine {
            cpus: cpus.collect(),
            name: identity.name,
            description: identity.description,
            node_distances,
            node_reclaim_distance: identity.node_reclaim_distance,
            costs: identity.costs,
            cost_sources: identity.cost_sources,
        })
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        self.cpus.iter().flatten()
    }

    fn check_size(&self) -> Result<(), MachineError> {
        if self.places().next().is_none() {
            return Err(MachineError::new("CPUs", "the machine has no online CPU"));
        }
        if self.cpus.len() > CpuSet::MAX_CPUS {
            let problem = format!(
                "the machine has {} CPUs, at most {} can be modelled",
                self.cpus.len(),
                CpuSet::MAX_CPUS
            );
            return Err(MachineError::new("CPUs", problem));
        }
        Ok(())
    }

    fn check_nesting(&self) -> Result<(), MachineError> {
        type Id = fn(&Place) -> u32;
        let (core, cluster, llc): (Id, Id, Id) = (|p| p.core, |p| p.cluster, |p| p.llc);
        let (node, package): (Id, Id) = (|p| p.node, |p| p.package);
        self.check_within(("core", core), ("LLC", llc))?;
        self.check_within(("core", core), ("cluster", cluster))?;
        self.check_within(("LLC", llc), ("NUMA node", node))?;
        self.check_within(("LLC", llc), ("package", package))
    }

    /// All CPUs of each `part` must be in one `whole`.
    fn check_within(
        &self,
        (part, part_of): (&str, fn(&Place) -> u32),
        (whole, whole_of): (&str, fn(&Place) -> u32),
    ) -> Result<(), MachineError> {
        let mut first_seen: BTreeMap<u32, (usize, u32)> = BTreeMap::new();
        for (cpu, place) in self.cpus.iter().enumerate() {
            let Some(place) = place else { continue };
            let first = first_seen.entry(part_of(place)).or_insert((cpu, whole_of(place)));
            if first.1 != whole_of(place) {
                let problem = format!(
                    "shares its {part} with CPU {} but is in another {whole}: \
                     one {part} over several {whole}s cannot be modelled",
                    first.0
                );
                return Err(MachineError::new(format!("CPU {cpu}"), problem));
            }
        }
        Ok(())
    }

    /// `cpu_clustergroup_mask`: a cluster as large as its LLC, or larger, is no level of its own;
    /// then the core stands for it.
    fn without_wide_clusters(mut self) -> Self {
        let mut clusters_in_llc: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for place in self.places() {
            let clusters = clusters_in_llc.entry(place.llc).or_default();
            clusters.insert(place.cluster);
        }
        let mut new_ids: BTreeMap<(bool, u32), u32> = BTreeMap::new();
        for place in self.cpus.iter_mut().flatten() {
            let wide = clusters_in_llc[&place.llc].len() == 1;
            let stands_for = if wide { place.core } else { place.cluster };
            let next = new_ids.len() as u32;
            place.cluster = *new_ids.entry((wide, stands_for)).or_insert(next);
        }
        self
    }

    fn distance_table(&self, nodes: &Numbers) -> Result<Vec<Vec<u32>>, MachineError> {
        let distance = |from: u32, to: u32| match self.distances.get(&(from, to)) {
            Some(distance) => *distance,
            None if from == to => LOCAL_DISTANCE,
            None => REMOTE_DISTANCE,
        };
        for from in &nodes.ids {
            for to in &nodes.ids {
                check_distance((*from, *to), distance(*from, *to), distance(*to, *from))?;
            }
        }
        let row = |from: &u32| nodes.ids.iter().map(|to| distance(*from, *to)).collect();
        Ok(nodes.ids.iter().map(row).collect())
    }
}

fn check_distance((from, to): (u32, u32), there: u32, back: u32) -> Result<(), MachineError> {
    let expected = if from == to && there != LOCAL_DISTANCE {
        "must be 10 within a node"
    } else if from != to && !(LOCAL_DISTANCE + 1..=MAX_DISTANCE).contains(&there) {
        "must be 11 to 254 between two nodes"
    } else if there != back {
        "must be the same in both directions"
    } else {
        return Ok(());
    };
    let place = format!("distance from node {from} to node {to}");
    Err(MachineError::new(place, format!("is {there}, {expected}")))
}

impl Cpu {
    fn offline() -> Self {
        Self {
            online: false,
            core: 0,
            cluster: 0,
            llc: 0,
            node: 0,
            package: 0,
            capacity: 0,
            speed: 0,
            priority: 0,
        }
    }
}

/// Dense numbers for the ids of an importer.
struct Numbers {
    ids: Vec<u32>,
    numbers: BTreeMap<u32, u16>,
}

impl Numbers {
    fn ascending(ids: impl Iterator<Item = u32>) -> Self {
        Self::as_seen(ids.collect::<BTreeSet<u32>>().into_iter())
    }

    fn as_seen(seen: impl Iterator<Item = u32>) -> Self {
        let mut ids = Vec::new();
        let mut numbers = BTreeMap::new();
        for id in seen {
            numbers.entry(id).or_insert_with(|| {
                ids.push(id);
                (ids.len() - 1) as u16
            });
        }
        Self { ids, numbers }
    }

    fn of(&self, id: u32) -> u16 {
        self.numbers[&id]
    }
}
