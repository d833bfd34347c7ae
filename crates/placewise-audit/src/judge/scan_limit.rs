//! How many CPUs the kernel's search for an idle one looked at, at most.
//!
//! With SIS_UTIL the balancer sets the limit, from the utilisation of the LLC; it
//! is reckoned again once per balance interval. With SIS_PROP it follows from the
//! cost of earlier searches, which no trace shows. An outcome that a limit cannot
//! have had corrects it for later decisions.

use placewise_policy::*;

use crate::world::World;

/// SIS_PROP looks at so many CPUs, whatever the cost.
const LEAST_SCAN_LIMIT: u32 = 3;

const NSEC_PER_MSEC: u64 = 1_000_000;

pub struct ScanLimits {
    /// When each LLC's is due again.
    due: Vec<u64>,
}

impl Default for ScanLimits {
    fn default() -> Self {
        ScanLimits { due: vec![0; NR_CPUS as usize] }
    }
}

impl ScanLimits {
    /// What the balancer's last statistics pass over the LLC of `cpu` made of the scan limit.
    pub fn renew(&mut self, world: &mut World, cpu: u32) {
        let llc = llc_of(&world.scheduler.policy, cpu);
        let now = world.clock.now;
        if now < self.due[llc] {
            return;
        }
        self.due[llc] = now + balance_interval(&world.scheduler.policy, llc);
        let mut util = 0;
        for other in 0..world.scheduler.policy.root.nr_cpu_ids {
            if llc_of(&world.scheduler.policy, other) == llc {
                world.catch_up_loads(other);
                util += world.scheduler.policy.cpu_util(other);
            }
        }
        let llc = &mut world.scheduler.policy.llc[llc];
        llc.nr_idle_scan = nr_idle_scan_of(util, llc.size, llc.imbalance_pct);
    }
}

fn llc_of(state: &State, cpu: u32) -> usize {
    state.cpu[cpu as usize].llc.into()
}

/// Busy CPUs balance more rarely than an idle one does.
fn balance_interval(state: &State, llc: usize) -> u64 {
    let llc = &state.llc[llc];
    let idle = llc.cpus.bits.iter().zip(&state.root.idle.bits).any(|(a, b)| a & b != 0);
    let factor = if idle { 1 } else { u64::from(state.profile.busy_factor) };
    u64::from(llc.size) * NSEC_PER_MSEC * factor
}

/// Where the kernel's scan limit was not what was reckoned, for it found a CPU beyond it or none
/// within, it is another for later decisions; true if it was not.
pub fn correct(state: &mut State, decision: &Decision, actual: u32) -> bool {
    let target = u32::from(decision.target_cpu);
    let llc = llc_of(state, target);
    if llc_of(state, actual) != llc || decision.has_idle_cores != 0 && decision.scan_limit != 0 {
        return false;
    }
    match u32::from(decision.search) {
        SEARCH_FAILED if actual != target => raise(state, decision, llc),
        SEARCH_IDLE_CPU if actual == target => lower(state, decision, llc),
        _ => return false,
    }
    true
}

fn raise(state: &mut State, decision: &Decision, llc: usize) {
    if state.profile.sis_util {
        state.llc[llc].nr_idle_scan = state.llc[llc].size;
    } else if let Some(cost) = avg_scan_cost(state, decision.waking_cpu) {
        *cost /= 2;
    }
}

fn lower(state: &mut State, decision: &Decision, llc: usize) {
    if state.profile.sis_util {
        let limit = &mut state.llc[llc].nr_idle_scan;
        // The last of those that were looked at was idle, and the kernel did not come to it.
        *limit = (*limit).min(decision.llc_scanned).saturating_sub(1);
    } else if decision.scan_limit > LEAST_SCAN_LIMIT
        && let Some(cost) = avg_scan_cost(state, decision.waking_cpu)
    {
        let excess = u64::from(decision.scan_limit / decision.scanned.max(1)).max(2);
        *cost = (*cost + 1).saturating_mul(excess);
    }
}

/// What SIS_PROP reckons with.
fn avg_scan_cost(state: &mut State, waking_cpu: u16) -> Option<&mut u64> {
    let cpu = usize::from(waking_cpu);
    let level = state.llc[usize::from(state.cpu[cpu].llc)].domain_level as usize;
    state.domain[cpu].get_mut(level).map(|domain| &mut domain.avg_scan_cost)
}
