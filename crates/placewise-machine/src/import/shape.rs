//! The shape of a machine as an importer found it, in ids of its own, and its assembly: a
//! [`Machine`] with dense ids. Shapes that Linux itself would not accept, or that the model cannot
//! express, are refused.

use std::collections::{BTreeMap, BTreeSet};

use super::costs_of_file::{ReadCosts, preset_costs};
use super::processor::{Size, Vendor};
use crate::cpuset::CpuSet;
use crate::domains::MAX_SIBLINGS;
use crate::error::MachineError;
use crate::machine::{Cpu, Machine};

/// The capacity of the strongest CPU, SCHED_CAPACITY_SCALE.
pub(crate) const CAPACITY_SCALE: u32 = 1024;
const LOCAL_DISTANCE: u32 = 10;
const REMOTE_DISTANCE: u32 = 20;
/// The kernel stores a SLIT distance in eight bits and keeps 255 for "unreachable".
const MAX_DISTANCE: u32 = 254;

/// Where an online CPU sits, in the importer's ids. Equal ids mean the same object; cores,
/// clusters and LLCs need ids that are unique over the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub core: u32,
    /// None: no level between core and LLC is known.
    pub cluster: Option<u32>,
    /// None: no cache is known.
    pub llc: Option<u32>,
    /// What the LLC is a part of in the hardware. None: it is a cache of its own.
    pub cache: Option<u32>,
    pub node: u32,
    pub package: u32,
    pub capacity: u32,
    /// None: what the capacity says.
    pub speed: Option<u32>,
    /// None: no preference of the hardware.
    pub priority: Option<i32>,
}

/// In the second half of the numbers: what has no number of its own.
const CORE_ALONE: u32 = 1 << 31;
/// In the second quarter: the caches that are no LLC.
const SPLIT_CACHE: u32 = 1 << 30;

impl Place {
    /// A core without a cluster is one.
    fn cluster(&self) -> u32 {
        self.cluster.unwrap_or(self.core | CORE_ALONE)
    }

    fn llc(&self) -> u32 {
        self.llc.unwrap_or(self.core | CORE_ALONE)
    }

    fn cache(&self) -> u32 {
        self.cache.map_or(self.llc(), |cache| cache | SPLIT_CACHE)
    }
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
    pub vendor: Vendor,
    /// None: what the kernel takes for the vendor.
    pub node_reclaim_distance: Option<u32>,
    pub figures: Figures,
}

/// The cost figures of a machine.
pub(crate) enum Figures {
    Stated(Box<Stated>),
    /// Those of the preset that is nearest to the processor, which the description then says; but the
    /// tick rate may be known.
    Borrowed {
        hz: Option<u32>,
    },
}

pub(crate) struct Stated {
    pub costs: ReadCosts,
    /// Whose they are: `Machine::costs_of`.
    pub of: String,
}

impl Identity {
    /// For a machine without cost figures of its own.
    pub(crate) fn borrowing_costs(name: &str, description: &str, vendor: Vendor) -> Self {
        Self {
            name: name.to_string(),
            description: description.to_string(),
            vendor,
            node_reclaim_distance: None,
            figures: Figures::Borrowed { hz: None },
        }
    }
}

/// The figures of a preset, on a machine whose tick rate may be known.
fn lent_by(lender: &str, hz: Option<u32>) -> Stated {
    let mut costs = preset_costs(lender);
    if let Some(hz) = hz {
        costs.figures.hz = hz;
        costs.sources.insert("hz".into(), "measured: header of the trace".into());
    }
    Stated { costs, of: format!("those of {lender}") }
}

impl Shape {
    pub(crate) fn assemble(self, identity: Identity) -> Result<Machine, MachineError> {
        self.check_size()?;
        let shape = match identity.vendor {
            Vendor::NotX86 => self.seen_by_arch_topology(),
            _ => self.seen_by_x86(),
        };
        shape.check_nesting()?;
        shape.number(identity)
    }

    /// arch/x86/kernel/smpboot.c: `match_smt`, `match_l2c` and `match_llc` take CPUs for neighbours
    /// only if they are in one node (`topology_sane`), so that caches and cores end at the borders
    /// of nodes; Intel parts in sub-NUMA clustering report one L3 for all nodes of a package. A
    /// CPU without caches shares nothing beyond its core.
    fn seen_by_x86(mut self) -> Self {
        type Part = (u8, u32, u32);
        let mut parts: BTreeMap<Part, u32> = BTreeMap::new();
        let mut id = |part: Part| {
            let next = parts.len() as u32;
            *parts.entry(part).or_insert(next)
        };
        for place in self.cpus.iter_mut().flatten() {
            let node = place.node;
            place.core = id((0, place.core, node));
            place.cluster = place.cluster.map(|cluster| id((1, cluster, node)));
            place.llc = place.llc.map(|llc| id((2, llc, node)));
        }
        self.without_wide_clusters()
    }

    /// drivers/base/arch_topology.c, `cpu_coregroup_mask`: where node, package and LLC do not lie
    /// within each other, or no cache is known, the smallest that does stands for the LLC. A
    /// cluster around all that takes its place.
    fn seen_by_arch_topology(mut self) -> Self {
        let nodes = self.masks(|place| Some(place.node));
        let packages = self.masks(|place| Some(place.package));
        let llcs = self.masks(|place| place.llc);
        let clusters = self.masks(|place| place.cluster);
        let mut groups: BTreeMap<CpuSet, u32> = BTreeMap::new();
        for place in self.cpus.iter_mut().flatten() {
            let mut group = nodes[&place.node];
            let package = packages[&place.package];
            if package.is_subset(&group) {
                group = package;
            }
            if let Some(llc) = place.llc.map(|llc| llcs[&llc]).filter(|llc| llc.is_subset(&group)) {
                group = llc;
            }
            let cluster = place.cluster.map(|cluster| clusters[&cluster]);
            group = cluster.filter(|cluster| group.is_subset(cluster)).unwrap_or(group);
            let next = groups.len() as u32;
            place.llc = Some(*groups.entry(group).or_insert(next));
        }
        self.without_wide_clusters()
    }

    /// The CPUs of each object.
    fn masks(&self, object: impl Fn(&Place) -> Option<u32>) -> BTreeMap<u32, CpuSet> {
        let mut masks: BTreeMap<u32, CpuSet> = BTreeMap::new();
        for (cpu, place) in self.cpus.iter().enumerate() {
            if let Some(object) = place.as_ref().and_then(&object) {
                masks.entry(object).or_default().insert(cpu);
            }
        }
        masks
    }

    fn number(self, identity: Identity) -> Result<Machine, MachineError> {
        let nodes = Numbers::ascending(self.places().map(|place| place.node));
        let packages = Numbers::ascending(self.places().map(|place| place.package));
        let cores = Numbers::as_seen(self.places().map(|place| place.core));
        let clusters = Numbers::as_seen(self.places().map(Place::cluster));
        let llcs = Numbers::as_seen(self.places().map(Place::llc));
        let caches = Numbers::as_seen(self.places().map(Place::cache));
        let node_distances = self.distance_table(&nodes)?;
        let cpus = self.cpus.iter().enumerate().map(|(id, place)| match place {
            None => Cpu::offline(),
            Some(place) => Cpu {
                online: true,
                core: cores.of(place.core),
                cluster: clusters.of(place.cluster()),
                llc: llcs.of(place.llc()),
                cache: caches.of(place.cache()),
                node: nodes.of(place.node),
                package: packages.of(place.package),
                capacity: place.capacity,
                speed: place.speed.unwrap_or(place.capacity),
                priority: place.priority.unwrap_or(-(id as i32)),
            },
        });
        let size = Size {
            cpus: self.places().count(),
            llcs: llcs.ids.len(),
            nodes: nodes.ids.len(),
            packages: packages.ids.len(),
        };
        let Identity { name, mut description, vendor, node_reclaim_distance, figures } = identity;
        let Stated { costs, of } = match figures {
            Figures::Stated(stated) => *stated,
            Figures::Borrowed { hz } => {
                let lender = vendor.cost_preset(&size);
                description += &format!("; costs of {lender}, not measured on this machine");
                lent_by(lender, hz)
            }
        };
        Ok(Machine {
            cpus: cpus.collect(),
            name,
            description,
            node_distances,
            node_reclaim_distance: node_reclaim_distance
                .unwrap_or_else(|| vendor.node_reclaim_distance()),
            costs: costs.figures,
            costs_of: of,
            cost_sources: costs.sources,
        })
    }

    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
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
        let cores = self.masks(|place| Some(place.core));
        let Some(core) = cores.values().find(|core| core.len() > MAX_SIBLINGS) else {
            return Ok(());
        };
        let problem = format!("are one core, at most {MAX_SIBLINGS} threads can be modelled");
        Err(MachineError::new(format!("CPUs {core}"), problem))
    }

    /// `topology_span_sane` and what the kernel calls a broken arch topology.
    fn check_nesting(&self) -> Result<(), MachineError> {
        self.check_within(("core", |p| p.core), ("cluster", Place::cluster))?;
        self.check_within(("core", |p| p.core), ("LLC", Place::llc))?;
        self.check_within(("cluster", Place::cluster), ("LLC", Place::llc))?;
        self.check_within(("LLC", Place::llc), ("cache", Place::cache))?;
        self.check_within(("LLC", Place::llc), ("NUMA node", |p| p.node))
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
        let llcs = self.masks(|place| Some(place.llc()));
        let clusters = self.masks(|place| place.cluster);
        for place in self.cpus.iter_mut().flatten() {
            let llc = llcs[&place.llc()];
            place.cluster = place.cluster.filter(|cluster| !llc.is_subset(&clusters[cluster]));
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
