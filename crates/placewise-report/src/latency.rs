//! How long tasks of one name took from being woken to running: counts in bins of logarithmic width.

use serde::Serialize;

/// Each power of two is parted so finely.
const PARTS_SHIFT: u32 = 3;

/// Of one name.
#[derive(Clone, Default)]
pub struct Latencies {
    counts: Vec<u64>,
    total_ns: u64,
}

impl Latencies {
    pub fn record(&mut self, ns: u64) {
        let at = bin(ns);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.total_ns += ns;
    }

    pub fn distribution(&self, name: &str) -> Distribution {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        Distribution {
            name: name.to_owned(),
            wakeups: self.counts.iter().sum(),
            total_ns: self.total_ns,
            counts: counted.map(|(at, count)| (upper_end(at), *count)).collect(),
        }
    }
}

/// As the page has it.
#[derive(Serialize)]
pub struct Distribution {
    name: String,
    wakeups: u64,
    pub total_ns: u64,
    /// Up to how many nanoseconds, and how many wakeups took that and more than the one before.
    counts: Vec<(u64, u64)>,
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
    fn a_distribution_has_all_wakeups() {
        let mut latencies = Latencies::default();
        [3, 1_000, 1_001, 90_000].iter().for_each(|ns| latencies.record(*ns));
        let distribution = latencies.distribution("a");
        assert_eq!((distribution.wakeups, distribution.total_ns), (4, 92_004));
        assert_eq!(distribution.counts, [(3, 1), (1_023, 2), (90_111, 1)]);
    }
}
