//! How a comparison is printed: one file per format. The verb `report` is in `page.rs`.

mod blocks;
mod cases;
mod cells;
mod change;
pub mod csv;
pub mod foreign;
mod groups;
mod head;
pub mod json;
mod lkml;
mod load_balance;
pub mod markdown;
pub mod number;
mod table;
mod tables;
pub mod terminal;
mod why;

use clap::ValueEnum;
use serde::Serialize;

use crate::comparison::Comparison;

pub use cells::Table;
pub use groups::grouped;
pub use tables::finished_rows;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For the terminal
    Table,
    /// Plain text under 80 columns, to post to a mailing list
    Lkml,
    /// Pipe tables
    Markdown,
    /// One row per figure, in the schema of published results
    Csv,
    /// Everything, for programs
    Json,
}

/// How what is no comparison is printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableOrJson {
    /// For the terminal
    Table,
    /// Everything, for programs
    Json,
}

/// A comparison for programs, which may want to post it.
#[derive(Serialize)]
pub struct Posted<'a> {
    #[serde(flatten)]
    comparison: &'a Comparison,
    lkml: String,
}

impl<'a> Posted<'a> {
    pub fn new(comparison: &'a Comparison) -> Self {
        Posted { comparison, lkml: lkml::render(comparison) }
    }
}

pub fn render(comparison: &Comparison, format: Format) -> anyhow::Result<String> {
    match format {
        Format::Table => Ok(table::render(comparison)),
        Format::Lkml => Ok(lkml::render(comparison)),
        Format::Markdown => Ok(markdown::render(comparison)),
        Format::Csv => csv::render(comparison),
        Format::Json => json::render(&Posted::new(comparison)),
    }
}
