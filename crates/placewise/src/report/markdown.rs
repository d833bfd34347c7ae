//! Pipe tables, for merge requests and documents.

use comfy_table::{Cell, presets};

use super::cells::Table;
use super::foreign::{in_markdown, visible};
use super::tables::{MARKS, SIGN, runs, states, tables};
use crate::comparison::Comparison;

pub fn render(comparison: &Comparison) -> String {
    let mut text = format!(
        "**{}** on {} ({}), kernel {}; costs: {}; runs: {}.\n",
        in_markdown(&comparison.workload),
        in_markdown(&comparison.machine),
        in_markdown(&comparison.machine_shape),
        in_markdown(&comparison.kernel),
        in_markdown(&comparison.costs_of),
        runs(comparison),
    );
    for (heading, table) in tables(comparison, empty_table, |change, _| Cell::new(change)) {
        text += &format!("\n{}\n\n{table}\n", in_markdown(&heading));
    }
    for told in states(comparison) {
        text += &format!("\n{}.\n", in_markdown(&told));
    }
    let command = visible(&comparison.command.join(" "));
    text += &format!("\nChange: {SIGN}; {MARKS}.\n\n```sh\nplacewise compare {command}\n```\n");
    text
}

pub fn empty_table() -> Table {
    let mut table = comfy_table::Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.force_no_tty();
    Table::new(table, in_markdown)
}
