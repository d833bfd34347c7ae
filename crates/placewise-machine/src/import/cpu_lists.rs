//! A shape as lists of CPUs: those of each package, NUMA node, LLC, cluster and core. It says of any
//! machine what it is like, however its CPUs are numbered.

use serde::{Deserialize, Serialize};

use super::shape::{CAPACITY_SCALE, Distances, Place, Shape};
use crate::cpuset::CpuSet;
use crate::error::MachineError;
use crate::machine::{Cpu, Machine};

/// `[shape]` of a machine file. A CPU that is in no core is offline.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CpuLists {
    packages: Vec<String>,
    nodes: Vec<String>,
    llcs: Vec<String>,
    /// Of the hardware, where they are more than one LLC of the domains. None: the LLCs.
    #[serde(skip_serializing_if = "Option::is_none")]
    caches: Option<Vec<String>>,
    /// None: every core is a cluster of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    clusters: Option<Vec<String>>,
    cores: Vec<String>,
}

impl CpuLists {
    pub(crate) fn of(machine: &Machine) -> Self {
        let cores = lists(machine, |cpu| cpu.core);
        let clusters = lists(machine, |cpu| cpu.cluster);
        let llcs = lists(machine, |cpu| cpu.llc);
        let caches = lists(machine, |cpu| cpu.cache);
        Self {
            packages: lists(machine, |cpu| cpu.package),
            nodes: lists(machine, |cpu| cpu.node),
            caches: (caches != llcs).then_some(caches),
            llcs,
            clusters: (clusters != cores).then_some(clusters),
            cores,
        }
    }

    pub(crate) fn nr_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Without distances.
    pub(crate) fn shape(&self) -> Result<Shape, MachineError> {
        let cores = Numbered::read("cores", &self.cores)?;
        let packages = Numbered::read("packages", &self.packages)?;
        let nodes = Numbered::read("nodes", &self.nodes)?;
        let llcs = Numbered::read("llcs", &self.llcs)?;
        let clusters = self.clusters.as_ref().map(|lists| Numbered::read("clusters", lists));
        let clusters = clusters.transpose()?;
        let caches =
            self.caches.as_ref().map(|lists| Numbered::read("caches", lists)).transpose()?;
        let mut cpus = vec![None; cores.of_cpu.len()];
        for (cpu, place) in cpus.iter_mut().enumerate() {
            let Some(core) = cores.of_cpu[cpu] else { continue };
            *place = Some(Place {
                core,
                cluster: clusters.as_ref().map(|clusters| clusters.of(cpu)).transpose()?,
                llc: Some(llcs.of(cpu)?),
                cache: caches.as_ref().map(|caches| caches.of(cpu)).transpose()?,
                node: nodes.of(cpu)?,
                package: packages.of(cpu)?,
                capacity: CAPACITY_SCALE,
                speed: None,
                priority: None,
            });
        }
        Ok(Shape { cpus, distances: Distances::new() })
    }
}

/// The CPUs of each object, in the order of the objects' numbers, which are dense.
fn lists(machine: &Machine, object: impl Fn(&Cpu) -> u16) -> Vec<String> {
    let cpus = |number| machine.cpus_where(|cpu| object(cpu) == number);
    (0..).map(cpus).take_while(|cpus| !cpus.is_empty()).map(|cpus| cpus.to_string()).collect()
}

/// The objects of one kind, numbered as they are listed.
struct Numbered {
    kind: &'static str,
    of_cpu: Vec<Option<u32>>,
}

impl Numbered {
    fn read(kind: &'static str, lists: &[String]) -> Result<Self, MachineError> {
        let place = || format!("[shape] {kind}");
        let mut of_cpu = Vec::new();
        for (number, list) in (0..).zip(lists) {
            let cpus = CpuSet::parse_list(list).map_err(|error| error.within(&place()))?;
            for cpu in cpus.iter() {
                of_cpu.resize(of_cpu.len().max(cpu + 1), None);
                if of_cpu[cpu].replace(number).is_some() {
                    let problem = format!("names CPU {cpu} twice, must name each CPU once");
                    return Err(MachineError::new(place(), problem));
                }
            }
        }
        Ok(Self { kind, of_cpu })
    }

    fn of(&self, cpu: usize) -> Result<u32, MachineError> {
        let number = self.of_cpu.get(cpu).copied().flatten();
        number.ok_or_else(|| {
            let problem = format!("CPU {cpu} is in none, must be in one as it is in a core");
            MachineError::new(format!("[shape] {}", self.kind), problem)
        })
    }
}
