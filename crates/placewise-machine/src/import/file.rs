//! Machine files: the TOML format of the presets and of machines users describe themselves.
//!
//! A file gives the shape as a list of packages, each regular in itself, or as lists of CPUs
//! ([`cpu_lists`](super::cpu_lists)), and cost figures ([`costs_of_file`](super::costs_of_file)).

use serde::Deserialize;

use super::costs_of_file::CostsOfFile;
use super::cpu_lists::CpuLists;
use super::processor::Vendor;
use super::shape::{CAPACITY_SCALE, Distances, Figures, Identity, Place, Shape, Stated};
use crate::cpuset::CpuSet;
use crate::error::MachineError;
use crate::machine::Machine;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineFile {
    description: String,
    /// Of the packages.
    thread_numbering: Option<ThreadNumbering>,
    node_reclaim_distance: Option<u32>,
    /// One row per NUMA node.
    node_distances: Option<Vec<Vec<u32>>>,
    /// CPUs that are offline, as a CPU list.
    #[serde(default)]
    offline: String,
    #[serde(default)]
    capacity: Vec<CpuSetting<u32>>,
    #[serde(default)]
    speed: Vec<CpuSetting<u32>>,
    #[serde(default)]
    priority: Vec<CpuSetting<i32>>,
    #[serde(default)]
    package: Vec<Package>,
    /// Instead of packages.
    shape: Option<CpuLists>,
    costs_from: Option<String>,
    #[serde(default)]
    costs: toml::Table,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ThreadNumbering {
    /// The siblings of a core have consecutive CPU ids.
    SiblingsAdjacent,
    /// First one thread of every core, then the second of every core, and so on.
    SiblingsApart,
}

/// `count` equal packages. A package has whole nodes, a node whole LLCs, an LLC whole clusters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Package {
    #[serde(default = "one")]
    count: u32,
    #[serde(default = "one")]
    nodes: u32,
    llcs_per_node: u32,
    /// LLCs of the sched domains that are one cache of the hardware.
    #[serde(default = "one")]
    llcs_per_cache: u32,
    cores_per_llc: u32,
    threads_per_core: u32,
    /// Cores that share an L2 cache or an arm64 cluster.
    #[serde(default = "one")]
    cores_per_cluster: u32,
    /// Cores of other kinds under the same LLCs, numbered after those above.
    #[serde(default)]
    other_cores: Vec<Cores>,
}

/// The cores of one kind under an LLC.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cores {
    cores_per_llc: u32,
    threads_per_core: u32,
    #[serde(default = "one")]
    cores_per_cluster: u32,
}

impl Package {
    fn kinds_of_cores(&self) -> impl Iterator<Item = Cores> {
        let first = Cores {
            cores_per_llc: self.cores_per_llc,
            threads_per_core: self.threads_per_core,
            cores_per_cluster: self.cores_per_cluster,
        };
        std::iter::once(first).chain(self.other_cores.iter().copied())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CpuSetting<T> {
    cpus: String,
    value: T,
}

fn one() -> u32 {
    1
}

/// The description in the text of a preset's file.
pub(crate) fn description(text: &str) -> String {
    let file: MachineFile = toml::from_str(text).expect("presets are checked by the tests");
    file.description
}

/// Reads a machine file.
pub(crate) fn parse(name: &str, text: &str) -> Result<Machine, MachineError> {
    let file: MachineFile = toml::from_str(text).map_err(|error| syntax_error(text, &error))?;
    let costs = CostsOfFile { costs_from: file.costs_from.clone(), costs: file.costs.clone() };
    let stated = Stated { costs: costs.read()?, of: costs.lender() };
    let identity = Identity {
        name: name.to_string(),
        description: file.description.clone(),
        vendor: Vendor::Unknown,
        node_reclaim_distance: file.node_reclaim_distance,
        figures: Figures::Stated(Box::new(stated)),
    };
    read_shape(&file)?.assemble(identity)
}

/// toml's own message, on one line and with the line of the file it is about.
fn syntax_error(text: &str, error: &toml::de::Error) -> MachineError {
    let Some(span) = error.span() else {
        return MachineError::new("machine file", error.message());
    };
    let before = text.get(..span.start).unwrap_or(text);
    let number = before.lines().count().max(1);
    let line = text.lines().nth(number - 1).unwrap_or_default().trim();
    MachineError::new(format!("line {number} `{line}`"), error.message())
}

fn read_shape(file: &MachineFile) -> Result<Shape, MachineError> {
    let mut shape = regular_or_listed_shape(file)?;
    for CpuSetting { cpus, value } in &file.capacity {
        check_scaled("capacity", *value)?;
        for cpu in known_cpus("capacity", cpus, &shape)?.iter() {
            shape.cpus[cpu].iter_mut().for_each(|place| place.capacity = *value);
        }
    }
    for CpuSetting { cpus, value } in &file.speed {
        check_scaled("speed", *value)?;
        for cpu in known_cpus("speed", cpus, &shape)?.iter() {
            shape.cpus[cpu].iter_mut().for_each(|place| place.speed = Some(*value));
        }
    }
    for CpuSetting { cpus, value } in &file.priority {
        if !PRIORITIES.contains(value) {
            let problem = format!("is {value}, must be 0 to {}", PRIORITIES.end());
            return Err(MachineError::new("priority", problem));
        }
        for cpu in known_cpus("priority", cpus, &shape)?.iter() {
            shape.cpus[cpu].iter_mut().for_each(|place| place.priority = Some(*value));
        }
    }
    for cpu in known_cpus("offline", &file.offline, &shape)?.iter() {
        shape.cpus[cpu] = None;
    }
    shape.distances = distances(file)?;
    Ok(shape)
}

fn regular_or_listed_shape(file: &MachineFile) -> Result<Shape, MachineError> {
    match (&file.shape, &file.thread_numbering) {
        (Some(lists), None) if file.package.is_empty() => lists.shape(),
        (Some(_), _) => {
            let problem = "says it all: leave [[package]] and thread_numbering out";
            Err(MachineError::new("[shape]", problem))
        }
        (None, Some(numbering)) => Ok(Shape {
            cpus: number_threads(&cores(&file.package)?, numbering),
            distances: Distances::new(),
        }),
        (None, None) => {
            let problem = "is missing, must be `siblings-apart` or `siblings-adjacent`";
            Err(MachineError::new("thread_numbering", problem))
        }
    }
}

/// As wide as the kernel's own field for what firmware states.
const PRIORITIES: std::ops::RangeInclusive<i32> = 0..=255;

fn check_scaled(field: &str, value: u32) -> Result<(), MachineError> {
    if (1..=CAPACITY_SCALE).contains(&value) {
        return Ok(());
    }
    Err(MachineError::new(field, format!("is {value}, must be 1 to {CAPACITY_SCALE}")))
}

fn known_cpus(field: &str, list: &str, shape: &Shape) -> Result<CpuSet, MachineError> {
    let cpus = CpuSet::parse_list(list).map_err(|error| error.within(field))?;
    match cpus.last() {
        Some(last) if last >= shape.cpus.len() => {
            let highest = shape.cpus.len() - 1;
            let problem = format!("names CPU {last}, the highest CPU is {highest}");
            Err(MachineError::new(field, problem))
        }
        _ => Ok(cpus),
    }
}

/// One core with its place and its number of threads.
struct CoreThreads {
    place: Place,
    threads: u32,
}

fn cores(packages: &[Package]) -> Result<Vec<CoreThreads>, MachineError> {
    check_counts(packages)?;
    let mut cores = Vec::new();
    let (mut package_id, mut node, mut llc, mut cluster) = (0, 0, 0, 0);
    for package in packages {
        for _ in 0..package.count {
            for _ in 0..package.nodes {
                for nth in 0..package.llcs_per_node {
                    for kind in package.kinds_of_cores() {
                        let place = Place {
                            core: 0,
                            cluster: Some(cluster),
                            llc: Some(llc),
                            cache: Some(llc - nth % package.llcs_per_cache),
                            node,
                            package: package_id,
                            capacity: CAPACITY_SCALE,
                            speed: None,
                            priority: None,
                        };
                        add_cores(&mut cores, kind, place);
                        cluster += kind.cores_per_llc;
                    }
                    llc += 1;
                }
                node += 1;
            }
            package_id += 1;
        }
    }
    Ok(cores)
}

/// The cores of one kind under one LLC; `first` is the place of the first, but for its number.
fn add_cores(cores: &mut Vec<CoreThreads>, kind: Cores, first: Place) {
    for nth in 0..kind.cores_per_llc {
        let core = cores.len() as u32;
        let cluster = first.cluster.map(|cluster| cluster + nth / kind.cores_per_cluster);
        let place = Place { core, cluster, ..first };
        cores.push(CoreThreads { place, threads: kind.threads_per_core });
    }
}

/// No count may be zero, and the product is limited before anything of that size is made.
fn check_counts(packages: &[Package]) -> Result<(), MachineError> {
    let mut nr_cpus: u64 = 0;
    for (index, package) in packages.iter().enumerate() {
        let llcs = [
            ("count", package.count),
            ("nodes", package.nodes),
            ("llcs_per_node", package.llcs_per_node),
        ];
        check_positive(index, &llcs)?;
        check_caches(index, package)?;
        let nr_llcs: u64 = llcs.iter().map(|(_, count)| u64::from(*count)).product();
        for kind in package.kinds_of_cores() {
            let cores = [
                ("cores_per_llc", kind.cores_per_llc),
                ("threads_per_core", kind.threads_per_core),
                ("cores_per_cluster", kind.cores_per_cluster),
            ];
            check_positive(index, &cores)?;
            // Five factors of at most 2^10 each.
            nr_cpus += nr_llcs * u64::from(kind.cores_per_llc) * u64::from(kind.threads_per_core);
        }
    }
    if nr_cpus == 0 || nr_cpus > CpuSet::MAX_CPUS as u64 {
        let problem = format!("add up to {nr_cpus} CPUs, must be 1 to {}", CpuSet::MAX_CPUS);
        return Err(MachineError::new("[[package]]", problem));
    }
    Ok(())
}

/// The caches of a node are whole.
fn check_caches(index: usize, package: &Package) -> Result<(), MachineError> {
    let (llcs, of_cache) = (package.llcs_per_node, package.llcs_per_cache);
    if of_cache > 0 && llcs.is_multiple_of(of_cache) {
        return Ok(());
    }
    let place = format!("[[package]] {}: llcs_per_cache", index + 1);
    let problem = format!("is {of_cache}, must divide the {llcs} LLCs of a node");
    Err(MachineError::new(place, problem))
}

fn check_positive(package: usize, counts: &[(&str, u32)]) -> Result<(), MachineError> {
    let wrong = |count: u32| count == 0 || count as usize > CpuSet::MAX_CPUS;
    match counts.iter().find(|(_, count)| wrong(*count)) {
        None => Ok(()),
        Some((field, count)) => {
            let place = format!("[[package]] {}: {field}", package + 1);
            let problem = format!("is {count}, must be 1 to {}", CpuSet::MAX_CPUS);
            Err(MachineError::new(place, problem))
        }
    }
}

fn number_threads(cores: &[CoreThreads], numbering: &ThreadNumbering) -> Vec<Option<Place>> {
    let place = |core: &CoreThreads| Some(core.place);
    match numbering {
        ThreadNumbering::SiblingsAdjacent => {
            cores.iter().flat_map(|core| (0..core.threads).map(move |_| place(core))).collect()
        }
        ThreadNumbering::SiblingsApart => {
            let most = cores.iter().map(|core| core.threads).max().unwrap_or(0);
            (0..most)
                .flat_map(|thread| cores.iter().filter(move |core| thread < core.threads))
                .map(place)
                .collect()
        }
    }
}

fn distances(file: &MachineFile) -> Result<Distances, MachineError> {
    let Some(rows) = &file.node_distances else {
        return Ok(Distances::new());
    };
    let nr_nodes = match &file.shape {
        Some(lists) => lists.nr_nodes(),
        None => file.package.iter().map(|it| (it.count * it.nodes) as usize).sum(),
    };
    if rows.len() != nr_nodes || rows.iter().any(|row| row.len() != rows.len()) {
        let problem = format!("must have {nr_nodes} rows of {nr_nodes} values, one per NUMA node");
        return Err(MachineError::new("node_distances", problem));
    }
    let cells = (0u32..).zip(rows).flat_map(|(from, row)| {
        (0u32..).zip(row).map(move |(to, distance)| ((from, to), *distance))
    });
    Ok(cells.collect())
}
