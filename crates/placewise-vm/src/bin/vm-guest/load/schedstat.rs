//! /proc/schedstat, summed over all CPUs: wakeups by distance, balance passes and what they moved.
//!
//! A wakeup is counted in the smallest domain of the waker's CPU that has the wakee's, so that the
//! domain's CPUs tell the distance. Versions 15 to 17 differ in the order of the kinds of passes and in
//! how many numbers each has.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, bail, ensure};

use crate::topology::{Distance, Distances};

#[derive(Default)]
pub struct Schedstat(BTreeMap<String, u64>);

/// Counters of a CPU by their place: yields and one without meaning come before.
const OF_CPU: &[(usize, &str)] = &[
    (2, "schedules"),
    (3, "idle_entries"),
    (4, "wakeups"),
    (5, "wakeups_same_cpu"),
    (6, "run_ns"),
    (7, "run_delay_ns"),
];

/// Of a domain after the passes: active balancing, exec and fork balancing, wakeups.
const OTHERS_OF_DOMAIN: usize = 12;
const ACTIVE_PUSHED: usize = 2;
const WAKE_REMOTE: usize = 9;
const MOVE_AFFINE: usize = 10;
/// Of the kinds of passes, how many numbers from the end.
const GAINED_FROM_END: usize = 4;

impl Schedstat {
    pub fn read() -> anyhow::Result<Self> {
        let text = fs::read_to_string("/proc/schedstat").context("/proc/schedstat")?;
        Self::parse(&text, &Distances::of_guest()?)
    }

    pub fn since(&self, before: &Self) -> Self {
        let difference = |(name, now): (&String, &u64)| {
            (name.clone(), now - before.0.get(name).copied().unwrap_or_default())
        };
        Self(self.0.iter().map(difference).collect())
    }

    pub fn figures(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }

    fn parse(text: &str, distances: &Distances) -> anyhow::Result<Self> {
        let mut sum = Self::default();
        let (mut version, mut cpu) = (0, 0);
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let first = words.next().unwrap_or_default();
            if first == "version" {
                version = words.next().and_then(|word| word.parse().ok()).unwrap_or_default();
                ensure!((15..=17).contains(&version), "version {version} of /proc/schedstat");
            } else if let Some(number) = first.strip_prefix("cpu") {
                cpu = number.parse().with_context(|| line.to_owned())?;
                sum.add_cpu(&numbers(words)?)?;
            } else if first.starts_with("domain") {
                // From version 17 on with its name.
                let mask = words.nth(usize::from(version >= 17)).context("a domain's CPUs")?;
                sum.add_domain(version, distances.of_span(cpu, mask)?, &numbers(words)?)?;
            }
        }
        Ok(sum)
    }

    fn add(&mut self, name: impl Into<String>, count: u64) {
        *self.0.entry(name.into()).or_default() += count;
    }

    fn add_cpu(&mut self, numbers: &[u64]) -> anyhow::Result<()> {
        for &(place, name) in OF_CPU {
            self.add(name, *numbers.get(place).context("a CPU's line is too short")?);
        }
        Ok(())
    }

    fn add_domain(&mut self, version: u32, span: Distance, numbers: &[u64]) -> anyhow::Result<()> {
        let kinds =
            if version >= 16 { ["busy", "idle", "newidle"] } else { ["idle", "busy", "newidle"] };
        let Some(of_passes) = numbers.len().checked_sub(OTHERS_OF_DOMAIN) else {
            bail!("a domain's line is too short");
        };
        let of_kind = of_passes / kinds.len();
        for (kind, passes) in kinds.iter().zip(numbers.chunks(of_kind)) {
            self.add(format!("{kind}_passes"), passes[0]);
            self.add(format!("{kind}_pulls"), passes[of_kind - GAINED_FROM_END]);
        }
        let others = &numbers[of_passes..];
        self.add("active_pushes", others[ACTIVE_PUSHED]);
        self.add(format!("wakeups_{}", span.name()), others[WAKE_REMOTE]);
        self.add("affine_moves", others[MOVE_AFFINE]);
        Ok(())
    }
}

fn numbers<'a>(words: impl Iterator<Item = &'a str>) -> anyhow::Result<Vec<u64>> {
    words.map(|word| word.parse().with_context(|| format!("no number: {word}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPU 0 has a sibling, four CPUs in its LLC, and eight in its node.
    fn parsed(text: &str) -> Schedstat {
        Schedstat::parse(text, &Distances::of(0, ["0-1", "0-3", "0-7"])).unwrap()
    }

    /// What `of_passes` has for each kind, then 101 to 112.
    fn domain(head: &str, of_passes: impl Iterator<Item = u32>) -> String {
        let numbers: Vec<String> = of_passes.chain(101..=112).map(|n| n.to_string()).collect();
        format!("{head} {}\n", numbers.join(" "))
    }

    #[test]
    fn wakeups_are_told_apart_by_the_span_of_their_domain() {
        let text = format!(
            "version 17\ncpu0 0 0 9 8 7 6 5 4 3\n{}{}{}{}",
            domain("domain0 SMT 0003", 1..=33),
            domain("domain1 MC 000f", 1..=33),
            domain("domain2 PKG 00ff", 1..=33),
            domain("domain3 NUMA ffff", 1..=33),
        );
        let sum = parsed(&text);
        for name in ["smt", "llc", "node", "other_node"] {
            assert_eq!(sum.0[&format!("wakeups_{name}")], 110, "{name}");
        }
        assert_eq!((sum.0["wakeups"], sum.0["wakeups_same_cpu"]), (7, 6));
    }

    #[test]
    fn kinds_of_passes_stand_in_the_order_of_the_version() {
        let of =
            |version, head, passes| parsed(&format!("version {version}\n{}", domain(head, passes)));
        let v15 = of(15, "domain0 00000003", 1..=24);
        let v17 = of(17, "domain0 SMT 00000003", 1..=33);
        assert_eq!(
            (v15.0["idle_passes"], v15.0["busy_passes"], v15.0["newidle_passes"]),
            (1, 9, 17)
        );
        assert_eq!(
            (v17.0["busy_passes"], v17.0["idle_passes"], v17.0["newidle_passes"]),
            (1, 12, 23)
        );
        assert_eq!((v15.0["idle_pulls"], v17.0["busy_pulls"]), (5, 8));
        assert_eq!((v15.0["active_pushes"], v17.0["active_pushes"]), (103, 103));
    }
}
