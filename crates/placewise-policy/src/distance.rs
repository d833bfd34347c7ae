//! How far one CPU is from another, by the names that all reports have for it.
//!
//! The distances and what they mean are listed in `policy/distance.h`.

use crate::state::State;

include!(concat!(env!("OUT_DIR"), "/distances.rs"));

macro_rules! distances {
    ($($distance:ident = $word:literal: $meaning:literal,)*) => {
        /// `enum distance`, nearest first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Distance {
            $(#[doc = $meaning] $distance,)*
        }

        impl Distance {
            pub const ALL: [Distance; [$($word),*].len()] = [$(Distance::$distance),*];

            pub fn word(self) -> &'static str {
                [$($word),*][self as usize]
            }
        }
    };
}

for_each_distance!(distances);

impl Distance {
    pub fn of(state: &State, from: u32, to: u32) -> Self {
        Self::ALL[state.distance(from, to) as usize]
    }

    /// The word as tables have it above a column.
    pub fn heading(self) -> String {
        heading(self.word())
    }
}

/// The name of a figure as tables have it above a column: `same CPU` for `same_cpu`.
pub fn heading(name: &str) -> String {
    let spelt = |word: &str| match word {
        "cpu" | "smt" | "llc" => word.to_uppercase(),
        _ => word.to_string(),
    };
    name.split('_').map(spelt).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use placewise_machine::load;

    use super::*;
    use crate::{Policy, topology};

    #[test]
    fn each_level_of_the_machine_is_a_distance() {
        // Two nodes of two LLCs of two cores of two CPUs.
        let machine = load("numa:2 l3:2 core:2 pu:2").unwrap();
        let policy = Policy::parse("v6.12", "baseline").unwrap();
        let (state, _) = topology::boot(&machine, &policy.profile).unwrap();
        let distances = [0, 1, 2, 4, 8].map(|cpu| Distance::of(&state, 0, cpu));
        assert_eq!(distances, Distance::ALL);
    }

    #[test]
    fn abbreviations_are_capitals_in_headings() {
        let headings = Distance::ALL.map(Distance::heading);
        assert_eq!(headings, ["same CPU", "SMT", "LLC", "other LLC", "other node"]);
    }
}
