//! What a figure is between two CPUs, worked out before any event asks.

use placewise_machine::{ByDistance, Machine, Place};
use placewise_policy::{CpuId, PerCpu};

/// How far one CPU is from another.
#[derive(Clone, Copy, Default)]
#[repr(u8)]
enum Kind {
    #[default]
    Itself,
    Smt,
    Cluster,
    Llc,
    Package,
    Remote,
}

impl Kind {
    const ALL: [Kind; 6] =
        [Kind::Itself, Kind::Smt, Kind::Cluster, Kind::Llc, Kind::Package, Kind::Remote];

    fn between(here: Place, there: Place) -> Self {
        /// Their places in [`Kind::ALL`].
        const KINDS: ByDistance =
            ByDistance { smt: 1, cluster: Some(2), llc: 3, package: 4, remote: 5 };
        Self::ALL[KINDS.between(here, there) as usize]
    }
}

/// A figure by [`Kind`].
#[derive(Clone, Copy)]
pub struct Figures([u64; Kind::ALL.len()]);

impl Figures {
    pub fn new(figures: &ByDistance) -> Self {
        let ByDistance { smt, cluster, llc, package, remote } = *figures;
        Figures([0, smt, cluster.unwrap_or(llc), llc, package, remote])
    }
}

/// How far CPUs are from each other.
pub struct Distances {
    rows: PerCpu<PerCpu<Kind>>,
}

/// How far all CPUs are from one.
#[derive(Clone, Copy)]
pub struct DistancesFrom<'a>(&'a PerCpu<Kind>);

impl Distances {
    pub fn new(machine: &Machine) -> Self {
        let places: Vec<Place> = machine.places().collect();
        let row = |&here| places.iter().map(|&there| Kind::between(here, there)).collect();
        Distances { rows: places.iter().map(row).collect() }
    }

    #[inline(always)]
    pub fn from(&self, here: CpuId) -> DistancesFrom<'_> {
        DistancesFrom(&self.rows[here])
    }

    #[inline(always)]
    pub fn figure(&self, figures: &Figures, here: CpuId, there: CpuId) -> u64 {
        self.from(here).figure(figures, there)
    }
}

impl DistancesFrom<'_> {
    #[inline(always)]
    pub fn figure(self, figures: &Figures, there: CpuId) -> u64 {
        figures.0[self.0[there] as usize]
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
