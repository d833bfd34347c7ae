//! How a reproduction is printed: tables of published beside predicted figures, one per study, or
//! its rows for programs.

use placewise_sim::COLUMNS;
use serde::Serialize;

use super::names::Names;
use super::predict::Row;
use super::reproduction::Reproduction;
use super::score::{Score, Scored};
use super::study::Published;
use super::summary::Summary;
use super::tables;
use super::verdict::{Tally, Verdict};
use crate::machine_readable::direction_name;
use crate::report::csv::number as plain;
use crate::report::foreign::{in_markdown, visible};
use crate::report::{Table, csv, grouped, json, markdown, number, terminal};

/// What is appended to the columns of a study.
const PREDICTED: [&str; 10] = [
    "predicted",
    "predicted_change_pct",
    "predicted_spread_pct",
    "not_simulated",
    "predicted_change_low_pct",
    "predicted_change_high_pct",
    "runs",
    "states",
    "in_sample",
    "verdict",
];

pub fn terminal(reproduction: &Reproduction) -> String {
    let mut text = String::new();
    let bare = || terminal::fitting(terminal::empty_bare_table());
    for (heading, of_study) in studies(&reproduction.rows, bare) {
        text += &format!("{}{}\n\n", lines(&heading), of_study.trimmed());
    }
    text += &lines(&format!("runs: {}", reproduction.runs));
    for told in tables::states(&reproduction.rows) {
        text += &lines(&format!("settled differently: {told}"));
    }
    for reason in reasons(&reproduction.rows) {
        text += &lines(&format!("not simulated: {reason}"));
    }
    for (heading, of_score) in tables::of(&reproduction.score, bare) {
        text += &format!("\n{heading}\n{}\n", of_score.trimmed());
    }
    text
}

fn lines(text: &str) -> String {
    textwrap::fill(&visible(text), terminal::lines()) + "\n"
}

pub fn markdown(reproduction: &Reproduction) -> String {
    let mut text = "# Published results and their predictions\n\n".to_owned();
    text += &format!("Runs: {}.\n", reproduction.runs);
    for (heading, of_score) in tables::of(&reproduction.score, markdown::empty_table) {
        text += &format!("\n## {}\n\n{of_score}\n", tables::capitalised(heading));
    }
    for (heading, of_study) in studies(&reproduction.rows, markdown::empty_table) {
        text += &format!("\n## {}\n\n{of_study}\n", in_markdown(&heading));
    }
    text += &list("Settled differently", &tables::states(&reproduction.rows));
    text + &list("Not simulated", &reasons(&reproduction.rows))
}

fn list(heading: &str, points: &[String]) -> String {
    let points: String = points.iter().map(|one| format!("- {}\n", in_markdown(one))).collect();
    if points.is_empty() { points } else { format!("\n## {heading}\n\n{points}") }
}

/// The studies' columns with the predictions behind them; the summary is a comment at the end.
pub fn csv(reproduction: &Reproduction) -> anyhow::Result<String> {
    let mut header = [""; COLUMNS.len() + PREDICTED.len()];
    header[..COLUMNS.len()].copy_from_slice(&COLUMNS);
    header[COLUMNS.len()..].copy_from_slice(&PREDICTED);
    let rows = csv::table(&header, reproduction.rows.iter().map(record))?;
    #[derive(Serialize)]
    struct AllRows<'a> {
        #[serde(flatten)]
        summary: &'a Summary,
        #[serde(flatten)]
        tally: &'a Tally,
    }
    let Score { summary, all: tally, .. } = &reproduction.score;
    let summary = serde_json::to_string(&AllRows { summary, tally })?;
    Ok(format!("{rows}# summary: {summary}\n"))
}

pub fn json(reproduction: &Reproduction) -> anyhow::Result<String> {
    #[derive(Serialize)]
    struct Report<'a> {
        rows: &'a [Scored],
        summary: &'a Score,
    }
    let report = Report { rows: &reproduction.rows, summary: &reproduction.score };
    json::render(&report)
}

fn record(scored: &Scored) -> [String; 22] {
    let row = &scored.row;
    let published = &row.published;
    [
        published.series.clone(),
        published.written.machine.clone(),
        published.written.kernel.clone(),
        published.written.workload.clone(),
        published.written.case.clone(),
        published.written.metric.clone(),
        published.written.policy.clone(),
        plain(published.value),
        published.unit_written().to_owned(),
        published.better.map(direction_name).unwrap_or_default().to_owned(),
        plain(published.spread_pct),
        plain(published.change_pct),
        plain(row.predicted),
        plain(row.predicted_change_pct),
        plain(row.predicted_spread_pct),
        row.not_simulated.clone().unwrap_or_default(),
        plain(row.predicted_change_low_pct),
        plain(row.predicted_change_high_pct),
        row.runs.to_string(),
        row.states.map(|states| states.told(number::figure)).unwrap_or_default(),
        scored.in_sample.join("; "),
        scored.verdict.map(Verdict::name).unwrap_or_default().to_owned(),
    ]
}

/// One table for the simulated rows of each study, machine, kernel, workload and metric.
fn studies(rows: &[Scored], empty: impl Fn() -> Table) -> Vec<(String, Table)> {
    let simulated: Vec<&Scored> =
        rows.iter().filter(|one| one.row.not_simulated.is_none()).collect();
    let studies = grouped(&simulated, |one| {
        let Published { file, ran_as, .. } = &one.row.published;
        let Names { machine, kernel, workload, metric, .. } = ran_as;
        (file, machine, kernel, workload, metric)
    });
    let heading = |row: &Row| {
        let Published { file, ran_as, .. } = &row.published;
        let Names { machine, kernel, workload, .. } = ran_as;
        let costs_of = row.costs_of.as_deref().unwrap_or_default();
        format!("{file}: {machine}, costs {costs_of}, {kernel}: {workload}, {}", metric(row))
    };
    studies.iter().map(|rows| (heading(&rows[0].row), fill(empty(), rows))).collect()
}

/// A case has a row of its own, above those of its policies.
fn fill(mut table: Table, rows: &[&&Scored]) -> Table {
    table.set_header([
        "case, policy",
        "published",
        "predicted",
        "published %",
        "predicted %",
        "from",
        "to",
        "runs",
        "verdict",
    ]);
    let mut last = None;
    for Scored { row, verdict, .. } in rows {
        let published = &row.published;
        if last.replace(&published.ran_as.case) != Some(&published.ran_as.case) {
            table.add_row([published.ran_as.case.as_str()].into_iter().chain([""; 8]));
        }
        let figure = |value: Option<f64>| value.map(number::figure).unwrap_or_default();
        let change = |value: Option<f64>| value.map(number::change).unwrap_or_default();
        table.add_row([
            format!("  {}", published.ran_as.policy),
            figure(published.value),
            figure(row.predicted),
            change(published.change_pct),
            change(row.predicted_change_pct),
            change(row.predicted_change_low_pct),
            change(row.predicted_change_high_pct),
            row.runs.to_string(),
            verdict.map(Verdict::name).unwrap_or_default().to_owned(),
        ]);
    }
    table.break_names_at(';');
    table.figures_from(1);
    table
}

fn metric(row: &Row) -> String {
    match row.published.unit_written() {
        "" => row.published.ran_as.metric.clone(),
        unit => format!("{} ({unit})", row.published.ran_as.metric),
    }
}

/// Why rows are not simulated, with the rows: `a.csv, lines 2-4, 7: workload ...`
pub fn reasons(rows: &[Scored]) -> Vec<String> {
    let rows = rows.iter().map(|one| &one.row);
    let left_out: Vec<&Row> = rows.filter(|row| row.not_simulated.is_some()).collect();
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
