//! For the terminal; changes are in colour where the terminal takes it.

use comfy_table::{Attribute, Cell, Color, LineStyle, TableStyle, presets};

use super::cells::Table;
use super::foreign::visible;
use super::tables::{MARKS, SIGN, runs, states, tables};
use crate::comparison::{Comparison, Row};

pub fn render(comparison: &Comparison) -> String {
    let Comparison { workload, machine, machine_shape, kernel, costs_of, .. } = comparison;
    let what = format!("{workload} on {machine} ({machine_shape}), kernel {kernel}");
    let costs = visible(costs_of);
    let mut text = format!("{}\ncosts: {costs}\nruns: {}\n", visible(&what), runs(comparison));
    for (heading, table) in tables(comparison, empty_table, coloured) {
        text += &format!("\n{}\n{}\n", visible(&heading), table.trimmed());
    }
    for told in states(comparison) {
        text += &format!("\n{}\n", visible(&told));
    }
    text += &format!("\nchange: {SIGN}\n{MARKS}\n");
    text
}

pub fn empty_table() -> Table {
    of_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()))
}

/// Without lines.
pub fn empty_bare_table() -> Table {
    of_style(presets::NOTHING)
}

fn of_style(style: TableStyle) -> Table {
    let mut table = comfy_table::Table::new();
    table.load_style(style);
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        table.force_no_tty();
    }
    Table::new(table, visible)
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
