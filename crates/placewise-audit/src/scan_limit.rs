//! How many CPUs the kernel's search for an idle one looked at, at most.
//!
//! With SIS_UTIL the balancer sets the limit, from the utilisation of the LLC; it
//! is reckoned again once per balance interval. With SIS_PROP it follows from the
//! cost of earlier searches, which no trace shows. An outcome that a limit cannot
//! have had corrects it for later decisions.

use placewise_policy::*;

use crate::reconstruction::Reconstruction;

/// SIS_PROP looks at so many CPUs, whatever the cost.
const LEAST_SCAN_LIMIT: u32 = 3;

const NSEC_PER_MSEC: u64 = 1_000_000;

impl Reconstruction {
    /// What the balancer's last statistics pass over the LLC of `cpu` made of the scan limit.
    pub(crate) fn renew_scan_limit(&mut self, cpu: u32) {
        let llc = usize::from(self.scheduler.policy.cpu[cpu as usize].llc);
        if self.now < self.scan_limit_due[llc] {
            return;
        }
        let size = self.scheduler.policy.llc[llc].size;
        self.scan_limit_due[llc] = self.now + self.balance_interval(llc);
        let mut util = 0;
        for other in 0..self.scheduler.policy.root.nr_cpu_ids {
            if usize::from(self.scheduler.policy.cpu[other as usize].llc) == llc {
                self.catch_up_loads(other);
                util += self.scheduler.policy.cpu_util(other);
            }
        }
        let imbalance_pct = self.scheduler.policy.llc[llc].imbalance_pct;
        self.scheduler.policy.llc[llc].nr_idle_scan = nr_idle_scan_of(util, size, imbalance_pct);
    }

    /// Busy CPUs balance more rarely than an idle one does.
    fn balance_interval(&self, llc: usize) -> u64 {
        let llc = &self.scheduler.policy.llc[llc];
        let idle = llc
            .cpus
            .bits
            .iter()
            .zip(&self.scheduler.policy.root.idle.bits)
            .any(|(a, b)| a & b != 0);
        let factor = if idle { 1 } else { u64::from(self.scheduler.policy.profile.busy_factor) };
        u64::from(llc.size) * NSEC_PER_MSEC * factor
    }

    /// The kernel's scan limit was not what was reckoned: it found a CPU beyond it, or none within.
    pub(crate) fn correct_scan_limit(&mut self, decision: &Decision, actual: u32) {
        let target = u32::from(decision.target_cpu);
        let llc = usize::from(self.scheduler.policy.cpu[target as usize].llc);
        if usize::from(self.scheduler.policy.cpu[actual as usize].llc) != llc
            || decision.has_idle_cores != 0 && decision.scan_limit != 0
        {
            return;
        }
        match u32::from(decision.search) {
            SEARCH_FAILED if actual != target => self.raise_scan_limit(decision, llc),
            SEARCH_IDLE_CPU if actual == target => self.lower_scan_limit(decision, llc),
            _ => return,
        }
        self.inferred.scan_limits += 1;
    }

    fn raise_scan_limit(&mut self, decision: &Decision, llc: usize) {
        if self.scheduler.policy.profile.scan_limit == SIS_UTIL {
            self.scheduler.policy.llc[llc].nr_idle_scan = self.scheduler.policy.llc[llc].size;
        } else if let Some(cost) = self.avg_scan_cost(decision.waking_cpu) {
            *cost /= 2;
        }
    }

    fn lower_scan_limit(&mut self, decision: &Decision, llc: usize) {
        if self.scheduler.policy.profile.scan_limit == SIS_UTIL {
            let limit = &mut self.scheduler.policy.llc[llc].nr_idle_scan;
            *limit = limit.saturating_sub(1);
        } else if decision.scan_limit > LEAST_SCAN_LIMIT
            && let Some(cost) = self.avg_scan_cost(decision.waking_cpu)
        {
            let excess = u64::from(decision.scan_limit / decision.scanned.max(1)).max(2);
            *cost = (*cost + 1).saturating_mul(excess);
        }
    }

    /// What SIS_PROP reckons with.
    fn avg_scan_cost(&mut self, waking_cpu: u16) -> Option<&mut u64> {
        let cpu = usize::from(waking_cpu);
        let level = self.scheduler.policy.llc[usize::from(self.scheduler.policy.cpu[cpu].llc)]
            .domain_level as usize;
        self.scheduler.policy.domain[cpu].get_mut(level).map(|domain| &mut domain.avg_scan_cost)
    }
}
