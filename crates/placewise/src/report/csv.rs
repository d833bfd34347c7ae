//! One row per figure, in the tidy schema that published results are kept in, so that simulated
//! and published tables can be laid over each other.

use crate::comparison::{Comparison, Row, Stat, direction_name, round_to_nine_digits};

/// What the `series` column says: published rows name the patch series they come from.
const SERIES: &str = "simulated";

const HEADER: [&str; 12] = [
    "series",
    "machine",
    "kernel",
    "workload",
    "case",
    "metric",
    "policy",
    "value",
    "unit",
    "better",
    "spread_pct",
    "change_pct",
];

pub fn render(comparison: &Comparison) -> anyhow::Result<String> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER)?;
    for row in &comparison.rows {
        writer.write_record(record(comparison, row))?;
    }
    for stat in &comparison.stats {
        writer.write_record(record_of_stat(comparison, stat))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn record(comparison: &Comparison, row: &Row) -> [String; 12] {
    let [series, machine, kernel, workload] = origin(comparison);
    [
        series,
        machine,
        kernel,
        workload,
        row.case.clone(),
        row.metric.to_owned(),
        row.policy.clone(),
        number(row.mean),
        row.unit.to_owned(),
        direction_name(row.better).to_owned(),
        number(row.std_pct),
        number(row.change_pct),
    ]
}

/// A figure that says why has no direction, and so no change.
fn record_of_stat(comparison: &Comparison, stat: &Stat) -> [String; 12] {
    let [series, machine, kernel, workload] = origin(comparison);
    [
        series,
        machine,
        kernel,
        workload,
        stat.case.clone(),
        stat.metric.to_owned(),
        stat.policy.clone(),
        number(stat.mean),
        stat.unit.to_owned(),
        String::new(),
        number(stat.std_pct),
        String::new(),
    ]
}

fn origin(comparison: &Comparison) -> [String; 4] {
    let Comparison { machine, kernel, workload, .. } = comparison;
    [SERIES.to_owned(), machine.clone(), kernel.clone(), workload.clone()]
}

fn number(value: Option<f64>) -> String {
    let value = value.map(round_to_nine_digits);
    value.map(|value| value.to_string()).unwrap_or_default()
}
