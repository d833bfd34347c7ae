//! /proc/schedstat and /proc/PID/sched as the simulated kernel would print them.

use std::fmt::Write;

use placewise_policy::*;

use crate::engine::Engine;

/// `version 15` layout (16 and 17 where the kernel has them).
pub(super) fn schedstat(engine: &Engine) -> String {
    let version = engine.scheduler.policy.profile.schedstat_version;
    let mut out = format!(
        "version {version}\ntimestamp {}\n",
        engine.now / u64::from(engine.scheduler.policy.root.tick_ns)
    );
    for cpu in engine.scheduler.policy.root.online.iter() {
        let counters = &engine.cpus[cpu].counters;
        writeln!(
            out,
            "cpu{cpu} {} 0 {} {} {} {} {} {} {}",
            counters.yields,
            counters.schedules,
            counters.schedules_idle,
            counters.wakeups,
            counters.wakeups_local,
            counters.run_ns,
            counters.wait_ns,
            counters.timeslices
        )
        .expect("a String grows");
        for (level, &span) in engine.hardware.domains.chains[usize::from(cpu)].iter().enumerate() {
            let span = &engine.hardware.domains.spans[span];
            let name =
                if version >= 17 { format!(" {}", span.level.name()) } else { String::new() };
            write!(out, "domain{level}{name} {}", span.cpus.to_mask()).expect("a String grows");
            for number in domain_numbers(version, &engine.scheduler.policy.domain[cpu][level].stats)
            {
                write!(out, " {number}").expect("a String grows");
            }
            out.push('\n');
        }
    }
    out
}

fn domain_numbers(version: u32, stats: &DomainStats) -> Vec<u64> {
    let order = if version >= 16 {
        [CPU_NOT_IDLE, CPU_IDLE, CPU_NEWLY_IDLE]
    } else {
        [CPU_IDLE, CPU_NOT_IDLE, CPU_NEWLY_IDLE]
    };
    let mut numbers = Vec::new();
    for idle in order.map(|idle| idle as usize) {
        numbers.extend(
            [stats.lb_count[idle], stats.lb_balanced[idle], stats.lb_failed[idle]].map(u64::from),
        );
        let imbalance = &stats.lb_imbalance[idle];
        if version >= 17 {
            numbers.extend(imbalance);
        } else {
            numbers.push(imbalance.iter().sum());
        }
        numbers.extend(
            [
                stats.lb_gained[idle],
                stats.lb_hot_gained[idle],
                stats.lb_nobusyq[idle],
                stats.lb_nobusyg[idle],
            ]
            .map(u64::from),
        );
    }
    numbers.extend([stats.alb_count, stats.alb_failed, stats.alb_pushed].map(u64::from));
    // Balance at exec and at fork: no kernel increments these.
    numbers.extend([0; 6]);
    numbers.extend([stats.ttwu_wake_remote, stats.ttwu_move_affine].map(u64::from));
    // ttwu_move_balance: no kernel increments it.
    numbers.push(0);
    numbers
}

/// The first task of each program.
pub(super) fn first_tasks<'e>(engine: &'e Engine) -> impl Iterator<Item = TaskId> + 'e {
    let tasks = engine.user_tasks();
    (0..engine.workload.programs.len() as u32).filter_map(move |program| {
        tasks.clone().find(|&task| engine.tasks[task].program == program)
    })
}

/// `/proc/PID/sched` with the names of kernels from v5.14 on.
pub(super) fn proc_sched(engine: &Engine, task: TaskId) -> String {
    let state = &engine.tasks[task];
    let record = &engine.scheduler.policy.task[task];
    let statistics = &state.statistics;
    let comm = &engine.workload.programs[state.program as usize].name;
    let mut out = format!("{comm} ({}, #threads: 1)\n{}\n", state.pid, "-".repeat(67));
    let mut time = |name: &str, ns: u64| {
        writeln!(out, "{name:<45}:{:>14}.{:06}", ns / 1_000_000, ns % 1_000_000)
            .expect("a String grows");
    };
    time("se.exec_start", record.exec_start);
    time("se.sum_exec_runtime", record.sum_exec_runtime);
    time("wait_max", statistics.wait_max);
    time("wait_sum", statistics.wait_sum);
    let mut count =
        |name: &str, value: u64| writeln!(out, "{name:<45}:{value:>21}").expect("a String grows");
    count("se.nr_migrations", statistics.migrations);
    count("wait_count", statistics.wait_count);
    count("nr_wakeups", statistics.wakeups);
    count("nr_wakeups_sync", statistics.wakeups_sync);
    count("nr_wakeups_migrate", statistics.wakeups_migrate);
    count("nr_wakeups_local", statistics.wakeups_local);
    count("nr_wakeups_remote", statistics.wakeups_remote);
    count("nr_wakeups_affine", statistics.wakeups_affine);
    count("nr_wakeups_affine_attempts", statistics.wakeups_affine_attempts);
    count("nr_wakeups_passive", 0);
    count("nr_wakeups_idle", 0);
    count("nr_switches", record.nvcsw + record.nivcsw);
    count("nr_voluntary_switches", record.nvcsw);
    count("nr_involuntary_switches", record.nivcsw);
    count("se.load.weight", u64::from(record.weight) << 10);
    count("se.avg.load_sum", record.avg.load_sum);
    count("se.avg.runnable_sum", record.avg.runnable_sum);
    count("se.avg.util_sum", u64::from(record.avg.util_sum));
    count("se.avg.load_avg", record.avg.load_avg);
    count("se.avg.runnable_avg", record.avg.runnable_avg);
    count("se.avg.util_avg", record.avg.util_avg);
    out
}
