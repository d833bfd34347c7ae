//! Which rows are worth their time: a few judged ones of each experiment, or all that say something.
//!
//! An experiment's rows are one question asked many times, so that a few of its cases, spread evenly
//! from the first to the last that are judged, or the one between these, answer for all. Which they are hangs on
//! what was published alone, never on a prediction.

use std::collections::{BTreeMap, BTreeSet};

use super::study::{self, Published};
use super::verdict::Question;

/// Without rows that have no value, and without normalised ones that no change is relative to: of
/// these, nothing can be told.
pub fn published(mut rows: Vec<Published>) -> Vec<Published> {
    rows.retain(|row| row.value.is_some());
    let baselines: BTreeSet<usize> = study::baselines(rows.iter()).into_iter().flatten().collect();
    let says_something = |(at, row): &(usize, Published)| {
        !row.is_normalized() || !row.is_baseline() || baselines.contains(at)
    };
    rows.into_iter().enumerate().filter(says_something).map(|(_, row)| row).collect()
}

/// The judged rows of `most` cases of each experiment, and the rows that their changes are relative to.
pub fn sample(rows: Vec<Published>, most: usize) -> Vec<Published> {
    let baselines = study::baselines(rows.iter());
    let baseline = |at: usize| baselines[at].map(|baseline| &rows[baseline]);
    let is_judged = |at: usize| Question::of(&rows[at], baseline(at)).is_some();
    let judged: Vec<usize> = (0..rows.len()).filter(|at| is_judged(*at)).collect();
    let mut cases: BTreeMap<[&str; 5], Vec<&str>> = BTreeMap::new();
    for &at in &judged {
        let of_experiment = cases.entry(rows[at].experiment()).or_default();
        if !of_experiment.contains(&rows[at].ran_as.case.as_str()) {
            of_experiment.push(&rows[at].ran_as.case);
        }
    }
    let is_taken = |at: &usize| {
        let cases = &cases[&rows[*at].experiment()];
        spread(cases.len(), most).any(|nth| cases[nth] == rows[*at].ran_as.case)
    };
    let taken: Vec<usize> = judged.into_iter().filter(is_taken).collect();
    let needed: BTreeSet<usize> =
        taken.iter().copied().chain(taken.iter().filter_map(|at| baselines[*at])).collect();
    rows.into_iter().enumerate().filter(|(at, _)| needed.contains(at)).map(|(_, row)| row).collect()
}

/// At most `most` of the first `count` numbers: the first, the last, and others evenly between. One alone is that in the
/// middle.
fn spread(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let taken = count.min(most);
    (0..taken).map(move |nth| match taken {
        1 => count / 2,
        _ => nth * (count - 1) / (taken - 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::study::row;
    use crate::reproduce::unit::Unit;

    fn case(groups: u32, policy: &str, change_pct: Option<f64>) -> Published {
        let case = format!("groups={groups}");
        let row = row("s", "uma-8", "hackbench", &case, policy);
        Published { change_pct, value: Some(1.0), line: groups as usize, ..row }
    }

    fn told(rows: &[Published]) -> Vec<(usize, &str)> {
        rows.iter().map(|row| (row.line, row.ran_as.policy.as_str())).collect()
    }

    #[test]
    fn cases_are_spread_from_the_first_to_the_last() {
        let of = |count, most| spread(count, most).collect::<Vec<_>>();
        assert_eq!(of(9, 3), [0, 4, 8]);
        assert_eq!(of(2, 3), [0, 1]);
        assert_eq!(of(9, 1), [4]);
        assert_eq!(of(1, 1), [0]);
    }

    /// Of the cases 1 to 6, the fourth is not judged; the first, third and last of five remain.
    #[test]
    fn a_sample_has_judged_rows_with_their_baselines() {
        let pair = |groups| {
            let change = if groups == 4 { 3.0 } else { 10.0 };
            [case(groups, "baseline", None), case(groups, "short-task", Some(change))]
        };
        let rows: Vec<Published> = (1..=6).flat_map(pair).collect();
        let sample = sample(rows, 3);
        let both = |groups| [(groups, "baseline"), (groups, "short-task")];
        assert_eq!(told(&sample), [both(1), both(3), both(6)].concat());
    }

    #[test]
    fn normalised_baselines_are_kept_where_a_change_is_relative_to_them() {
        let normalised = |row: Published| Published { unit: Unit::parse("normalized"), ..row };
        let rows = vec![
            normalised(case(1, "baseline", None)),
            normalised(case(2, "baseline", None)),
            normalised(case(2, "short-task", Some(1.0))),
            case(3, "baseline", None),
            Published { value: None, ..case(4, "baseline", None) },
        ];
        let expected = [(2, "baseline"), (2, "short-task"), (3, "baseline")];
        assert_eq!(told(&published(rows)), expected);
    }
}
