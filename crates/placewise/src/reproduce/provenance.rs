//! Which published rows were in view when a cost or a parameter was chosen.
//!
//! `studies/provenance.toml` lists the choices. A row whose own outcome was in view is in sample: that
//! it is predicted well shows that the model can be fitted, not that it is right.

use std::sync::LazyLock;

use placewise_workload::Case;
use serde::Deserialize;

use super::study::Published;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    pub what: String,
    pub place: String,
    pub why: String,
    /// What else depends on it, out of view.
    pub decides: Option<String>,
    in_view: Vec<Rows>,
}

/// Rows with all that is named here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    series: Option<String>,
    machine: Option<String>,
    workload: String,
    policy: String,
    metric: Option<String>,
    /// Settings among those of the case.
    case: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Provenance {
    choice: Vec<Choice>,
}

static PROVENANCE: LazyLock<Provenance> = LazyLock::new(|| {
    let text = include_str!("../../../../studies/provenance.toml");
    toml::from_str(text).expect("studies/provenance.toml is as a test has read it")
});

pub fn choices() -> &'static [Choice] {
    &PROVENANCE.choice
}

/// What was chosen with the row in view.
pub fn chosen_in_view_of(row: &Published) -> Vec<&'static str> {
    let in_view = |choice: &&Choice| choice.in_view.iter().any(|rows| rows.contain(row));
    choices().iter().filter(in_view).map(|choice| choice.what.as_str()).collect()
}

impl Rows {
    fn contain(&self, row: &Published) -> bool {
        let is = |wanted: &Option<String>, own: &str| wanted.as_ref().is_none_or(|it| it == own);
        is(&self.series, &row.series)
            && is(&self.machine, &row.machine)
            && self.workload == row.workload
            && self.policy == row.policy
            && is(&self.metric, &row.metric)
            && self.case.as_ref().is_none_or(|case| has_settings(row, case))
    }
}

fn has_settings(row: &Published, settings: &str) -> bool {
    let (Ok(own), Ok(wanted)) = (row.case.parse::<Case>(), settings.parse::<Case>()) else {
        return false;
    };
    wanted.iter().all(|(key, value)| own.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::study::{self, row};

    #[test]
    fn a_row_is_in_sample_where_its_own_outcome_was_in_view() {
        let of = |row: Published| chosen_in_view_of(&row);
        let pairs =
            |policy| row("short-task", "spr-112", "context_switch1", "instances=112", policy);
        assert!(of(pairs("short-task")).contains(&"balance_overlap"));
        assert_eq!(of(pairs("baseline")), [""; 0]);
        let messages = row("short-task", "spr-112", "hackbench", "groups=1", "short-task");
        assert_eq!(of(messages), [""; 0], "decided by it, but not in view");
    }

    #[test]
    fn rows_have_all_that_is_named() {
        let rows: Rows = toml::from_str("workload = 'lu'\npolicy = 'p'\ncase = 'b=2;a=1'").unwrap();
        let row = |case| row("s", "uma-8", "lu", case, "p");
        assert!(rows.contain(&row("a=1;c=3;b=2")) && !rows.contain(&row("a=1")));
        assert!(!rows.contain(&row("a=1;b=3")));
        let rows = Rows { machine: Some("uma-9".into()), ..rows };
        assert!(!rows.contain(&row("a=1;b=2")));
    }

    /// A choice that no study has a row of is out of date.
    #[test]
    fn each_choice_names_rows_that_there_are() {
        let rows = study::all();
        for choice in choices() {
            for wanted in &choice.in_view {
                let found = rows.iter().any(|row| wanted.contain(row));
                assert!(found, "{}: {} under {}", choice.what, wanted.workload, wanted.policy);
            }
        }
    }
}
