//! Batches: short, many, and spread over the whole time, so that a host that is busy now and then has
//! been quiet during some of them.
//!
//! A batch is disturbed by tasks that ran beside its own. How much is known is how many other tasks were
//! runnable when it began, and how often its own were switched out against their will. The quarter of
//! the batches that were disturbed least counts, and all that were disturbed no more than those.
//!
//! Limits: what a hypervisor takes away shows in neither number, and what came and went within a batch
//! on another CPU in none.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use crate::load::clock::preemptions;
use crate::quantity::{Measurements, Quantity, Sample};

/// So many undisturbed batches are enough.
const ENOUGH: usize = 40;

/// What measures a quantity.
pub struct Load {
    pub quantity: Quantity,
    pub batch: Box<dyn FnMut() -> io::Result<Batch>>,
}

impl Load {
    /// One whose tasks do not yield.
    pub fn new(quantity: Quantity, mut batch: impl FnMut() -> io::Result<f64> + 'static) -> Self {
        Self { quantity, batch: Box::new(move || batch().map(Batch::from)) }
    }
}

/// What a batch says, in the unit of the quantity.
pub struct Batch {
    pub figure: f64,
    /// How often its tasks asked to be switched out in a way that counts as against their will.
    pub yields: u64,
}

impl From<f64> for Batch {
    fn from(figure: f64) -> Self {
        Self { figure, yields: 0 }
    }
}

struct Recorded {
    load: Load,
    /// Figures and how disturbed they are.
    figures: Vec<(f64, u64)>,
}

/// Runs batches of all loads in turn, until each has enough or `limit` has passed; `tell` is told after
/// each how much of that is done.
pub fn measure(
    loads: Vec<Load>,
    limit: Duration,
    mut tell: impl FnMut(f64),
) -> io::Result<Measurements> {
    let start = Instant::now();
    let mut all: Vec<Recorded> =
        loads.into_iter().map(|load| Recorded { load, figures: Vec::new() }).collect();
    while start.elapsed() < limit && all.iter().any(|one| !one.is_enough()) {
        for one in all.iter_mut().filter(|one| !one.is_enough()) {
            one.add_batch()?;
            let waited = start.elapsed().as_secs_f64() / limit.as_secs_f64();
            tell(waited.min(1.0));
        }
    }
    Ok(all.iter().map(|one| (one.load.quantity, sample(&one.figures))).collect())
}

impl Recorded {
    fn is_enough(&self) -> bool {
        self.figures.iter().filter(|(_, disturbed)| *disturbed == 0).count() >= ENOUGH
    }

    /// After the batches of other loads the first of two warms up.
    fn add_batch(&mut self) -> io::Result<()> {
        (self.load.batch)()?;
        self.figures.push(watched(&mut self.load.batch)?);
        Ok(())
    }
}

/// The figure of a batch and how disturbed it was.
fn watched(batch: &mut dyn FnMut() -> io::Result<Batch>) -> io::Result<(f64, u64)> {
    let others = others_runnable();
    let before = preemptions()?;
    let Batch { figure, yields } = batch()?;
    let switched_out = preemptions()? - before;
    Ok((figure, others + switched_out.saturating_sub(yields)))
}

/// Of figures and how disturbed they are.
pub(crate) fn sample(figures: &[(f64, u64)]) -> Sample {
    let mut by_quiet: Vec<(f64, u64)> = figures.to_vec();
    by_quiet.sort_by_key(|(_, disturbed)| *disturbed);
    let limit =
        by_quiet.get(figures.len().saturating_sub(1) / 4).map_or(0, |(_, disturbed)| *disturbed);
    let mut counted: Vec<f64> = figures
        .iter()
        .filter(|(_, disturbed)| *disturbed <= limit)
        .map(|(figure, _)| *figure)
        .collect();
    counted.sort_by(f64::total_cmp);
    let at = |quarter: usize| {
        let index = counted.len().saturating_sub(1) * quarter / 4;
        counted.get(index).copied().unwrap_or(f64::NAN)
    };
    Sample {
        median: at(2),
        lower: at(1),
        upper: at(3),
        counted: counted.len(),
        batches: figures.len(),
        disturbed: limit > 0,
    }
}

/// Tasks beside this one that run or wait for a CPU at this moment, in the whole system.
fn others_runnable() -> u64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let running = text.split(' ').nth(3).and_then(|field| field.split('/').next()?.parse().ok());
    running.map_or(0, |running: u64| running.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_batches_do_not_count_where_a_quarter_was_quiet() {
        let quiet = (0..10).map(|n| (100.0 + f64::from(n), 0));
        let disturbed = (0..30).map(|n| (1_000.0 + f64::from(n), 3));
        let figures: Vec<(f64, u64)> = disturbed.chain(quiet).collect();
        let sample = sample(&figures);
        assert_eq!((sample.median, sample.lower, sample.upper), (104.0, 102.0, 106.0));
        assert_eq!((sample.counted, sample.batches, sample.disturbed), (10, 40, false));
    }

    #[test]
    fn where_all_are_disturbed_the_least_disturbed_count_and_that_is_said() {
        let figures: Vec<(f64, u64)> = (1..=9).map(|n| (n as f64, n)).collect();
        let sample = sample(&figures);
        assert_eq!((sample.counted, sample.upper, sample.disturbed), (3, 2.0, true));
    }

    #[test]
    fn batches_end_once_enough_were_quiet_or_with_the_time() {
        let load = |figure: f64| Load {
            quantity: Quantity::Syscall,
            batch: Box::new(move || Ok(figure.into())),
        };
        let none = measure(vec![load(1.0)], Duration::ZERO, |_| ()).unwrap();
        assert_eq!(none[&Quantity::Syscall].batches, 0);
        let some = measure(vec![load(7.0)], Duration::from_millis(50), |_| ()).unwrap();
        assert!(some[&Quantity::Syscall].batches >= 1);
        assert_eq!(some[&Quantity::Syscall].median, 7.0);
    }
}
