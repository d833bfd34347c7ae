//! How a comparison is printed: one file per format.

mod csv;
mod json;
mod lkml;
mod markdown;
mod number;
mod table;

use clap::ValueEnum;

use crate::comparison::{Comparison, Row, direction_name};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For the terminal
    Table,
    /// Plain text under 80 columns, to post to a mailing list
    Lkml,
    /// Pipe tables
    Markdown,
    /// One row per figure, in the schema of the published results
    Csv,
    /// Everything, for programs
    Json,
}

pub fn render(comparison: &Comparison, format: Format) -> anyhow::Result<String> {
    match format {
        Format::Table => Ok(table::render(comparison)),
        Format::Lkml => Ok(lkml::render(comparison)),
        Format::Markdown => Ok(markdown::render(comparison)),
        Format::Csv => csv::render(comparison),
        Format::Json => json::render(comparison),
    }
}

const SIGN: &str = "positive change = better than the first policy, whatever the metric";
const MARKS: &str = "~ = within the noise (paired t-test, p >= 0.05), ? = unknown (one run)";

/// How many runs there were, and with which seeds.
fn runs(comparison: &Comparison) -> String {
    let first = comparison.seed;
    let last = first + u64::from(comparison.runs) - 1;
    match comparison.runs {
        1 => format!("1 per case and policy, seed {first}"),
        n => format!("{n} per case and policy, seeds {first} to {last} for every policy"),
    }
}

/// The rows of each metric in the order the metrics come, whatever the case.
fn by_metric(rows: &[Row]) -> Vec<(&Row, Vec<&Row>)> {
    let mut metrics: Vec<(&Row, Vec<&Row>)> = Vec::new();
    for row in rows {
        match metrics.iter_mut().find(|(first, _)| first.metric == row.metric) {
            Some((_, of_metric)) => of_metric.push(row),
            None => metrics.push((row, vec![row])),
        }
    }
    metrics
}

/// `time (s, lower is better)`
fn heading(row: &Row) -> String {
    format!("{} ({}, {} is better)", row.metric, row.unit, direction_name(row.better))
}

/// The cells of a row for people to read: case, policy, mean, std %, change %.
fn cells(row: &Row) -> [String; 5] {
    let change = match (row.change_pct, row.significant) {
        (None, _) => String::new(),
        (Some(change), Some(true)) => format!("{}  ", number::change(change)),
        (Some(change), Some(false)) => format!("{} ~", number::change(change)),
        (Some(change), None) => format!("{} ?", number::change(change)),
    };
    [
        row.case.clone(),
        row.policy.clone(),
        row.mean.map(number::figure).unwrap_or_default(),
        row.std_pct.map(number::percent).unwrap_or_default(),
        change,
    ]
}

const COLUMNS: [&str; 5] = ["case", "policy", "mean", "std %", "change %  "];
