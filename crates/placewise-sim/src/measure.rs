//! When measuring begins and ends, and what is counted meanwhile.

use hdrhistogram::Histogram;
use placewise_workload::program::{Metric, Op, SECTIONS, Workload};

use crate::event_queue::Time;

/// Significant digits of latencies.
const DIGITS: u8 = 3;
/// Longer latencies count as this one: a minute.
const LONGEST: Time = 60_000_000_000;

pub struct Measurement {
    warm_up: Time,
    measure: Time,
    started: Option<Time>,
    /// Counters are compared with what they were when the window began.
    window_begun: bool,
    /// No wait is sampled, but a latency is asked for: that of timers and sleeps.
    pub samples_timers: bool,
    pub latencies: Histogram<u64>,
    sections: [Section; SECTIONS],
    pub units: u64,
    pub events: u64,
    pub wakeups: u64,
    pub switches: u64,
    pub migrations: Migrations,
}

/// Tasks that changed CPU, by cause; forks that left the creator's CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Migrations {
    pub fork: u64,
    pub wakeup: u64,
    pub periodic: u64,
    pub newly_idle: u64,
    pub nohz: u64,
    pub active: u64,
    /// By changes from outside: they might not stay.
    pub displaced: u64,
}

/// A timed section of a program.
#[derive(Clone, Copy, Default)]
struct Section {
    began: Time,
    shortest: Option<Time>,
}

impl Measurement {
    pub fn new(workload: &Workload) -> Self {
        let ops = || workload.programs.iter().flat_map(|program| &program.ops);
        let has_start = ops().any(|op| *op == Op::Start);
        let samples_waits = ops().any(|op| *op == Op::Wait { sample: true });
        let wants_latency =
            workload.metrics.iter().any(|metric| matches!(metric, Metric::WakeupLatency { .. }));
        Measurement {
            warm_up: workload.window.warm_up,
            measure: workload.window.measure,
            started: if has_start { None } else { Some(0) },
            window_begun: false,
            samples_timers: wants_latency && !samples_waits,
            latencies: Histogram::new_with_bounds(1, LONGEST, DIGITS)
                .expect("the bounds are valid"),
            sections: [Section::default(); SECTIONS],
            units: 0,
            events: 0,
            wakeups: 0,
            switches: 0,
            migrations: Migrations::default(),
        }
    }

    /// The measured part begins with the first task that says so.
    pub fn start(&mut self, now: Time) {
        self.started.get_or_insert(now);
    }

    fn begin(&self) -> Time {
        self.started.map_or(Time::MAX, |started| started + self.warm_up)
    }

    pub fn end(&self) -> Time {
        self.begin().saturating_add(self.measure)
    }

    /// True once: at the first event inside the window.
    #[inline]
    pub fn window_begins(&mut self, time: Time) -> bool {
        if self.window_begun || time < self.begin() {
            return false;
        }
        self.window_begun = true;
        true
    }

    #[inline]
    pub fn is_over(&self, time: Time) -> bool {
        self.window_begun && time >= self.end()
    }

    #[inline]
    pub fn count(&mut self) {
        self.units += 1;
    }

    pub fn begin_section(&mut self, section: u8, time: Time) {
        self.sections[section as usize].began = time;
    }

    pub fn end_section(&mut self, section: u8, time: Time) {
        let section = &mut self.sections[section as usize];
        let took = time - section.began;
        if self.window_begun {
            section.shortest = Some(section.shortest.map_or(took, |shortest| shortest.min(took)));
        }
    }

    /// The shortest pass through a section that ended inside the window.
    pub fn shortest_section(&self, section: u8) -> Option<Time> {
        self.sections[section as usize].shortest.filter(|&shortest| shortest > 0)
    }

    /// Latencies of zero are dropped, as schbench does.
    pub fn sample_latency(&mut self, now: Time, stamp: Time) {
        if self.window_begun && now > stamp {
            self.latencies.saturating_record(now - stamp);
        }
    }

    /// Time since the workload said it started.
    pub fn since_start(&self, now: Time) -> Time {
        now - self.started.unwrap_or(now)
    }
}
