//! How a reproduction is printed: tables of published beside predicted figures, one per study, or
//! its rows for programs.

use serde::Serialize;

use super::Reproduction;
use super::predict::Row;
use super::study::Published;
use super::summary::Summary;
use crate::comparison::direction_name;
use crate::report::csv::{HEADER, number as plain};
use crate::report::foreign::{in_markdown, visible};
use crate::report::{Table, csv, grouped, json, markdown, number, table};

/// What is appended to the columns of a study.
const PREDICTED: [&str; 4] =
    ["predicted", "predicted_change_pct", "predicted_spread_pct", "not_simulated"];

const METHOD: &str = "\
Each published row is simulated with its machine, kernel, workload, case and policy. A change is in
percent of the `baseline` row of the same file, case and metric, and positive where it is better; of
counters without a good direction, positive is more. Most runs simulate a short window, a fraction of
a second for hackbench and up to 40 s for schbench, that stands for the whole run of the benchmark on
hardware; lu is run whole, or for 10 minutes. The spread is the standard deviation in percent of the
mean. Where the published value is normalised there is no predicted value, and where only the baseline
is published, no published change.";

const SUMMARY: &str = "\
An effect is a published change of 5 % or more, and its sign is right if the predicted change has the
same. A null is a published change under 2 %, and quiet if the predicted change is under 5 %; those of
policies that change no decision, such as `hint:none`, are always quiet. Spearman is the rank
correlation of predicted and published changes. Each row counts once, so long tables weigh more.";

pub fn terminal(reproduction: &Reproduction) -> String {
    let mut text = String::new();
    for (heading, of_study) in studies(reproduction, table::empty_table) {
        text += &format!("{}\n{}\n\n", visible(&heading), of_study.trimmed());
    }
    text += &format!("runs: {}\n", runs(reproduction));
    for reason in reasons(&reproduction.rows) {
        text += &format!("not simulated: {}\n", visible(&reason));
    }
    let summary = summary_table(reproduction, table::empty_table());
    text + &format!("\nsummary\n{}\n", summary.trimmed())
}

pub fn markdown(reproduction: &Reproduction) -> String {
    let mut text = format!("# Published results and their predictions\n\n{METHOD}\n\n");
    text += &format!("Runs: {}.\n", runs(reproduction));
    if let Some(uncovered) = uncovered(&reproduction.rows) {
        let uncovered = in_markdown(&uncovered);
        text += &format!("\nRows that are not covered, and so in no figure below: {uncovered}.\n");
    }
    let summary = summary_table(reproduction, markdown::empty_table());
    text += &format!("\n## Summary\n\n{SUMMARY}\n\n{summary}\n");
    for (heading, of_study) in studies(reproduction, markdown::empty_table) {
        text += &format!("\n## {}\n\n{of_study}\n", in_markdown(&heading));
    }
    let reasons = reasons(&reproduction.rows);
    if !reasons.is_empty() {
        text += "\n## Not simulated\n\n";
        reasons.iter().for_each(|reason| text += &format!("- {}\n", in_markdown(reason)));
    }
    text
}

/// The studies' columns with the predictions behind them; the summary is a comment at the end.
pub fn csv(reproduction: &Reproduction) -> anyhow::Result<String> {
    let mut header = [""; HEADER.len() + PREDICTED.len()];
    header[..HEADER.len()].copy_from_slice(&HEADER);
    header[HEADER.len()..].copy_from_slice(&PREDICTED);
    let rows = csv::table(&header, reproduction.rows.iter().map(record))?;
    Ok(format!("{rows}# summary: {}\n", serde_json::to_string(&reproduction.summary)?))
}

pub fn json(reproduction: &Reproduction) -> anyhow::Result<String> {
    #[derive(Serialize)]
    struct Report<'a> {
        rows: &'a [Row],
        summary: &'a Summary,
    }
    let report = Report { rows: &reproduction.rows, summary: &reproduction.summary };
    json::render(&report)
}

fn record(row: &Row) -> [String; 16] {
    let published = &row.published;
    [
        published.series.clone(),
        published.machine.clone(),
        published.kernel.clone(),
        published.workload.clone(),
        published.case.clone(),
        published.metric.clone(),
        published.policy.clone(),
        plain(published.value),
        published.unit_written().to_owned(),
        published.better.map(direction_name).unwrap_or_default().to_owned(),
        plain(published.spread_pct),
        plain(published.change_pct),
        plain(row.predicted),
        plain(row.predicted_change_pct),
        plain(row.predicted_spread_pct),
        row.not_simulated.clone().unwrap_or_default(),
    ]
}

fn runs(reproduction: &Reproduction) -> String {
    let (runs, first) = (reproduction.runs, reproduction.seed);
    match runs {
        1 => format!("1 per case and policy, seed {first}"),
        n => format!("{n} per case and policy, seeds {first} to {}", first + u64::from(n) - 1),
    }
}

/// One table for the simulated rows of each study, machine and kernel.
fn studies(reproduction: &Reproduction, empty: impl Fn() -> Table) -> Vec<(String, Table)> {
    let simulated: Vec<&Row> = simulated(&reproduction.rows).collect();
    let studies = grouped(&simulated, |row| {
        let published = &row.published;
        (&published.file, &published.machine, &published.kernel)
    });
    let heading = |row: &Row| {
        let Published { file, machine, kernel, .. } = &row.published;
        let costs_of = row.costs_of.as_deref().unwrap_or_default();
        format!("{file}: {machine}, costs {costs_of}, {kernel}")
    };
    studies.iter().map(|rows| (heading(rows[0]), fill(empty(), rows))).collect()
}

fn simulated(rows: &[Row]) -> impl Iterator<Item = &Row> {
    rows.iter().filter(|row| row.not_simulated.is_none())
}

fn fill(mut table: Table, rows: &[&&Row]) -> Table {
    table.set_header([
        "workload",
        "metric",
        "case",
        "policy",
        "published",
        "predicted",
        "published change %",
        "predicted change %",
        "spread %",
    ]);
    table.align_right_from(4);
    let mut last = [""; 3];
    for row in rows {
        let published = &row.published;
        let names = [&*published.workload, &*published.metric, &*published.case];
        let shown = match std::mem::replace(&mut last, names) == names {
            true => [String::new(), String::new(), String::new()],
            false => [names[0].into(), metric(row), names[2].into()],
        };
        let figure = |value: Option<f64>| value.map(number::figure).unwrap_or_default();
        let change = |value: Option<f64>| value.map(number::change).unwrap_or_default();
        table.add_row(shown.into_iter().chain([
            published.policy.clone(),
            figure(published.value),
            figure(row.predicted),
            change(published.change_pct),
            change(row.predicted_change_pct),
            row.predicted_spread_pct.map(number::percent).unwrap_or_default(),
        ]));
    }
    table
}

fn metric(row: &Row) -> String {
    match row.published.unit_written() {
        "" => row.published.metric.clone(),
        unit => format!("{} ({unit})", row.published.metric),
    }
}

/// A line per study with published changes, and one for all.
fn summary_table(reproduction: &Reproduction, mut table: Table) -> Table {
    table.set_header(["study", "effects", "sign right", "spearman", "nulls", "quiet"]);
    table.align_right_from(1);
    for rows in grouped(&reproduction.rows, |row| &row.published.file) {
        let pairs = super::pairs(rows.iter().copied());
        if !pairs.is_empty() {
            table.add_row(summary_line(&rows[0].published.file, &Summary::of(&pairs)));
        }
    }
    table.add_row(summary_line("all", &reproduction.summary));
    table
}

fn summary_line(study: &str, summary: &Summary) -> [String; 6] {
    let part = |part: usize, rate: Option<f64>| match rate {
        Some(rate) => format!("{part} ({:.0} %)", 100.0 * rate),
        None => String::new(),
    };
    [
        study.to_owned(),
        summary.significant.to_string(),
        part(summary.sign_right, summary.sign_rate),
        summary.spearman.map(number::percent).unwrap_or_default(),
        summary.null.to_string(),
        part(summary.null_quiet, summary.null_rate),
    ]
}

/// `dbench (7 rows), lu (1 row)`: workloads with rows that are not simulated.
fn uncovered(rows: &[Row]) -> Option<String> {
    let left_out: Vec<&Row> = rows.iter().filter(|row| row.not_simulated.is_some()).collect();
    let groups = grouped(&left_out, |row| &row.published.workload);
    let name = |rows: &Vec<&&Row>| {
        let (workload, n) = (&rows[0].published.workload, rows.len());
        format!("{workload} ({n} row{})", if n == 1 { "" } else { "s" })
    };
    let names: Vec<String> = groups.iter().map(name).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Why rows are not simulated, with the rows: `a.csv, lines 2-4, 7: workload ...`
fn reasons(rows: &[Row]) -> Vec<String> {
    let left_out: Vec<&Row> = rows.iter().filter(|row| row.not_simulated.is_some()).collect();
    let groups = grouped(&left_out, |row| (&row.published.file, &row.not_simulated));
    let line = |rows: &Vec<&&Row>| {
        let lines: Vec<usize> = rows.iter().map(|row| row.published.line).collect();
        let reason = rows[0].not_simulated.as_deref().unwrap_or_default();
        let (s, lines) = (if lines.len() == 1 { "" } else { "s" }, ranges(&lines));
        format!("{}, line{s} {lines}: {reason}", rows[0].published.file)
    };
    groups.iter().map(line).collect()
}

/// `2-4, 7`
fn ranges(lines: &[usize]) -> String {
    let runs = lines.chunk_by(|before, after| before + 1 == *after);
    let text = |run: &[usize]| match run {
        [one] => one.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    };
    runs.map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_a_row_are_a_range() {
        assert_eq!(ranges(&[2, 3, 4, 7, 9, 10]), "2-4, 7, 9-10");
    }
}
