//! How long tasks of one name took from being woken to running: counts in bins of logarithmic width.

use placewise_audit::NameId;
use serde::Serialize;

/// Each power of two is parted so finely.
const PARTS_SHIFT: u32 = 3;

/// Names whose distributions the page shows.
const DISTRIBUTIONS: usize = 12;

/// Of all names, by the LLC on which the wakee ran.
pub struct Latencies {
    llcs: usize,
    of_name: Vec<Vec<Counts>>,
}

#[derive(Clone, Default)]
struct Counts {
    counts: Vec<u64>,
    total_ns: u64,
}

impl Latencies {
    pub fn new(llcs: usize) -> Self {
        Latencies { llcs, of_name: Vec::new() }
    }

    pub fn record(&mut self, name: NameId, llc: u16, ns: u64) {
        let name = name as usize;
        if self.of_name.len() <= name {
            self.of_name.resize(name + 1, Vec::new());
        }
        let by_llc = &mut self.of_name[name];
        by_llc.resize(self.llcs, Counts::default());
        by_llc[usize::from(llc)].record(ns);
    }

    /// Of the names that took longest in all.
    pub fn distributions<'a>(&self, name_of: impl Fn(NameId) -> &'a str) -> Vec<Distribution> {
        let total = |by_llc: &[Counts]| by_llc.iter().map(|of_llc| of_llc.total_ns).sum::<u64>();
        let mut names: Vec<usize> = (0..self.of_name.len()).collect();
        names.retain(|&name| total(&self.of_name[name]) > 0);
        names.sort_by_key(|&name| std::cmp::Reverse(total(&self.of_name[name])));
        names.truncate(DISTRIBUTIONS);
        let distribution = |name: usize| Distribution {
            name: name_of(name as NameId).to_owned(),
            total_ns: total(&self.of_name[name]),
            by_llc: self.of_name[name].iter().map(Counts::listed).collect(),
        };
        names.into_iter().map(distribution).collect()
    }
}

impl Counts {
    fn record(&mut self, ns: u64) {
        let at = bin(ns);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.total_ns += ns;
    }

    fn listed(&self) -> Vec<(u64, u64)> {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(at, count)| (upper_end(at), *count)).collect()
    }
}

/// As the page has it.
#[derive(Serialize)]
pub struct Distribution {
    pub(crate) name: String,
    total_ns: u64,
    /// Up to how many nanoseconds, and how many wakeups took that and more than the one before.
    pub(crate) by_llc: Vec<Vec<(u64, u64)>>,
}

/// Below 8 each number has its own; from there on eight bins for each power of two.
fn bin(ns: u64) -> usize {
    let parts = 1 << PARTS_SHIFT;
    if ns < parts {
        return ns as usize;
    }
    let shift = ns.ilog2() - PARTS_SHIFT;
    ((u64::from(shift) << PARTS_SHIFT) + (ns >> shift)) as usize
}

/// The longest time in a bin.
fn upper_end(bin: usize) -> u64 {
    let parts = 1 << PARTS_SHIFT;
    if bin < 2 * parts {
        return bin as u64;
    }
    let (shift, part) = (bin / parts - 1, bin % parts + parts);
    (((part as u128 + 1) << shift) - 1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_the_bin_that_ends_at_or_above_it_within_an_eighth() {
        for ns in (0..70).flat_map(|n| [n, n * 997, 1 << (n % 64)]).chain([u64::MAX]) {
            let end = upper_end(bin(ns));
            assert!(end >= ns && end - ns <= ns / 8, "{ns}: {end}");
            assert!(bin(ns) == 0 || upper_end(bin(ns) - 1) < ns, "{ns}");
        }
    }

    #[test]
    fn a_distribution_has_all_wakeups_by_llc() {
        let mut latencies = Latencies::new(2);
        [3, 1_000, 1_001].iter().for_each(|ns| latencies.record(1, 0, *ns));
        latencies.record(1, 1, 90_000);
        latencies.record(0, 1, 7);
        let [longest, other] = &latencies.distributions(|name| ["a", "b"][name as usize])[..]
        else {
            panic!("of two names")
        };
        assert_eq!((&*longest.name, longest.total_ns, &*other.name), ("b", 92_004, "a"));
        assert_eq!(longest.by_llc, [vec![(3, 1), (1_023, 2)], vec![(90_111, 1)]]);
    }
}
