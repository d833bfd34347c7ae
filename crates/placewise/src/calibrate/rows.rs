//! Which rows of published tables costs are fitted to: baselines of the machine with a value of their
//! own, each once.
//!
//! What other policies gave ends here: no value of theirs gets past this file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use placewise_machine::Machine;
use serde::Serialize;

use crate::input::InputError;
use crate::reproduce::study::{self, Published};

/// A row that is not fitted to.
pub struct LeftOut {
    pub file: String,
    pub reason: String,
}

/// A table, and how many of its rows are fitted to.
#[derive(Debug, PartialEq, Serialize)]
pub struct Table {
    pub file: String,
    pub rows: usize,
}

/// Of the files, those to fit to, and the others.
pub fn read(
    files: &[PathBuf],
    spec: &str,
    machine: &Machine,
) -> Result<(Vec<Published>, Vec<LeftOut>), InputError> {
    let (mut used, mut left_out) = (Vec::new(), Vec::new());
    let mut known = BTreeSet::new();
    for file in files {
        let rows = study::read(file)?;
        check(file, &rows, spec, machine)?;
        for row in rows {
            let identity = (row.series.clone(), row.identity().map(str::to_owned));
            let reason = match unfit(&row) {
                None if !is_of(&row, spec, machine) => Some("of another machine"),
                None if !known.insert(identity) => Some("in an earlier table, too"),
                reason => reason,
            };
            match reason {
                None => used.push(row),
                Some(reason) => left_out.push(LeftOut { file: row.file, reason: reason.into() }),
            }
        }
    }
    Ok((used, left_out))
}

/// Why nothing can be fitted to a row, whatever its machine.
fn unfit(row: &Published) -> Option<&'static str> {
    if !row.is_baseline() {
        Some("of another policy than baseline")
    } else if row.value.is_none() {
        Some("without a value")
    } else if row.is_normalized() {
        Some("normalized to another row")
    } else if row.value == Some(0.0) {
        Some("of 0, which no factor leads to")
    } else {
        None
    }
}

/// By its name, or as it was asked for.
fn is_of(row: &Published, spec: &str, machine: &Machine) -> bool {
    [spec, &machine.name].contains(&row.ran_as.machine.as_str())
}

/// Refuses a file that has nothing to fit to.
fn check(file: &Path, rows: &[Published], spec: &str, machine: &Machine) -> Result<(), InputError> {
    let fit = || rows.iter().filter(|row| unfit(row).is_none());
    if fit().any(|row| is_of(row, spec, machine)) {
        return Ok(());
    }
    let machines: BTreeSet<&str> = fit().map(|row| row.ran_as.machine.as_str()).collect();
    let machines: Vec<&str> = machines.into_iter().collect();
    let problem = match machines.is_empty() {
        true => {
            "has no baseline row with a value that is not normalized to another row; name a table \
             that has one"
                .to_owned()
        }
        false => format!(
            "has no baseline row of machine `{}`, only of {}; name another table, or that machine",
            machine.name,
            machines.join(", ")
        ),
    };
    Err(InputError(format!("{}: {problem}", file.display())))
}

/// The tables in the order of their rows.
pub fn tables<'a>(rows: impl IntoIterator<Item = &'a Published>) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for row in rows {
        match tables.iter_mut().find(|table| table.file == row.file) {
            Some(table) => table.rows += 1,
            None => tables.push(Table { file: row.file.clone(), rows: 1 }),
        }
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::study::row;
    use crate::reproduce::unit::Unit;

    #[test]
    fn baselines_with_a_value_of_their_own_are_fit() {
        let reason = |policy: &str, value, unit: &str| {
            let row = row("s", "uma-8", "hackbench", "groups=1", policy);
            unfit(&Published { value, unit: Unit::parse(unit), ..row })
        };
        assert_eq!(reason("baseline", Some(2.0), "s"), None);
        assert!(reason("short-task", Some(2.0), "s").unwrap().contains("another policy"));
        assert!(reason("baseline", None, "s").unwrap().contains("without a value"));
        assert!(reason("baseline", Some(1.0), "normalized").unwrap().contains("normalized"));
        assert!(reason("baseline", Some(0.0), "count").unwrap().contains("of 0"));
    }
}
