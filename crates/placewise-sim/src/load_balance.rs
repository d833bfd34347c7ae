//! What load balancing did: the lb_* counters of /proc/schedstat, and why attempts moved nothing.
//!
//! They are those of the policy's sched domains, added up over all CPUs by the domain's level and
//! the idle type of the CPU that balanced. Limits: levels of the same name (NUMA levels of several
//! distances) are added up too.

use placewise_policy::{CPU_IDLE, CPU_NEWLY_IDLE, CPU_NOT_IDLE, DomainStats, NR_LB_REASONS};

/// One level, balanced by CPUs of one idle type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBalance {
    /// The kernel's name of the domain level, in lower case.
    pub level: String,
    pub idle: &'static str,
    pub counters: [u64; LoadBalance::COUNTERS.len()],
    /// Attempts that moved no task, by [`LoadBalance::REASONS`].
    pub moved_nothing: [u64; LoadBalance::REASONS.len()],
}

impl LoadBalance {
    /// In the order of /proc/schedstat; `lb_imbalance` adds up load, utilisation and tasks.
    pub const COUNTERS: [&'static str; 8] = [
        "lb_count",
        "lb_balanced",
        "lb_failed",
        "lb_imbalance",
        "lb_gained",
        "lb_hot_gained",
        "lb_nobusyq",
        "lb_nobusyg",
    ];

    /// The policy's `enum lb_reason`.
    pub const REASONS: [&'static str; NR_LB_REASONS as usize] = [
        "not_chosen",
        "serialized",
        "no_busiest_group",
        "no_busiest_queue",
        "ineligible",
        "all_pinned",
        "hinted",
        "running",
        "llc",
        "hot",
        "too_large",
    ];

    /// The policy's `enum cpu_idle_type` with its names.
    pub(crate) const IDLE_TYPES: [(u32, &'static str); 3] =
        [(CPU_IDLE, "idle"), (CPU_NOT_IDLE, "busy"), (CPU_NEWLY_IDLE, "newly_idle")];

    pub(crate) fn add(&mut self, stats: &DomainStats, idle: u32) {
        let idle = idle as usize;
        let counters: [u64; 8] = [
            stats.lb_count[idle].into(),
            stats.lb_balanced[idle].into(),
            stats.lb_failed[idle].into(),
            stats.lb_imbalance[idle].iter().sum(),
            stats.lb_gained[idle].into(),
            stats.lb_hot_gained[idle].into(),
            stats.lb_nobusyq[idle].into(),
            stats.lb_nobusyg[idle].into(),
        ];
        let reasons = stats.lb_moved_nothing[idle].map(u64::from);
        self.counters.iter_mut().zip(counters).for_each(|(sum, more)| *sum += more);
        self.moved_nothing.iter_mut().zip(reasons).for_each(|(sum, more)| *sum += more);
    }

    /// What has come since `earlier`, if that has the level already.
    pub fn since(&self, earlier: &[LoadBalance]) -> LoadBalance {
        let mut since = self.clone();
        let same = |it: &&LoadBalance| it.level == self.level && it.idle == self.idle;
        let Some(earlier) = earlier.iter().find(same) else { return since };
        since.counters.iter_mut().zip(earlier.counters).for_each(|(now, then)| *now -= then);
        let reasons = since.moved_nothing.iter_mut().zip(earlier.moved_nothing);
        reasons.for_each(|(now, then)| *now -= then);
        since
    }
}
