//! When measuring begins and ends, and what is counted meanwhile, for each part of the workload.

use hdrhistogram::Histogram;
use placewise_machine::Machine;
use placewise_policy::TaskId;
use placewise_workload::program::{Metric, Op, PartId, Program, SECTIONS, Window, Workload};

use crate::state::event_queue::Time;
use crate::state::idle_searches::IdleSearches;
use crate::state::occupancy::Occupancy;
use crate::state::transient::Transient;

/// Significant digits of latencies.
const DIGITS: u8 = 3;
/// Longer latencies count as this one: a minute.
const LONGEST: Time = 60_000_000_000;

/// An event is the first that is not before it.
pub enum Milestone {
    /// The window begins; what was counted before is left out.
    Begin,
    /// The window is over, and stays.
    End,
}

pub struct Measurement {
    window: Window,
    /// When the warm-up begins: once all parts have started.
    started: Time,
    /// When the window begins; later, and for longer, should the workload turn out not to have settled by then.
    begin: Time,
    /// Counters are compared with what they were when the window began.
    window_begun: bool,
    transient: Transient,
    /// When a window or a batch of the transient begins or ends next.
    next_look: Time,
    /// What is in no part comes first, then each part.
    parts: Vec<Part>,
    pub events: u64,
    pub wakeups: u64,
    pub switches: u64,
    pub migrations: Migrations,
    pub idle_searches: IdleSearches,
    pub occupancy: Occupancy,
}

/// What is measured of a part of the workload.
pub struct Part {
    started: Option<Time>,
    first_task: Option<TaskId>,
    /// Its first task has exited then.
    ended: Option<Time>,
    /// No wait is sampled, but a latency is asked for: that of timers and sleeps.
    samples_timers: bool,
    /// The part whose latencies these are as well: what is in no part has none.
    within: Option<u32>,
    pub latencies: Histogram<u64>,
    /// Of wakeups by other tasks, if they are asked for.
    pub woken_latencies: Option<Histogram<u64>>,
    /// Of requests, if they are asked for.
    pub request_latencies: Option<Histogram<u64>>,
    sections: [Section; SECTIONS],
    pub units: u64,
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
    /// To where their memory is.
    pub numa: u64,
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
    pub fn new(machine: &Machine, workload: &Workload) -> Self {
        let of_parts = workload.parts.iter().zip(0..).map(|(part, id)| Part {
            within: Some(part.within.map_or(0, |outer| outer + 1)),
            ..Part::new(workload, Some(id), &part.metrics)
        });
        let parts = std::iter::once(Part::new(workload, None, &workload.metrics)).chain(of_parts);
        let mut measurement = Measurement {
            window: workload.window,
            started: Time::MAX,
            begin: Time::MAX,
            window_begun: false,
            transient: Transient::new(
                workload.window,
                workload.parts.len() + 1,
                machine.nr_nodes(),
            ),
            next_look: Time::MAX,
            parts: parts.collect(),
            events: 0,
            wakeups: 0,
            switches: 0,
            migrations: Migrations::default(),
            idle_searches: IdleSearches::default(),
            occupancy: Occupancy::new(machine, workload),
        };
        measurement.plan_window();
        measurement
    }

    /// The part that the `number`th task of a fork of a program counts for, as the number that the
    /// other functions take.
    pub fn part_of(program: &Program, number: u32) -> u32 {
        program.part.map_or(0, |part| part + 1 + number * program.part_step)
    }

    /// What is in no part, then each part, with its name and metrics.
    pub fn parts<'a>(
        &'a self,
        workload: &'a Workload,
    ) -> impl Iterator<Item = (&'a Part, &'a str, &'a [Metric])> {
        let named = workload.parts.iter().map(|part| (part.name.as_str(), &part.metrics[..]));
        let all = std::iter::once(("", &workload.metrics[..])).chain(named);
        self.parts.iter().zip(all).map(|(part, (name, metrics))| (part, name, metrics))
    }

    /// The measured phase of a part begins with the first of its tasks that says so.
    pub fn start(&mut self, part: u32, now: Time) {
        let started = &mut self.parts[part as usize].started;
        if started.is_none() {
            *started = Some(now);
            self.plan_window();
        }
    }

    fn plan_window(&mut self) {
        let started: Option<Vec<Time>> = self.parts.iter().map(|part| part.started).collect();
        let last = started.and_then(|started| started.into_iter().max());
        let Some(last) = last else { return };
        self.started = last;
        self.begin = last + self.window.warm_up;
        self.next_look = self.transient.next_batch(last).min(self.begin);
    }

    pub fn end(&self) -> Time {
        self.begin.saturating_add(self.window.measure)
    }

    /// May an event at `time` be the first one of something?
    #[inline]
    pub fn is_due(&self, time: Time) -> bool {
        time >= self.next_look
    }

    /// What it is the first one of; `shares` are what nodes have of the tasks.
    pub fn milestone(
        &mut self,
        time: Time,
        shares: impl FnOnce() -> Vec<f64>,
    ) -> Option<Milestone> {
        let units = self.parts.iter().map(|part| part.units);
        self.transient.end_batches(time.min(self.end()) - self.started, units, shares);
        if self.window_begun && time >= self.end() {
            self.transient.judge(self.warm_up());
            let has_gone_on = self.warm_up() > self.window.warm_up;
            if self.transient.is_over() || has_gone_on {
                return Some(Milestone::End);
            }
            // It goes on for as long as it has lasted, all of which is the warm-up of another window.
            self.begin = self.end();
            self.window.measure = self.warm_up();
            self.window_begun = false;
        }
        let begins = !self.window_begun && time >= self.begin;
        if begins {
            self.window_begun = true;
            self.parts.iter_mut().for_each(Part::forget_samples);
        }
        let next = if self.window_begun { self.end() } else { self.begin };
        self.next_look = self.transient.next_batch(self.started).min(next);
        begins.then_some(Milestone::Begin)
    }

    pub fn warm_up(&self) -> Time {
        self.begin - self.started
    }

    /// False where it had not by the end of its second window either.
    pub fn has_settled(&self) -> bool {
        self.transient.is_over()
    }

    /// The window is over, or will not be.
    pub fn is_over(&self, time: Time) -> bool {
        self.window_begun && time >= self.end()
    }

    #[inline]
    pub fn count(&mut self, part: u32) {
        self.parts[part as usize].units += 1;
    }

    pub fn task_created(&mut self, part: u32, task: TaskId) {
        self.parts[part as usize].first_task.get_or_insert(task);
    }

    pub fn task_exited(&mut self, part: u32, task: TaskId, now: Time) {
        let part = &mut self.parts[part as usize];
        if part.first_task == Some(task) {
            part.ended = Some(now);
        }
    }

    pub fn begin_section(&mut self, part: u32, section: u8, time: Time) {
        self.parts[part as usize].sections[section as usize].began = time;
    }

    pub fn end_section(&mut self, part: u32, section: u8, time: Time) {
        let section = &mut self.parts[part as usize].sections[section as usize];
        let took = time - section.began;
        if self.window_begun {
            section.shortest = Some(section.shortest.map_or(took, |shortest| shortest.min(took)));
        }
    }

    /// A wait that is sampled is over. Latencies of zero are dropped, as schbench does.
    pub fn sample_latency(&mut self, part: u32, now: Time, stamp: Time) {
        self.sample(part, now, stamp, |part| Some(&mut part.latencies));
    }

    /// Of the part and of all that it is within.
    fn sample(
        &mut self,
        part: u32,
        now: Time,
        stamp: Time,
        histogram: fn(&mut Part) -> Option<&mut Histogram<u64>>,
    ) {
        if !self.window_begun || now <= stamp {
            return;
        }
        let mut at = Some(part);
        while let Some(part) = at.map(|part| &mut self.parts[part as usize]) {
            if let Some(histogram) = histogram(part) {
                histogram.saturating_record(now - stamp);
            }
            at = part.within;
        }
    }

    /// A timer or sleep is over.
    pub fn sample_timer(&mut self, part: u32, now: Time, expiry: Time) {
        if self.parts[part as usize].samples_timers {
            self.sample_latency(part, now, expiry);
        }
    }

    /// A request is served.
    pub fn sample_request(&mut self, part: u32, now: Time, began: Time) {
        self.sample(part, now, began, |part| part.request_latencies.as_mut());
    }

    pub fn samples_woken(&self, part: u32) -> bool {
        self.parts[part as usize].woken_latencies.is_some()
    }

    /// A task runs that another has woken.
    pub fn sample_woken(&mut self, part: u32, now: Time, woken: Time) {
        self.sample(part, now, woken, |part| part.woken_latencies.as_mut());
    }
}

impl Part {
    fn new(workload: &Workload, id: Option<PartId>, metrics: &[Metric]) -> Self {
        let ops = || {
            let programs = workload.programs.iter().filter(|program| program.part == id);
            programs.flat_map(|program| &program.ops)
        };
        let has_start = ops().any(|op| *op == Op::Start);
        let samples_waits = ops().any(|op| *op == Op::Wait { sample: true });
        let asks = |wanted: fn(&Metric) -> bool| metrics.iter().any(wanted);
        let wants_latency = asks(|metric| matches!(metric, Metric::WakeupLatency { .. }));
        let wants_request = asks(|metric| matches!(metric, Metric::RequestLatency { .. }));
        let wants_woken = asks(|metric| matches!(metric, Metric::WokenLatency { .. }));
        let histogram =
            || Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("the bounds are valid");
        Part {
            started: if has_start { None } else { Some(0) },
            first_task: None,
            ended: None,
            samples_timers: wants_latency && !samples_waits,
            within: None,
            latencies: histogram(),
            woken_latencies: wants_woken.then(histogram),
            request_latencies: wants_request.then(histogram),
            sections: [Section::default(); SECTIONS],
            units: 0,
        }
    }

    /// Those of a window that turned out to be too early.
    fn forget_samples(&mut self) {
        let asked_for = [&mut self.woken_latencies, &mut self.request_latencies];
        self.latencies.reset();
        asked_for.into_iter().flatten().for_each(Histogram::reset);
        self.sections.iter_mut().for_each(|section| section.shortest = None);
    }

    /// When its first task has exited, or `now`.
    pub fn end(&self, now: Time) -> Time {
        self.ended.unwrap_or(now)
    }

    /// Time from the start of its measured phase to its end, or until `now`.
    pub fn since_start(&self, now: Time) -> Time {
        let end = self.end(now);
        end - self.started.unwrap_or(end)
    }

    /// The shortest pass through a section that ended inside the window.
    pub fn shortest_section(&self, section: u8) -> Option<Time> {
        self.sections[section as usize].shortest.filter(|&shortest| shortest > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_of_a_window_that_turned_out_to_be_too_early() {
        let main = Program::new("main", vec![Op::Exit]);
        let workload = Workload::new("test", vec![main], Window::default());
        let quantile = 0.5;
        let asked = [Metric::WokenLatency { quantile }, Metric::RequestLatency { quantile }];
        let mut part = Part::new(&workload, None, &asked);
        part.latencies.saturating_record(1);
        part.woken_latencies.as_mut().expect("it is asked for").saturating_record(1);
        part.request_latencies.as_mut().expect("it is asked for").saturating_record(1);
        part.forget_samples();
        assert!(part.latencies.is_empty());
        let asked_for = [part.woken_latencies, part.request_latencies];
        assert!(asked_for.iter().flatten().all(Histogram::is_empty));
    }
}
