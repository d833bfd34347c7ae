//! What load balancing did so far: the counters of the policy's sched domains by level.

use placewise_policy::DomainStats;

use crate::engine::Engine;
use crate::load_balance::LoadBalance;

impl Engine<'_> {
    /// Since boot, by level from the bottom up and idle type.
    pub(crate) fn load_balance_counters(&self) -> Vec<LoadBalance> {
        let mut all = self.hardware.hotplug.retired_load_balance.clone();
        for (level, domains) in self.domain_stats_by_level() {
            for (number, idle) in LoadBalance::IDLE_TYPES {
                let same = |it: &LoadBalance| it.level == level && it.idle == idle;
                let at = all.iter().position(same).unwrap_or_else(|| {
                    let level = level.clone();
                    let (counters, moved_nothing) = Default::default();
                    all.push(LoadBalance { level, idle, counters, moved_nothing });
                    all.len() - 1
                });
                domains.iter().for_each(|stats| all[at].add(stats, number));
            }
        }
        all
    }

    /// The counters of every CPU's domains by the name of the level, bottom up.
    pub(super) fn domain_stats_by_level(&self) -> Vec<(String, Vec<&DomainStats>)> {
        let mut levels: Vec<(String, Vec<&DomainStats>)> = Vec::new();
        for (chain, domains) in
            self.hardware.domains.chains.iter().zip(&self.scheduler.policy.domain)
        {
            for (&span, domain) in chain.iter().zip(domains) {
                let name = self.hardware.domains.spans[span].level.name().to_lowercase();
                match levels.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, stats)) => stats.push(&domain.stats),
                    None => levels.push((name, vec![&domain.stats])),
                }
            }
        }
        levels
    }
}
