//! Policies that were named on the command line are asked about beside those of the studies: in each
//! case that has a baseline, as rows without a published value.

use std::collections::BTreeSet;

use super::names::Names;
use super::study::Published;
use crate::input::InputError;
use crate::own_policy;

/// The rows, each baseline with a row for each of the policies behind it; a policy that a study has in
/// that case already is not asked about twice.
pub fn with_policies(rows: Vec<Published>, specs: &[String]) -> anyhow::Result<Vec<Published>> {
    let mut names = Vec::new();
    for spec in specs {
        // What does not compile is found before anything is simulated.
        let name = own_policy::prepare(spec)?;
        if names.contains(&name) {
            let problem = format!("--policy {spec}: is given twice; name each policy once");
            return Err(InputError(problem).into());
        }
        names.push(name);
    }
    let of_row = |row: &Published| (row.file.clone(), row.identity().map(str::to_owned));
    let known: BTreeSet<_> = rows.iter().map(of_row).collect();
    let mut all = Vec::new();
    for row in rows {
        let asked = |name: &String| {
            let under = |names: &Names| Names { policy: name.clone(), ..names.clone() };
            Published {
                written: under(&row.written),
                ran_as: under(&row.ran_as),
                value: None,
                spread_pct: None,
                change_pct: None,
                ..row.clone()
            }
        };
        let asked = names.iter().map(asked).filter(|asked| !known.contains(&of_row(asked)));
        let asked: Vec<Published> = if row.is_baseline() { asked.collect() } else { Vec::new() };
        all.push(row);
        all.extend(asked);
    }
    Ok(all)
}
