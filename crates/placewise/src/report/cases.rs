//! What a case is called in tables: by its settings, or, where some are too long to stand in a row, by
//! its number, which a table of its own explains.

use super::cells::Table;
use super::groups::grouped;
use crate::comparison::Row;

/// A longer case leaves no room for figures.
const LONGEST: usize = 32;
/// And beside the metrics of a part.
const LONGEST_BESIDE_METRIC: usize = 12;
/// Of a piece of a long case.
const PIECE: usize = 64;

/// The cases, in order, if they are called by their numbers.
pub struct Labels<'a>(Vec<&'a str>);

impl<'a> Labels<'a> {
    pub fn of(rows: &'a [Row]) -> Self {
        let cases = grouped(rows, |row| row.case.as_str());
        let cases: Vec<&str> = cases.iter().map(|rows| rows[0].case.as_str()).collect();
        let longest = match rows.iter().any(|row| row.part().is_some()) {
            true => LONGEST_BESIDE_METRIC,
            false => LONGEST,
        };
        let are_long = cases.iter().any(|case| case.chars().count() > longest);
        Self(if are_long { cases } else { Vec::new() })
    }

    pub fn label(&self, case: &str) -> String {
        match self.0.iter().position(|known| *known == case) {
            Some(at) => format!("case {}", at + 1),
            None => case.to_owned(),
        }
    }

    /// What the numbers mean; none where there are none.
    pub fn table(&self, empty: impl FnOnce() -> Table) -> Option<(String, Table)> {
        if self.0.is_empty() {
            return None;
        }
        let mut table = empty();
        table.set_header(["case", "settings"]);
        for case in &self.0 {
            let mut label = self.label(case);
            for piece in pieces(case) {
                table.add_row([std::mem::take(&mut label), piece]);
            }
        }
        Some(("cases".to_owned(), table))
    }
}

/// Broken behind the signs that join settings, where a line would be too long.
fn pieces(case: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for setting in case.split_inclusive(['+', ',', ';']) {
        let last = pieces.last_mut().expect("there is a first piece");
        if !last.is_empty() && last.len() + setting.len() > PIECE {
            pieces.push(setting.to_owned());
        } else {
            *last += setting;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_where_settings_do() {
        let case = "parts=schbench:workers=64@web:1000+lu:threads=128,burners=0,cgroups=one@batch";
        let expected =
            ["parts=schbench:workers=64@web:1000+lu:threads=128,burners=0,", "cgroups=one@batch"];
        assert_eq!(pieces(case), expected);
        assert_eq!(pieces(case).concat(), case);
        assert_eq!(pieces("groups=1"), ["groups=1"]);
    }
}
