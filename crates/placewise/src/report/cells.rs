//! Tables of text: a cell shows what it holds, and nothing in it acts on the table, the page or the
//! terminal.

use std::fmt;
use std::ops::Range;

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Width};

const LONGEST_WHOLE_LABEL: usize = 24;

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

    /// Cells are broken where the table would be wider.
    pub fn fit(&mut self, width: usize) {
        self.table.set_width(width as u16);
        self.wrap();
    }

    /// Names that do not fit are broken there, rather than between words.
    pub fn break_names_at(&mut self, delimiter: char) {
        self.table.column_mut(0).expect("there are names").set_delimiter(delimiter);
    }

    /// The first column has cases, which are broken between their settings; the `labels` are not
    /// broken unless they are long. To be called with all rows there.
    pub fn labels(&mut self, labels: Range<usize>) {
        for at in labels {
            let whole = self.widest_cell(at).min(LONGEST_WHOLE_LABEL) as u16 + 2;
            let column = self.table.column_mut(at).expect("the header has the column");
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(whole)));
        }
        self.break_names_at(';');
    }

    fn widest_cell(&self, column: usize) -> usize {
        let cells = self.table.row_iter().filter_map(|row| row.cell_iter().nth(column));
        cells.map(|cell| cell.content().chars().count()).max().unwrap_or(0)
    }

    fn widest_word_of_heading(&self, column: usize) -> usize {
        let heading = self.table.header().and_then(|row| row.cell_iter().nth(column));
        let words = heading.map(Cell::content).unwrap_or_default();
        let widest = words.split_whitespace().map(|word| word.chars().count()).max();
        widest.unwrap_or(0).min(LONGEST_WHOLE_LABEL)
    }

    /// Figures stand to the right, and are never broken; their headings may be, between words. To be
    /// called with all rows there.
    pub fn figures_from(&mut self, first: usize) {
        for at in first..self.table.column_iter().len() {
            let widest = self.widest_cell(at).max(self.widest_word_of_heading(at));
            let column = self.table.column_mut(at).expect("there are as many");
            column.set_cell_alignment(CellAlignment::Right);
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(widest as u16 + 2)));
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
