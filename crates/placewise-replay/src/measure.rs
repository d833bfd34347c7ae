//! What a trace says of each task's turns, measured alike of a recording and of its replay: wakeups by
//! distance, how long they took, how much tasks ran and waited.
//!
//! Latency goes from sched_waking to the switch to the wakee. A task waits behind others where one ran
//! on its CPU when it got there, and after it was preempted. Limits: waits under way at the end are
//! left out; what is between two ends of a gap in the trace counts as what it was before.

use std::collections::{BTreeMap, HashMap};

use hdrhistogram::Histogram;
use placewise_audit::{Action, PrevState, Step, TaskNumber, Tasks};
use placewise_machine::Machine;
use placewise_policy::{Distance, FIRST_TASK, Placement, Policy, topology};
use placewise_workload::program::Nanos;
use serde::Serialize;

use crate::error::ReplayError;
use crate::programs::STARTER;

const NR_DISTANCES: usize = Distance::ALL.len();

/// Digits of a quantile that are right.
const PRECISION: u8 = 3;

/// What is measured of the tasks of a name, or of all.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    pub wakeups: u64,
    pub by_distance: [u64; NR_DISTANCES],
    /// Stretches of computing that ended in a sleep.
    pub segments: u64,
    /// When the last turn of any of them ended, or all did.
    pub until_ns: Nanos,
    pub run_ns: Nanos,
    /// Waited for a CPU behind another task.
    pub behind_ns: Nanos,
    /// By balancing, not by placements.
    pub migrations: u64,
    #[serde(skip)]
    latency: Histogram<u32>,
}

impl Default for Figures {
    fn default() -> Self {
        let mut latency = Histogram::new(PRECISION).expect("the precision is valid");
        latency.auto(true);
        Figures {
            wakeups: 0,
            by_distance: [0; NR_DISTANCES],
            segments: 0,
            until_ns: 0,
            run_ns: 0,
            behind_ns: 0,
            migrations: 0,
            latency,
        }
    }
}

impl Figures {
    /// From a wakeup until the task runs; `None` where nobody was woken.
    pub fn latency_ns(&self, quantile: f64) -> Option<u64> {
        let value = || self.latency.value_at_quantile(quantile);
        (!self.latency.is_empty()).then(value)
    }

    pub fn latencies(&self) -> u64 {
        self.latency.len()
    }

    /// The share of wakeups over each distance, in percent.
    pub fn distances_pct(&self) -> [f64; NR_DISTANCES] {
        self.by_distance.map(|count| count as f64 * 100.0 / self.wakeups.max(1) as f64)
    }

    #[cfg(test)]
    pub fn waited(wakeups: u32, ns: Nanos) -> Self {
        let mut figures = Figures { wakeups: wakeups.into(), ..Figures::default() };
        figures.latency.record_n(ns, wakeups).expect("the histogram grows");
        figures
    }

    /// With so many times the stretches of computing, and so many times the computing.
    fn stretch(&mut self, factor: f64, of_computing: f64) {
        let scaled = |count: u64| (count as f64 * factor).round() as u64;
        self.run_ns = (self.run_ns as f64 * of_computing).round() as u64;
        self.by_distance = self.by_distance.map(scaled);
        for count in [
            &mut self.wakeups,
            &mut self.segments,
            &mut self.until_ns,
            &mut self.behind_ns,
            &mut self.migrations,
        ] {
            *count = scaled(*count);
        }
    }

    fn add(&mut self, other: &Figures) {
        self.wakeups += other.wakeups;
        for (all, more) in self.by_distance.iter_mut().zip(other.by_distance) {
            *all += more;
        }
        self.segments += other.segments;
        self.until_ns = self.until_ns.max(other.until_ns);
        self.run_ns += other.run_ns;
        self.behind_ns += other.behind_ns;
        self.migrations += other.migrations;
        self.latency.add(&other.latency).expect("the histogram grows");
    }

    /// What was added, but for `until_ns`.
    fn take(&mut self, other: &Figures) {
        self.wakeups -= other.wakeups;
        for (all, less) in self.by_distance.iter_mut().zip(other.by_distance) {
            *all -= less;
        }
        self.segments -= other.segments;
        self.run_ns -= other.run_ns;
        self.behind_ns -= other.behind_ns;
        self.migrations -= other.migrations;
        self.latency.subtract(&other.latency).expect("it was added");
    }
}

/// Fewer stretches of computing tell no rate.
const TELLING: u64 = 16;

/// How much of a recording another one has: of the tasks of each name.
#[derive(Clone, Debug, Default)]
pub struct Shares(BTreeMap<String, Share>);

#[derive(Clone, Copy, Debug, Default)]
struct Share {
    stretches: Part,
    computing: Part,
}

#[derive(Clone, Copy, Debug, Default)]
struct Part([u64; 2]);

impl Part {
    fn add(&mut self, more: [u64; 2]) {
        self.0 = [self.0[0] + more[0], self.0[1] + more[1]];
    }

    /// 1 of nothing.
    fn ratio(self) -> f64 {
        let [part, whole] = self.0;
        if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
    }

    fn tells(self) -> bool {
        self.0[1] >= TELLING
    }
}

impl Shares {
    /// Stretches of computing and what was computed in them, each of the part and of the whole.
    pub fn note(&mut self, name: &str, stretches: [u64; 2], computing: [Nanos; 2]) {
        let share = self.0.entry(name.to_owned()).or_default();
        share.stretches.add(stretches);
        share.computing.add(computing);
    }
}

/// What a trace says.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub all: Figures,
    pub by_name: BTreeMap<String, Figures>,
    /// Its times are not of whole microseconds, as most are.
    pub tells_nanos: bool,
}

impl Measured {
    /// How long tasks of each name ran, by the names that they had in the end: those are what a replay
    /// calls them from the start.
    pub fn take_run_times<'a>(&mut self, ran: impl Iterator<Item = (&'a str, Nanos)>) {
        self.by_name.values_mut().for_each(|figures| figures.run_ns = 0);
        for (name, ns) in ran {
            self.by_name.entry(name.to_owned()).or_default().run_ns += ns;
        }
        self.all = self.of(|_| true);
    }

    /// Other figures of the tasks of a name; returns those that it had. When all were done stays.
    pub fn replace(&mut self, name: &str, figures: Figures) -> Figures {
        self.all.add(&figures);
        let before = self.by_name.insert(name.to_owned(), figures).unwrap_or_default();
        self.all.take(&before);
        before
    }

    /// What a recording would have said in which the tasks had done as much.
    pub fn stretched(&self, shares: &Shares) -> Self {
        let mut by_name = self.by_name.clone();
        for (name, figures) in &mut by_name {
            let share = shares.0.get(name).copied().unwrap_or_default();
            let factor = if share.stretches.tells() { share.stretches.ratio() } else { 1.0 };
            figures.stretch(factor, share.computing.ratio());
            // Else it has no rate to speak of.
            figures.until_ns *= u64::from(share.stretches.tells());
        }
        let mut stretched = Measured { by_name, all: Figures::default(), ..*self };
        stretched.all = stretched.of(|_| true);
        stretched
    }

    /// Of the tasks of all names that are `wanted`.
    pub fn of(&self, wanted: impl Fn(&str) -> bool) -> Figures {
        let mut all = Figures::default();
        let of_names = self.by_name.iter().filter(|(name, _)| wanted(name));
        of_names.for_each(|(_, figures)| all.add(figures));
        all
    }
}

#[derive(Clone, Copy, Default)]
struct Turn {
    woken: Option<Nanos>,
    waits_behind: Option<Nanos>,
    runs_since: Option<Nanos>,
}

pub struct Meter {
    state: Placement,
    /// Measured from the first wakeup of this task on, not before.
    begins_with: Option<u32>,
    begin: Option<Nanos>,
    now: Nanos,
    current: Vec<Option<TaskNumber>>,
    turns: HashMap<TaskNumber, Turn>,
    by_name: BTreeMap<String, Figures>,
    tells_nanos: bool,
}

impl Meter {
    /// `begins_with`: the pid whose first wakeup begins the measuring; else the first step does.
    pub fn new(
        machine: &Machine,
        kernel: &Policy,
        begins_with: Option<u32>,
    ) -> Result<Self, ReplayError> {
        let (state, _) = topology::boot(machine, &kernel.profile)?;
        Ok(Meter {
            state,
            begins_with,
            begin: None,
            now: 0,
            current: vec![None; machine.cpus.len()],
            turns: HashMap::new(),
            by_name: BTreeMap::new(),
            tells_nanos: false,
        })
    }

    pub fn step(&mut self, step: &Step, tasks: &Tasks) {
        self.tells_nanos |= !step.time_ns.is_multiple_of(1_000);
        self.begin_at(step, tasks);
        self.now = step.time_ns.saturating_sub(self.begin.unwrap_or(step.time_ns));
        match step.action {
            Action::Running { task } => self.runs(step.cpu, task),
            Action::Waking { task, prev_cpu, outcome } => {
                self.turn(task).woken = Some(self.now);
                let to = outcome.map_or(prev_cpu, |outcome| outcome.cpu);
                let distance = Distance::of(&self.state, prev_cpu, to);
                self.figures(task, tasks, |figures| {
                    figures.wakeups += 1;
                    figures.by_distance[distance as usize] += 1;
                });
            }
            Action::Wakeup { task, target_cpu } | Action::WakeupNew { task, target_cpu } => {
                let is_behind = self.current[target_cpu as usize].is_some_and(|it| it != task);
                self.turn(task).waits_behind = is_behind.then_some(self.now);
            }
            Action::Switch { prev, prev_state, next } => {
                self.switch_out(prev, prev_state, tasks);
                self.current[step.cpu as usize] = None;
                self.switch_in(step.cpu, next, tasks);
            }
            Action::Migrate { task, placement: false, .. } => {
                self.figures(task, tasks, |figures| figures.migrations += 1);
            }
            Action::Forgotten { task } => _ = self.turns.remove(&task),
            Action::Lost { .. } => self.current[step.cpu as usize] = None,
            _ => {}
        }
    }

    fn begin_at(&mut self, step: &Step, tasks: &Tasks) {
        if self.begin.is_some() {
            return;
        }
        let begins = match (self.begins_with, &step.action) {
            (None, _) => true,
            (Some(pid), Action::Waking { .. }) => {
                let current = self.current[step.cpu as usize];
                current.is_some_and(|task| tasks.get(task).pid == pid)
            }
            _ => false,
        };
        if begins {
            self.begin = Some(step.time_ns);
            self.turns
                .values_mut()
                .filter_map(|turn| turn.runs_since.as_mut())
                .for_each(|it| *it = 0);
        }
    }

    fn turn(&mut self, task: TaskNumber) -> &mut Turn {
        self.turns.entry(task).or_default()
    }

    fn figures(&mut self, task: TaskNumber, tasks: &Tasks, count: impl FnOnce(&mut Figures)) {
        let name = tasks.name_of(task);
        if task < FIRST_TASK || self.begin.is_none() || name == STARTER {
            return;
        }
        if let Some(figures) = self.by_name.get_mut(name) {
            return count(figures);
        }
        count(self.by_name.entry(name.to_owned()).or_default());
    }

    fn runs(&mut self, cpu: u32, task: TaskNumber) {
        self.current[cpu as usize] = (task >= FIRST_TASK).then_some(task);
        let now = self.now;
        self.turn(task).runs_since.get_or_insert(now);
    }

    fn switch_out(&mut self, prev: TaskNumber, state: PrevState, tasks: &Tasks) {
        let now = self.now;
        let turn = self.turn(prev);
        let ran = turn.runs_since.take().map_or(0, |since| now.saturating_sub(since));
        turn.waits_behind = (state == PrevState::Runnable).then_some(now);
        self.figures(prev, tasks, |figures| {
            figures.until_ns = now;
            figures.run_ns += ran;
            figures.segments += u64::from(state != PrevState::Runnable);
        });
        if state == PrevState::Dead {
            self.turns.remove(&prev);
        }
    }

    fn switch_in(&mut self, cpu: u32, next: TaskNumber, tasks: &Tasks) {
        if next < FIRST_TASK {
            return;
        }
        let now = self.now;
        let turn = self.turn(next);
        let latency = turn.woken.take().map(|woken| now.saturating_sub(woken));
        let behind = turn.waits_behind.take().map_or(0, |since| now.saturating_sub(since));
        turn.runs_since = Some(now);
        self.current[cpu as usize] = Some(next);
        self.figures(next, tasks, |figures| {
            figures.behind_ns += behind;
            if let Some(latency) = latency {
                figures.latency.record(latency).expect("the histogram grows");
            }
        });
    }

    /// The trace is over.
    pub fn end(mut self, tasks: &Tasks) -> Measured {
        let running: Vec<TaskNumber> = self.current.iter().copied().flatten().collect();
        for task in running {
            let now = self.now;
            let ran =
                self.turn(task).runs_since.take().map_or(0, |since| now.saturating_sub(since));
            self.figures(task, tasks, |figures| {
                figures.until_ns = now;
                figures.run_ns += ran;
            });
        }
        let Meter { by_name, tells_nanos, .. } = self;
        let mut measured = Measured { all: Figures::default(), by_name, tells_nanos };
        measured.all = measured.of(|_| true);
        measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that tells no rate has what it had, and none.
    #[test]
    fn each_name_has_its_own_share_of_a_recording() {
        let mut measured = Measured::default();
        for name in ["a", "b", "c"] {
            let figures = Figures { until_ns: 1_000, run_ns: 1_000, ..Figures::waited(100, 10) };
            measured.replace(name, figures);
        }
        let mut shares = Shares::default();
        shares.note("a", [200, 100], [300, 100]);
        shares.note("b", [50, 100], [100, 100]);
        shares.note("c", [9, 3], [100, 100]);
        let stretched = measured.stretched(&shares);
        let of = |name: &str| {
            let figures = &stretched.by_name[name];
            [figures.wakeups, figures.until_ns, figures.run_ns]
        };
        assert_eq!(of("a"), [200, 2_000, 3_000]);
        assert_eq!(of("b"), [50, 500, 1_000]);
        assert_eq!(of("c"), [100, 0, 1_000]);
        assert_eq!(stretched.all.wakeups, 350);
    }
}
