//! Every single run of a task on a CPU, while there are few enough of them.

use crate::columns::{Columns, Place};
use serde::Serialize;

/// More runs than this are left to the cells: the page would be too large.
const MOST_RUNS: usize = 250_000;

/// What ran: a thread, and how it came to its CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct What {
    /// Its index in the list of threads.
    pub thread: u16,
    /// A [`Class`] in one byte.
    pub class: u8,
}

/// How a task came to the CPU that it runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// From where it last ran: an index of the distances and one more, or 0.
    pub distance: u8,
    /// 1: as the policy of the kernel decides, 2: another CPU of that LLC, 3: another LLC; 0: nobody
    /// placed it for this run.
    pub verdict: u8,
    /// Where an idle CPU was missed: 1: in the LLC, 2: in the node, 3: beyond; 0: none was.
    pub missed: u8,
}

impl Class {
    pub fn byte(self) -> u8 {
        self.distance | self.verdict << 3 | self.missed << 5
    }
}

#[derive(Clone, Copy)]
struct Run {
    from: u64,
    to: u64,
    waited_ns: u64,
    what: What,
}

/// The runs of all CPUs.
pub struct Runs {
    of_cpu: Vec<Vec<Run>>,
    count: usize,
}

impl Runs {
    pub fn new(cpus: usize) -> Self {
        Runs { of_cpu: vec![Vec::new(); cpus], count: 0 }
    }

    /// `waited_ns`: how long the task had waited for it.
    pub fn push(&mut self, cpu: u32, from: u64, to: u64, waited_ns: u64, what: What) {
        self.count += 1;
        if self.count <= MOST_RUNS {
            self.of_cpu[cpu as usize].push(Run { from, to, waited_ns, what });
        } else if self.count == MOST_RUNS + 1 {
            self.of_cpu.iter_mut().for_each(|runs| *runs = Vec::new());
        }
    }

    /// None if there are too many.
    pub fn columns(&self, columns: &mut Columns) -> Option<RunColumns> {
        if self.count > MOST_RUNS {
            return None;
        }
        let all = || self.of_cpu.iter().flatten();
        Some(RunColumns {
            of_cpu: self.of_cpu.iter().map(Vec::len).collect(),
            gaps: columns.varints(self.of_cpu.iter().flat_map(|runs| gaps(runs))),
            lengths: columns.varints(all().map(|run| run.to - run.from)),
            waited: columns.varints(all().map(|run| run.waited_ns)),
            thread: columns.u16s(all().map(|run| run.what.thread)),
            class: columns.u8s(all().map(|run| run.what.class)),
        })
    }
}

/// From the end of the run before.
fn gaps(runs: &[Run]) -> impl Iterator<Item = u64> {
    let mut end = 0;
    runs.iter().map(move |run| run.from - std::mem::replace(&mut end, run.to))
}

/// CPU by CPU, in the order of time.
#[derive(Serialize)]
pub struct RunColumns {
    /// How many there are of each CPU.
    pub of_cpu: Vec<usize>,
    pub gaps: Place,
    pub lengths: Place,
    waited: Place,
    pub thread: Place,
    class: Place,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_runs_are_left_out() {
        let mut runs = Runs::new(1);
        for at in 0..MOST_RUNS as u64 {
            runs.push(0, 2 * at, 2 * at + 1, 0, What::default());
        }
        assert!(runs.columns(&mut Columns::default()).is_some());
        runs.push(0, u64::MAX - 1, u64::MAX, 0, What::default());
        assert!(runs.columns(&mut Columns::default()).is_none());
        assert!(runs.of_cpu[0].is_empty(), "their memory is given back");
    }

    #[test]
    fn a_class_is_one_byte() {
        assert_eq!(Class { distance: 5, verdict: 3, missed: 3 }.byte(), 0b0111_1101);
    }
}
