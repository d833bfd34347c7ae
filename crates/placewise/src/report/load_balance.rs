//! The tables of what load balancing did: the counters, then why attempts moved nothing. A row per
//! domain level, idle type and subject; reasons that never came have no column.

use super::blocks::{blocks, heading, widest};
use super::cases::Labels;
use super::cells::Table;
use super::groups::{grouped, heading_of_case};
use super::number;
use crate::load_balance::{Means, Row};
use crate::subject::Axis;

pub fn tables(
    rows: &[Row],
    (cases, axes): (&Labels, &[Axis]),
    width: usize,
    mut empty: impl FnMut() -> Table,
) -> Vec<(String, Option<Table>)> {
    let mut tables = Vec::new();
    for rows in grouped(rows, |row| row.case.as_str()) {
        let of_case = |what: &str| heading_of_case(what, &cases.label(&rows[0].case));
        for (what, means) in [
            ("load balance", (|row| &row.counters) as fn(&Row) -> &Means),
            ("attempts that moved nothing", |row| &row.moved_nothing),
        ] {
            let places = Places::of(&rows, axes);
            let columns = columns(&rows, means);
            let widths: Vec<usize> = columns.iter().map(Column::width).collect();
            let ranges = blocks(&places.widths(), &widths, width);
            for (block, range) in ranges.iter().enumerate() {
                let table = fill(empty(), &places, &columns[range.clone()]);
                tables.push((heading(&of_case(what), block, ranges.len()), Some(table)));
            }
        }
    }
    tables
}

/// Level, idle type and what tells the subject apart, of each row; what is as in the row before is
/// empty.
struct Places {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Places {
    fn of(rows: &[&Row], axes: &[Axis]) -> Self {
        let titles = ["level", "idle type"].into_iter().chain(axes.iter().map(|axis| axis.name()));
        let mut last = None;
        let place = |row: &&Row| {
            let place = (row.level.clone(), words(row.idle));
            let is_same = last.replace(place.clone()) == Some(place.clone());
            let (level, idle) = if is_same { Default::default() } else { place };
            let values = axes.iter().map(|axis| axis.value(&row.subject).to_owned());
            [level, idle].into_iter().chain(values).collect()
        };
        Self { titles: titles.map(str::to_owned).collect(), rows: rows.iter().map(place).collect() }
    }

    fn widths(&self) -> Vec<usize> {
        let cells = |at: usize| self.rows.iter().chain([&self.titles]).map(move |row| &row[at]);
        (0..self.titles.len()).map(|at| widest(cells(at))).collect()
    }
}

/// The figures of one counter or reason.
struct Column {
    title: String,
    figures: Vec<String>,
}

impl Column {
    /// The title may be broken between words, figures not.
    fn width(&self) -> usize {
        let words: Vec<String> = self.title.split(' ').map(str::to_owned).collect();
        widest(self.figures.iter().chain(&words))
    }
}

/// Without those that are 0 in every row.
fn columns(rows: &[&Row], means: fn(&Row) -> &Means) -> Vec<Column> {
    let names = means(rows[0]).0.iter().enumerate();
    let column = |(at, (name, _)): (usize, &(&str, f64))| {
        let figures: Vec<f64> = rows.iter().map(|row| means(row).0[at].1).collect();
        let is_needed = figures.iter().any(|figure| *figure > 0.0);
        is_needed.then(|| Column {
            title: words(name.trim_start_matches("lb_")),
            figures: figures.into_iter().map(number::figure).collect(),
        })
    };
    names.filter_map(column).collect()
}

fn fill(mut table: Table, places: &Places, columns: &[Column]) -> Table {
    table.set_header(places.titles.iter().chain(columns.iter().map(|column| &column.title)));
    for (at, place) in places.rows.iter().enumerate() {
        table.add_row(place.iter().chain(columns.iter().map(|column| &column.figures[at])));
    }
    table.figures_from(places.titles.len());
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
        let text = |(heading, table): (String, Option<Table>)| {
            format!("{heading}\n{}\n", table.unwrap().trimmed())
        };
        let texts: Vec<String> =
            tables(&rows, (&Labels::of(&[]), &[Axis::Policy]), 100, empty_table)
                .into_iter()
                .map(text)
                .collect();
        insta::assert_snapshot!(texts.join("\n"));
    }
}
