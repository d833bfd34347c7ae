//! For the terminal; changes are in colour where the terminal takes it.

use comfy_table::{Attribute, Cell, Color, LineStyle, Table, presets};

use super::{MARKS, SIGN, runs, tables};
use crate::comparison::{Comparison, Row};

pub fn render(comparison: &Comparison) -> String {
    let mut text = format!(
        "{} on {} ({}), kernel {}\ncosts: {}\nruns: {}\n",
        comparison.workload,
        comparison.machine,
        comparison.machine_shape,
        comparison.kernel,
        comparison.costs_of,
        runs(comparison)
    );
    for (heading, table) in tables(comparison, empty_table, coloured) {
        text += &format!("\n{heading}\n{}\n", trimmed(&table));
    }
    text += &format!("\nchange: {SIGN}\n{MARKS}\n");
    text
}

pub fn empty_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        table.force_no_tty();
    }
    table
}

pub fn trimmed(table: &Table) -> String {
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Better is green, worse is red, noise is dim.
fn coloured(change: String, row: &Row) -> Cell {
    let cell = Cell::new(change);
    match (row.change_pct, row.significant) {
        (Some(change), Some(true)) if change > 0.0 => cell.fg(Color::Green),
        (Some(change), Some(true)) if change < 0.0 => cell.fg(Color::Red),
        (Some(_), Some(false)) => cell.add_attribute(Attribute::Dim),
        _ => cell,
    }
}
