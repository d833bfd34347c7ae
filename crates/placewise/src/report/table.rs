//! For the terminal: one table per metric, changes in colour where the terminal takes it.

use comfy_table::{Attribute, Cell, CellAlignment, Color, Table, presets};

use super::{COLUMNS, MARKS, SIGN, by_metric, cells, heading, runs};
use crate::comparison::{Comparison, Row};

pub fn render(comparison: &Comparison) -> String {
    let mut text = format!(
        "{} on {} ({}), kernel {}\nruns: {}\n",
        comparison.workload,
        comparison.machine,
        comparison.machine_shape,
        comparison.kernel,
        runs(comparison)
    );
    for (first, rows) in by_metric(&comparison.rows).iter().chain(&by_metric(&comparison.stats)) {
        text += &format!("\n{}\n{}\n", heading(first), metric_table(rows));
    }
    text += &format!("\n{SIGN}\n{MARKS}\n");
    text
}

fn metric_table(rows: &[&Row]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        table.force_no_tty();
    }
    table.set_header(COLUMNS);
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut last_case = None;
    for row in rows {
        let [case, policy, mean, std, change] = cells(row);
        let shown_case = if last_case == Some(&row.case) { String::new() } else { case };
        last_case = Some(&row.case);
        table.add_row([
            Cell::new(shown_case),
            Cell::new(policy),
            Cell::new(mean),
            Cell::new(std),
            coloured(Cell::new(change), row),
        ]);
    }
    table
}

/// Better is green, worse is red, noise is dim.
fn coloured(cell: Cell, row: &Row) -> Cell {
    match (row.change_pct, row.significant) {
        (Some(change), Some(true)) if change > 0.0 => cell.fg(Color::Green),
        (Some(change), Some(true)) if change < 0.0 => cell.fg(Color::Red),
        (Some(_), Some(false)) => cell.add_attribute(Attribute::Dim),
        _ => cell,
    }
}
