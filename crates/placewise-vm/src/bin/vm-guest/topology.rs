//! Which CPUs share a core, a last-level cache and a node, as sysfs says.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, ensure};
use rustix::thread::CpuSet;

/// The LLC of each CPU, named by the first of its CPUs.
pub struct Topology(BTreeMap<usize, usize>);

impl Topology {
    pub fn of_guest() -> anyhow::Result<Self> {
        let cpus = rustix::thread::sched_getaffinity(None).context("sched_getaffinity")?;
        let llcs = (0..CpuSet::MAX_CPU).filter(|&cpu| cpus.is_set(cpu)).map(|cpu| {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list");
            let list = fs::read_to_string(&path).context(path)?;
            let digits = list.split(['-', ',']).next().unwrap_or_default().trim();
            Ok((cpu, digits.parse().with_context(|| format!("a list of CPUs: {list}"))?))
        });
        Ok(Self(llcs.collect::<anyhow::Result<_>>()?))
    }

    pub fn llc(&self, cpu: usize) -> usize {
        self.0.get(&cpu).copied().unwrap_or(cpu)
    }

    pub fn first_llc(&self) -> usize {
        self.0.values().copied().min().unwrap_or_default()
    }

    pub fn last_llc(&self) -> usize {
        self.0.values().copied().max().unwrap_or_default()
    }

    pub fn cpus(&self) -> CpuSet {
        cpu_set(self.0.keys())
    }

    pub fn cpus_of(&self, llc: usize) -> CpuSet {
        cpu_set(self.0.iter().filter(|(_, its)| **its == llc).map(|(cpu, _)| cpu))
    }
}

/// How far from a CPU another one is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distance {
    Smt,
    Llc,
    Node,
    OtherNode,
}

impl Distance {
    pub fn name(self) -> &'static str {
        match self {
            Self::Smt => "smt",
            Self::Llc => "llc",
            Self::Node => "node",
            Self::OtherNode => "other_node",
        }
    }
}

/// The CPUs within each distance of each CPU but the last, by CPU.
pub struct Distances(BTreeMap<usize, [(Distance, CpuSet); 3]>);

impl Distances {
    pub fn of_guest() -> anyhow::Result<Self> {
        let nodes = nodes()?;
        // Also those on which this program may not run.
        let online = "/sys/devices/system/cpu/online";
        let online = cpu_list(&fs::read_to_string(online).context(online)?)?;
        let of_cpu = |cpu: usize| {
            let sysfs = format!("/sys/devices/system/cpu/cpu{cpu}");
            let list = |file: &str| -> anyhow::Result<CpuSet> {
                let path = format!("{sysfs}/{file}");
                cpu_list(&fs::read_to_string(&path).context(path)?)
            };
            let node = nodes.iter().find(|node| node.is_set(cpu)).copied();
            let sets = [
                (Distance::Smt, list("topology/thread_siblings_list")?),
                (Distance::Llc, list("cache/index3/shared_cpu_list")?),
                (Distance::Node, node.with_context(|| format!("CPU {cpu} is in no node"))?),
            ];
            Ok((cpu, sets))
        };
        let all = (0..CpuSet::MAX_CPU).filter(|&cpu| online.is_set(cpu));
        Ok(Self(all.map(of_cpu).collect::<anyhow::Result<_>>()?))
    }

    /// The first CPU at each distance from `cpu` at which there is one.
    pub fn nearest(&self, cpu: usize) -> Vec<(Distance, usize)> {
        let Some(sets) = self.0.get(&cpu) else { return Vec::new() };
        let distance = |other: usize| {
            let set = sets.iter().find(|(_, set)| set.is_set(other));
            set.map_or(Distance::OtherNode, |(distance, _)| *distance)
        };
        let mut found: Vec<(Distance, usize)> = Vec::new();
        for &other in self.0.keys().filter(|&&other| other != cpu) {
            if found.iter().all(|(known, _)| *known != distance(other)) {
                found.push((distance(other), other));
            }
        }
        found
    }

    #[cfg(test)]
    pub fn of(cpu: usize, lists: [&str; 3]) -> Self {
        let [smt, llc, node] = lists.map(|list| cpu_list(list).unwrap());
        let sets = [(Distance::Smt, smt), (Distance::Llc, llc), (Distance::Node, node)];
        Self([(cpu, sets)].into())
    }

    /// How far a domain of `cpu` reaches whose CPUs are `mask`, as the kernel prints it.
    pub fn of_span(&self, cpu: usize, mask: &str) -> anyhow::Result<Distance> {
        let span = mask_cpus(mask)?;
        let sets = self.0.get(&cpu).with_context(|| format!("CPU {cpu} is not online"))?;
        let within = |set: &CpuSet| span.iter().all(|&cpu| set.is_set(cpu));
        let found = sets.iter().find(|(_, set)| within(set));
        Ok(found.map_or(Distance::OtherNode, |(distance, _)| *distance))
    }
}

fn nodes() -> anyhow::Result<Vec<CpuSet>> {
    let directory = "/sys/devices/system/node";
    let mut nodes = Vec::new();
    for entry in fs::read_dir(directory).context(directory)? {
        let path = entry.context(directory)?.path().join("cpulist");
        if path.exists() {
            nodes.push(cpu_list(&fs::read_to_string(&path).context("cpulist")?)?);
        }
    }
    Ok(nodes)
}

/// A list such as 0-3,8.
pub fn cpu_list(list: &str) -> anyhow::Result<CpuSet> {
    let mut set = CpuSet::new();
    for range in list.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |digits: &str| -> anyhow::Result<usize> {
            let cpu = digits.parse().with_context(|| format!("no list of CPUs: {list}"))?;
            ensure!(cpu < CpuSet::MAX_CPU, "no CPU {cpu}: {list}");
            Ok(cpu)
        };
        (number(first)?..=number(last)?).for_each(|cpu| set.set(cpu));
    }
    Ok(set)
}

/// The CPUs of a mask of hexadecimal digits, with commas between each eight.
fn mask_cpus(mask: &str) -> anyhow::Result<Vec<usize>> {
    let mut cpus = Vec::new();
    for (place, digit) in mask.chars().rev().filter(|&digit| digit != ',').enumerate() {
        let bits = digit.to_digit(16).with_context(|| format!("no mask of CPUs: {mask}"))?;
        cpus.extend((0..4).filter(|bit| bits >> bit & 1 == 1).map(|bit| place * 4 + bit));
    }
    Ok(cpus)
}

fn cpu_set<'a>(cpus: impl Iterator<Item = &'a usize>) -> CpuSet {
    let mut set = CpuSet::new();
    cpus.for_each(|&cpu| set.set(cpu));
    set
}
