//! Averages as the kernel has stored them by now: no trace shows the ticks and the
//! balancer that bring them up to date.
//!
//! Limit: a busy CPU is taken to have had all its ticks, and blocked load to be
//! refreshed on time; the kernel may have been late with both.

use crate::reconstruction::Reconstruction;

/// LOAD_AVG_PERIOD: blocked load of idle CPUs is brought up to date this often.
const BLOCKED_LOAD_PERIOD_NS: u64 = 32_000_000;

impl Reconstruction {
    /// The last tick that a busy CPU had.
    pub(crate) fn catch_up_ticks(&mut self, cpu: u32) {
        let tick_ns = u64::from(self.scheduler.policy.root.tick_ns);
        let last_tick = self.now / tick_ns * tick_ns;
        if last_tick > self.scheduler.policy.rq[cpu as usize].cfs.avg.last_update_time {
            self.scheduler.policy.task_tick(cpu, last_tick);
        }
    }

    /// The averages of `cpu` as the kernel has stored them.
    pub(crate) fn catch_up_loads(&mut self, cpu: u32) {
        if self.scheduler.running(cpu.into()).is_some() {
            return self.catch_up_ticks(cpu);
        }
        let last = self.now / BLOCKED_LOAD_PERIOD_NS * BLOCKED_LOAD_PERIOD_NS;
        if last > self.scheduler.policy.rq[cpu as usize].cfs.avg.last_update_time {
            self.scheduler.policy.update_blocked_averages(cpu, last);
        }
    }
}
