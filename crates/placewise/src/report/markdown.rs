//! Pipe tables, for merge requests and documents.

use comfy_table::{Cell, Table, presets};

use super::{MARKS, SIGN, runs, tables};
use crate::comparison::Comparison;

pub fn render(comparison: &Comparison) -> String {
    let mut text = format!(
        "**{}** on {} ({}), kernel {}; costs: {}; runs: {}.\n",
        comparison.workload,
        comparison.machine,
        comparison.machine_shape,
        comparison.kernel,
        comparison.costs_of,
        runs(comparison),
    );
    for (heading, table) in tables(comparison, empty_table, |change, _| Cell::new(change)) {
        text += &format!("\n{heading}\n\n{table}\n");
    }
    let command = comparison.command.join(" ");
    text += &format!("\nChange: {SIGN}; {MARKS}.\n\n```sh\nplacewise compare {command}\n```\n");
    text
}

pub fn empty_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.force_no_tty();
    table
}
