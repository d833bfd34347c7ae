//! How a comparison is printed: one file per format.
//!
//! What all texts for people share is here: one table per metric with a row per case and policy,
//! and, where asked for, one table per case of the figures that say why, a column per policy, and
//! two of what load balancing did.

mod cells;
pub mod csv;
pub mod foreign;
pub mod json;
mod lkml;
mod load_balance;
pub mod markdown;
pub mod number;
pub mod table;

use std::collections::BTreeMap;

use clap::ValueEnum;

use crate::comparison::{Comparison, Row};
use crate::machine_readable::direction_name;

pub use cells::Table;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For the terminal
    Table,
    /// Plain text under 80 columns, to post to a mailing list
    Lkml,
    /// Pipe tables
    Markdown,
    /// One row per figure, in the schema of published results
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

const SIGN: &str = "positive = better than the first policy, whatever the metric";
const MARKS: &str = "~ = within the noise (95 % interval with 0 in it), ? = unknown (too few runs)";

/// How many runs there were, and with which seeds.
fn runs(comparison: &Comparison) -> String {
    let first = comparison.seed;
    let last = first + u64::from(comparison.runs) - 1;
    match (comparison.least_runs, comparison.runs) {
        (_, 1) => format!("1 per case and policy, seed {first}"),
        (least, most) => {
            let number =
                if least == most { most.to_string() } else { format!("{least} to {most}") };
            format!("{number} per case and policy, seeds {first} to {last} for every policy")
        }
    }
}

/// Where runs settled in different states.
fn states(comparison: &Comparison) -> Vec<String> {
    let told = |row: &Row| {
        let figure = |value: f64| format!("{} {}", number::figure(value), row.unit);
        let states = row.states?.told(figure);
        let case = if row.case.is_empty() { String::new() } else { format!("{} ", row.case) };
        Some(format!("{case}{} {}: {states}; the median is shown", row.policy, row.metric))
    };
    comparison.rows.iter().filter_map(told).collect()
}

/// Every metric with its heading and table, then every case with its figures that say why, then with
/// what load balancing did.
/// `cell` makes the cell that shows the change.
fn tables(
    comparison: &Comparison,
    mut empty: impl FnMut() -> Table,
    cell: impl Fn(String, &Row) -> comfy_table::Cell,
) -> Vec<(String, Table)> {
    let mut tables = Vec::new();
    for rows in grouped(&comparison.rows, |row| row.metric.as_str()) {
        tables.push((metric_heading(rows[0]), fill(empty(), &rows, &cell)));
    }
    for stats in grouped(&comparison.stats, |stat| stat.case.as_str()) {
        let heading = heading_of_case("why", &stats[0].case);
        tables.push((heading, fill_with_why(empty(), &stats)));
    }
    tables.extend(load_balance::tables(&comparison.load_balance, empty));
    tables
}

/// The rows with the same key together; keys in the order they first come.
pub fn grouped<'a, T, K: Ord>(rows: &'a [T], key: impl Fn(&'a T) -> K) -> Vec<Vec<&'a T>> {
    let mut places = BTreeMap::new();
    let mut groups: Vec<Vec<&T>> = Vec::new();
    for row in rows {
        let place = *places.entry(key(row)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(row);
    }
    groups
}

/// `time (s, lower is better)`
fn metric_heading(row: &Row) -> String {
    match row.better {
        Some(better) => {
            format!("{} ({}, {} is better)", row.metric, row.unit, direction_name(better))
        }
        None => format!("{} ({})", row.metric, row.unit),
    }
}

/// `why, means of groups=1`
fn heading_of_case(what: &str, case: &str) -> String {
    match case {
        "" => format!("{what}, means"),
        case => format!("{what}, means of {case}"),
    }
}

fn fill(
    mut table: Table,
    rows: &[&Row],
    cell: impl Fn(String, &Row) -> comfy_table::Cell,
) -> Table {
    table.set_header(["case", "policy", "mean", "std %", "change %"]);
    table.align_right_from(2);
    let mut last_case = None;
    for row in rows {
        let is_same_case = last_case.replace(&row.case) == Some(&row.case);
        let case = if is_same_case { "" } else { &row.case };
        table.add_row([
            case.into(),
            row.policy.clone().into(),
            row.center().map(number::figure).unwrap_or_default().into(),
            row.std_pct.map(number::percent).unwrap_or_default().into(),
            cell(change(row), row),
        ]);
    }
    table
}

/// The mark stands behind the number; without one its place is kept, so that digits stay in line.
fn change(row: &Row) -> String {
    match (row.change_pct, row.significant) {
        (None, _) => String::new(),
        (Some(change), Some(true)) => format!("{}  ", number::change(change)),
        (Some(change), Some(false)) => format!("{} ~", number::change(change)),
        (Some(change), None) => format!("{} ?", number::change(change)),
    }
}

fn fill_with_why(mut table: Table, stats: &[&Row]) -> Table {
    let metrics = grouped(stats, |stat| stat.metric.as_str());
    let policies = metrics[0].iter().map(|stat| stat.policy.as_str());
    table.set_header(["figure", "unit"].into_iter().chain(policies));
    table.align_right_from(2);
    for of_policies in &metrics {
        let name = [of_policies[0].metric.clone(), of_policies[0].unit.to_owned()];
        let means = of_policies.iter().map(|stat| stat.center().map(number::figure));
        table.add_row(name.into_iter().chain(means.map(Option::unwrap_or_default)));
    }
    table
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn groups_are_in_the_order_they_first_come() {
        let rows = ["b1", "a1", "b2", "c1", "a2"];
        let groups = grouped(&rows, |row| &row[..1]);
        assert_eq!(groups, [vec![&"b1", &"b2"], vec![&"a1", &"a2"], vec![&"c1"]]);
    }

    /// However many groups there are.
    #[test]
    fn each_row_is_looked_at_once() {
        let rows: Vec<u32> = (0..1_000).collect();
        let looks = Cell::new(0);
        let groups = grouped(&rows, |row| {
            looks.set(looks.get() + 1);
            row
        });
        assert_eq!((groups.len(), looks.get()), (1_000, 1_000));
    }
}
