//! What knobs change: the median of a figure over the replicates with a knob, beside that without.
//!
//! A change is clear where the ranges of both do not overlap: replicates of some loads fall into states
//! that differ more than what a knob does.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use anyhow::Context;

/// What is compared: a figure, per another one.
const FIGURES: &[(&str, &[&str], &str)] = &[
    ("ns_per_message", &["ns"], "messages"),
    ("sleeps_per_message", &["sleeps"], "messages"),
    ("preemptions_per_message", &["preemptions"], "messages"),
    ("migrations_per_message", &["migrations"], "messages"),
    ("wakeups_per_message", &["wakeups"], "messages"),
    ("wakeups_same_cpu", &["wakeups_same_cpu"], "wakeups"),
    ("wakeups_same_core", &["wakeups_same_cpu", "wakeups_smt"], "wakeups"),
    ("wakeups_other_llc", &["wakeups_node", "wakeups_other_node"], "wakeups"),
    ("wakeups_other_node", &["wakeups_other_node"], "wakeups"),
    ("newidle_passes_per_idle_entry", &["newidle_passes"], "idle_entries"),
    ("pulls_per_message", &["newidle_pulls", "idle_pulls", "busy_pulls"], "messages"),
    ("latency_p50_ns", &["latency_p50_ns"], ""),
    ("latency_p99_ns", &["latency_p99_ns"], ""),
];

/// Machine, kernel, workload and case.
pub type Load = [String; 4];
/// Values of a figure, by knob.
type Values = BTreeMap<String, Vec<f64>>;

/// Of some replicates.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let median = (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0;
        Some(Self { median, min, max })
    }

    pub fn apart(&self, other: &Self) -> bool {
        self.max < other.min || other.max < self.min
    }
}

/// Writes a CSV line for every load, figure and knob of the rows in `path`.
pub fn write(path: &Path, to: impl io::Write) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    writer.write_record([
        "machine",
        "kernel",
        "workload",
        "case",
        "figure",
        "knob",
        "replicates",
        "baseline",
        "baseline_min",
        "baseline_max",
        "median",
        "min",
        "max",
        "change_pct",
        "clear",
    ])?;
    for ((load, figure), values) in read(path)? {
        let Some(baseline) = values.get("").and_then(|values| Spread::of(values)) else { continue };
        for (knob, values) in values.iter().filter(|(knob, _)| !knob.is_empty()) {
            let Some(spread) = Spread::of(values) else { continue };
            let numbers = [
                baseline.median,
                baseline.min,
                baseline.max,
                spread.median,
                spread.min,
                spread.max,
            ];
            let change = (spread.median / baseline.median - 1.0) * 100.0;
            let mut line: Vec<String> = load.to_vec();
            line.extend([figure.to_owned(), knob.clone(), values.len().to_string()]);
            line.extend(numbers.map(|number| format!("{number:.5}")));
            line.push(if change.is_finite() { format!("{change:.1}") } else { String::new() });
            line.push(if spread.apart(&baseline) { "yes" } else { "no" }.to_owned());
            writer.write_record(line)?;
        }
    }
    writer.flush().context("standard output")
}

fn read(path: &Path) -> anyhow::Result<BTreeMap<(Load, &'static str), Values>> {
    let mut all = BTreeMap::<(Load, &str), Values>::new();
    for row in rows(path)? {
        for (figure, value) in figures(|name| row.figure(name)) {
            let values = all.entry((row.load.clone(), figure)).or_default();
            values.entry(row.knob.clone()).or_default().push(value);
        }
    }
    Ok(all)
}

/// What is compared, of a run with these counts.
pub fn figures(count: impl Fn(&str) -> Option<f64>) -> impl Iterator<Item = (&'static str, f64)> {
    FIGURES.iter().filter_map(move |&(figure, parts, per)| {
        let sum: Option<f64> = parts.iter().map(|part| count(part)).sum();
        let per = if per.is_empty() { 1.0 } else { count(per)? };
        (per > 0.0).then_some((figure, sum? / per))
    })
}

/// A recorded run.
pub struct Row {
    pub load: Load,
    /// What `uname -r` said.
    pub release: String,
    pub knob: String,
    /// The boot, and where in its order it ran.
    pub replicate: u64,
    pub place: u64,
    columns: BTreeMap<String, String>,
}

impl Row {
    /// Nothing where the kernel had not the knob, or the load has not the figure.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.columns.get(name)?.parse().ok()
    }
}

pub fn rows(path: &Path) -> anyhow::Result<Vec<Row>> {
    let named = || path.display().to_string();
    let mut rows = Vec::new();
    for row in csv::Reader::from_path(path).with_context(named)?.deserialize() {
        let columns: BTreeMap<String, String> = row.with_context(named)?;
        let word = |name: &str| {
            let missing = || format!("{}: no column {name}", named());
            columns.get(name).cloned().with_context(missing)
        };
        let number = |name: &str| {
            word(name)?.parse().with_context(|| format!("{}: {name} is no number", named()))
        };
        rows.push(Row {
            load: [word("machine")?, word("kernel")?, word("workload")?, word("case")?],
            release: word("release")?,
            knob: word("knob")?,
            replicate: number("replicate")?,
            place: number("place")?,
            columns,
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).map(|spread| spread.median), Some(2.5));
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]).map(|spread| spread.median), Some(2.0));
        assert!(Spread::of(&[]).is_none());
    }

    #[test]
    fn ranges_that_meet_are_not_apart() {
        let of = |values: &[f64]| Spread::of(values).unwrap();
        assert!(of(&[1.0, 2.0]).apart(&of(&[2.5, 3.0])));
        assert!(!of(&[1.0, 2.5]).apart(&of(&[2.5, 3.0])));
    }
}
