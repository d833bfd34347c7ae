//! Averages as the kernel has stored them by now: no trace shows the ticks and the
//! balancer that bring them up to date.
//!
//! Limit: a busy CPU is taken to have had all its ticks, and blocked load to be
//! refreshed on time; the kernel may have been late with both.

use placewise_policy::FIRST_TASK;
use placewise_run_queue::Scheduler;

/// LOAD_AVG_PERIOD: blocked load of idle CPUs is brought up to date this often.
const BLOCKED_LOAD_PERIOD_NS: u64 = 32_000_000;

/// The last tick that a busy CPU had.
pub fn catch_up_ticks(scheduler: &mut Scheduler, cpu: u32, now: u64) {
    let tick_ns = u64::from(scheduler.policy.root.tick_ns);
    let last_tick = now / tick_ns * tick_ns;
    if last_tick > scheduler.policy.rq[cpu as usize].cfs.avg.last_update_time {
        scheduler.tick_averages(cpu.into(), last_tick);
    }
}

/// The averages of `cpu` as the kernel has stored them.
pub fn catch_up_loads(scheduler: &mut Scheduler, cpu: u32, now: u64) {
    if scheduler.current(cpu.into()) >= FIRST_TASK.into() {
        return catch_up_ticks(scheduler, cpu, now);
    }
    let last = now / BLOCKED_LOAD_PERIOD_NS * BLOCKED_LOAD_PERIOD_NS;
    if last > scheduler.policy.rq[cpu as usize].cfs.avg.last_update_time {
        scheduler.policy.update_blocked_averages(cpu, last);
    }
}
