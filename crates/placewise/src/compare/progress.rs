//! How long a comparison takes: told before it starts, and by a bar while it runs.
//!
//! Before, each case is run for a short part of its window and scaled up; then the runs that are done
//! tell, case by case, for cases differ by a factor of hundreds. None of it reaches the report.
//!
//! Limits: a run that ends before its window does, or grows slower in it, is estimated wrongly until it
//! has run once.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use placewise_sim::{Scenario, simulate};
use placewise_workload::program::{Nanos, Window};

use super::args::CompareArgs;
use super::plan::{Cell, Plan};
use crate::parallel;

/// The part of a window that is run to estimate the whole.
const PROBE: u64 = 50;
/// In shorter ones next to nothing happens.
const LEAST_PROBE: Nanos = 1_000_000;
/// What takes longer says so also where nobody sees a bar.
const LONG: Duration = Duration::from_secs(30);
/// A bar for less would only flicker.
const SHORT: Duration = Duration::from_secs(2);
const FULL_BAR: u64 = 1_000;

pub struct Progress {
    bar: ProgressBar,
    cases: Vec<CaseTime>,
    threads: usize,
    /// When `left` was estimated.
    at: Instant,
    left: Duration,
}

/// The runs of a case under all combinations.
#[derive(Clone, Default)]
struct CaseTime {
    /// Of a run, before any was done.
    estimate: Duration,
    measured: Duration,
    done: u32,
    wanted: u32,
}

impl Progress {
    pub fn start(plan: &Plan, args: &CompareArgs) -> Self {
        let bar = ProgressBar::new(FULL_BAR);
        let template = "{bar:40} {msg}";
        bar.set_style(ProgressStyle::with_template(template).expect("it is well formed"));
        let mut progress = Self {
            bar,
            cases: estimates(plan, args),
            threads: parallel::threads(args.jobs),
            at: Instant::now(),
            left: Duration::ZERO,
        };
        let wanted = args.runs() * plan.combinations.len() as u32;
        progress.cases.iter_mut().for_each(|case| case.wanted = wanted);
        progress.say_before(plan, args);
        progress.show();
        progress
    }

    /// A round of more runs, of some cases.
    pub fn expect(&mut self, case: usize, runs: u32) {
        self.cases[case].wanted += runs;
    }

    pub fn done(&mut self, case: usize, took: Duration) {
        let case = &mut self.cases[case];
        case.measured += took;
        case.done += 1;
        self.show();
    }

    /// Whether the rows of a case are seen as soon as they are there.
    pub fn is_seen(&self) -> bool {
        !self.bar.is_hidden()
    }

    pub fn say(&self, lines: &str) {
        self.bar.println(lines.trim_end());
    }

    /// Time goes on while nothing ends.
    pub fn tick(&self) {
        let left = self.left.saturating_sub(self.at.elapsed());
        let all: u32 = self.cases.iter().map(|case| case.wanted).sum();
        let done: u32 = self.cases.iter().map(|case| case.done).sum();
        self.bar.set_message(format!("{done}/{all} runs, about {} left", about(left)));
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&mut self) {
        let left = left(&self.cases);
        let done: Duration = self.cases.iter().map(|case| case.measured).sum();
        let share = done.as_secs_f64() / (done + left).as_secs_f64().max(1e-9);
        (self.at, self.left) = (Instant::now(), left / self.threads as u32);
        self.bar.set_position((share * FULL_BAR as f64) as u64);
        self.tick();
    }

    fn say_before(&self, plan: &Plan, args: &CompareArgs) {
        let all = left(&self.cases) / self.threads as u32;
        if all < SHORT || (all < LONG && !stderr().is_terminal()) {
            return;
        }
        let count = |number: usize, what: &str| match number {
            1 => format!("1 {what}"),
            _ => format!("{number} {what}s"),
        };
        let quick = if args.quick { "" } else { "; --quick takes less" };
        let _ = writeln!(
            stderr(),
            "placewise: about {} on {}: {}, {}, {}{quick}",
            about(all),
            count(self.threads, "thread"),
            count(plan.cases.len(), "case"),
            count(plan.combinations.len(), "combination"),
            count(args.runs() as usize, "run"),
        );
    }
}

/// On one thread. What is not measured yet goes by the estimates, and by how these were off elsewhere.
fn left(cases: &[CaseTime]) -> Duration {
    let known = || cases.iter().filter(|case| case.done > 0);
    let measured: f64 = known().map(|case| case.measured.as_secs_f64()).sum();
    let estimated: f64 = known().map(|case| (case.estimate * case.done).as_secs_f64()).sum();
    let off = if estimated > 0.0 { measured / estimated } else { 1.0 };
    let of_case = |case: &CaseTime| match case.done {
        0 => case.estimate.mul_f64(off) * case.wanted,
        done => case.measured / done * case.wanted.saturating_sub(done),
    };
    cases.iter().map(of_case).sum()
}

/// Of one run of each case under the first combination.
fn estimates(plan: &Plan, args: &CompareArgs) -> Vec<CaseTime> {
    let cells: Vec<Cell> =
        (0..plan.cases.len()).map(|case| Cell { case, combination: 0, run: 0 }).collect();
    let mut estimates = vec![CaseTime::default(); cells.len()];
    let probe = |cell: &Cell| {
        let scenario = plan.scenario(*cell, args.seed);
        let mut workload = scenario.workload.clone();
        let Window { warm_up, measure, .. } = workload.window;
        let [short_warm_up, short] =
            [warm_up, measure].map(|ns| (ns / PROBE).max(LEAST_PROBE.min(ns)));
        workload.window = Window { warm_up: short_warm_up, until_steady: false, measure: short };
        let start = Instant::now();
        let outcome = simulate(&Scenario { workload: &workload, ..scenario }, None);
        // What cannot be simulated says so when its turn comes.
        let simulated = outcome.map_or(0, |outcome| outcome.statistics.simulated_ns);
        start.elapsed().mul_f64(probes_in_run(simulated, short_warm_up + short, warm_up + measure))
    };
    parallel::each(&cells, parallel::threads(args.jobs), probe, |heard| {
        if let Some((case, estimate)) = heard {
            estimates[case].estimate = estimate;
        }
    });
    estimates
}

/// How many times as long a run takes as a probe that has `simulated` some time: as the `whole` is longer,
/// unless the probe was over by itself before all that it `asked` for.
fn probes_in_run(simulated: Nanos, asked: Nanos, whole: Nanos) -> f64 {
    if simulated < asked { 1.0 } else { whole as f64 / asked as f64 }
}

/// `9 s`, `2 min`, `3 h`
fn about(time: Duration) -> String {
    match time.as_secs_f64().ceil() as u64 {
        seconds if seconds < 100 => format!("{seconds} s"),
        seconds if seconds < 100 * 60 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3_600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_that_was_over_by_itself_was_all_of_the_run() {
        assert_eq!(probes_in_run(400, 12_000, 600_000), 1.0);
        assert_eq!(probes_in_run(12_010, 12_000, 600_000), 50.0);
    }

    fn case(estimate: u64, measured: u64, done: u32, wanted: u32) -> CaseTime {
        let [estimate, measured] = [estimate, measured].map(Duration::from_secs);
        CaseTime { estimate, measured, done, wanted }
    }

    /// The bar that counts runs said 2 s before the last case, which takes 90 of 100.
    #[test]
    fn what_is_left_goes_by_cost() {
        let seconds = |cases: &[CaseTime]| left(cases).as_secs();
        assert_eq!(seconds(&[case(1, 0, 0, 10), case(9, 0, 0, 10)]), 100);
        assert_eq!(seconds(&[case(1, 10, 10, 10), case(9, 0, 0, 10)]), 90);
        // Half as fast as estimated so far.
        assert_eq!(seconds(&[case(1, 20, 10, 10), case(9, 0, 0, 10)]), 180);
        // What is measured counts, not the estimate.
        assert_eq!(seconds(&[case(1, 10, 10, 10), case(9, 20, 5, 10)]), 20);
    }

    #[test]
    fn times_are_round() {
        let texts = [0, 9, 99, 100, 5_999, 6_001].map(|s| about(Duration::from_secs(s)));
        assert_eq!(texts, ["0 s", "9 s", "99 s", "2 min", "100 min", "2 h"]);
    }
}
