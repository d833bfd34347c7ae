//! What all texts for people share: one table per metric, or per part of the workload, with a row per
//! case and subject, and, where asked for, the figures of each case that say why.

use std::iter;

use super::cases::Labels;
use super::cells::Table;
use super::change::{change, interval};
use super::foreign::visible;
use super::groups::grouped;
use super::{load_balance, number, why};
use crate::comparison::{Comparison, Row};
use crate::machine_readable::direction_name;
use crate::subject::{Axis, label};

const FIGURES: [&str; 4] = ["mean", "std %", "change %", "95 % interval"];

/// Where runs settled in different states.
pub fn states(comparison: &Comparison) -> Vec<String> {
    let (axes, cases) = (comparison.axes(), Labels::of(&comparison.rows));
    let told = |row: &Row| {
        let figure = |value: f64| format!("{} {}", number::figure(value), row.unit);
        let states = row.states?.told(figure);
        let case = cases.label(&row.case);
        let case = if case.is_empty() { case } else { format!("{case} ") };
        let label = label(&axes, &row.subject);
        Some(format!("{case}{label} {}: {states}; the median is shown", row.metric))
    };
    comparison.rows.iter().filter_map(told).collect()
}

/// A line for each row of a case that is done: `groups=1  short-task  time 4.310 s  +1.62`
pub fn finished_rows(rows: &[Row], axes: &[Axis]) -> String {
    let line = |row: &Row| {
        let figure = row.center().map(number::figure).unwrap_or_default();
        let told = format!("{} {figure} {}", row.metric, row.unit);
        let words = [row.case.clone(), label(axes, &row.subject), told, change(row)];
        visible(words.join("  ").trim()) + "\n"
    };
    rows.iter().map(line).collect()
}

/// Every metric with its heading and table, then every case with its figures that say why, then, where
/// all is told, with what load balancing did. No table is wider than `width`.
/// `cell` makes the cell that shows the change.
pub fn tables(
    comparison: &Comparison,
    width: usize,
    mut empty: impl FnMut() -> Table,
    cell: impl Fn(String, &Row) -> comfy_table::Cell,
) -> Vec<(String, Option<Table>)> {
    let (axes, cases) = (comparison.axes(), Labels::of(&comparison.rows));
    let legend = cases.table(&mut empty).map(|(heading, table)| (heading, Some(table)));
    let mut tables: Vec<_> = legend.into_iter().collect();
    for rows in grouped(&comparison.rows, |row| part(row).unwrap_or(&row.metric)) {
        let (heading, fill) = match part(rows[0]) {
            Some(part) => (part.to_owned(), fill_part as Fill<_>),
            None => (metric_heading(rows[0]), fill_metric as Fill<_>),
        };
        tables.push((heading, Some(fill(empty(), &rows, &cases, &axes, &cell))));
    }
    if comparison.tell_all {
        for rows in grouped(&comparison.stats, |stat| stat.case.as_str()) {
            tables.extend(why::all(&rows, &axes, width, &mut empty));
        }
        tables.extend(load_balance::tables(&comparison.load_balance, &axes, width, empty));
    } else {
        for rows in grouped(&comparison.why, |row| row.case.as_str()) {
            tables.extend(why::moved(&rows, &axes, width, &mut empty));
        }
    }
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

/// A table with rows in it; the last makes the cell that shows the change.
type Fill<F> = fn(Table, &[&Row], &Labels, &[Axis], &F) -> Table;

fn fill_metric<F: Fn(String, &Row) -> comfy_table::Cell>(
    mut table: Table,
    rows: &[&Row],
    cases: &Labels,
    axes: &[Axis],
    cell: &F,
) -> Table {
    let names = axes.iter().map(|axis| axis.name());
    table.set_header(iter::once("case").chain(names).chain(FIGURES));
    let mut last: Option<&Row> = None;
    for row in rows {
        let before = last.replace(row).filter(|before| before.case == row.case);
        let case = if before.is_some() { String::new() } else { cases.label(&row.case) };
        table.add_row([vec![case.into()], figures(row, axes, cell)].concat());
    }
    table.labels(1..1 + axes.len());
    table.figures_from(1 + axes.len());
    table
}

/// All metrics of one part.
fn fill_part<F: Fn(String, &Row) -> comfy_table::Cell>(
    mut table: Table,
    rows: &[&Row],
    cases: &Labels,
    axes: &[Axis],
    cell: &F,
) -> Table {
    let names = axes.iter().map(|axis| axis.name());
    table.set_header(["case", "metric"].into_iter().chain(names).chain(FIGURES));
    let mut last = None;
    for row in rows {
        let (case, metric) = match last.replace((&row.case, &row.metric)) {
            Some((case, metric)) if case == &row.case => (false, metric != &row.metric),
            _ => (true, true),
        };
        let (_, name) = row.metric.split_once(": ").unwrap_or(("", &row.metric));
        let case = if case { cases.label(&row.case) } else { String::new() };
        let metric = if metric { format!("{name} ({})", row.unit) } else { String::new() };
        table.add_row([vec![case.into(), metric.into()], figures(row, axes, cell)].concat());
    }
    table.labels(1..2 + axes.len());
    table.figures_from(2 + axes.len());
    table
}

/// The subject, and what there is to say of it.
fn figures(
    row: &Row,
    axes: &[Axis],
    cell: impl Fn(String, &Row) -> comfy_table::Cell,
) -> Vec<comfy_table::Cell> {
    let subject = axes.iter().map(|axis| axis.value(&row.subject).into());
    let figures = [
        row.center().map(number::figure).unwrap_or_default().into(),
        row.std_pct.map(number::three_digits).unwrap_or_default().into(),
        cell(change(row), row),
        interval(row).into(),
    ];
    subject.chain(figures).collect()
}
