//! The counters of a run at one moment, since boot.

use placewise_workload::program::Cgroup;

use super::idle_searches;
use crate::engine::Engine;
use crate::load_balance::LoadBalance;
use crate::outcome::TaskAccount;
use crate::state::cpu::CpuCounters;

/// Counters at one moment; two of them span a window.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub counters: Vec<(String, &'static str, u64)>,
    /// Of the parts of the workload.
    pub units: Vec<u64>,
    pub load_balance: Vec<LoadBalance>,
    pub account: TaskAccount,
    /// Time of all CPUs while they were online.
    pub cpu_time: u64,
    pub time: u64,
}

impl Engine<'_> {
    pub(crate) fn snapshot(&mut self) -> Snapshot {
        for cpu in self.cpus.ids() {
            self.account_current(cpu);
        }
        let nr_cpus = self.hardware.machine.online().len() as u64;
        Snapshot {
            counters: self.counters(),
            units: self.measurement.parts(self.workload).map(|(part, ..)| part.units).collect(),
            load_balance: self.load_balance_counters(),
            account: self.task_account(),
            cpu_time: self.now * nr_cpus - self.offline_ns(),
            time: self.now,
        }
    }

    fn counters(&self) -> Vec<(String, &'static str, u64)> {
        let total =
            |of: fn(&CpuCounters) -> u64| self.cpus.iter().map(|cpu| of(&cpu.counters)).sum();
        let migrations = self.measurement.migrations;
        let mut counters: Vec<(String, &'static str, u64)> = vec![
            ("schedstat_sched_yield_count".into(), "count", total(|c| c.yields)),
            ("schedstat_schedule_called".into(), "count", total(|c| c.schedules)),
            (
                "schedstat_schedule_left_the_processor_idle".into(),
                "count",
                total(|c| c.schedules_idle),
            ),
            ("schedstat_try_to_wake_up_was_called".into(), "count", total(|c| c.wakeups)),
            (
                "schedstat_try_to_wake_up_was_called_to_wake_up_the_local_cpu".into(),
                "count",
                total(|c| c.wakeups_local),
            ),
            // The published tables call these jiffies; they are nanoseconds.
            (
                "schedstat_total_runtime_by_tasks_on_this_processor_in_jiffies".into(),
                "ns",
                total(|c| c.run_ns),
            ),
            (
                "schedstat_total_waittime_by_tasks_on_this_processor_in_jiffies".into(),
                "ns",
                total(|c| c.wait_ns),
            ),
            ("schedstat_total_timeslices_run_on_this_cpu".into(), "count", total(|c| c.timeslices)),
        ];
        for (level, remote, affine) in self.wakeups_by_level() {
            counters.push((format!("schedstat_wakeups_on_same_{level}"), "count", remote));
            counters.push((format!("schedstat_affine_wakeups_on_same_{level}"), "count", affine));
        }
        counters.extend(self.cpu_stat());
        counters.extend([
            ("migrations_wakeup".into(), "tasks", migrations.wakeup),
            ("migrations_fork".into(), "tasks", migrations.fork),
            ("migrations_periodic".into(), "tasks", migrations.periodic),
            ("migrations_newly_idle".into(), "tasks", migrations.newly_idle),
            ("migrations_nohz".into(), "tasks", migrations.nohz),
            ("migrations_active".into(), "tasks", migrations.active),
            ("migrations_numa".into(), "tasks", migrations.numa),
            ("migrations_displaced".into(), "tasks", migrations.displaced),
            (
                "idle_time".into(),
                "ns",
                total(|c| c.idle_ns) + self.idle_so_far() - self.offline_ns(),
            ),
            ("rq_lock_wait".into(), "ns", total(|c| c.lock_ns)),
        ]);
        counters.extend(idle_searches::counters(&self.measurement.idle_searches));
        counters
    }

    /// cpu.stat of the cgroups, where some have quotas.
    fn cpu_stat(&self) -> Vec<(String, &'static str, u64)> {
        if !self.confinement.cfs_bandwidth.in_use {
            return Vec::new();
        }
        let of_cgroup = |(group, cgroup): (u32, &Cgroup)| {
            let stat = self.confinement.cfs_bandwidth.statistics(group, self.now);
            [
                (format!("{}_nr_periods", cgroup.name), "count", stat.nr_periods),
                (format!("{}_nr_throttled", cgroup.name), "count", stat.nr_throttled),
                (format!("{}_throttled_time", cgroup.name), "ns", stat.throttled_ns),
            ]
        };
        (1..).zip(&self.workload.cgroups).flat_map(of_cgroup).collect()
    }

    /// Time of the idle tasks that are current, which the counters do not hold yet.
    fn idle_so_far(&self) -> u64 {
        let idle = self.cpus.ids().filter(|&cpu| self.scheduler.running(cpu).is_none());
        idle.map(|cpu| self.now - self.cpus[cpu].idle_task_since).sum()
    }

    /// Remote and affine wakeups by the name of the level, bottom up.
    pub(crate) fn wakeups_by_level(&self) -> Vec<(String, u64, u64)> {
        let mut levels = self.hardware.hotplug.retired_wakeups.clone();
        for (name, domains) in self.domain_stats_by_level() {
            let remote: u64 = domains.iter().map(|stats| u64::from(stats.ttwu_wake_remote)).sum();
            let affine: u64 = domains.iter().map(|stats| u64::from(stats.ttwu_move_affine)).sum();
            match levels.iter_mut().find(|(known, _, _)| *known == name) {
                Some(level) => (level.1, level.2) = (level.1 + remote, level.2 + affine),
                None => levels.push((name, remote, affine)),
            }
        }
        levels
    }
}
