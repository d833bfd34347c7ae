//! Fits how fast the tasks of each class are in draws.
//!
//! In a draw all that compute share the CPUs alike. In the recording they did not: some weighed more, waited for
//! less, or were charged for more beside their computing. A factor for each class that computes enough to
//! tell makes draws have as much of its computing as the recording had.

use super::draw::{Draw, Stage};
use super::learn::Model;

/// How many stretches of computing tell how fast a draw is, and how often that is corrected.
const TELLING_STRETCHES: u64 = 200_000;
const CORRECTIONS: usize = 8;

/// What part of its excess a class is corrected for, and no more than that: others are corrected, too.
const PART: f64 = 0.7;
const LARGEST: f64 = 2.0;

/// A class that computes a smaller part of all does not tell.
const TELLING_PART: f64 = 0.01;

impl Model {
    /// `cpus`: of the machine of the recording.
    pub(super) fn fit_stretches(&mut self, cpus: usize) {
        let mut best = (f64::INFINITY, self.stretches());
        for _ in 0..CORRECTIONS {
            let excesses = self.excesses(cpus);
            let off = excesses.iter().map(|(weight, excess)| weight * excess.abs()).sum();
            if off < best.0 {
                best = (off, self.stretches());
            }
            for (class, (weight, excess)) in self.classes.iter_mut().zip(excesses) {
                if weight >= TELLING_PART {
                    class.stretch *= (PART * excess).clamp(-LARGEST, LARGEST).exp();
                }
            }
        }
        for (class, stretch) in self.classes.iter_mut().zip(best.1) {
            class.stretch = stretch;
        }
    }

    fn stretches(&self) -> Vec<f64> {
        self.classes.iter().map(|class| class.stretch).collect()
    }

    /// Of each class what part of all computing it did, and how much more of it a draw has than the recording in
    /// the same time, as a logarithm.
    fn excesses(&self, cpus: usize) -> Vec<(f64, f64)> {
        let draw = Draw { length_ns: self.length_ns, scale: Vec::new() };
        let mut stage = Stage::new(self, &draw, cpus);
        stage.play(TELLING_STRETCHES);
        let part = stage.now.max(1) as f64 / self.length_ns.max(1) as f64;
        let all: f64 = self.classes.iter().map(|class| class.computing as f64).sum();
        let recorded = self.classes.iter().map(|class| class.computing as f64);
        let drawn = stage.computed().into_iter().map(|ns| ns as f64);
        let excess =
            |(was, is): (f64, f64)| (was / all.max(1.0), ((is + 1.0) / (was * part + 1.0)).ln());
        recorded.zip(drawn).map(excess).collect()
    }
}
