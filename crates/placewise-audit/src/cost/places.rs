//! In which LLC and node CPUs are, and which idle CPU is nearest to one.
//!
//! The LLC comes before the NUMA node, and the node before the rest of the
//! machine; a [`Machine`] has no LLC over several nodes.

use std::ops::{Index, IndexMut};

use placewise_machine::{Cpu, Machine};
use placewise_policy::NR_CPUS;
use serde::Serialize;

/// A set of CPUs, as the policy's state has it.
pub type Mask = [u64; NR_CPUS as usize / 64];

/// Where the nearest idle CPU is that a task could have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Nearest {
    /// In the LLC of the CPU that the task waits on.
    SameLlc,
    /// In its NUMA node, but in none of its LLC.
    SameNode,
    /// In no nearer place than another node.
    OtherNode,
}

/// One value for each place of the nearest idle CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ByNearest<T> {
    pub same_llc: T,
    pub same_node: T,
    pub other_node: T,
}

impl ByNearest<u64> {
    pub fn total(&self) -> u64 {
        self.same_llc + self.same_node + self.other_node
    }
}

impl<T> Index<Nearest> for ByNearest<T> {
    type Output = T;

    fn index(&self, nearest: Nearest) -> &T {
        match nearest {
            Nearest::SameLlc => &self.same_llc,
            Nearest::SameNode => &self.same_node,
            Nearest::OtherNode => &self.other_node,
        }
    }
}

impl<T> IndexMut<Nearest> for ByNearest<T> {
    fn index_mut(&mut self, nearest: Nearest) -> &mut T {
        match nearest {
            Nearest::SameLlc => &mut self.same_llc,
            Nearest::SameNode => &mut self.same_node,
            Nearest::OtherNode => &mut self.other_node,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub llc: u16,
    pub node: u16,
}

/// Where each CPU of a machine is.
pub struct Places {
    cpus: Vec<Place>,
    llcs: Vec<Mask>,
    nodes: Vec<Mask>,
    pub online: Mask,
    pub nr_online: u16,
}

impl Places {
    pub fn new(machine: &Machine) -> Self {
        // Nothing should run on an offline CPU, but a trace may say so.
        let place = |cpu: &Cpu| match cpu.online {
            true => Place { llc: cpu.llc, node: cpu.node },
            false => Place { llc: 0, node: 0 },
        };
        let online = machine.online();
        Places {
            cpus: machine.cpus.iter().map(place).collect(),
            llcs: masks(machine, machine.nr_llcs(), |cpu| cpu.llc),
            nodes: masks(machine, machine.nr_nodes(), |cpu| cpu.node),
            online: *online.words(),
            nr_online: online.len() as u16,
        }
    }

    pub fn of(&self, cpu: u32) -> Place {
        self.cpus[cpu as usize]
    }

    pub fn nr_cpus(&self) -> usize {
        self.cpus.len()
    }

    /// The words of a mask that may hold a CPU.
    pub fn nr_words(&self) -> usize {
        self.nr_cpus().div_ceil(64)
    }

    pub fn nr_llcs(&self) -> usize {
        self.llcs.len()
    }

    pub fn nr_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Where, seen from `cpu`, the nearest CPU is that is in both masks.
    pub fn nearest(&self, cpu: u32, idle: &Mask, allowed: &Mask) -> Option<Nearest> {
        let words = 0..self.nr_words();
        let within = |cpus: &Mask| words.clone().any(|at| idle[at] & allowed[at] & cpus[at] != 0);
        let place = self.of(cpu);
        if within(&self.llcs[usize::from(place.llc)]) {
            Some(Nearest::SameLlc)
        } else if within(&self.nodes[usize::from(place.node)]) {
            Some(Nearest::SameNode)
        } else {
            within(&self.online).then_some(Nearest::OtherNode)
        }
    }
}

/// The CPUs of each of the `count` places that `id` numbers.
fn masks(machine: &Machine, count: usize, id: impl Fn(&Cpu) -> u16) -> Vec<Mask> {
    let mask = |place| *machine.cpus_where(|cpu| usize::from(id(cpu)) == place).words();
    (0..count).map(mask).collect()
}

/// The CPUs of a word of a mask.
pub fn cpus_of(word: usize, mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (bits != 0).then(|| bits.trailing_zeros())?;
        bits &= bits - 1;
        Some(word as u32 * 64 + bit)
    })
}

pub fn contains(mask: &Mask, cpu: u32) -> bool {
    mask[cpu as usize / 64] >> (cpu % 64) & 1 != 0
}
