//! Which cells are wanted, and which of these are still to be simulated.
//!
//! Runs are added to a group until its changes are known, by the rules of `placewise compare`. What is
//! wanted follows from finished cells alone, so that whoever asks, and whenever, gets the same answer: a
//! study goes on where it was, and ends with the same rows on any engine.
//!
//! A combination that fails in a run takes no further part in its group, whose others go on. Where the
//! first one fails there is nothing to compare with, and no run is added.

use placewise_sim::Figure;

use super::cell::{Cell, Cells};
use super::results::{Result, Results};
use crate::comparison::{self, Series};

/// The runs of a group that are wanted so far, and what they lack.
pub struct Round {
    pub runs: u32,
    pub open: Vec<Cell>,
}

impl Cells<'_> {
    pub fn round(&self, group: (usize, usize), results: &mut Results) -> Round {
        let mut runs = self.plan.runs;
        loop {
            let wanted = (0..runs).flat_map(|run| self.of(group, run));
            let is_open = |cell: &Cell| {
                results.get(&self.id(*cell).to_string()).is_none()
                    && !self.has_failed(*cell, results)
            };
            let open: Vec<Cell> = wanted.filter(is_open).collect();
            if !open.is_empty() || self.is_known(group, runs, results) {
                return Round { runs, open };
            }
            match self.plan.effort.more(runs) {
                Some(more) => runs = more.end,
                None => return Round { runs, open },
            }
        }
    }

    /// In the order in which they are best simulated: what each group takes is soon seen.
    pub fn open(&self, results: &mut Results) -> Vec<Cell> {
        let rounds = self.groups().flat_map(|group| self.round(group, results).open);
        let mut open: Vec<Cell> = rounds.collect();
        open.sort_by_key(|cell| (cell.run, *cell));
        open
    }

    /// Wanted cells that are done.
    pub fn done(&self, results: &mut Results) -> Vec<Cell> {
        let mut done = Vec::new();
        for group in self.groups() {
            let runs = self.round(group, results).runs;
            let wanted =
                self.of(group, 0).flat_map(|cell| (0..runs).map(move |run| Cell { run, ..cell }));
            done.extend(wanted.filter(|cell| results.get(&self.id(*cell).to_string()).is_some()));
        }
        done
    }

    /// In a run before.
    fn has_failed(&self, cell: Cell, results: &mut Results) -> bool {
        (self.plan.runs <= cell.run)
            && (0..cell.run).any(|run| {
                let before = self.id(Cell { run, ..cell }).to_string();
                matches!(results.get(&before), Some(Result::Failed(_)))
            })
    }

    fn is_known(&self, group: (usize, usize), runs: u32, results: &mut Results) -> bool {
        let Some(precision) = self.plan.effort.precision else { return true };
        let members = self.whole(group, runs, results);
        // Without the first there is nothing to know.
        members.first().is_none_or(|(first, _)| *first != 0)
            || comparison::is_known(&self.series(group, &members), precision)
    }

    /// The combinations of a group that have figures in every run, with these.
    pub fn whole(
        &self,
        group: (usize, usize),
        runs: u32,
        results: &mut Results,
    ) -> Vec<(usize, Vec<Vec<Figure>>)> {
        let mut figures_of = |cell: Cell| match results.get(&self.id(cell).to_string())? {
            Result::Figures { figures, stats } if self.plan.stats => {
                Some([&figures[..], stats].concat())
            }
            Result::Figures { figures, .. } => Some(figures.clone()),
            Result::Failed(_) => None,
        };
        let mut whole = Vec::new();
        for cell in self.of(group, 0) {
            let of_runs = (0..runs).map(|run| figures_of(Cell { run, ..cell }));
            if let Some(of_runs) = of_runs.collect() {
                whole.push((cell.member, of_runs));
            }
        }
        whole
    }

    pub fn series<'b>(
        &'b self,
        (part, group): (usize, usize),
        members: &'b [(usize, Vec<Vec<Figure>>)],
    ) -> Vec<Series<'b>> {
        let part = &self.plan.parts[part];
        let combinations = &part.groups[group].combinations;
        let series = |(member, runs): &'b (usize, Vec<Vec<Figure>>)| Series {
            subject: &part.plan.combinations[combinations[*member]].subject,
            runs: runs.iter().map(Vec::as_slice).collect(),
        };
        members.iter().map(series).collect()
    }
}
