//! For the terminal, in up to 100 columns; changes are in colour where the terminal takes it.

use comfy_table::{Attribute, Cell, Color};

use super::cells::Table;
use super::foreign::visible;
use super::head::{head, legend, lines};
use super::tables::{states, tables};
use super::terminal;
use crate::comparison::{Comparison, Row};

const WIDTH: usize = 100;

pub fn render(comparison: &Comparison) -> String {
    let mut text = lines(&head(comparison), WIDTH);
    for (heading, table) in tables(comparison, WIDTH, empty_table, coloured) {
        text += &format!("\n{}\n", textwrap::fill(&visible(&heading), WIDTH));
        text += &table.map(|table| table.trimmed() + "\n").unwrap_or_default();
    }
    for told in states(comparison) {
        text += &format!("\n{}\n", textwrap::fill(&visible(&told), WIDTH));
    }
    match &legend(comparison)[..] {
        [] => text,
        legend => text + "\n" + &lines(legend, WIDTH),
    }
}

fn empty_table() -> Table {
    let mut table = terminal::empty_table();
    table.fit(WIDTH);
    table
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
