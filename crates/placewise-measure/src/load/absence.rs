//! For how long a CPU is taken away from who runs on it without being asked: by its host, or by interrupts that
//! nothing masks. Ticks, which come at one place of their period, are left out: the kernel masks them where this
//! matters. The nearest core is busy meanwhile, as others are while a CPU balances: what a host has for two virtual
//! CPUs it takes away from one.
//!
//! Limit: an interrupt of a device counts as well.

use std::hint::spin_loop;
use std::io;
use std::time::{Duration, Instant};

use super::clock::{hz, preemptions_of_others};
use crate::batches::{Batch, Load};
use crate::partner::Partner;
use crate::place::Places;
use crate::quantity::Quantity;

/// As long as the newly-idle passes of a minute: a thousand a second, of 1.5 us or so (assumed). Replays of pgbench and
/// nginx with 30, 100 and 200 us were in view, and when the nearest core was made busy also with 49, which this measured
/// before.
const STRETCH: Duration = Duration::from_millis(100);

/// In a shorter time between two readings of the clock nothing came in between.
const SHORTEST_NS: u64 = 1_000;

/// Parts of the tick's period in which its place is told.
const PARTS: u64 = 40;

#[derive(Clone, Copy)]
struct Absence {
    at_ns: u64,
    ns: u64,
}

pub fn loads(places: &Places) -> io::Result<Vec<Load>> {
    let tick_ns = 1_000_000_000 / u64::from(hz());
    let mut neighbour = places.nearest().map(|(_, cpu)| busy(cpu)).transpose()?;
    let batch = move || {
        let before = preemptions_of_others()?;
        neighbour.as_ref().map(Partner::begin).transpose()?;
        let longest = longest_beside_ticks(&absences(STRETCH), tick_ns);
        neighbour.as_mut().map(Partner::stop).transpose()?;
        // Whoever takes the neighbour's CPU leaves this one alone.
        let yields = preemptions_of_others()? - before;
        Ok(Batch { figure: longest as f64, yields })
    };
    Ok(vec![Load { quantity: Quantity::Absence, batch: Box::new(batch) }])
}

fn busy(cpu: usize) -> io::Result<Partner> {
    Partner::start(cpu, |stop| {
        while !stop.is_set() {
            spin_loop();
        }
        Ok(())
    })
}

fn absences(stretch: Duration) -> Vec<Absence> {
    let start = Instant::now();
    let mut found = Vec::new();
    let mut last = Duration::ZERO;
    while last < stretch {
        let now = start.elapsed();
        let ns = (now - last).as_nanos() as u64;
        if ns > SHORTEST_NS {
            found.push(Absence { at_ns: last.as_nanos() as u64, ns });
        }
        last = now;
    }
    found
}

/// A part of the period is the tick's if something came there in half of all periods.
fn longest_beside_ticks(absences: &[Absence], tick_ns: u64) -> u64 {
    let part = |absence: &Absence| (absence.at_ns % tick_ns * PARTS / tick_ns) as usize;
    let mut counts = [0; PARTS as usize];
    absences.iter().for_each(|absence| counts[part(absence)] += 1);
    let periods = STRETCH.as_nanos() as u64 / tick_ns;
    let beside_ticks = absences.iter().filter(|absence| counts[part(absence)] * 2 < periods);
    beside_ticks.map(|absence| absence.ns).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 4_000_000;

    fn ticks() -> Vec<Absence> {
        let ticks = (0..25).map(|tick| Absence { at_ns: tick * TICK_NS + 1_020_000, ns: 60_000 });
        ticks.collect()
    }

    #[test]
    fn the_longest_that_is_no_tick_counts() {
        let mut absences = ticks();
        assert_eq!(longest_beside_ticks(&absences, TICK_NS), 0);
        absences.extend(
            [(2_345_678, 9_000), (77_500_000, 40_000)].map(|(at_ns, ns)| Absence { at_ns, ns }),
        );
        assert_eq!(longest_beside_ticks(&absences, TICK_NS), 40_000);
    }

    #[test]
    fn absences_are_told_once_each() {
        let found = absences(Duration::from_millis(20));
        assert!(found.iter().all(|absence| absence.ns > SHORTEST_NS));
        let apart = |pair: &[Absence]| pair[0].at_ns + pair[0].ns <= pair[1].at_ns;
        assert!(found.windows(2).all(apart), "each is counted once");
    }
}
