//! What all texts for people share: one table per metric, or per part of the workload, with a row per
//! case and subject, and, where asked for, the figures of each case that say why.

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
    for rows in grouped(&comparison.rows, |row| row.part().unwrap_or(&row.metric)) {
        let part = rows[0].part();
        let heading = part.map_or_else(|| metric_heading(rows[0]), str::to_owned);
        let table = fill(empty(), &rows, (&cases, &axes), part.is_some(), &cell);
        tables.push((heading, Some(table)));
    }
    if comparison.tell_all {
        for rows in grouped(&comparison.stats, |stat| stat.case.as_str()) {
            tables.extend(why::all((&cases.label(&rows[0].case), &rows), &axes, width, &mut empty));
        }
        tables.extend(load_balance::tables(
            &comparison.load_balance,
            (&cases, &axes),
            width,
            empty,
        ));
    } else {
        for rows in grouped(&comparison.why, |row| row.case.as_str()) {
            tables.extend(why::moved(
                (&cases.label(&rows[0].case), &rows),
                &axes,
                width,
                &mut empty,
            ));
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

/// A row for each of `rows`, which are of one metric, or, where it is told, of all metrics of a part.
fn fill(
    mut table: Table,
    rows: &[&Row],
    (cases, axes): (&Labels, &[Axis]),
    tells_metric: bool,
    cell: impl Fn(String, &Row) -> comfy_table::Cell,
) -> Table {
    let leading = if tells_metric { &["case", "metric"][..] } else { &["case"] };
    let names = axes.iter().map(|axis| axis.name());
    table.set_header(leading.iter().copied().chain(names).chain(FIGURES));
    let mut last: Option<&Row> = None;
    for row in rows {
        let of_case = last.replace(row).filter(|before| before.case == row.case);
        let case = if of_case.is_some() { String::new() } else { cases.label(&row.case) };
        let mut cells = vec![case.into()];
        if tells_metric {
            let is_told = of_case.is_some_and(|before| before.metric == row.metric);
            cells.push(if is_told { "".into() } else { metric_in_part(row).into() });
        }
        cells.extend(figures(row, axes, &cell));
        table.add_row(cells);
    }
    let figures = leading.len() + axes.len();
    table.labels(1..figures);
    table.figures_from(figures);
    table
}

/// `time (s)` of `schbench@web: time`
fn metric_in_part(row: &Row) -> String {
    let (_, name) = row.metric.split_once(": ").unwrap_or(("", &row.metric));
    format!("{name} ({})", row.unit)
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
