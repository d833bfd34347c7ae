//! Plain text under 80 columns, complete enough to be posted: machine, kernel, runs, the sign
//! convention, the figures and the command that gives them again.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::{COLUMNS, MARKS, SIGN, by_metric, cells, heading, runs};
use crate::comparison::{Comparison, Row};

/// Widest line: the mailing list's 80 columns, less the last.
const WIDTH: usize = 79;
const INDENT: &str = "    ";

pub fn render(comparison: &Comparison) -> String {
    let machine = format!("{} ({})", comparison.machine, comparison.machine_shape);
    let mut text = String::new();
    for (name, value) in [
        ("Machine:", machine.as_str()),
        ("Kernel:", &comparison.kernel),
        ("Workload:", &comparison.workload),
        ("Runs:", &runs(comparison)),
        ("Change:", SIGN),
        ("Marks:", MARKS),
    ] {
        text += &field(name, value);
    }
    for (first, rows) in by_metric(&comparison.rows).iter().chain(&by_metric(&comparison.stats)) {
        text += &format!("\n{}:\n{}\n", heading(first), metric_table(rows));
    }
    text += &format!("\nSimulated with:\n{}", command(&comparison.command));
    text
}

fn field(name: &str, value: &str) -> String {
    let options = textwrap::Options::new(WIDTH).subsequent_indent("          ");
    textwrap::fill(&format!("{name:<9} {value}"), options) + "\n"
}

fn metric_table(rows: &[&Row]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.force_no_tty();
    table.set_width(WIDTH as u16);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(COLUMNS);
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for row in rows {
        table.add_row(cells(row));
    }
    table.trim_fmt()
}

/// One shell command, broken where the shell allows it.
fn command(words: &[String]) -> String {
    let mut lines = vec![INDENT.to_owned() + "placewise compare"];
    for word in words {
        let line = lines.last_mut().expect("there is a first line");
        // A space before and ` \` after it.
        if line.len() + word.len() + 3 <= WIDTH {
            *line += &format!(" {word}");
        } else {
            lines.push(format!("{INDENT}{INDENT}{word}"));
        }
    }
    lines.join(" \\\n") + "\n"
}
