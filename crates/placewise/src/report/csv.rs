//! One row per figure, in the tidy schema that published results are kept in, so that simulated
//! and published tables can be laid over each other.

use crate::comparison::{Comparison, Row, direction_name, round_to_nine_digits};

/// What the `series` column says: published rows name the patch series they come from.
const SERIES: &str = "simulated";

/// The columns of the tidy schema.
pub const HEADER: [&str; 12] = [
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
    for row in comparison.rows.iter().chain(&comparison.stats) {
        writer.write_record(record(comparison, row))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn record(comparison: &Comparison, row: &Row) -> [String; 12] {
    [
        SERIES.to_owned(),
        comparison.machine.clone(),
        comparison.kernel.clone(),
        comparison.workload.clone(),
        row.case.clone(),
        row.metric.clone(),
        row.policy.clone(),
        number(row.mean),
        row.unit.to_owned(),
        row.better.map(direction_name).unwrap_or_default().to_owned(),
        number(row.std_pct),
        number(row.change_pct),
    ]
}

pub fn number(value: Option<f64>) -> String {
    let value = value.map(round_to_nine_digits);
    value.map(|value| value.to_string()).unwrap_or_default()
}
