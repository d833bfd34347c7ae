//! Which CPUs share a last-level cache, as sysfs says.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Context;
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

fn cpu_set<'a>(cpus: impl Iterator<Item = &'a usize>) -> CpuSet {
    let mut set = CpuSet::new();
    cpus.for_each(|&cpu| set.set(cpu));
    set
}
