//! Whether a workload had settled before it was measured, by MSER-5: of all places to cut the series of
//! what it got done, and of how many of its tasks were on each NUMA node, the best leaves the smallest
//! standard error of the mean of the rest. A series that wanders has such a place too: what moves the mean by no
//! more than the mean is uncertain is no transient. Limits: what takes longer than the run to show (a state left
//! once in seconds) is not seen, nor what changes within nodes while as much gets done.

use placewise_workload::program::Window;

use crate::state::event_queue::Time;

/// In the warm-up.
const BATCHES: Time = 100;
/// How many batches are one of the series: fewer are noise.
const MSER: usize = 5;
/// A cut that changes the mean by less is no reason to measure again: relative to what gets done, and of the tasks,
/// of which one in twenty may come and go. Assumed; no outcome decided it.
const BIAS: f64 = 0.01;
const MOVED: f64 = 0.05;
/// The parts of a window whose spread tells the standard error of its mean, and how many of these errors a cut may
/// move the mean by chance: nineteen times of twenty. How runs of hackbench wander was in view, no outcome.
const PARTS: usize = 10;
const ERRORS: f64 = 2.0;

pub struct Transient {
    /// 0: how long it takes is known.
    batch: Time,
    /// Of each part of the workload: the units of each batch, and of all.
    parts: Vec<(Vec<f64>, u64)>,
    /// The share of the tasks that each node had at the end of each batch.
    nodes: Vec<Vec<f64>>,
    ended: Time,
    is_over: bool,
}

impl Transient {
    pub fn new(window: Window, parts: usize, nodes: usize) -> Self {
        let batch = if window.until_steady { window.warm_up / BATCHES } else { 0 };
        let (parts, nodes) = (vec![Default::default(); parts], vec![Vec::new(); nodes]);
        Self { batch, parts, nodes, ended: 0, is_over: true }
    }

    /// When the next batch ends of a run that began at `started`.
    pub fn next_batch(&self, started: Time) -> Time {
        if self.batch == 0 { Time::MAX } else { started + (self.ended + 1) * self.batch }
    }

    /// `units` is what each part has done until `elapsed`, and `shares` what nodes have of the tasks. Batches that
    /// end together shared what was done: nothing happened at their ends.
    pub fn end_batches(
        &mut self,
        elapsed: Time,
        units: impl Iterator<Item = u64>,
        shares: impl FnOnce() -> Vec<f64>,
    ) {
        let Some(ended) = elapsed.checked_div(self.batch) else { return };
        let new = (ended - self.ended) as usize;
        if new == 0 {
            return;
        }
        for (batches, share) in self.nodes.iter_mut().zip(shares()) {
            batches.extend(std::iter::repeat_n(share, new));
        }
        for ((batches, before), units) in self.parts.iter_mut().zip(units) {
            batches.extend(std::iter::repeat_n((units - *before) as f64 / new as f64, new));
            *before = units;
        }
        self.ended = ended;
    }

    /// Judges the window that is after `warm_up`.
    pub fn judge(&mut self, warm_up: Time) {
        let Some(begin) = warm_up.checked_div(self.batch) else { return };
        let begins = begin as usize / MSER;
        self.is_over =
            self.parts.iter().all(|(units, _)| is_over(units, begins, |mean| BIAS * mean))
                && self.nodes.iter().all(|shares| is_over(shares, begins, |_| MOVED));
    }

    /// False where the last window does not tell what a longer run would be like.
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

/// What was measured from `begin` on is like what follows the best cut, but for a bias that is none of its mean, or
/// for chance.
fn is_over(batches: &[f64], begin: usize, bias: impl Fn(f64) -> f64) -> bool {
    let series: Vec<f64> = batches.chunks_exact(MSER).map(mean).collect();
    let cut = cut(&series);
    if cut <= begin {
        return true;
    }
    let (window, rest) = (&series[begin..], mean(&series[cut..]));
    let chance = ERRORS * standard_error(window);
    (mean(window) - rest).abs() <= bias(rest).abs().max(chance)
}

/// Of the mean of a series that may wander: by the means of its parts.
fn standard_error(series: &[f64]) -> f64 {
    let parts: Vec<f64> = series.chunks(series.len().div_ceil(PARTS).max(1)).map(mean).collect();
    let center = mean(&parts);
    let squares: f64 = parts.iter().map(|part| (part - center).powi(2)).sum();
    let count = parts.len() as f64;
    (squares / (count - 1.0).max(1.0) / count).sqrt()
}

/// Where the rest has the smallest standard error of its mean. The last few are never a rest: they
/// may be alike by chance.
fn cut(series: &[f64]) -> usize {
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (at, value) in series.iter().enumerate().rev() {
        count += 1.0;
        let deviation = value - mean;
        mean += deviation / count;
        squares += deviation * (value - mean);
        let error = squares / (count * count);
        if count >= MSER as f64 && error <= best.0 {
            best = (error, at);
        }
    }
    best.1
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise that is the same each time.
    fn noise(at: usize) -> f64 {
        (at * 7 % 11) as f64 - 5.0
    }

    /// Is it over in the second half of a hundred batches?
    fn is_over_by_half(level: impl Fn(usize) -> f64) -> bool {
        let batches: Vec<f64> = (0..100).map(|at| level(at) + noise(at)).collect();
        is_over(&batches, 10, |mean| BIAS * mean)
    }

    #[test]
    fn a_transient_before_the_window_is_over_and_one_in_it_is_not() {
        assert!(is_over_by_half(|_| 1000.0));
        assert!(is_over_by_half(|at| if at < 30 { 500.0 } else { 1000.0 }));
        assert!(!is_over_by_half(|at| if at < 70 { 500.0 } else { 1000.0 }));
        assert!(!is_over_by_half(|at| 500.0 + 5.0 * at as f64), "it still rises");
    }

    #[test]
    fn a_transient_that_hardly_moves_the_mean_is_none() {
        let steps_by =
            |height| is_over_by_half(move |at| if at < 70 { 1000.0 - height } else { 1000.0 });
        assert!(steps_by(15.0));
        assert!(!steps_by(40.0));
    }

    #[test]
    fn where_nothing_is_counted_nothing_is_waited_for() {
        assert!(is_over(&[0.0; 100], 10, |mean| BIAS * mean));
    }

    /// Fails without [`standard_error`]: the best cut is where the series happens to stay, on one side of its mean.
    #[test]
    fn what_wanders_about_its_mean_has_settled() {
        let level = |at: usize| match at / MSER {
            35.. => 1020.0,
            at if at % 4 < 2 => 950.0,
            _ => 1050.0,
        };
        let batches: Vec<f64> = (0..200).map(level).collect();
        let series: Vec<f64> = batches.chunks_exact(MSER).map(mean).collect();
        let rest = mean(&series[cut(&series)..]);
        assert!(cut(&series) > 20 && (mean(&series[20..]) - rest).abs() > BIAS * rest);
        assert!(is_over(&batches, 20, |mean| BIAS * mean));
    }

    #[test]
    fn each_part_has_to_settle() {
        let window = Window { warm_up: 400, until_steady: true, measure: 400 };
        let settles = |units: fn(Time) -> u64| {
            let mut transient = Transient::new(window, 2, 0);
            assert_eq!(transient.next_batch(1000), 1004);
            for elapsed in (0..=800).step_by(4) {
                transient.end_batches(elapsed, [elapsed, units(elapsed)].into_iter(), Vec::new);
            }
            transient.judge(400);
            transient.is_over()
        };
        assert!(settles(|elapsed| elapsed) && !settles(|elapsed| elapsed * elapsed));
    }

    /// Fails if only what gets done were looked at: it is as much on whatever node the tasks are.
    #[test]
    fn tasks_that_still_move_to_another_node_have_not_settled() {
        let settles = |share_at_end: f64| {
            let window = Window { warm_up: 400, until_steady: true, measure: 400 };
            let mut transient = Transient::new(window, 1, 2);
            for elapsed in (4..=800).step_by(4) {
                let share = if elapsed < 560 { 1.0 } else { share_at_end };
                transient.end_batches(elapsed, [elapsed].into_iter(), || vec![share, 1.0 - share]);
            }
            transient.judge(400);
            transient.is_over()
        };
        assert!(!settles(0.5));
        assert!(settles(0.95), "a task of twenty comes and goes");
    }

    #[test]
    fn a_warm_up_that_is_asked_for_is_not_judged() {
        let window = Window { warm_up: 400, until_steady: false, measure: 400 };
        let mut transient = Transient::new(window, 1, 0);
        transient.end_batches(400, [0].into_iter(), Vec::new);
        assert_eq!(transient.next_batch(1000), Time::MAX);
        transient.judge(400);
        assert!(transient.is_over());
    }
}
