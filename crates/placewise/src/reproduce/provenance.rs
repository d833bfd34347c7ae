//! Which published rows were in view when a cost or a parameter was chosen.
//!
//! `studies/provenance.toml` lists the choices. A row whose own outcome was in view is in sample: that
//! it is predicted well shows that the model can be fitted, not that it is right.

use std::sync::LazyLock;

use serde::Deserialize;

use super::rows::Rows;
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
    let in_view =
        |choice: &&Choice| choice.in_view.iter().any(|rows| rows.contain(&row.series, &row.ran_as));
    choices().iter().filter(in_view).map(|choice| choice.what.as_str()).collect()
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

    /// A choice that no study has a row of is out of date.
    #[test]
    fn each_choice_names_rows_that_there_are() {
        let rows = study::all();
        for choice in choices() {
            for wanted in &choice.in_view {
                let found = rows.iter().any(|row| wanted.contain(&row.series, &row.ran_as));
                assert!(found, "{}: {wanted:?}", choice.what);
            }
        }
    }
}
