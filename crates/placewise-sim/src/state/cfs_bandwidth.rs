//! What the cgroups have of their quotas, and what their CPUs have of that.

use placewise_policy::{CpuId, Table};
use placewise_workload::program::{Quota, Setting, Workload};

use crate::state::event_queue::Time;

/// What a CPU keeps when it gives back the rest: min_cfs_rq_runtime.
const KEPT: i64 = 1_000_000;

pub struct CfsBandwidth {
    /// Some cgroup has a quota or will have one; if none, nothing else here is looked at.
    pub in_use: bool,
    /// By task group, with the root.
    pub groups: Vec<Bandwidth>,
}

#[derive(Clone)]
pub struct Bandwidth {
    pub quota: Option<Quota>,
    pub runtime: Time,
    /// Nobody has asked for runtime in this period.
    pub idle: bool,
    /// The CPUs that wait for runtime, and since when.
    pub throttled: Vec<(CpuId, Time)>,
    pub remaining: Table<CpuId, i64>,
    pub statistics: CpuStat,
}

/// The counters of cpu.stat.
#[derive(Clone, Copy, Default)]
pub struct CpuStat {
    pub nr_periods: u64,
    pub nr_throttled: u64,
    pub throttled_ns: Time,
}

impl CfsBandwidth {
    pub fn new(workload: &Workload, nr_cpus: usize) -> Self {
        let sets_quota = |to: &Setting| matches!(to, Setting::Quota { .. });
        let group = Bandwidth {
            quota: None,
            runtime: 0,
            idle: false,
            throttled: Vec::new(),
            remaining: vec![0; nr_cpus].into(),
            statistics: CpuStat::default(),
        };
        CfsBandwidth {
            in_use: workload.cgroups.iter().any(|cgroup| cgroup.quota.is_some())
                || workload.changes.iter().any(|change| sets_quota(&change.to)),
            groups: vec![group; workload.cgroups.len() + 1],
        }
    }

    #[cfg(feature = "invariants")]
    pub fn is_throttled(&self, group: u32) -> bool {
        !self.groups[group as usize].throttled.is_empty()
    }

    pub fn statistics(&self, group: u32, now: Time) -> CpuStat {
        let group = &self.groups[group as usize];
        let still = group.throttled.iter().map(|&(_, since)| now - since).sum::<Time>();
        CpuStat { throttled_ns: group.statistics.throttled_ns + still, ..group.statistics }
    }
}

impl Bandwidth {
    /// assign_cfs_rq_runtime: a CPU gets up to `target`, as far as there is runtime; false if it has
    /// none.
    pub fn assign(&mut self, cpu: CpuId, target: i64) -> bool {
        let remaining = &mut self.remaining[cpu];
        if self.runtime > 0 {
            let amount = self.runtime.min((target - *remaining) as Time);
            self.runtime -= amount;
            self.idle = false;
            *remaining += amount as i64;
        }
        *remaining > 0
    }

    /// A CPU gives back what it has left but for what it keeps; false if that is nothing.
    pub fn give_back(&mut self, cpu: CpuId) -> bool {
        let slack = self.remaining[cpu] - KEPT;
        if slack <= 0 {
            return false;
        }
        self.remaining[cpu] -= slack;
        self.runtime += slack as Time;
        true
    }
}
