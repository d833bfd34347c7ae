//! The figures that say why: those that moved most, or all.
//!
//! A counter has moved if its change is more than noise, or if too few runs are there to tell. The
//! most moved comes first, by the factor of its change, up or down; one that was 0 counts as a
//! hundredfold.

use super::blocks::{blocks, heading, widest};
use super::cells::Table;
use super::change::change;
use super::groups::{grouped, heading_of_case};
use super::number;
use crate::comparison::Row;
use crate::subject::{Axis, label};

/// As many as one takes in at a glance.
const MOST_TOLD: usize = 12;
const LARGEST_FACTOR: f64 = 100.0;

/// One figure of all subjects.
type OfSubjects<'a> = Vec<&'a Row>;

/// The tables of a case's figures that moved most, if some did. `case` is what tables call it.
pub fn moved(
    (case, rows): (&str, &[&Row]),
    axes: &[Axis],
    width: usize,
    empty: &mut impl FnMut() -> Table,
) -> Vec<(String, Option<Table>)> {
    let mut figures: Vec<(f64, OfSubjects)> = by_metric(rows)
        .into_iter()
        .filter_map(|of_subjects| Some((movement(&of_subjects)?, of_subjects)))
        .collect();
    // Stable: of equal ones the order is that of the counters.
    figures.sort_by(|one, other| other.0.total_cmp(&one.0));
    let nr_moved = figures.len();
    figures.truncate(MOST_TOLD);
    let of = |what: String| heading_of_case(&what, case);
    let what = match nr_moved {
        0 if rows.iter().all(|row| row.change_pct.is_none()) => {
            "why: nothing to compare with; --stats=all has every counter".to_owned()
        }
        0 => "why: no counter moved beyond the noise; --stats=all has every one".to_owned(),
        _ if nr_moved > MOST_TOLD => {
            format!("why: {MOST_TOLD} of {nr_moved} counters that moved, the most moved first")
        }
        _ => "why: the counters that moved, the most moved first".to_owned(),
    };
    match nr_moved {
        0 => vec![(of(what), None)],
        _ => {
            let figures: Vec<OfSubjects> = figures.into_iter().map(|(_, of)| of).collect();
            in_blocks(&of(what), &figures, axes, width, empty)
        }
    }
}

/// The tables of all of a case's figures.
pub fn all(
    (case, rows): (&str, &[&Row]),
    axes: &[Axis],
    width: usize,
    empty: &mut impl FnMut() -> Table,
) -> Vec<(String, Option<Table>)> {
    let heading = heading_of_case("why", case);
    in_blocks(&heading, &by_metric(rows), axes, width, empty)
}

fn by_metric<'a>(rows: &[&'a Row]) -> Vec<OfSubjects<'a>> {
    grouped(rows, |row| row.metric.as_str())
        .into_iter()
        .map(|group| group.into_iter().copied().collect())
        .collect()
}

/// By how much a figure has moved under any subject; `None` if under none.
fn movement(of_subjects: &[&Row]) -> Option<f64> {
    let first = of_subjects[0].center()?;
    let of = |row: &&&Row| {
        let has_moved = row.significant != Some(false) && row.identical == Some(false);
        has_moved.then(|| factor(first, row.center().unwrap_or(first)))
    };
    of_subjects[1..].iter().filter_map(|row| of(&row)).max_by(f64::total_cmp)
}

fn factor(one: f64, other: f64) -> f64 {
    let ratio = (other / one).abs();
    let factor = if ratio < 1.0 { 1.0 / ratio } else { ratio };
    if factor.is_nan() { 1.0 } else { factor.min(LARGEST_FACTOR) }
}

fn in_blocks(
    what: &str,
    figures: &[OfSubjects],
    axes: &[Axis],
    width: usize,
    empty: &mut impl FnMut() -> Table,
) -> Vec<(String, Option<Table>)> {
    let names: Vec<[String; 2]> = figures.iter().map(|figure| name(figure)).collect();
    let columns: Vec<Column> =
        (0..figures[0].len()).map(|at| Column::of(at, figures, axes)).collect();
    let (reference, others) = columns.split_first().expect("there is a first subject");
    let first = [0, 1].map(|at| widest(names.iter().map(|name| &name[at])));
    let first = [first[0], first[1], reference.width()];
    let widths: Vec<usize> = others.iter().map(Column::width).collect();
    let mut ranges = blocks(&first, &widths, width);
    if ranges.is_empty() {
        ranges.push(0..0);
    }
    let table = |(block, range): (usize, &std::ops::Range<usize>)| {
        let table = fill(empty(), &names, reference, &others[range.clone()]);
        (heading(what, block, ranges.len()), Some(table))
    };
    ranges.iter().enumerate().map(table).collect()
}

/// Of one subject.
struct Column {
    label: String,
    means: Vec<String>,
    changes: Vec<String>,
}

impl Column {
    fn of(at: usize, figures: &[OfSubjects], axes: &[Axis]) -> Self {
        let row = |figure: &OfSubjects<'_>| mean(figure, at);
        Self {
            label: label(axes, &figures[0][at].subject),
            means: figures.iter().map(row).collect(),
            changes: figures.iter().map(|figure| told_change(figure[0], figure[at])).collect(),
        }
    }

    /// The label may be broken, figures not.
    fn width(&self) -> usize {
        let changes = widest(&self.changes).max("change %".len());
        widest(&self.means).max(self.label.chars().count().min(12)) + 3 + changes
    }
}

fn told_change(first: &Row, row: &Row) -> String {
    match row.identical {
        Some(false) if row.change_pct.is_none() && first.center() == Some(0.0) => {
            let mark = if row.significant == Some(true) { ' ' } else { '?' };
            format!("from 0 {mark}")
        }
        _ => change(row),
    }
}

fn fill(mut table: Table, names: &[[String; 2]], reference: &Column, others: &[Column]) -> Table {
    let mut header = vec!["figure".to_owned(), "unit".to_owned(), reference.label.clone()];
    header.extend(others.iter().flat_map(|of| [of.label.clone(), "change %".to_owned()]));
    table.set_header(header);
    for (at, name) in names.iter().enumerate() {
        let mut row = name.to_vec();
        row.push(reference.means[at].clone());
        row.extend(others.iter().flat_map(|of| [of.means[at].clone(), of.changes[at].clone()]));
        table.add_row(row);
    }
    table.figures_from(2);
    table
}

/// In the unit that suits all subjects.
fn mean(figure: &OfSubjects, at: usize) -> String {
    let (divisor, _) = time_unit(figure);
    figure[at].center().map(|mean| number::figure(mean / divisor)).unwrap_or_default()
}

fn time_unit(figure: &OfSubjects) -> (f64, &'static str) {
    let largest = figure.iter().filter_map(|row| row.center()).fold(0.0, f64::max);
    match figure[0].unit {
        "ns" if largest >= 1e9 => (1e9, "s"),
        "ns" if largest >= 1e6 => (1e6, "ms"),
        "ns" if largest >= 1e3 => (1e3, "us"),
        unit => (1.0, unit),
    }
}

/// The figure's name for people, and its unit: what /proc/schedstat counts is per CPU, and its jiffies
/// are nanoseconds.
fn name(figure: &OfSubjects) -> [String; 2] {
    let (_, unit) = time_unit(figure);
    let metric = figure[0].metric.as_str();
    let Some(counter) = metric.strip_prefix("schedstat_") else {
        return [metric.replace('_', " "), unit.to_owned()];
    };
    let name = match counter {
        "schedule_called" => "calls of schedule()",
        "schedule_left_the_processor_idle" => "schedule() to idle",
        "try_to_wake_up_was_called" => "wakeups",
        "try_to_wake_up_was_called_to_wake_up_the_local_cpu" => "wakeups on the waking CPU",
        "total_runtime_by_tasks_on_this_processor_in_jiffies" => "run time",
        "total_waittime_by_tasks_on_this_processor_in_jiffies" => "wait time",
        "total_timeslices_run_on_this_cpu" => "timeslices",
        counter => &counter.replace('_', " "),
    };
    [name.to_owned(), format!("{unit}/CPU")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{Series, rows};
    use crate::report::terminal::empty_bare_table;
    use crate::subject::tests::subject;
    use placewise_sim::Figure;

    const WAIT: &str = "schedstat_total_waittime_by_tasks_on_this_processor_in_jiffies";

    /// Three runs of a counter under each policy.
    type Counter = (&'static str, &'static str, [[f64; 3]; 2]);

    fn told(counters: &[Counter], policies: usize, width: usize) -> Vec<String> {
        let figures = |at: usize, run: usize| -> Vec<Figure> {
            let figure = |(metric, unit, runs): &Counter| Figure {
                metric: (*metric).to_owned(),
                value: runs[at.min(1)][run],
                unit,
                better: None,
            };
            counters.iter().map(figure).collect()
        };
        let runs: Vec<[Vec<Figure>; 3]> =
            (0..policies).map(|at| [0, 1, 2].map(|run| figures(at, run))).collect();
        let subjects: Vec<_> =
            (0..policies).map(|at| subject("v6.0", &format!("policy-{at}"))).collect();
        let series: Vec<Series> = runs
            .iter()
            .zip(&subjects)
            .map(|(runs, subject)| Series {
                subject,
                runs: runs.iter().map(Vec::as_slice).collect(),
            })
            .collect();
        let rows = rows("", &series);
        let rows: Vec<&Row> = rows.iter().collect();
        let told = moved(("", &rows), &[Axis::Policy], width, &mut empty_bare_table);
        let text = |(heading, table): (String, Option<Table>)| {
            format!("{heading}\n{}", table.map(|table| table.trimmed()).unwrap_or_default())
        };
        told.into_iter().map(text).collect()
    }

    const COUNTERS: [Counter; 5] = [
        ("migrations_wakeup", "tasks", [[100.0, 101.0, 102.0], [110.0, 111.0, 112.0]]),
        ("idle_share", "%", [[50.0, 50.0, 50.0], [50.0, 50.0, 50.0]]),
        ("rq_lock_share", "%", [[1.0, 2.0, 3.0], [3.0, 2.0, 1.5]]),
        (WAIT, "ns", [[4e6, 4e6, 4e6], [8e6, 8.1e6, 8.2e6]]),
        ("migrations_active", "tasks", [[0.0, 0.0, 0.0], [5.0, 5.0, 6.0]]),
    ];

    /// What stayed, and what is noise, is left out; units suit.
    #[test]
    fn what_moved_most_comes_first() {
        let text = &told(&COUNTERS, 2, 100)[0];
        let words: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words.len(), 5, "{text}");
        assert_eq!(words[1], ["figure", "unit", "policy-0", "policy-1", "change", "%"]);
        assert_eq!(words[2], ["migrations", "active", "tasks", "0", "5.333", "from", "0"]);
        assert_eq!(words[3], ["wait", "time", "ms/CPU", "4.000", "8.100", "+102"]);
        assert_eq!(words[4], ["migrations", "wakeup", "tasks", "101.0", "111.0", "+9.90"]);
    }

    #[test]
    fn where_nothing_moved_that_is_said() {
        let still = told(&COUNTERS[1..3], 2, 100);
        assert_eq!(still.len(), 1);
        assert!(still[0].starts_with("why: no counter moved beyond the noise"), "{}", still[0]);
    }

    /// Each block has the names and the first policy again.
    #[test]
    fn policies_that_do_not_fit_go_into_further_blocks() {
        let blocks = told(&COUNTERS, 7, 80);
        assert!(blocks.len() > 1);
        for block in &blocks {
            assert!(block.contains("policy-0") && block.contains("8.100"), "{block}");
            assert!(block.lines().all(|line| line.chars().count() <= 80), "{block}");
        }
        for at in 1..7 {
            let has = |block: &&String| block.contains(&format!("policy-{at}"));
            assert_eq!(blocks.iter().filter(has).count(), 1, "each policy once");
        }
    }
}
