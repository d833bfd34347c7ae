//! The running host, from sysfs and /proc/cpuinfo.
//!
//! The LLC of a CPU is its cache of the highest level.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::processor::{CpuVendor, Vendor};
use super::shape::{CAPACITY_SCALE, Distances, Identity, Place, Shape};
use crate::cpuset::CpuSet;
use crate::error::MachineError;
use crate::machine::Machine;

/// Reads the running host.
pub(crate) fn load() -> Result<Machine, MachineError> {
    load_from(Path::new("/"))
}

fn load_from(root: &Path) -> Result<Machine, MachineError> {
    let sys = Sysfs { root: root.join("sys/devices/system") };
    let cpuinfo = cpuinfo(root);
    let vendor = match Vendor::of(cpu_vendor(&cpuinfo).as_ref()) {
        Vendor::Unknown => Vendor::of_architecture(std::env::consts::ARCH),
        vendor => vendor,
    };
    let mut shape = read_shape(&sys)?;
    read_preferences(&sys, &vendor, &mut shape);
    let model = cpuinfo_field(&cpuinfo, "model name").unwrap_or("unknown CPU model");
    let description = format!("this host: {model}");
    shape.assemble(Identity::borrowing_costs("host", &description, vendor))
}

/// The vendor of the running host; None where the kernel names none, as on arm64.
pub(crate) fn vendor() -> Option<CpuVendor> {
    cpu_vendor(&cpuinfo(Path::new("/")))
}

fn cpuinfo(root: &Path) -> String {
    std::fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default()
}

fn cpu_vendor(cpuinfo: &str) -> Option<CpuVendor> {
    let id = cpuinfo_field(cpuinfo, "vendor_id")?.to_string();
    let family = cpuinfo_field(cpuinfo, "cpu family").and_then(|family| family.parse().ok());
    Some(CpuVendor { id, family: family.unwrap_or(0) })
}

fn cpuinfo_field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let mut named = fields.filter(|(field, _)| field.trim() == name);
    named.next().map(|(_, value)| value.trim())
}

fn read_shape(sys: &Sysfs) -> Result<Shape, MachineError> {
    let online = sys.cpu_list("cpu/online")?;
    let present = sys.cpu_list("cpu/present")? | online;
    let nr_cpus = present.last().map_or(0, |last| last + 1);
    let nodes = read_nodes(sys)?;
    let mut cpus = vec![None; nr_cpus];
    for cpu in online.iter() {
        cpus[cpu] = Some(read_place(sys, cpu, &nodes)?);
    }
    Ok(Shape { cpus, distances: read_distances(sys, &nodes)? })
}

/// The CPUs of each online NUMA node, by node id. A kernel without NUMA support shows no nodes.
fn read_nodes(sys: &Sysfs) -> Result<BTreeMap<u32, CpuSet>, MachineError> {
    if !sys.path("node/online").exists() {
        return Ok(BTreeMap::new());
    }
    let ids = sys.cpu_list("node/online")?;
    let cpus = |id: usize| Ok((id as u32, sys.cpu_list(&format!("node/node{id}/cpulist"))?));
    ids.iter().map(cpus).collect()
}

/// The distance file of a node has one value per online node.
fn read_distances(sys: &Sysfs, nodes: &BTreeMap<u32, CpuSet>) -> Result<Distances, MachineError> {
    let mut distances = Distances::new();
    for from in nodes.keys() {
        let file = format!("node/node{from}/distance");
        let row: Vec<u32> = sys
            .text(&file)?
            .split_whitespace()
            .filter_map(|distance| distance.parse().ok())
            .collect();
        if row.len() != nodes.len() {
            let problem = format!("expected {} distances, one per online node", nodes.len());
            return Err(sys.error(&file, problem));
        }
        let cells = nodes.keys().zip(row);
        distances.extend(cells.map(|(to, distance)| ((*from, *to), distance)));
    }
    Ok(distances)
}

fn read_place(
    sys: &Sysfs,
    cpu: usize,
    nodes: &BTreeMap<u32, CpuSet>,
) -> Result<Place, MachineError> {
    let dir = format!("cpu/cpu{cpu}");
    let core = sys
        .first_cpu(&format!("{dir}/topology/core_cpus_list"))
        .or_else(|| sys.first_cpu(&format!("{dir}/topology/thread_siblings_list")))
        .unwrap_or(cpu as u32);
    let caches = read_caches(sys, &dir);
    let cluster = sys
        .first_cpu(&format!("{dir}/topology/cluster_cpus_list"))
        .or_else(|| caches.get(&2).copied());
    Ok(Place {
        core,
        cluster,
        llc: caches.values().last().copied(),
        cache: None,
        node: node_of(sys, cpu, nodes)?,
        package: sys.number(&format!("{dir}/topology/physical_package_id")).unwrap_or(0),
        capacity: sys
            .number(&format!("{dir}/cpu_capacity"))
            .filter(|capacity| (1..=CAPACITY_SCALE).contains(capacity))
            .unwrap_or(CAPACITY_SCALE),
        speed: None,
        priority: None,
    })
}

fn node_of(sys: &Sysfs, cpu: usize, nodes: &BTreeMap<u32, CpuSet>) -> Result<u32, MachineError> {
    let node = nodes.iter().find(|(_, cpus)| cpus.contains(cpu));
    match node {
        Some((id, _)) => Ok(*id),
        None if nodes.is_empty() => Ok(0),
        None => {
            let problem = format!("no node's cpulist has CPU {cpu}, which is online");
            Err(sys.error("node", problem))
        }
    }
}

/// The order of cores that the kernel hands to the scheduler, if it makes one: on Intel the highest
/// performance that the firmware states for a core, where those differ (ITMT), on AMD the rank that
/// amd-pstate reads, where it prefers cores at all.
fn read_preferences(sys: &Sysfs, vendor: &Vendor, shape: &mut Shape) {
    let file = match vendor {
        Vendor::Intel => "acpi_cppc/highest_perf",
        Vendor::Amd { .. } if sys.says("cpu/amd_pstate/prefcore", "enabled") => {
            "cpufreq/amd_pstate_prefcore_ranking"
        }
        _ => return,
    };
    let preference = |cpu: usize| sys.number(&format!("cpu/cpu{cpu}/{file}"));
    let online = |(cpu, place): (usize, &Option<Place>)| place.is_some().then_some(cpu);
    let online: Vec<usize> = shape.cpus.iter().enumerate().filter_map(online).collect();
    let all: Option<Vec<u32>> = online.iter().map(|cpu| preference(*cpu)).collect();
    let Some(all) = all.filter(|all| all.iter().any(|other| *other != all[0])) else { return };
    for (cpu, preference) in online.into_iter().zip(all) {
        let priority = i32::try_from(preference).ok();
        shape.cpus[cpu].iter_mut().for_each(|place| place.priority = priority);
    }
}

/// For each cache level, the first CPU of those that share the CPU's cache.
fn read_caches(sys: &Sysfs, cpu_dir: &str) -> BTreeMap<u32, u32> {
    let mut caches = BTreeMap::new();
    for index in 0.. {
        let dir = format!("{cpu_dir}/cache/index{index}");
        let Some(level) = sys.number(&format!("{dir}/level")) else {
            break;
        };
        if let Some(first) = sys.first_cpu(&format!("{dir}/shared_cpu_list")) {
            caches.insert(level, first);
        }
    }
    caches
}

/// `/sys/devices/system`, or a copy of it.
struct Sysfs {
    root: PathBuf,
}

impl Sysfs {
    fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    fn error(&self, file: &str, problem: impl Into<String>) -> MachineError {
        MachineError::new(self.path(file).display().to_string(), problem)
    }

    fn text(&self, file: &str) -> Result<String, MachineError> {
        std::fs::read_to_string(self.path(file))
            .map_err(|error| self.error(file, format!("cannot be read: {error}")))
    }

    fn cpu_list(&self, file: &str) -> Result<CpuSet, MachineError> {
        let path = self.path(file).display().to_string();
        CpuSet::parse_list(&self.text(file)?).map_err(|error| error.within(&path))
    }

    /// The first CPU of a list names the object that its CPUs share. None if the kernel does not
    /// say: which of these files exist depends on its version and on the hardware.
    fn first_cpu(&self, file: &str) -> Option<u32> {
        let list = self.cpu_list(file).ok()?;
        list.first().map(|cpu| cpu as u32)
    }

    fn says(&self, file: &str, word: &str) -> bool {
        self.text(file).is_ok_and(|text| text.trim() == word)
    }

    fn number(&self, file: &str) -> Option<u32> {
        self.text(file).ok()?.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy of the sysfs files of a machine of two packages of two SMT2 cores, numbered apart.
    struct Host {
        dir: tempfile::TempDir,
    }

    impl Host {
        fn new() -> Self {
            let host = Self { dir: tempfile::tempdir().unwrap() };
            host.write(
                "proc/cpuinfo",
                "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel name\t: EPYC\n",
            );
            host.sys("cpu/online", "0-7");
            host.sys("cpu/present", "0-7");
            host.sys("node/online", "0-1");
            for (node, cpus, row) in [(0, "0-1,4-5", "10 32"), (1, "2-3,6-7", "32 10")] {
                host.sys(&format!("node/node{node}/cpulist"), cpus);
                host.sys(&format!("node/node{node}/distance"), row);
            }
            for cpu in 0..8 {
                let (core, package) = (cpu % 4, cpu % 4 / 2);
                let siblings = format!("{core},{}", core + 4);
                let socket = ["0-1,4-5", "2-3,6-7"][package];
                host.cpu(cpu, "topology/core_cpus_list", &siblings);
                host.cpu(cpu, "topology/physical_package_id", &package.to_string());
                host.cache(cpu, 0, 1, &siblings);
                host.cache(cpu, 1, 2, &siblings);
                host.cache(cpu, 2, 3, socket);
            }
            host
        }

        fn write(&self, file: &str, text: &str) {
            let path = self.dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn sys(&self, file: &str, text: &str) {
            self.write(&format!("sys/devices/system/{file}"), &format!("{text}\n"));
        }

        fn cpu(&self, cpu: usize, file: &str, text: &str) {
            self.sys(&format!("cpu/cpu{cpu}/{file}"), text);
        }

        fn cache(&self, cpu: usize, index: usize, level: u32, shared: &str) {
            let dir = format!("cache/index{index}");
            self.cpu(cpu, &format!("{dir}/level"), &level.to_string());
            self.cpu(cpu, &format!("{dir}/shared_cpu_list"), shared);
        }

        fn remove(&self, dir: &str) {
            std::fs::remove_dir_all(self.dir.path().join("sys/devices/system").join(dir)).unwrap();
        }

        fn load(&self) -> Result<Machine, MachineError> {
            load_from(self.dir.path())
        }
    }

    fn ids(machine: &Machine, id: impl Fn(&crate::machine::Cpu) -> u16) -> Vec<u16> {
        machine.cpus.iter().map(id).collect()
    }

    #[test]
    fn shape_and_vendor() {
        let machine = Host::new().load().unwrap();
        assert_eq!(ids(&machine, |cpu| cpu.core), [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(ids(&machine, |cpu| cpu.llc), [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(ids(&machine, |cpu| cpu.node), [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(machine.node_distances, [[10, 32], [32, 10]]);
        assert_eq!(machine.node_reclaim_distance, 32);
        assert!(machine.description.contains("costs of zen3-2s-nps1"));
    }

    #[test]
    fn offline_cpus_are_left_out() {
        let host = Host::new();
        host.sys("cpu/online", "0-6");
        host.remove("cpu/cpu7");
        let machine = host.load().unwrap();
        assert_eq!(machine.cpus.len(), 8);
        assert_eq!(machine.online().to_string(), "0-6");
    }

    #[test]
    fn a_cpu_without_cache_information_shares_only_its_core() {
        let host = Host::new();
        (0..8).for_each(|cpu| host.remove(&format!("cpu/cpu{cpu}/cache")));
        assert_eq!(ids(&host.load().unwrap(), |cpu| cpu.llc), [0, 1, 2, 3, 0, 1, 2, 3]);
    }

    #[test]
    fn a_memory_only_node_is_dropped() {
        let host = Host::new();
        host.sys("node/online", "0-2");
        for (node, cpus, row) in
            [(0, "0-1,4-5", "10 17 32"), (1, "", "17 10 17"), (2, "2-3,6-7", "32 17 10")]
        {
            host.sys(&format!("node/node{node}/cpulist"), cpus);
            host.sys(&format!("node/node{node}/distance"), row);
        }
        let machine = host.load().unwrap();
        assert_eq!(machine.node_distances, [[10, 32], [32, 10]]);
        assert_eq!(machine.cpus[2].node, 1);
    }

    #[test]
    fn a_cpu_in_no_node_is_refused() {
        let host = Host::new();
        host.sys("node/node1/cpulist", "2-3,6");
        let message = host.load().unwrap_err().to_string();
        assert!(message.contains("no node's cpulist has CPU 7"), "{message}");
    }

    #[test]
    fn capacities_are_read() {
        let host = Host::new();
        host.cpu(1, "cpu_capacity", "446");
        let machine = host.load().unwrap();
        assert_eq!((machine.cpus[0].capacity, machine.cpus[1].capacity), (1024, 446));
    }

    #[test]
    fn preferences_are_read_where_the_kernel_uses_them() {
        let host = Host::new();
        let priorities =
            || -> Vec<i32> { host.load().unwrap().cpus.iter().map(|cpu| cpu.priority).collect() };
        let none: Vec<i32> = (0..8).map(|id| -id).collect();
        for cpu in 0..8 {
            host.cpu(cpu, "acpi_cppc/highest_perf", "66");
            host.cpu(cpu, "cpufreq/amd_pstate_prefcore_ranking", &(200 + cpu).to_string());
        }
        assert_eq!(priorities(), none, "amd-pstate is not told to prefer cores");
        host.sys("cpu/amd_pstate/prefcore", "enabled");
        assert_eq!(priorities(), [200, 201, 202, 203, 204, 205, 206, 207]);
        host.write("proc/cpuinfo", "vendor_id : GenuineIntel\n");
        assert_eq!(priorities(), none, "all cores are alike");
        host.cpu(7, "acpi_cppc/highest_perf", "39");
        assert_eq!(priorities(), [66, 66, 66, 66, 66, 66, 66, 39]);
    }

    #[test]
    fn an_l3_over_two_nodes_is_cut() {
        let host = Host::new();
        for cpu in 0..8 {
            host.cpu(cpu, "topology/physical_package_id", "0");
            host.cache(cpu, 2, 3, "0-7");
        }
        assert_eq!(host.load().unwrap().nr_llcs(), 2);
        host.write("proc/cpuinfo", "vendor_id : GenuineIntel\n");
        assert_eq!(host.load().unwrap().nr_llcs(), 2);
    }

    #[test]
    fn a_short_distance_row_is_named() {
        let host = Host::new();
        host.sys("node/node1/distance", "32");
        let message = host.load().unwrap_err().to_string();
        assert!(message.contains("node1/distance: expected 2 distances"), "{message}");
    }
}
