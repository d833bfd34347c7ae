//! For the terminal: shares of what was placed, numbers of what was moved.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, LineStyle, Table, presets};
use placewise_policy::distance::heading;

use crate::figures::{Balanced, Figure, Figures, Placed, Shown};

/// Placements by kind and distance, then what balancing moved; of the time since the last table.
pub fn table(figures: &Figures) -> String {
    let headings = |figures: &[Figure]| figures.iter().map(|figure| heading(figure.name)).collect();
    let mut placed = empty_table();
    placed.set_header([vec!["placed".into(), "all".into()], headings(Placed::FIGURES)].concat());
    for (kind, of_kind) in &figures.placed {
        let total = of_kind.total();
        let shown =
            Placed::FIGURES.iter().zip(of_kind.counts()).map(|(figure, count)| {
                match figure.shown {
                    Shown::share => share(count, total),
                    Shown::count => count.to_string(),
                }
            });
        placed.add_row([kind.clone(), total.to_string()].into_iter().chain(shown));
    }
    let mut balanced = empty_table();
    balanced
        .set_header([vec!["level".into(), "domain".into()], headings(Balanced::FIGURES)].concat());
    for (level, moved) in &figures.balanced {
        let counts = moved.counts().map(|count| count.to_string());
        let names = [level.to_string(), moved.domain.clone()];
        balanced.add_row(names.into_iter().chain(counts));
    }
    let mut text = String::new();
    for (mut table, nr_names) in [(placed, 1), (balanced, 2)] {
        for column in table.column_iter_mut().skip(nr_names) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let _ = writeln!(text, "{table}");
    }
    text
}

fn empty_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
    table
}

fn share(count: u64, of: u64) -> String {
    if of == 0 { "-".into() } else { format!("{:.1} %", 100.0 * count as f64 / of as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::figures;

    /// The cells of the row that begins so.
    fn row(table: &str, first: &str) -> Vec<String> {
        let rows = table.lines().map(|line| line.split_whitespace().map(str::to_string).collect());
        rows.into_iter()
            .find(|cells: &Vec<String>| cells.first().is_some_and(|cell| cell == first))
            .unwrap()
    }

    #[test]
    fn placements_are_shares_and_moved_tasks_are_counted_by_domain() {
        let table = table(&figures());
        let shares = row(&table, "wakeup").join(" ");
        let expected = "wakeup 10 60.0 % 0.0 % 30.0 % 0.0 % 10.0 % 90.0 % 2";
        assert!(shares.starts_with(expected), "{shares}");
        assert!(row(&table, "1").starts_with(&["1", "MC", "4", "0", "0", "0"].map(Into::into)));
    }
}
