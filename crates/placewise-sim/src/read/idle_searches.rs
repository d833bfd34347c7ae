//! How well searches for an idle CPU do: CPUs found for CPUs looked at, and how many searches it
//! takes no search of the LLC for.

use crate::outcome::Figure;
use crate::state::idle_searches::IdleSearches;

pub fn counters(searches: &IdleSearches) -> [(String, &'static str, u64); 4] {
    let IdleSearches { all, of_llc, scanned, failed } = *searches;
    [
        ("sis_search", all),
        ("sis_domain_search", of_llc),
        ("sis_scanned", scanned),
        ("sis_failed", failed),
    ]
    .map(|(name, value)| (name.into(), "count", value))
}

/// From what the counters have come to; 0 where nothing was searched.
pub fn rates(counter: impl Fn(&str) -> f64) -> [Figure; 5] {
    let [all, of_llc, scanned, failed] =
        ["sis_search", "sis_domain_search", "sis_scanned", "sis_failed"].map(counter);
    let fast = all - of_llc;
    let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    [
        ("sis_search_efficiency", 100.0 * ratio(all - failed, scanned), "%"),
        ("sis_domain_search_efficiency", 100.0 * ratio(of_llc - failed, scanned - fast), "%"),
        ("sis_fast_success_rate", 100.0 * ratio(fast, all), "%"),
        ("sis_success_rate", 100.0 * ratio(all - failed, all), "%"),
        ("scanned_per_domain_search", ratio(scanned, of_llc), "count"),
    ]
    .map(|(metric, value, unit)| Figure { metric: metric.into(), value, unit, better: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten searches: six end at a candidate, three find a CPU of the LLC and one finds none, after
    /// eleven CPUs in all.
    #[test]
    fn the_rates_of_a_hand_computed_example() {
        let searches = IdleSearches { all: 10, of_llc: 4, scanned: 10 + 11, failed: 1 };
        let counters = counters(&searches);
        let counter = |name: &str| {
            counters.iter().find(|(known, ..)| known == name).map_or(f64::NAN, |it| it.2 as f64)
        };
        let values = rates(counter).map(|figure| figure.value);
        assert_eq!(values, [100.0 * 9.0 / 21.0, 100.0 * 3.0 / 15.0, 60.0, 90.0, 5.25]);
        assert_eq!(rates(|_| 0.0).map(|figure| figure.value), [0.0; 5]);
    }
}
