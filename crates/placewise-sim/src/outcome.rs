//! What a run reports: the workload's figures, and the counters that say why.

use placewise_workload::program::{Cgroup, Metric};

use crate::engine::Engine;
use crate::event_queue::Time;
use crate::load_balance::LoadBalance;
use crate::measure::Part;
use crate::schedstat;

/// Which direction of a figure is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Lower,
    Higher,
}

/// One measured value.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub metric: String,
    pub value: f64,
    pub unit: &'static str,
    /// None for counters that are neither.
    pub better: Option<Better>,
}

/// All that a run reports.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub figures: Vec<Figure>,
    pub statistics: Statistics,
}

#[derive(Clone, Debug)]
pub struct Statistics {
    /// Simulated time, warm-up included.
    pub simulated_ns: u64,
    /// Entries taken from the event queue, and what they were about.
    pub events: u64,
    pub wakeups: u64,
    pub switches: u64,
    /// Counters of the measured window, always in the same order.
    pub figures: Vec<Figure>,
    /// What load balancing did in the measured window.
    pub load_balance: Vec<LoadBalance>,
    /// /proc/schedstat at the end of the run, since boot.
    pub schedstat: String,
    /// /proc/PID/sched of the first task of each program, at the end of the run.
    pub proc_sched: Vec<String>,
}

/// Counters at one moment; two of them span a window.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub counters: Vec<(String, &'static str, u64)>,
    /// Of the parts of the workload.
    units: Vec<u64>,
    load_balance: Vec<LoadBalance>,
    /// Time of all CPUs while they were online.
    cpu_time: u64,
    time: u64,
}

impl Engine<'_> {
    pub fn snapshot(&mut self) -> Snapshot {
        for cpu in 0..self.cpus.len() as u32 {
            self.account_current(cpu);
        }
        let nr_cpus = self.machine.online().len() as u64;
        Snapshot {
            counters: self.counters(),
            units: self.measurement.parts(self.workload).map(|(part, ..)| part.units).collect(),
            load_balance: self.load_balance_counters(),
            cpu_time: self.now * nr_cpus - self.offline_ns(),
            time: self.now,
        }
    }

    fn counters(&self) -> Vec<(String, &'static str, u64)> {
        let total = |of: fn(&crate::cpu::CpuCounters) -> u64| {
            self.cpus.iter().map(|cpu| of(&cpu.counters)).sum()
        };
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
            ("migrations_displaced".into(), "tasks", migrations.displaced),
            (
                "idle_time".into(),
                "ns",
                total(|c| c.idle_ns) + self.idle_so_far() - self.offline_ns(),
            ),
            ("rq_lock_wait".into(), "ns", total(|c| c.lock_ns)),
        ]);
        counters
    }

    /// cpu.stat of the cgroups, where some have quotas.
    fn cpu_stat(&self) -> Vec<(String, &'static str, u64)> {
        if !self.cfs_bandwidth.in_use {
            return Vec::new();
        }
        let of_cgroup = |(group, cgroup): (u32, &Cgroup)| {
            let stat = self.cfs_bandwidth.statistics(group, self.now);
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
        let idle = (0..self.cpus.len()).filter(|&cpu| self.scheduler.running(cpu as u32).is_none());
        idle.map(|cpu| self.now - self.cpus[cpu].idle_task_since).sum()
    }

    /// Remote and affine wakeups by the name of the level, bottom up.
    pub fn wakeups_by_level(&self) -> Vec<(String, u64, u64)> {
        let mut levels = self.hotplug.retired_wakeups.clone();
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

    /// The figures of the window between two snapshots.
    pub fn outcome(&self, begin: &Snapshot, end: &Snapshot) -> Outcome {
        let nr_cpus = self.machine.online().len() as f64;
        // Levels of domains may have come up since.
        let before = |name: &str| {
            begin.counters.iter().find(|(known, _, _)| known == name).map_or(0, |known| known.2)
        };
        let deltas: Vec<(String, &'static str, u64)> = end
            .counters
            .iter()
            .map(|(name, unit, end)| (name.clone(), *unit, end - before(name)))
            .collect();
        let delta = |name: &str| {
            deltas.iter().find(|(known, _, _)| known == name).map_or(0, |delta| delta.2) as f64
        };
        let run = delta("schedstat_total_runtime_by_tasks_on_this_processor_in_jiffies");
        let wait = delta("schedstat_total_waittime_by_tasks_on_this_processor_in_jiffies");
        let all_time = (end.cpu_time - begin.cpu_time) as f64;
        let idle = delta("idle_time");
        let lock_share = percent(delta("rq_lock_wait"), all_time - idle);

        let mut figures: Vec<Figure> = Vec::new();
        for (name, unit, value) in &deltas {
            // /proc/schedstat counters are given per CPU, as the published tables do.
            let value = if name.starts_with("schedstat_") {
                *value as f64 / nr_cpus
            } else {
                *value as f64
            };
            figures.push(Figure { metric: name.clone(), value, unit, better: None });
        }
        let shares = [
            ("wait_run_ratio", if run > 0.0 { wait / run } else { 0.0 }, "ratio"),
            ("idle_share", percent(idle, all_time), "%"),
            ("rq_lock_share", lock_share, "%"),
        ];
        figures.extend(shares.map(|(metric, value, unit)| Figure {
            metric: metric.into(),
            value,
            unit,
            better: None,
        }));

        figures.extend(self.occupancy.figures());

        Outcome {
            figures: self.figures_of_parts(begin, end, lock_share),
            statistics: Statistics {
                simulated_ns: self.now,
                events: self.measurement.events,
                wakeups: self.measurement.wakeups,
                switches: self.measurement.switches,
                figures,
                load_balance: end
                    .load_balance
                    .iter()
                    .map(|end| end.since(&begin.load_balance))
                    .collect(),
                schedstat: schedstat::schedstat(self),
                proc_sched: schedstat::first_tasks(self)
                    .map(|task| schedstat::proc_sched(self, task))
                    .collect(),
            },
        }
    }

    fn figures_of_parts(&self, begin: &Snapshot, end: &Snapshot, lock_share: f64) -> Vec<Figure> {
        let mut figures = Vec::new();
        let parts = self.measurement.parts(self.workload);
        for ((part, name, metrics), units) in parts.zip(&begin.units) {
            let window = PartWindow {
                part,
                seconds: part.end(end.time).saturating_sub(begin.time) as f64 / 1e9,
                done: (part.units - units) as f64,
                now: end.time,
                lock_share,
            };
            figures.extend(metrics.iter().filter_map(|metric| {
                let (value, better) = window.value(metric)?;
                let (metric, unit) = (metric.name_in(name), metric.unit());
                Some(Figure { metric, value, unit, better: Some(better) })
            }));
        }
        figures
    }
}

/// A part of the workload in the window, which ends with the part if that is earlier.
struct PartWindow<'a> {
    part: &'a Part,
    seconds: f64,
    /// Units of work.
    done: f64,
    now: Time,
    lock_share: f64,
}

impl PartWindow<'_> {
    /// None where the run has nothing to say: no sample, no unit of work.
    fn value(&self, metric: &Metric) -> Option<(f64, Better)> {
        let PartWindow { part, seconds, done, now, lock_share } = *self;
        match *metric {
            Metric::Time { units } if part.units >= units => {
                Some((part.since_start(now) as f64 / 1e9, Better::Lower))
            }
            Metric::Time { units } if done > 0.0 => {
                Some((units as f64 * seconds / done, Better::Lower))
            }
            Metric::Throughput { scale, .. } if seconds > 0.0 => {
                Some((done / seconds * scale, Better::Higher))
            }
            Metric::WakeupLatency { quantile } if !part.latencies.is_empty() => {
                let latency = part.latencies.value_at_quantile(quantile);
                Some((latency as f64 / 1e3, Better::Lower))
            }
            Metric::BestRate { section, bytes, .. } => {
                let shortest = part.shortest_section(section)?;
                Some((bytes as f64 * 1e3 / shortest as f64, Better::Higher))
            }
            Metric::RunQueueLockShare => Some((lock_share, Better::Lower)),
            _ => None,
        }
    }
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { 100.0 * part / whole } else { 0.0 }
}
