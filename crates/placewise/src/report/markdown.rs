//! Pipe tables, for merge requests and documents.

use comfy_table::{Cell, presets};

use super::cells::Table;
use super::foreign::{in_markdown, visible};
use super::head::{head, legend};
use super::tables::{states, tables};
use crate::comparison::Comparison;

pub fn render(comparison: &Comparison) -> String {
    let mut text = items(&head(comparison));
    for (heading, table) in
        tables(comparison, usize::MAX, empty_table, |change, _| Cell::new(change))
    {
        text += &format!("\n{}\n", in_markdown(&heading));
        text += &table.map(|table| format!("\n{table}\n")).unwrap_or_default();
    }
    for told in states(comparison) {
        text += &format!("\n{}.\n", in_markdown(&told));
    }
    let command = visible(&comparison.command.join(" "));
    text += &format!("\n{}", items(&legend(comparison)));
    text += &format!("\n```sh\nplacewise compare {command}\n```\n");
    text
}

/// A list.
fn items(fields: &[(&str, String)]) -> String {
    fields.iter().map(|(name, value)| format!("- {name}: {}\n", in_markdown(value))).collect()
}

pub fn empty_table() -> Table {
    let mut table = comfy_table::Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.force_no_tty();
    Table::new(table, in_markdown)
}
