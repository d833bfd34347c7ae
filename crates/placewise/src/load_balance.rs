//! What load balancing did under each subject of a comparison: means over the runs, by domain level and idle type.
//!
//! Levels that no CPU of an idle type balanced under any subject are left out.

use placewise_sim::{Figure, LoadBalance, Outcome};
use serde::{Serialize, Serializer};

use crate::machine_readable::round_to_nine_digits;
use crate::noise::mean;
use crate::subject::Subject;

/// One case, domain level, idle type and subject.
#[derive(Serialize)]
pub struct Row {
    pub case: String,
    pub level: String,
    pub idle: &'static str,
    #[serde(flatten)]
    pub subject: Subject,
    #[serde(flatten)]
    pub counters: Means,
    /// Attempts that moved no task, by the reason.
    pub moved_nothing: Means,
}

/// Means with their names; an object in JSON.
pub struct Means(pub Vec<(&'static str, f64)>);

impl Serialize for Means {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer
            .collect_map(self.0.iter().map(|(name, mean)| (name, round_to_nine_digits(*mean))))
    }
}

/// What load balancing did in one run, a figure for each counter, level and idle type.
pub fn figures(outcome: &Outcome) -> Vec<Figure> {
    let mut figures = Vec::new();
    for LoadBalance { level, idle, counters, moved_nothing } in &outcome.statistics.load_balance {
        let counted = LoadBalance::COUNTERS.iter().zip(counters);
        let reasons = LoadBalance::REASONS.iter().zip(moved_nothing);
        let reasons =
            reasons.map(|(reason, number)| (format!("lb moved nothing: {reason}"), number));
        let counted = counted.map(|(name, number)| ((*name).to_owned(), number));
        figures.extend(counted.chain(reasons).map(|(name, number)| Figure {
            metric: format!("{name}, {level} {idle}"),
            value: *number as f64,
            unit: "count",
            better: None,
        }));
    }
    figures
}

/// The runs of one subject.
pub struct Runs<'a> {
    pub subject: &'a Subject,
    pub outcomes: &'a [Outcome],
}

/// The rows of one case, policies beside each other.
pub fn rows(case: &str, policies: &[Runs]) -> Vec<Row> {
    let levels = &policies[0].outcomes[0].statistics.load_balance;
    let places = (0..levels.len()).filter(|&at| policies.iter().any(|of| of.attempts(at)));
    places.flat_map(|at| policies.iter().map(move |of| of.row(case, at))).collect()
}

impl Runs<'_> {
    /// One level and idle type in each run.
    fn at(&self, at: usize) -> impl Iterator<Item = &LoadBalance> {
        self.outcomes.iter().map(move |run| &run.statistics.load_balance[at])
    }

    fn attempts(&self, at: usize) -> bool {
        self.at(at).any(|one| one.counters[0] > 0)
    }

    fn row(&self, case: &str, at: usize) -> Row {
        let LoadBalance { level, idle, .. } = &self.outcomes[0].statistics.load_balance[at];
        Row {
            case: case.to_owned(),
            level: level.clone(),
            idle,
            subject: self.subject.clone(),
            counters: self.means(at, &LoadBalance::COUNTERS, |one| &one.counters),
            moved_nothing: self.means(at, &LoadBalance::REASONS, |one| &one.moved_nothing),
        }
    }

    fn means(
        &self,
        at: usize,
        names: &[&'static str],
        numbers: fn(&LoadBalance) -> &[u64],
    ) -> Means {
        let mean_of = |number: usize| {
            mean(&self.at(at).map(|one| numbers(one)[number] as f64).collect::<Vec<_>>())
        };
        Means(names.iter().enumerate().map(|(number, name)| (*name, mean_of(number))).collect())
    }
}
