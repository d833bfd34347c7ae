//! Empty tables in the terminal's style, with colours unless `NO_COLOR` is set.

use comfy_table::{LineStyle, TableStyle, presets};

use super::cells::Table;
use super::foreign::visible;

/// No text is wider, whatever the terminal.
const COLUMNS: usize = 100;

pub fn empty_table() -> Table {
    of_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()))
}

/// How text is broken into lines: names with dashes stay whole.
pub fn lines<'a>() -> textwrap::Options<'a> {
    textwrap::Options::new(COLUMNS).word_splitter(textwrap::WordSplitter::NoHyphenation)
}

/// Without lines.
pub fn empty_bare_table() -> Table {
    of_style(presets::NOTHING)
}

/// Cells are broken where they do not fit.
pub fn fitting(mut table: Table) -> Table {
    table.fit(COLUMNS);
    table
}

fn of_style(style: TableStyle) -> Table {
    let mut table = comfy_table::Table::new();
    table.load_style(style);
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        table.force_no_tty();
    }
    Table::new(table, visible)
}
