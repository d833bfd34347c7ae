//! What a run reports: the workload's figures, and what the counters have come to in the window.

use hdrhistogram::Histogram;
use placewise_workload::program::Metric;

use super::counters::Snapshot;
use super::{idle_searches, schedstat};
use crate::engine::Engine;
use crate::outcome::{Better, Figure, Outcome, Statistics};
use crate::state::event_queue::Time;
use crate::state::measure::Part;

impl Engine<'_> {
    /// The figures of the window between two snapshots.
    pub(crate) fn outcome(&self, begin: &Snapshot, end: &Snapshot) -> Outcome {
        let nr_cpus = self.hardware.machine.online().len() as f64;
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
        let beside = [
            ("wait_run_ratio", if run > 0.0 { wait / run } else { 0.0 }, "ratio"),
            ("idle_share", percent(idle, all_time), "%"),
            ("rq_lock_share", lock_share, "%"),
            ("warm_up", self.measurement.warm_up() as f64 / 1e9, "s"),
            ("settled", f64::from(u8::from(self.measurement.has_settled())), "ratio"),
        ];
        figures.extend(beside.map(|(metric, value, unit)| Figure {
            metric: metric.into(),
            value,
            unit,
            better: None,
        }));

        figures.extend(idle_searches::rates(delta));
        figures.extend(self.measurement.occupancy.figures());

        Outcome {
            figures: self.figures_of_parts(begin, end, lock_share),
            statistics: Statistics {
                simulated_ns: self.now,
                events: self.measurement.events,
                wakeups: self.measurement.wakeups,
                switches: self.measurement.switches,
                account: end.account.since(&begin.account),
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
            // What was done before the window took as long as it did; the rest goes on as in the window.
            Metric::Time { units } if done > 0.0 => {
                let rest = units - part.units;
                let elapsed = part.since_start(now) as f64 / 1e9;
                Some((elapsed + rest as f64 * seconds / done, Better::Lower))
            }
            Metric::Throughput { scale, .. } if seconds > 0.0 => {
                Some((done / seconds * scale, Better::Higher))
            }
            Metric::ThroughputPerPair { pairs, .. } if seconds > 0.0 => {
                Some((done / seconds / f64::from(pairs), Better::Higher))
            }
            Metric::WakeupLatency { quantile } => latency(&part.latencies, quantile),
            Metric::WokenLatency { quantile } => latency(part.woken_latencies.as_ref()?, quantile),
            Metric::RequestLatency { quantile } => {
                latency(part.request_latencies.as_ref()?, quantile)
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

/// In us; none of no sample.
fn latency(latencies: &Histogram<u64>, quantile: f64) -> Option<(f64, Better)> {
    let latency = || latencies.value_at_quantile(quantile) as f64 / 1e3;
    (!latencies.is_empty()).then(|| (latency(), Better::Lower))
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { 100.0 * part / whole } else { 0.0 }
}
