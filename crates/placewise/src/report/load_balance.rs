//! The tables of what load balancing did: the counters, then why attempts moved nothing. A row per
//! domain level, idle type and subject; reasons that never came have no column.

use super::cells::Table;
use super::groups::{grouped, heading_of_case};
use super::number;
use crate::load_balance::{Means, Row};
use crate::subject::Axis;

pub fn tables(
    rows: &[Row],
    axes: &[Axis],
    mut empty: impl FnMut() -> Table,
) -> Vec<(String, Table)> {
    let mut tables = Vec::new();
    for rows in grouped(rows, |row| row.case.as_str()) {
        let heading = |what: &str| heading_of_case(what, &rows[0].case);
        tables.push((heading("load balance"), fill(empty(), &rows, axes, |row| &row.counters)));
        let reasons = fill(empty(), &rows, axes, |row| &row.moved_nothing);
        tables.push((heading("attempts that moved nothing"), reasons));
    }
    tables
}

fn fill(mut table: Table, rows: &[&Row], axes: &[Axis], means: fn(&Row) -> &Means) -> Table {
    let names = means(rows[0]).0.iter().map(|(name, _)| *name).enumerate();
    let columns: Vec<(usize, &str)> =
        names.filter(|(at, _)| rows.iter().any(|row| means(row).0[*at].1 > 0.0)).collect();
    let titles = columns.iter().map(|(_, name)| words(name.trim_start_matches("lb_")));
    let names = ["level", "idle type"].into_iter().chain(axes.iter().map(|axis| axis.name()));
    table.set_header(names.map(str::to_owned).chain(titles));
    table.align_right_from(2 + axes.len());
    let mut last = None;
    for row in rows {
        let place = (&row.level, row.idle);
        let is_same_place = last.replace(place) == Some(place);
        let (level, idle) = if is_same_place { ("", "") } else { (row.level.as_str(), row.idle) };
        let values = axes.iter().map(|axis| axis.value(&row.subject).to_owned());
        let names = [level.to_owned(), words(idle)].into_iter().chain(values);
        let numbers = columns.iter().map(|(at, _)| number::figure(means(row).0[*at].1));
        table.add_row(names.chain(numbers));
    }
    table
}

/// `newly_idle` is two words, which may stand on two lines.
fn words(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::terminal::empty_table;
    use crate::subject::tests::subject;

    fn row(idle: &'static str, policy: &str, gained: f64, hot: f64) -> Row {
        Row {
            case: "groups=1".to_owned(),
            level: "mc".to_owned(),
            idle,
            subject: subject("v6.0", policy),
            counters: Means(vec![("lb_count", 1204.0), ("lb_failed", 0.0), ("lb_gained", gained)]),
            moved_nothing: Means(vec![("not_chosen", 2.5), ("all_pinned", 0.0), ("hot", hot)]),
        }
    }

    /// A column stays if any row needs it; a level and idle type stand in their first row only.
    #[test]
    fn layout() {
        let rows = [
            row("busy", "baseline", 0.0, 0.0),
            row("busy", "short-task", 0.0, 17.0),
            row("newly_idle", "baseline", 3.0, 0.0),
            row("newly_idle", "short-task", 0.0, 0.0),
        ];
        let text = |(heading, table): (String, Table)| format!("{heading}\n{}\n", table.trimmed());
        let texts: Vec<String> =
            tables(&rows, &[Axis::Policy], empty_table).into_iter().map(text).collect();
        insta::assert_snapshot!(texts.join("\n"));
    }
}
