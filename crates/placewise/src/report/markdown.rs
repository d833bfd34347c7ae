//! Pipe tables, for merge requests and documents.

use comfy_table::{CellAlignment, Table, presets};

use super::{COLUMNS, MARKS, SIGN, by_metric, cells, heading, runs};
use crate::comparison::{Comparison, Row};

pub fn render(comparison: &Comparison) -> String {
    let mut text = format!(
        "**{}** on {} ({}), kernel {}; {}.\n",
        comparison.workload,
        comparison.machine,
        comparison.machine_shape,
        comparison.kernel,
        runs(comparison),
    );
    for (first, rows) in by_metric(&comparison.rows).iter().chain(&by_metric(&comparison.stats)) {
        text += &format!("\n{}\n\n{}\n", heading(first), metric_table(rows));
    }
    let command = comparison.command.join(" ");
    text += &format!("\n{SIGN}; {MARKS}\n\n```\nplacewise compare {command}\n```\n");
    text
}

fn metric_table(rows: &[&Row]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.force_no_tty();
    table.set_header(COLUMNS);
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for row in rows {
        table.add_row(cells(row));
    }
    table
}
