//! For the terminal; changes are in colour where the terminal takes it.

use comfy_table::{Attribute, Cell, Color};

use super::foreign::visible;
use super::tables::{MARKS, SIGN, runs, states, tables};
use super::terminal::empty_table;
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
