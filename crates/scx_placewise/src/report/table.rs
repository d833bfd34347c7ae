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
    balanced.set_header(["level", "newly idle", "idle", "busy", "pushed"]);
    for (level, moved) in &figures.balanced {
        let counts = moved.by_cause().map(|(_, count)| count.to_string());
        balanced.add_row([level.to_string()].into_iter().chain(counts));
    }
    let mut text = String::new();
    for mut table in [placed, balanced] {
        for column in table.column_iter_mut().skip(1) {
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

    #[test]
    fn the_table_gives_shares() {
        let table = table(&figures());
        assert!(table.contains("60.0 %") && table.contains("90.0 %"), "{table}");
    }
}
