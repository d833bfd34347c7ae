//! Reads studies: published results in the tidy schema, one row per figure.
//!
//! Columns are found by their name; further ones are ignored. Lines that are empty or start with
//! `#` are comments. `value`, `better`, `spread_pct` and `change_pct` may be empty: a row without a
//! value asks for a prediction. A record ends with its line.

use std::collections::BTreeMap;
use std::path::Path;

use placewise_sim::Better;
use serde::Serialize;

use crate::comparison::{direction, direction_name};
use crate::input::InputError;
use crate::report::csv::HEADER;

/// The policy that others are compared with.
pub const BASELINE: &str = "baseline";

/// One published figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Published {
    pub file: String,
    pub line: usize,
    pub series: String,
    pub machine: String,
    pub kernel: String,
    pub workload: String,
    pub case: String,
    pub metric: String,
    pub policy: String,
    pub value: Option<f64>,
    pub unit: String,
    #[serde(serialize_with = "direction")]
    pub better: Option<Better>,
    pub spread_pct: Option<f64>,
    /// Positive is better.
    pub change_pct: Option<f64>,
}

impl Published {
    /// What a row is about: there is one of each in a file.
    pub fn identity(&self) -> [&str; 6] {
        let Self { machine, kernel, workload, case, metric, policy, .. } = self;
        [machine, kernel, workload, case, metric, policy]
    }

    /// Of the row that this one's change is relative to.
    pub fn identity_of_baseline(&self) -> [&str; 6] {
        let mut identity = self.identity();
        identity[5] = BASELINE;
        identity
    }

    /// The paper gives the value relative to another row's.
    pub fn is_normalized(&self) -> bool {
        self.unit == "normalized"
    }
}

pub fn read(path: &Path) -> Result<Vec<Published>, InputError> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| InputError(format!("{name}: cannot be read: {error}")))?;
    parse(&name.to_string(), &text)
}

fn parse(file: &str, text: &str) -> Result<Vec<Published>, InputError> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let mut records =
        numbered.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let (line, header) = records.next().unwrap_or((1, ""));
    let columns = columns(file, line, header)?;
    let rows: Vec<Published> = records
        .map(|(line, text)| Record::new(file, line, text, &columns)?.published())
        .collect::<Result<_, _>>()?;
    check_distinct(&rows)?;
    Ok(rows)
}

fn columns(file: &str, line: usize, header: &str) -> Result<Vec<String>, InputError> {
    let columns = split(header);
    match HEADER.iter().find(|name| !columns.iter().any(|column| column == *name)) {
        Some(missing) => Err(InputError(format!(
            "{file}:{line}: column `{missing}` is missing; expected a header with {}",
            HEADER.join(",")
        ))),
        None => Ok(columns),
    }
}

fn split(line: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .trim(csv::Trim::All)
        .from_reader(line.as_bytes());
    let record = reader.records().next().and_then(Result::ok).unwrap_or_default();
    record.iter().map(str::to_owned).collect()
}

fn check_distinct(rows: &[Published]) -> Result<(), InputError> {
    let mut lines = BTreeMap::new();
    for row in rows {
        if let Some(first) = lines.insert(row.identity(), row.line) {
            return Err(InputError(format!(
                "{}:{}: policy `{}` has this case and metric in line {first} already; \
                 leave one of the two out",
                row.file, row.line, row.policy
            )));
        }
    }
    Ok(())
}

/// The fields of one line, with what it takes to say where one is wrong.
struct Record<'a> {
    file: &'a str,
    line: usize,
    columns: &'a [String],
    fields: Vec<String>,
}

impl<'a> Record<'a> {
    fn new(
        file: &'a str,
        line: usize,
        text: &str,
        columns: &'a [String],
    ) -> Result<Self, InputError> {
        let fields = split(text);
        if fields.len() != columns.len() {
            let (found, expected) = (fields.len(), columns.len());
            return Err(InputError(format!(
                "{file}:{line}: has {found} fields; expected {expected}, one for each column"
            )));
        }
        Ok(Self { file, line, columns, fields })
    }

    fn published(&self) -> Result<Published, InputError> {
        Ok(Published {
            file: self.file.to_owned(),
            line: self.line,
            series: self.text("series").to_owned(),
            machine: self.required("machine")?,
            kernel: self.required("kernel")?,
            workload: self.required("workload")?,
            case: self.text("case").to_owned(),
            metric: self.required("metric")?,
            policy: self.required("policy")?,
            value: self.number("value")?,
            unit: self.text("unit").to_owned(),
            better: self.better()?,
            spread_pct: self.number("spread_pct")?,
            change_pct: self.number("change_pct")?,
        })
    }

    fn text(&self, column: &str) -> &str {
        let at = self.columns.iter().position(|name| name == column);
        at.map_or("", |at| &self.fields[at])
    }

    fn required(&self, column: &str) -> Result<String, InputError> {
        match self.text(column) {
            "" => Err(self.wrong(column, "a name")),
            text => Ok(text.to_owned()),
        }
    }

    fn number(&self, column: &str) -> Result<Option<f64>, InputError> {
        match (self.text(column), self.text(column).parse::<f64>()) {
            ("", _) => Ok(None),
            (_, Ok(number)) if number.is_finite() => Ok(Some(number)),
            _ => Err(self.wrong(column, "a number, such as 4.23, or nothing")),
        }
    }

    fn better(&self) -> Result<Option<Better>, InputError> {
        let directions = [Better::Lower, Better::Higher];
        match self.text("better") {
            "" => Ok(None),
            word => match directions.into_iter().find(|known| direction_name(*known) == word) {
                Some(direction) => Ok(Some(direction)),
                None => Err(self.wrong("better", "`lower`, `higher` or nothing")),
            },
        }
    }

    fn wrong(&self, column: &str, expected: &str) -> InputError {
        let (file, line, found) = (self.file, self.line, self.text(column).escape_debug());
        InputError(format!("{file}:{line}: {column}: expected {expected}, found `{found}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = "s,uma-8,v6.0,schedpipe,,throughput,baseline,1.5,ops/s,higher,,";

    fn refused(header: &str, row: &str) -> String {
        parse("a.csv", &format!("{header}\n{row}\n")).unwrap_err().0
    }

    #[test]
    fn rows_know_their_lines_behind_comments() {
        let text = format!("# source: here\n{}\n\n# why\n{ROW}\n", HEADER.join(","));
        let rows = parse("a.csv", &text).unwrap();
        assert_eq!((rows.len(), rows[0].line, rows[0].value), (1, 5, Some(1.5)));
        assert_eq!((rows[0].better, rows[0].change_pct), (Some(Better::Higher), None));
    }

    #[test]
    fn columns_are_found_by_name_and_further_ones_ignored() {
        let mut columns = HEADER.to_vec();
        let mut fields: Vec<&str> = ROW.split(',').collect();
        columns.reverse();
        fields.reverse();
        let text = format!("{},note\n{},any\n", columns.join(","), fields.join(","));
        let in_order = format!("{}\n{ROW}\n", HEADER.join(","));
        assert_eq!(parse("a.csv", &text).unwrap(), parse("a.csv", &in_order).unwrap());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let header = HEADER.join(",");
        let without_unit = header.replace("unit,", "");
        assert!(refused(&without_unit, ROW).starts_with("a.csv:1: column `unit` is missing"));
        for (from, to, says) in [
            (
                "1.5",
                "fast",
                "a.csv:2: value: expected a number, such as 4.23, or nothing, found `fast`",
            ),
            ("1.5", "NaN", "a.csv:2: value: expected a number"),
            (
                "higher",
                "more",
                "a.csv:2: better: expected `lower`, `higher` or nothing, found `more`",
            ),
            ("uma-8", "", "a.csv:2: machine: expected a name"),
            ("higher,", "", "a.csv:2: has 11 fields; expected 12"),
        ] {
            let message = refused(&header, &ROW.replace(from, to));
            assert!(message.starts_with(says), "{message}");
        }
        let twice = refused(&header, &format!("{ROW}\n{ROW}"));
        assert!(
            twice.contains("a.csv:3: policy `baseline`") && twice.contains("line 2"),
            "{twice}"
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused_in_one_line(text in "(.|\n)*") {
            let behind_header = format!("{}\n{text}", HEADER.join(","));
            for text in [text, behind_header] {
                if let Err(error) = parse("a.csv", &text) {
                    proptest::prop_assert!(!error.0.contains('\n'));
                }
            }
        }
    }
}
