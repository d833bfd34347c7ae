//! What all texts for people share: one table per metric, or per part of the workload, with a row per
//! case and policy, and, where asked for, one table per case of the figures that say why, a column per policy, and two of what
//! load balancing did.

use super::cases::Labels;
use super::cells::Table;
use super::groups::{grouped, heading_of_case};
use super::{load_balance, number};
use crate::comparison::{Comparison, Row};
use crate::machine_readable::direction_name;

pub const SIGN: &str = "positive = better than the first policy, whatever the metric";
pub const MARKS: &str =
    "~ = within the noise (95 % interval with 0 in it), ? = unknown (too few runs)";

/// How many runs there were, and with which seeds.
pub fn runs(comparison: &Comparison) -> String {
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
pub fn states(comparison: &Comparison) -> Vec<String> {
    let labels = Labels::of(&comparison.rows);
    let told = |row: &Row| {
        let figure = |value: f64| format!("{} {}", number::figure(value), row.unit);
        let states = row.states?.told(figure);
        let case = labels.label(&row.case);
        let case = if case.is_empty() { case } else { format!("{case} ") };
        Some(format!("{case}{} {}: {states}; the median is shown", row.policy, row.metric))
    };
    comparison.rows.iter().filter_map(told).collect()
}

/// Every metric with its heading and table, then every case with its figures that say why, then with
/// what load balancing did.
/// `cell` makes the cell that shows the change.
pub fn tables(
    comparison: &Comparison,
    mut empty: impl FnMut() -> Table,
    cell: impl Fn(String, &Row) -> comfy_table::Cell,
) -> Vec<(String, Table)> {
    let labels = Labels::of(&comparison.rows);
    let mut tables: Vec<_> = labels.table(&mut empty).into_iter().collect();
    for rows in grouped(&comparison.rows, |row| part(row).unwrap_or(&row.metric)) {
        tables.push(match part(rows[0]) {
            Some(part) => (part.to_owned(), fill_part(empty(), &rows, &labels, &cell)),
            None => (metric_heading(rows[0]), fill(empty(), &rows, &labels, &cell)),
        });
    }
    for stats in grouped(&comparison.stats, |stat| stat.case.as_str()) {
        let heading = heading_of_case("why", &labels.label(&stats[0].case));
        tables.push((heading, fill_with_why(empty(), &stats)));
    }
    tables.extend(load_balance::tables(&comparison.load_balance, empty));
    tables
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

/// The part of the workload that a figure is of: `schbench@web` of `schbench@web: time`
fn part(row: &Row) -> Option<&str> {
    row.metric.split_once(": ").map(|(part, _)| part)
}

fn fill(
    mut table: Table,
    rows: &[&Row],
    labels: &Labels,
    cell: impl Fn(String, &Row) -> comfy_table::Cell,
) -> Table {
    table.set_header(["case", "policy", "mean", "std %", "change %"]);
    table.align_right_from(2);
    let mut last_case = None;
    for row in rows {
        let is_same_case = last_case.replace(&row.case) == Some(&row.case);
        let case = if is_same_case { String::new() } else { labels.label(&row.case) };
        table.add_row([vec![case.into()], figures(row, &cell)].concat());
    }
    table
}

/// All metrics of one part.
fn fill_part(
    mut table: Table,
    rows: &[&Row],
    labels: &Labels,
    cell: impl Fn(String, &Row) -> comfy_table::Cell,
) -> Table {
    table.set_header(["case", "metric", "policy", "mean", "std %", "change %"]);
    table.align_right_from(3);
    let mut last = None;
    for row in rows {
        let (case, metric) = match last.replace((&row.case, &row.metric)) {
            Some((case, metric)) if case == &row.case => (false, metric != &row.metric),
            _ => (true, true),
        };
        let (_, name) = row.metric.split_once(": ").unwrap_or(("", &row.metric));
        let case = if case { labels.label(&row.case) } else { String::new() };
        let metric = if metric { format!("{name} ({})", row.unit) } else { String::new() };
        table.add_row([vec![case.into(), metric.into()], figures(row, &cell)].concat());
    }
    table
}

fn figures(row: &Row, cell: impl Fn(String, &Row) -> comfy_table::Cell) -> Vec<comfy_table::Cell> {
    vec![
        row.policy.clone().into(),
        row.center().map(number::figure).unwrap_or_default().into(),
        row.std_pct.map(number::percent).unwrap_or_default().into(),
        cell(change(row), row),
    ]
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
