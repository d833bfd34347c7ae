//! Cache lines between CPUs, and the footprint that follows a task.

use std::hint::{black_box, spin_loop};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use rustix::time::ClockId;

use super::clock::{cpu_time, median_time};
use crate::batches::Load;
use crate::partner::Partner;
use crate::place::{Places, stay_on};
use crate::quantity::Quantity;

/// Whoever takes a CPU away meanwhile lengthens one stretch of many.
const STRETCHES: u32 = 20;
const EXCHANGES: u32 = 10;
const FOOTPRINT_KIB: usize = 256;
const WORDS_PER_LINE: usize = 8;
const LINES: usize = FOOTPRINT_KIB * 1024 / (8 * WORDS_PER_LINE);

pub fn loads(places: &Places) -> io::Result<Vec<Load>> {
    let mut loads = Vec::new();
    for &(distance, cpu) in &places.partners {
        loads.push(cache_line(Quantity::CacheLine(distance), cpu)?);
        loads.push(Load::new(Quantity::Refill(distance), refill(places.home, cpu)));
    }
    Ok(loads)
}

/// Alone on its line, and on the one that a prefetcher brings along.
#[repr(align(128))]
struct Line(AtomicU32);

/// Two tasks count in turn.
fn cache_line(quantity: Quantity, cpu: usize) -> io::Result<Load> {
    let line = Arc::new(Line(AtomicU32::new(0)));
    let theirs = line.clone();
    let partner = Partner::start(cpu, move |_| {
        (0..STRETCHES).for_each(|stretch| count(&theirs, stretch, 1));
        Ok(())
    })?;
    Ok(Load::new(quantity, move || {
        line.0.store(0, Ordering::Relaxed);
        partner.begin()?;
        partner.wait_until_busy();
        let mut stretch = 0;
        let time = median_time(STRETCHES, || {
            let start = Instant::now();
            count(&line, stretch, 0);
            stretch += 1;
            Ok(start)
        })?;
        partner.wait()?;
        Ok(time / f64::from(2 * EXCHANGES))
    }))
}

/// Counts on through a stretch, whenever the count is even, or odd.
fn count(line: &Line, stretch: u32, parity: u32) {
    for exchange in stretch * EXCHANGES..(stretch + 1) * EXCHANGES {
        while line.0.load(Ordering::Acquire) != 2 * exchange + parity {
            spin_loop();
        }
        line.0.store(2 * exchange + parity + 1, Ordering::Release);
    }
}

/// Touches the footprint where it is, goes to `cpu`, and touches it there.
fn refill(home: usize, cpu: usize) -> impl FnMut() -> io::Result<f64> {
    let mut footprint = vec![0u64; LINES * WORDS_PER_LINE];
    move || {
        touch(&mut footprint);
        let warm = touch(&mut footprint);
        stay_on(cpu)?;
        let cold = touch(&mut footprint);
        stay_on(home)?;
        Ok((cold - warm) / FOOTPRINT_KIB as f64)
    }
}

/// Writes to each line, in an order that no prefetcher guesses; the time in ns.
fn touch(footprint: &mut [u64]) -> f64 {
    let start = cpu_time(ClockId::ThreadCPUTime);
    let mut line = 0;
    for _ in 0..LINES {
        // A full period: the factor is 1 modulo 4, the rest odd.
        line = (line * 1_664_525 + 1_013_904_223) % LINES;
        footprint[line * WORDS_PER_LINE] += 1;
    }
    black_box(footprint);
    cpu_time(ClockId::ThreadCPUTime) - start
}
