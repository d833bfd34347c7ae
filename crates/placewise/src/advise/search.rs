//! Which candidates help: successive halving, then a judgement on seeds that chose nothing.
//!
//! Each round runs what is left with as many seeds as its share of the budget is good for, and keeps
//! the better half by the change so far. The last few are judged with new seeds: those that they were
//! chosen by flatter them. All pairs have a seed in common. The budget is in runs, so that the answer
//! is the same on any machine.

use placewise_machine::Machine;
use placewise_policy::Policy;
use placewise_replay::{Begins, Measured, Recording, rerun};

use super::candidate::Candidate;
use super::goal::{Aim, Goal};
use crate::change::{Change, center};
use crate::input::InputError;
use crate::parallel;

/// No advice has more lines.
const FINALISTS: usize = 5;

/// Of each in the end: medians have an interval from seven on.
const LAST_RUNS: usize = 8;

/// Computing is fitted to one percent: a smaller change is none.
const LEAST_PCT: f64 = 1.0;

/// A trace tells microseconds: latencies that differ by one do not differ.
const TOLD_NS: f64 = 1_010.0;

pub struct Lab<'a> {
    pub recording: &'a Recording,
    pub machine: &'a Machine,
    pub kernel: &'a Policy,
    pub goal: &'a Goal,
    pub jobs: Option<usize>,
}

/// A candidate that helps.
pub struct Advice<'a> {
    pub candidate: &'a Candidate,
    pub change: Change,
    /// Names of tasks that it makes worse.
    pub costs: Vec<(String, Change)>,
}

/// Seeds of a round: the first, and how many.
type Seeds = (u64, usize);

impl<'a> Lab<'a> {
    /// Those that help, best first.
    pub fn advice(
        &self,
        candidates: &'a [Candidate],
        budget: usize,
    ) -> anyhow::Result<Vec<Advice<'a>>> {
        let rounds = rounds(candidates.len());
        let least = least(&rounds, candidates.len());
        if budget < least {
            let count = candidates.len();
            let problem =
                format!("--budget {budget}: {count} candidates take {least} runs at least");
            return Err(InputError(problem).into());
        }
        let mut left: Vec<&Candidate> = candidates.iter().collect();
        let mut samples = vec![Vec::new(); left.len() + 1];
        let mut first = 1;
        let mut to_spend = budget - last(candidates.len());
        for (round, rounds_left) in rounds.iter().zip((1..=rounds.len()).rev()) {
            let seeds = (first, (to_spend / rounds_left / (round + 1)).max(1));
            first += seeds.1 as u64;
            to_spend -= seeds.1 * (round + 1);
            for (samples, runs) in samples.iter_mut().zip(self.runs(&left, seeds)?) {
                samples.extend(runs.iter().map(|run| self.goal.of(run)));
            }
            (left, samples) = self.better_half(left, samples);
        }
        self.judge(&left, (first, LAST_RUNS))
    }

    /// The recording as it is, and then each candidate, with these seeds.
    fn runs(
        &self,
        left: &[&Candidate],
        (first, count): Seeds,
    ) -> anyhow::Result<Vec<Vec<Measured>>> {
        let subjects = std::iter::once(None).chain(left.iter().copied().map(Some));
        let seeds = || (0..count as u64).map(move |seed| first + seed);
        let cells: Vec<(Option<&Candidate>, u64)> =
            subjects.flat_map(|subject| seeds().map(move |seed| (subject, seed))).collect();
        let runs = parallel::map(&cells, self.jobs, |(subject, seed)| {
            let begins = Begins::WhereTheyWere;
            let mut workload = self.recording.workload("replay", self.machine, begins);
            let policy = subject.map_or(self.kernel, |it| it.policy(self.kernel));
            if let Some(candidate) = subject {
                candidate.apply(self.recording, &mut workload);
            }
            rerun(&workload, self.machine, policy, *seed, true)
        })?;
        let mut runs = runs.into_iter();
        (0..=left.len()).map(|_| Ok(runs.by_ref().take(count).collect::<Result<_, _>>()?)).collect()
    }

    /// `samples` of the recording as it is, and then of each of `left`.
    fn better_half(
        &self,
        left: Vec<&'a Candidate>,
        mut samples: Vec<Vec<f64>>,
    ) -> (Vec<&'a Candidate>, Vec<Vec<f64>>) {
        let as_it_is = samples.remove(0);
        let gain = |samples: &[f64]| {
            let change = Change::between(&as_it_is, samples, self.goal.aim.better());
            change.map_or(f64::NEG_INFINITY, |change| change.pct)
        };
        let kept = kept(left.len());
        let mut ranked: Vec<(&Candidate, Vec<f64>)> = left.into_iter().zip(samples).collect();
        ranked.sort_by(|(_, a), (_, b)| gain(b).total_cmp(&gain(a)));
        ranked.truncate(kept);
        let (left, mut samples): (Vec<_>, Vec<_>) = ranked.into_iter().unzip();
        samples.insert(0, as_it_is);
        (left, samples)
    }

    fn judge(&self, left: &[&'a Candidate], seeds: Seeds) -> anyhow::Result<Vec<Advice<'a>>> {
        let runs = self.runs(left, seeds)?;
        let (as_it_is, others) = (&runs[0], &runs[1..]);
        let judged = left.iter().zip(others).filter_map(|(candidate, runs)| {
            let change = self.change(as_it_is, runs, |run| self.goal.of(run))?;
            let costs = || self.costs(as_it_is, runs);
            let helps = is_beyond_noise(&change) && change.pct > 0.0;
            helps.then(|| Advice { candidate, change, costs: costs() })
        });
        let mut advice: Vec<Advice<'a>> = judged.collect();
        advice.sort_by(|a, b| b.change.pct.total_cmp(&a.change.pct));
        Ok(advice)
    }

    /// What it does to the tasks of each name that can be believed, where that is worse.
    fn costs(&self, as_it_is: &[Measured], runs: &[Measured]) -> Vec<(String, Change)> {
        let of_name = |name: &str| {
            let change = self.change(as_it_is, runs, |run| self.goal.of_name(run, name))?;
            (is_beyond_noise(&change) && change.pct < 0.0).then(|| (name.to_owned(), change))
        };
        self.goal.all_names().filter_map(of_name).collect()
    }

    fn change(
        &self,
        as_it_is: &[Measured],
        runs: &[Measured],
        figure: impl Fn(&Measured) -> f64,
    ) -> Option<Change> {
        let [before, after] =
            [as_it_is, runs].map(|runs| runs.iter().map(&figure).collect::<Vec<_>>());
        let difference = (center(&after) - center(&before)).abs();
        let is_told = self.goal.aim == Aim::Throughput || difference > TOLD_NS;
        Change::between(&before, &after, self.goal.aim.better()).filter(|_| is_told)
    }
}

fn is_beyond_noise(change: &Change) -> bool {
    change.is_significant() == Some(true) && change.pct.abs() >= LEAST_PCT
}

/// How many candidates each round begins with.
fn rounds(candidates: usize) -> Vec<usize> {
    let mut left = candidates;
    let mut rounds = Vec::new();
    while left > FINALISTS {
        rounds.push(left);
        left = kept(left);
    }
    rounds
}

fn kept(left: usize) -> usize {
    left.div_ceil(2).max(FINALISTS)
}

/// Runs of the judgement.
fn last(candidates: usize) -> usize {
    (candidates.min(FINALISTS) + 1) * LAST_RUNS
}

/// With one seed in each round.
fn least(rounds: &[usize], candidates: usize) -> usize {
    rounds.iter().map(|left| left + 1).sum::<usize>() + last(candidates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_keeps_half_until_few_are_left() {
        assert_eq!(rounds(25), [25, 13, 7]);
        assert!(rounds(5).is_empty());
        assert_eq!((least(&rounds(25), 25), least(&[], 2)), (26 + 14 + 8 + 48, 24));
    }

    #[test]
    fn a_change_counts_that_is_neither_noise_nor_too_small() {
        let change = |after: [f64; 3]| {
            let change =
                Change::between(&[100.0, 101.0, 102.0], &after, placewise_sim::Better::Higher);
            is_beyond_noise(&change.unwrap())
        };
        assert!(change([110.0, 111.0, 112.5]));
        assert!(!change([100.5, 101.5, 102.5]), "less than the fit");
        assert!(!change([90.0, 111.0, 130.0]), "noise");
    }
}
