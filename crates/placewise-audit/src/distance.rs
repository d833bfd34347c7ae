//! How far one CPU is from another, as caches and memory see it.

use placewise_policy::State;

/// What two CPUs share, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    SameCpu,
    /// The core.
    Smt,
    Llc,
    /// The NUMA node, but no LLC.
    OtherLlc,
    /// Nothing but the machine.
    OtherNode,
}

impl Distance {
    pub const ALL: [Distance; 5] =
        [Distance::SameCpu, Distance::Smt, Distance::Llc, Distance::OtherLlc, Distance::OtherNode];

    pub fn of(state: &State, from: u32, to: u32) -> Self {
        let (one, other) = (&state.cpu[from as usize], &state.cpu[to as usize]);
        let siblings = &one.siblings[..usize::from(one.nr_siblings)];
        if from == to {
            Distance::SameCpu
        } else if siblings.iter().any(|&sibling| u32::from(sibling) == to) {
            Distance::Smt
        } else if one.llc == other.llc {
            Distance::Llc
        } else if one.node == other.node {
            Distance::OtherLlc
        } else {
            Distance::OtherNode
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Distance::SameCpu => "same_cpu",
            Distance::Smt => "smt",
            Distance::Llc => "llc",
            Distance::OtherLlc => "other_llc",
            Distance::OtherNode => "other_node",
        }
    }
}

#[cfg(test)]
mod tests {
    use placewise_machine::load;
    use placewise_policy::{Policy, topology};

    use super::*;

    #[test]
    fn each_level_of_the_machine_is_a_distance() {
        // Two nodes of two LLCs of two cores of two CPUs.
        let machine = load("numa:2 l3:2 core:2 pu:2").unwrap();
        let policy = Policy::parse("v6.12", "baseline").unwrap();
        let (state, _) = topology::boot(&machine, &policy.profile).unwrap();
        let distances = [0, 1, 2, 4, 8].map(|cpu| Distance::of(&state, 0, cpu));
        assert_eq!(distances, Distance::ALL);
    }
}
