//! What each CPU did, in bins of time that grow with the trace.
//!
//! A cell is one CPU in one bin. Its times are exact: they add up to those of the trace. Bins are as
//! wide as a power of two of nanoseconds; when a trace outgrows them, neighbours become one, so that
//! there are never more than [`MOST_BINS`] of each CPU.
//!
//! Limit: of what ran in a cell only the [`CANDIDATES`] that ran longest are kept while it grows, so
//! the one that is said to dominate may not, where many share a cell.

use crate::columns::{Columns, Place};
use crate::runs::What;
use serde::Serialize;

/// Bins of each CPU, at most.
const MOST_BINS: usize = 2048;
/// The second, coarser level has a quarter of the bins, while there are more than so many.
const COARSE_BINS: usize = 512;
const COARSER: usize = 4;
/// The first bins are about a microsecond wide.
const FIRST_SHIFT: u32 = 10;
/// Candidates for what ran longest in a cell.
const CANDIDATES: usize = 3;
/// What a whole bin is in a byte, and one waiting task in two of them.
const WHOLE: u128 = 255;
const ONE_WAITING: u128 = 256;
/// On the strip, which is of all CPUs.
const ONE_BESIDE_IDLE: u128 = 32;

/// One CPU in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cell {
    busy_ns: u64,
    /// Summed over the tasks that waited.
    waited_ns: u64,
    /// Wakeups from CPUs of other LLCs.
    arrivals: u32,
    ran: [(What, u64); CANDIDATES],
}

impl Cell {
    fn run(&mut self, what: What, ns: u64) {
        self.busy_ns += ns;
        self.candidate(what, ns);
    }

    /// The one that ran least makes room, and leaves its time to whom it makes room for: who runs
    /// often enough to dominate stays.
    fn candidate(&mut self, what: What, ns: u64) {
        if let Some(known) = self.ran.iter_mut().find(|(known, time)| *known == what && *time > 0) {
            known.1 += ns;
            return;
        }
        let least = self.ran.iter_mut().min_by_key(|(_, time)| *time).expect("there are some");
        *least = (what, least.1 + ns);
    }

    fn join(&mut self, other: &Cell) {
        self.busy_ns += other.busy_ns;
        self.waited_ns += other.waited_ns;
        self.arrivals = self.arrivals.saturating_add(other.arrivals);
        for (what, ns) in other.ran.iter().filter(|(_, ns)| *ns > 0) {
            self.candidate(*what, *ns);
        }
    }

    fn dominant(&self) -> What {
        // The first of equal ones.
        let first = |best: (What, u64), one: &(What, u64)| if one.1 > best.1 { *one } else { best };
        self.ran.iter().fold((What::default(), 0), first).0
    }
}

/// Waiting tasks beside an idle CPU: in the LLC, in the node, beyond; summed over time.
pub type BesideIdle = [u64; 3];

/// The cells of all CPUs.
pub struct Cells {
    shift: u32,
    of_cpu: Vec<Vec<Cell>>,
    beside_idle: Vec<BesideIdle>,
    bins: usize,
}

impl Cells {
    pub fn new(cpus: usize) -> Self {
        Cells {
            shift: FIRST_SHIFT,
            of_cpu: vec![Vec::new(); cpus],
            beside_idle: Vec::new(),
            bins: 0,
        }
    }

    /// Something ran on a CPU.
    pub fn run(&mut self, cpu: u32, from: u64, to: u64, what: What) {
        self.reach(to);
        let (row, shift) = (&mut self.of_cpu[cpu as usize], self.shift);
        spread(row, shift, from, to, |cell, ns| cell.run(what, ns));
    }

    /// A task waited for a CPU.
    pub fn wait(&mut self, cpu: u32, from: u64, to: u64) {
        self.reach(to);
        let (row, shift) = (&mut self.of_cpu[cpu as usize], self.shift);
        spread(row, shift, from, to, |cell, ns| cell.waited_ns += ns);
    }

    /// A task was sent there from another LLC.
    pub fn arrive(&mut self, cpu: u32, at: u64) {
        self.reach(at + 1);
        let (row, shift) = (&mut self.of_cpu[cpu as usize], self.shift);
        spread(row, shift, at, at + 1, |cell, _| cell.arrivals = cell.arrivals.saturating_add(1));
    }

    /// So many tasks waited beside an idle CPU.
    pub fn beside_idle(&mut self, from: u64, to: u64, tasks: BesideIdle) {
        self.reach(to);
        spread(&mut self.beside_idle, self.shift, from, to, |bin, ns| {
            bin.iter_mut().zip(tasks).for_each(|(sum, tasks)| *sum += tasks * ns);
        });
    }

    /// Makes bins wide enough for a time.
    fn reach(&mut self, to: u64) {
        while to.saturating_sub(1) >> self.shift >= MOST_BINS as u64 {
            self.of_cpu.iter_mut().for_each(|row| *row = joined(row, 2));
            let pair = |pair: &[BesideIdle]| pair.iter().copied().reduce(plus).unwrap_or_default();
            self.beside_idle = self.beside_idle.chunks(2).map(pair).collect();
            self.shift += 1;
            self.bins = self.bins.div_ceil(2);
        }
        self.bins = self.bins.max((to.saturating_sub(1) >> self.shift) as usize + 1);
    }

    /// All levels, the finest first.
    pub fn levels(&self, columns: &mut Columns) -> Vec<Level> {
        let finest = level(&self.of_cpu, self.shift, self.bins, columns);
        if self.bins <= COARSE_BINS {
            return vec![finest];
        }
        let coarse: Vec<Vec<Cell>> = self.of_cpu.iter().map(|row| joined(row, COARSER)).collect();
        let shift = self.shift + COARSER.ilog2();
        vec![finest, level(&coarse, shift, self.bins.div_ceil(COARSER), columns)]
    }

    /// Tasks that waited beside an idle CPU in each bin of the finest level, on average, 32 for one:
    /// three rows.
    pub fn idle_strip(&self, columns: &mut Columns) -> Place {
        let bin = |at: usize| self.beside_idle.get(at).copied().unwrap_or_default();
        let share = |ns: u64| in_units(ns, self.shift, ONE_BESIDE_IDLE) as u16;
        let row = |which: usize| (0..self.bins).map(move |at| share(bin(at)[which]));
        columns.u16s((0..3).flat_map(row))
    }
}

/// One level of detail; each column has `bins` values for each CPU, CPU by CPU.
#[derive(Serialize)]
pub struct Level {
    /// How wide a bin is.
    pub width_ns: u64,
    pub bins: usize,
    /// Share of the bin, 255 for all of it.
    busy: Place,
    /// Waiting tasks on average, 256 for one.
    waiting: Place,
    arrivals: Place,
    /// What ran longest.
    pub thread: Place,
    class: Place,
}

impl Level {
    /// Share of a bin, of that number among all CPUs.
    pub fn busy(&self, columns: &[u8], at: usize) -> f64 {
        f64::from(self.busy.u8(columns, at)) / WHOLE as f64
    }

    /// Tasks on average.
    pub fn waiting(&self, columns: &[u8], at: usize) -> f64 {
        f64::from(self.waiting.u16(columns, at)) / ONE_WAITING as f64
    }
}

fn level(rows: &[Vec<Cell>], shift: u32, bins: usize, columns: &mut Columns) -> Level {
    let all =
        || rows.iter().flat_map(|row| (0..bins).map(|at| row.get(at).copied().unwrap_or_default()));
    Level {
        width_ns: 1 << shift,
        bins,
        busy: columns.u8s(all().map(|cell| in_units(cell.busy_ns, shift, WHOLE) as u8)),
        waiting: columns
            .u16s(all().map(|cell| in_units(cell.waited_ns, shift, ONE_WAITING) as u16)),
        arrivals: columns.u16s(all().map(|cell| cell.arrivals.min(u16::MAX.into()) as u16)),
        thread: columns.u16s(all().map(|cell| cell.dominant().thread)),
        class: columns.u8s(all().map(|cell| cell.dominant().class)),
    }
}

/// So much of a bin, rounded up so that what is there shows.
fn in_units(ns: u64, shift: u32, unit: u128) -> u64 {
    let scaled = (u128::from(ns) * unit).div_ceil(1 << shift);
    scaled.min(if unit == WHOLE { WHOLE } else { u16::MAX.into() }) as u64
}

fn joined(row: &[Cell], of: usize) -> Vec<Cell> {
    let join = |cells: &[Cell]| {
        let mut joined = cells[0];
        cells[1..].iter().for_each(|cell| joined.join(cell));
        joined
    };
    row.chunks(of).map(join).collect()
}

fn plus(one: BesideIdle, other: BesideIdle) -> BesideIdle {
    [one[0] + other[0], one[1] + other[1], one[2] + other[2]]
}

/// Calls for each bin that a time touches, with how much of it is in there.
fn spread<T: Clone + Default>(
    row: &mut Vec<T>,
    shift: u32,
    from: u64,
    to: u64,
    mut add: impl FnMut(&mut T, u64),
) {
    let mut from = from;
    while from < to {
        let at = (from >> shift) as usize;
        let end = ((at as u64 + 1) << shift).min(to);
        if row.len() <= at {
            row.resize(at + 1, T::default());
        }
        add(&mut row[at], end - from);
        from = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(thread: u16) -> What {
        What { thread, class: 0 }
    }

    fn busy(cells: &Cells, cpu: usize) -> u64 {
        cells.of_cpu[cpu].iter().map(|cell| cell.busy_ns).sum()
    }

    #[test]
    fn no_time_is_lost_as_bins_grow() {
        let mut cells = Cells::new(2);
        let mut now = 0;
        for turn in 0..5_000u64 {
            cells.run(0, now, now + 700 + turn, what(1));
            cells.wait(1, now, now + 31);
            cells.beside_idle(now, now + 10, [1, 0, 2]);
            now += 1_000 + 2 * turn;
        }
        assert!(cells.bins > MOST_BINS / 2 && cells.bins <= MOST_BINS);
        assert_eq!(busy(&cells, 0), (0..5_000).map(|turn| 700 + turn).sum::<u64>());
        assert_eq!(cells.of_cpu[1].iter().map(|cell| cell.waited_ns).sum::<u64>(), 5_000 * 31);
        let beside = cells.beside_idle.iter().copied().fold([0; 3], plus);
        assert_eq!(beside, [50_000, 0, 100_000]);
    }

    #[test]
    fn a_run_over_bins_is_spread_over_them() {
        let mut cells = Cells::new(1);
        cells.run(0, 1_000, 3_000, what(7));
        let times: Vec<u64> = cells.of_cpu[0].iter().map(|cell| cell.busy_ns).collect();
        assert_eq!(times, [24, 1_024, 952]);
    }

    #[test]
    fn who_runs_longest_in_a_cell_dominates_it() {
        let mut cell = Cell::default();
        for turn in 0..100 {
            cell.run(what(100 + turn), 5);
            cell.run(what(1), 20);
        }
        assert_eq!(cell.dominant(), what(1));
        let mut joined = Cell::default();
        joined.run(what(2), 100);
        joined.join(&cell);
        assert_eq!(joined.dominant(), what(1));
    }

    #[test]
    fn what_is_there_shows() {
        assert_eq!(in_units(1, 30, WHOLE), 1);
        assert_eq!(in_units(0, 30, WHOLE), 0);
        assert_eq!(in_units(1 << 30, 30, WHOLE), 255);
        assert_eq!(in_units(3 << 30, 30, ONE_WAITING), 768);
        assert_eq!(in_units(u64::MAX, 10, ONE_WAITING), u64::from(u16::MAX));
    }
}
