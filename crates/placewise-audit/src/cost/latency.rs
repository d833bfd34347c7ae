//! How long tasks waited for a CPU after a placement, by how far it sent them.
//!
//! The latency of a wakeup goes from sched_waking to the sched_switch to the
//! wakee, that of a fork from sched_wakeup_new. The way to the run queue, idle
//! exit and the context switch are part of it; the part that the task was queued
//! while another ran on its CPU is told apart. A task that is moved meanwhile
//! waits on, and its wait is that of the placement that began it.
//!
//! Only placements count. Limits: waits that last beyond the trace, or end in a
//! gap of it, are left out.

use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};

use crate::steps::by_number::ByTask;
use crate::steps::task::TaskNumber;
use crate::verdict::Kind;
use placewise_policy::Distance;

/// Digits of a quantile that are right.
const PRECISION: u8 = 3;

/// What is told of many times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    pub count: u64,
    /// Right to three digits.
    pub p50_ns: u64,
    /// Right to three digits.
    pub p99_ns: u64,
    pub max_ns: u64,
    pub total_ns: u64,
}

/// Waits that began with placements of one distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    #[serde(serialize_with = "word")]
    pub distance: Distance,
    pub wakeup_to_run: Quantiles,
    /// Queued while another task ran on the CPU; only waits where that was so at all.
    pub behind_another: Quantiles,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LatencyReport {
    /// In the order of [`Distance::ALL`].
    pub wakeups: [Latency; NR_DISTANCES],
    pub forks: [Latency; NR_DISTANCES],
}

const NR_DISTANCES: usize = Distance::ALL.len();

fn word<S: Serializer>(distance: &Distance, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(distance.word())
}

struct Times {
    /// Of 32 bits, since most of a histogram is empty; it would take a trace of 100 GB to fill one.
    histogram: Histogram<u32>,
    max_ns: u64,
    total_ns: u64,
}

impl Default for Times {
    fn default() -> Self {
        let mut histogram = Histogram::new(PRECISION).expect("the precision is valid");
        histogram.auto(true);
        Times { histogram, max_ns: 0, total_ns: 0 }
    }
}

impl Times {
    fn record(&mut self, ns: u64) {
        self.histogram.record(ns).expect("the histogram grows");
        self.max_ns = self.max_ns.max(ns);
        self.total_ns += ns;
    }

    fn quantiles(&self) -> Quantiles {
        let histogram = &self.histogram;
        let at = |quantile| histogram.lowest_equivalent(histogram.value_at_quantile(quantile));
        Quantiles {
            count: self.histogram.len(),
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            max_ns: self.max_ns,
            total_ns: self.total_ns,
        }
    }
}

#[derive(Default)]
struct Waits {
    wakeup_to_run: Times,
    behind_another: Times,
}

impl Waits {
    fn latency(&self, distance: Distance) -> Latency {
        Latency {
            distance,
            wakeup_to_run: self.wakeup_to_run.quantiles(),
            behind_another: self.behind_another.quantiles(),
        }
    }
}

/// A wakeup, or a fork, that may become a wait.
#[derive(Clone, Copy, Default)]
struct Begun {
    time_ns: u64,
    placed: Option<(Kind, Distance)>,
}

/// Measures the waits of a trace.
#[derive(Default)]
pub struct LatencyMeter {
    begun: ByTask<Begun>,
    wakeups: [Waits; NR_DISTANCES],
    forks: [Waits; NR_DISTANCES],
}

impl LatencyMeter {
    /// sched_waking or sched_wakeup_new.
    pub fn woken(&mut self, task: TaskNumber, time_ns: u64) {
        *self.begun.of(task) = Begun { time_ns, placed: None };
    }

    /// The wakeup turns out to be a placement.
    pub fn placed(&mut self, task: TaskNumber, kind: Kind, distance: Distance) {
        self.begun.of(task).placed = Some((kind, distance));
    }

    /// The task is switched in; how long it has waited, if it has since a placement.
    pub fn switched_in(&mut self, task: TaskNumber, time_ns: u64, behind_ns: u64) -> Option<u64> {
        let begun = self.begun.of(task);
        let (kind, distance) = begun.placed.take()?;
        let latency = time_ns - begun.time_ns;
        let waits = match kind {
            Kind::Wakeup => &mut self.wakeups[distance as usize],
            Kind::Fork => &mut self.forks[distance as usize],
        };
        waits.wakeup_to_run.record(latency);
        if behind_ns > 0 {
            waits.behind_another.record(behind_ns);
        }
        Some(latency)
    }

    /// For how long the task has been awake, placed or not.
    pub fn since_woken(&mut self, task: TaskNumber, time_ns: u64) -> u64 {
        time_ns - self.begun.of(task).time_ns
    }

    /// The task's wait ends, nobody knows when.
    pub fn forget(&mut self, task: TaskNumber) {
        self.begun.of(task).placed = None;
    }

    /// All waits end, nobody knows when.
    pub fn forget_waits(&mut self) {
        self.begun.iter_mut().for_each(|begun| begun.placed = None);
    }

    pub fn report(&self) -> LatencyReport {
        let of = |waits: &[Waits; NR_DISTANCES]| {
            Distance::ALL.map(|distance| waits[distance as usize].latency(distance))
        };
        LatencyReport { wakeups: of(&self.wakeups), forks: of(&self.forks) }
    }
}
