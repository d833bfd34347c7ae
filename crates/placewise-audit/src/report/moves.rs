//! How far tasks go, by what moved them and by their name.
//!
//! Placements count staying included. Limit: a move for another reason (NUMA balancing, a changed
//! affinity, a CPU that goes offline) looks like one of the load balancer.

use placewise_policy::Distance;
use serde::{Serialize, Serializer};

use crate::steps::by_name::ByName;
use crate::steps::task::{NameId, Tasks};
use crate::verdict::Kind;

/// Counts by [`Distance`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByDistance([u64; Distance::ALL.len()]);

impl Serialize for ByDistance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Distance::ALL.map(|distance| (distance.word(), self.at(distance))))
    }
}

impl ByDistance {
    pub fn add(&mut self, distance: Distance) {
        self.0[distance as usize] += 1;
    }

    pub fn at(&self, distance: Distance) -> u64 {
        self.0[distance as usize]
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// To another LLC, of the same node or another.
    pub fn left_llc(&self) -> u64 {
        self.at(Distance::OtherLlc) + self.at(Distance::OtherNode)
    }
}

/// From the previous CPU to the kernel's choice; of a fork from the parent's CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    pub wakeups: ByDistance,
    pub forks: ByDistance,
    /// By the load balancer.
    pub balance: ByDistance,
}

impl Moves {
    pub fn placed(&mut self, kind: Kind, distance: Distance) {
        match kind {
            Kind::Wakeup => self.wakeups.add(distance),
            Kind::Fork => self.forks.add(distance),
        }
    }

    pub fn total(&self) -> u64 {
        self.wakeups.total() + self.forks.total() + self.balance.total()
    }
}

/// All placements of a trace.
#[derive(Default)]
pub struct Placements {
    pub overall: Moves,
    by_name: ByName<Moves>,
}

impl Placements {
    pub fn placed(&mut self, kind: Kind, distance: Distance, name: NameId) {
        for moves in [&mut self.overall, self.by_name.of(name)] {
            moves.placed(kind, distance);
        }
    }

    pub fn balanced(&mut self, distance: Distance, name: NameId) {
        for moves in [&mut self.overall, self.by_name.of(name)] {
            moves.balance.add(distance);
        }
    }

    /// The names that were placed, most often first.
    pub fn by_name(&self, tasks: &Tasks) -> Vec<(String, Moves)> {
        let named = self.by_name.most_first(tasks, Moves::total);
        named.into_iter().map(|(name, moves)| (name.to_owned(), *moves)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_move_has_its_counts() {
        let mut placements = Placements::default();
        placements.placed(Kind::Wakeup, Distance::OtherLlc, 3);
        placements.placed(Kind::Wakeup, Distance::OtherNode, 3);
        placements.placed(Kind::Wakeup, Distance::Smt, 5);
        placements.placed(Kind::Fork, Distance::SameCpu, 3);
        placements.balanced(Distance::Llc, 3);
        let Moves { wakeups, forks, balance } = placements.overall;
        assert_eq!((wakeups.total(), wakeups.left_llc(), wakeups.at(Distance::Smt)), (3, 2, 1));
        assert_eq!((forks.at(Distance::SameCpu), balance.at(Distance::Llc)), (1, 1));
        assert_eq!([3, 5].map(|name| placements.by_name.of(name).total()), [4, 1]);
    }
}
