//! For the terminal: shares of what was placed, numbers of what was moved.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, LineStyle, Table, presets};

use crate::figures::Figures;

/// Placements by kind and distance, then what balancing moved; of the time since the last table.
pub fn table(figures: &Figures) -> String {
    let mut placed = empty_table();
    placed.set_header([
        "placed",
        "all",
        "same CPU",
        "SMT",
        "LLC",
        "other LLC",
        "other node",
        "on idle",
        "hinted",
    ]);
    for (kind, of_kind) in &figures.placed {
        let total = of_kind.total();
        let shares = of_kind.by_distance().map(|(_, count)| share(count, total));
        let rest = [share(of_kind.on_idle, total), of_kind.hinted.to_string()];
        let row = [kind.clone(), total.to_string()].into_iter().chain(shares).chain(rest);
        placed.add_row(row);
    }
    let mut balanced = empty_table();
    balanced.set_header(["level", "domain", "newly idle", "idle", "busy", "pushed"]);
    for (level, moved) in &figures.balanced {
        let counts = moved.by_cause().map(|(_, count)| count.to_string());
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
    use crate::report::tests::figures;

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
        assert_eq!(shares, "wakeup 10 60.0 % 0.0 % 30.0 % 0.0 % 10.0 % 90.0 % 2");
        assert_eq!(row(&table, "1"), ["1", "MC", "4", "0", "0", "0"]);
    }
}
