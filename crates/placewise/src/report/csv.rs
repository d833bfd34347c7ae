//! One row per figure, in the tidy schema that published results are kept in, so that simulated
//! and published tables can be laid over each other.

use placewise_sim::COLUMNS;

use super::foreign::visible;
use crate::comparison::{Comparison, Row};
use crate::load_balance;
use crate::machine_readable::{direction_name, round_to_nine_digits};

/// What the `series` column says: published rows name the patch series they come from.
const SERIES: &str = "simulated";

/// What a comparison adds behind the columns of all figures.
const SIMULATED: [&str; 4] = ["significant", "runs", "seed", "environment"];

pub fn render(comparison: &Comparison) -> anyhow::Result<String> {
    let figures = comparison.rows.iter().chain(&comparison.stats);
    let mut records: Vec<_> = figures.map(|row| record(comparison, row)).collect();
    for row in &comparison.load_balance {
        for (name, mean) in &row.counters.0 {
            records.push(balance_record(comparison, row, name, *mean));
        }
        for (reason, mean) in &row.moved_nothing.0 {
            let name = format!("lb_moved_nothing_{reason}");
            records.push(balance_record(comparison, row, &name, *mean));
        }
    }
    let mut header = [""; COLUMNS.len() + SIMULATED.len()];
    header[..COLUMNS.len()].copy_from_slice(&COLUMNS);
    header[COLUMNS.len()..].copy_from_slice(&SIMULATED);
    table(&header, records)
}

/// The text of a CSV table.
pub fn table<const N: usize>(
    header: &[&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> anyhow::Result<String> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(header)?;
    for row in rows {
        writer.write_record(row.map(|field| visible(&field)))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn record(comparison: &Comparison, row: &Row) -> [String; 16] {
    [
        SERIES.to_owned(),
        row.subject.machine.clone(),
        row.subject.kernel.clone(),
        comparison.workload.clone(),
        row.case.clone(),
        row.metric.clone(),
        row.subject.policy.clone(),
        number(row.center()),
        row.unit.to_owned(),
        row.better.map(direction_name).unwrap_or_default().to_owned(),
        number(row.std_pct),
        number(row.change_pct),
        row.significant.map(|is| is.to_string()).unwrap_or_default(),
        if row.runs == 0 { String::new() } else { row.runs.to_string() },
        comparison.seed.to_string(),
        row.subject.environment.clone(),
    ]
}

/// The metric is the counter, the domain level and the idle type.
fn balance_record(
    comparison: &Comparison,
    row: &load_balance::Row,
    name: &str,
    mean: f64,
) -> [String; 16] {
    let metric = format!("{name}_{}_{}", row.level, row.idle);
    record(
        comparison,
        &Row {
            case: row.case.clone(),
            metric,
            subject: row.subject.clone(),
            mean: Some(mean),
            median: None,
            std_pct: None,
            unit: "count",
            better: None,
            change_pct: None,
            change_low_pct: None,
            change_high_pct: None,
            significant: None,
            identical: None,
            runs: 0,
            states: None,
        },
    )
}

pub fn number(value: Option<f64>) -> String {
    let value = value.map(round_to_nine_digits);
    value.map(|value| value.to_string()).unwrap_or_default()
}
