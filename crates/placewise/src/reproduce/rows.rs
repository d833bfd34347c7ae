//! Names rows of studies by what they have in common, as `studies/commands.toml` and
//! `studies/provenance.toml` do.

use placewise_workload::Case;
use serde::Deserialize;

use super::names::Names;

/// Rows with all that is named here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    series: Option<String>,
    machine: Option<String>,
    workload: Option<String>,
    policy: Option<String>,
    metric: Option<String>,
    /// Settings among those of the case.
    case: Option<String>,
}

impl Rows {
    pub fn contain(&self, series: &str, row: &Names) -> bool {
        let is = |wanted: &Option<String>, own: &str| wanted.as_ref().is_none_or(|it| it == own);
        is(&self.series, series)
            && is(&self.machine, &row.machine)
            && is(&self.workload, &row.workload)
            && is(&self.policy, &row.policy)
            && is(&self.metric, &row.metric)
            && self.case.as_ref().is_none_or(|case| has_settings(row, case))
    }
}

fn has_settings(row: &Names, settings: &str) -> bool {
    let (Ok(own), Ok(wanted)) = (row.case.parse::<Case>(), settings.parse::<Case>()) else {
        return false;
    };
    wanted.iter().all(|(key, value)| own.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::study::row;

    #[test]
    fn rows_have_all_that_is_named() {
        let rows: Rows = toml::from_str("workload = 'lu'\npolicy = 'p'\ncase = 'b=2;a=1'").unwrap();
        let row = |case| row("s", "uma-8", "lu", case, "p").ran_as;
        assert!(rows.contain("s", &row("a=1;c=3;b=2")) && !rows.contain("s", &row("a=1")));
        assert!(!rows.contain("s", &row("a=1;b=3")));
        let elsewhere = Rows { machine: Some("uma-9".into()), ..rows.clone() };
        let later = Rows { series: Some("t".into()), ..rows };
        assert!(![elsewhere, later].iter().any(|rows| rows.contain("s", &row("a=1;b=2"))));
    }
}
