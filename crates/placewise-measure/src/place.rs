//! Where things are measured: one CPU that all is measured from, and one at each distance from it.

use std::io;

use placewise_machine::Machine;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::quantity::Distance;

/// CPUs of the host that this process may run on.
pub struct Places {
    pub home: usize,
    pub partners: Vec<(Distance, usize)>,
    /// The first CPU of each core of the home's node, those of each LLC in turn.
    pub cores: Vec<usize>,
    /// The first CPU of each core of the home's LLC.
    pub llc_cores: Vec<usize>,
    /// The nearest CPU of another node in the package, and in another package.
    pub other_nodes: Vec<(Distance, usize)>,
}

impl Places {
    pub fn of(machine: &Machine) -> io::Result<Self> {
        let allowed = sched_getaffinity(None)?;
        let is_ours = |cpu: &usize| *cpu < CpuSet::MAX_CPU && allowed.is_set(*cpu);
        let cpus: Vec<usize> = machine.online().iter().filter(is_ours).collect();
        let none = || io::Error::other("this process may run on no CPU of the machine");
        Ok(Self::among(machine, &cpus, *cpus.first().ok_or_else(none)?))
    }

    /// `cpus` ascend.
    fn among(machine: &Machine, cpus: &[usize], home: usize) -> Self {
        let distance = |cpu: usize| distance(machine, home, cpu);
        let at = |wanted| cpus.iter().copied().find(|&cpu| distance(cpu) == Some(wanted));
        let node = |cpu: usize| machine.cpus[cpu].node;
        let other_node = |wanted: Distance| {
            let is_there = |cpu: &usize| node(*cpu) != node(home) && distance(*cpu) == Some(wanted);
            cpus.iter().copied().find(is_there).map(|cpu| (wanted, cpu))
        };
        let cores = first_of_cores(machine, cpus, |cpu| node(cpu) == node(home));
        let llc = machine.cpus[home].llc;
        Self {
            home,
            partners: Distance::ALL.into_iter().filter_map(|it| Some((it, at(it)?))).collect(),
            llc_cores: first_of_cores(machine, cpus, |cpu| machine.cpus[cpu].llc == llc),
            cores: llcs_in_turn(machine, cores),
            other_nodes: [Distance::Package, Distance::Remote]
                .into_iter()
                .filter_map(other_node)
                .collect(),
        }
    }

    pub fn nearest(&self) -> Option<(Distance, usize)> {
        let no_sibling = self.partners.iter().find(|(distance, _)| *distance != Distance::Smt);
        no_sibling.or(self.partners.first()).copied()
    }
}

/// None for a CPU itself.
fn distance(machine: &Machine, from: usize, to: usize) -> Option<Distance> {
    let (here, there) = (&machine.cpus[from], &machine.cpus[to]);
    let has_clusters = || {
        let mut cpus = machine.cpus.iter().filter(|it| it.online);
        cpus.any(|it| it.llc == here.llc && it.cluster != here.cluster)
    };
    if from == to {
        None
    } else if here.core == there.core {
        Some(Distance::Smt)
    } else if here.cluster == there.cluster && has_clusters() {
        Some(Distance::Cluster)
    } else if here.llc == there.llc {
        Some(Distance::Llc)
    } else if here.package == there.package {
        Some(Distance::Package)
    } else {
        Some(Distance::Remote)
    }
}

fn first_of_cores(machine: &Machine, cpus: &[usize], wanted: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut seen = Vec::new();
    let mut is_first = |cpu: &usize| {
        let core = machine.cpus[*cpu].core;
        let is_first = !seen.contains(&core);
        seen.push(core);
        is_first
    };
    cpus.iter().copied().filter(|cpu| wanted(*cpu) && is_first(cpu)).collect()
}

fn llcs_in_turn(machine: &Machine, mut cpus: Vec<usize>) -> Vec<usize> {
    let llc = |cpu: usize| machine.cpus[cpu].llc;
    let before = |cpu: usize| cpus.iter().filter(|&&it| it < cpu && llc(it) == llc(cpu)).count();
    let mut order: Vec<(usize, u16, usize)> =
        cpus.iter().map(|&cpu| (before(cpu), llc(cpu), cpu)).collect();
    order.sort_unstable();
    cpus = order.into_iter().map(|(_, _, cpu)| cpu).collect();
    cpus
}

/// The calling thread runs on `cpu` only from now on.
pub fn stay_on(cpu: usize) -> io::Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    Ok(sched_setaffinity(None, &cpus)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partner_at_each_distance_and_streams_that_spread_over_the_llcs() {
        let machine = placewise_machine::load("zen3-2s-nps4").unwrap();
        let cpus: Vec<usize> = machine.online().iter().collect();
        let places = Places::among(&machine, &cpus, 0);
        let partners: Vec<_> = places.partners.iter().map(|(it, cpu)| (it.name(), *cpu)).collect();
        assert_eq!(partners, [("smt", 128), ("llc", 1), ("package", 8), ("remote", 64)]);
        assert_eq!(places.cores[..4], [0, 8, 1, 9]);
        assert_eq!((places.cores.len(), places.llc_cores.len()), (16, 8));
        assert_eq!(places.other_nodes, [(Distance::Package, 16), (Distance::Remote, 64)]);
    }

    #[test]
    fn a_core_of_the_cluster_is_nearer_than_one_of_the_llc() {
        let machine = placewise_machine::load("kunpeng920").unwrap();
        let places = Places::among(&machine, &[0, 1, 4, 64], 0);
        let [cluster, llc, remote] = [Distance::Cluster, Distance::Llc, Distance::Remote];
        assert_eq!(places.partners, [(cluster, 1), (llc, 4), (remote, 64)]);
        let all_of_llc = placewise_machine::load("arm64-8").unwrap();
        assert_eq!(Places::among(&all_of_llc, &[0, 1], 0).partners, [(llc, 1)]);
    }

    #[test]
    fn cpus_that_are_not_ours_are_no_partners() {
        let machine = placewise_machine::load("zen3-2s-nps1").unwrap();
        let places = Places::among(&machine, &[3, 4], 3);
        assert_eq!(places.partners, [(Distance::Llc, 4)]);
    }
}
