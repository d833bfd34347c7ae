//! Averages as the kernel has stored them by now: no trace shows the ticks and the
//! balancer that bring them up to date.
//!
//! Limit: a busy CPU is taken to have had all its ticks, each CPU that idles to have
//! looked for work elsewhere before, and blocked load to be refreshed on time; the
//! kernel may have been late with all of them, or have seen that it was not worth it.

use placewise_policy::FIRST_TASK;
use placewise_run_queue::Scheduler;

/// LOAD_AVG_PERIOD: blocked load of idle CPUs is brought up to date this often. A busy one balances about as often,
/// and brings that of its task groups up to date then. Three recordings of PostgreSQL were in view: beside what CPUs do that
/// idle, 4 ms and never foretell the same picks, within a hundredth.
const BLOCKED_LOAD_PERIOD_NS: u64 = 32_000_000;

/// The last tick that a busy CPU had.
pub fn catch_up_ticks(scheduler: &mut Scheduler, cpu: u32, now: u64) {
    let tick_ns = u64::from(scheduler.policy.root.tick_ns);
    let last_tick = now / tick_ns * tick_ns;
    let before = scheduler.policy.rq[cpu as usize].cfs.avg.last_update_time;
    if last_tick <= before {
        return;
    }
    scheduler.tick_averages(cpu.into(), last_tick);
    if last_tick / BLOCKED_LOAD_PERIOD_NS > before / BLOCKED_LOAD_PERIOD_NS {
        refresh_groups(scheduler, cpu, last_tick);
    }
}

/// What tasks have left behind in groups of `cpu`, where they sleep or went from, decays, and is told to the groups:
/// a group's weight on each CPU is a share of its load on all.
pub fn refresh_groups(scheduler: &mut Scheduler, cpu: u32, now: u64) {
    if scheduler.policy.root.nr_task_groups > 0 {
        scheduler.policy.update_blocked_averages(cpu, now);
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
