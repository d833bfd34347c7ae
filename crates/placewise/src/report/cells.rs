//! Tables of text: a cell shows what it holds, and nothing in it acts on the table, the page or the
//! terminal.

use std::fmt;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Row};

pub struct Table {
    table: comfy_table::Table,
    escape: fn(&str) -> String,
}

impl Table {
    /// An empty table with its style; `escape` is that of [`super::foreign`] for where it is shown.
    pub fn new(table: comfy_table::Table, escape: fn(&str) -> String) -> Self {
        Self { table, escape }
    }

    pub fn set_header(&mut self, row: impl Into<Row>) {
        self.table.set_header(self.escaped(row.into()));
    }

    pub fn add_row(&mut self, row: impl Into<Row>) {
        self.table.add_row(self.escaped(row.into()));
    }

    fn escaped(&self, row: Row) -> Row {
        let escaped = row.cell_iter().map(|cell| {
            let text = cell.content();
            let escaped = (self.escape)(&text);
            // What we colour needs no escape.
            if escaped == text { cell.clone() } else { Cell::new(escaped) }
        });
        escaped.collect::<Vec<_>>().into()
    }

    /// To be called with the header there.
    pub fn align_right(&mut self, columns: impl IntoIterator<Item = usize>) {
        for column in columns {
            let column = self.table.column_mut(column).expect("the header has the column");
            column.set_cell_alignment(CellAlignment::Right);
        }
    }

    pub fn align_right_from(&mut self, first: usize) {
        self.align_right(first..self.table.column_iter().len());
    }

    /// Cells are broken where the table is too wide.
    pub fn wrap(&mut self) {
        self.table.set_content_arrangement(ContentArrangement::Dynamic);
    }

    /// The same, at this width where that of the terminal is not known.
    pub fn wrap_at(&mut self, width: u16) {
        self.wrap();
        if self.table.width().is_none() {
            self.table.set_width(width);
        }
    }

    /// Without spaces at the ends of lines.
    pub fn trimmed(&self) -> String {
        self.table.trim_fmt()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(out)
    }
}
