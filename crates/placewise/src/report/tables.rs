//! What all texts for people share: one table per metric with a row per case and subject, and, where
//! asked for, one table per case of the figures that say why, a column per subject, and two of what
//! load balancing did.

use std::iter;

use super::cells::Table;
use super::change::{change, interval};
use super::groups::{grouped, heading_of_case};
use super::{load_balance, number};
use crate::comparison::{Comparison, Row};
use crate::machine_readable::direction_name;
use crate::subject::{Axis, Subject};

const FIGURES: [&str; 4] = ["mean", "std %", "change %", "95 % interval"];

/// Where runs settled in different states.
pub fn states(comparison: &Comparison) -> Vec<String> {
    let axes = comparison.axes();
    let told = |row: &Row| {
        let figure = |value: f64| format!("{} {}", number::figure(value), row.unit);
        let states = row.states?.told(figure);
        let case = if row.case.is_empty() { String::new() } else { format!("{} ", row.case) };
        let label = label(&axes, &row.subject);
        Some(format!("{case}{label} {}: {states}; the median is shown", row.metric))
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
    let mut tables = Vec::new();
    let axes = comparison.axes();
    for rows in grouped(&comparison.rows, |row| row.metric.as_str()) {
        tables.push((metric_heading(rows[0]), fill(empty(), &rows, &axes, &cell)));
    }
    for stats in grouped(&comparison.stats, |stat| stat.case.as_str()) {
        let heading = heading_of_case("why", &stats[0].case);
        tables.push((heading, fill_with_why(empty(), &stats, &axes)));
    }
    tables.extend(load_balance::tables(&comparison.load_balance, &axes, empty));
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

fn fill(
    mut table: Table,
    rows: &[&Row],
    axes: &[Axis],
    cell: impl Fn(String, &Row) -> comfy_table::Cell,
) -> Table {
    let names = axes.iter().map(|axis| axis.name());
    table.set_header(iter::once("case").chain(names).chain(FIGURES));
    let mut last: Option<&Row> = None;
    for row in rows {
        let before = last.replace(row).filter(|before| before.case == row.case);
        let case = if before.is_some() { "" } else { &row.case };
        let values = axes.iter().map(|axis| axis.value(&row.subject).into());
        let figures = [
            row.center().map(number::figure).unwrap_or_default().into(),
            row.std_pct.map(number::three_digits).unwrap_or_default().into(),
            cell(change(row), row),
            interval(row).into(),
        ];
        table.add_row(iter::once(case.into()).chain(values).chain(figures).collect::<Vec<_>>());
    }
    table.figures_from(1 + axes.len());
    table
}

/// What tells the subject apart: `v6.12 short-task`
fn label(axes: &[Axis], subject: &Subject) -> String {
    axes.iter().map(|axis| axis.value(subject)).collect::<Vec<_>>().join(" ")
}

fn fill_with_why(mut table: Table, stats: &[&Row], axes: &[Axis]) -> Table {
    let metrics = grouped(stats, |stat| stat.metric.as_str());
    let subjects = metrics[0].iter().map(|stat| label(axes, &stat.subject));
    table.set_header(["figure", "unit"].map(str::to_owned).into_iter().chain(subjects));
    table.align_right_from(2);
    for of_subjects in &metrics {
        let name = [of_subjects[0].metric.clone(), of_subjects[0].unit.to_owned()];
        let means = of_subjects.iter().map(|stat| stat.center().map(number::figure));
        table.add_row(name.into_iter().chain(means.map(Option::unwrap_or_default)));
    }
    table
}
