//! What a figure is between two CPUs, worked out before any event asks.

use placewise_machine::{ByDistance, Machine, Place};
use placewise_policy::CpuId;

/// Numbers of distances: none for a CPU itself, then as in [`figures`].
const KINDS: ByDistance = ByDistance { smt: 1, cluster: Some(2), llc: 3, package: 4, remote: 5 };

/// A figure by the number of a distance.
#[derive(Clone, Copy)]
pub struct Figures([u64; 6]);

impl Figures {
    pub fn new(figures: &ByDistance) -> Self {
        let ByDistance { smt, cluster, llc, package, remote } = *figures;
        Figures([0, smt, cluster.unwrap_or(llc), llc, package, remote])
    }
}

/// How far CPUs are from each other: a row for each CPU, with a place for each.
pub struct Distances {
    kinds: Vec<u8>,
    /// Of a row, as a power of 2.
    length: u32,
}

impl Distances {
    pub fn new(machine: &Machine) -> Self {
        let places: Vec<Place> = machine.places().collect();
        let row = places.len().next_power_of_two();
        let mut kinds = vec![0; places.len() * row];
        for (&here, row) in places.iter().zip(kinds.chunks_exact_mut(row)) {
            for (&there, kind) in places.iter().zip(row) {
                *kind = KINDS.between(here, there) as u8;
            }
        }
        Distances { kinds, length: row.ilog2() }
    }

    #[inline]
    pub fn figure(&self, figures: &Figures, here: CpuId, there: CpuId) -> u64 {
        let kind = self.kinds[usize::from(here) << self.length | usize::from(there)];
        figures.0[usize::from(kind)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines cross the split of an LLC as they cross the cache that it is in.
    #[test]
    fn distances_are_those_of_the_hardware() {
        let distance = |machine: &str, cluster: Option<u64>, cpu: u32| {
            let distances = Distances::new(&placewise_machine::load(machine).unwrap());
            let figures = ByDistance { smt: 1, cluster, llc: 2, package: 3, remote: 4 };
            distances.figure(&Figures::new(&figures), CpuId::new(0), CpuId::new(cpu))
        };
        let split = [0, 112, 13, 14, 56].map(|cpu| distance("spr-2s-224-llcsplit4", None, cpu));
        assert_eq!(split, [0, 1, 2, 2, 4]);
        assert_eq!([7, 8].map(|cpu| distance("zen3-2s-nps1", None, cpu)), [2, 3]);
        let clusters = |cluster| [3, 4, 32].map(|cpu| distance("kunpeng920", cluster, cpu));
        assert_eq!(clusters(Some(9)), [9, 2, 3]);
        assert_eq!(clusters(None), [2, 2, 3]);
    }
}
