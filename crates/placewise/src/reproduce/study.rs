//! Reads studies: published results in the tidy schema, one row per figure.
//!
//! Columns are found by their name; further ones are ignored. Lines that are empty or start with
//! `#` are comments. `value`, `better`, `spread_pct` and `change_pct` may be empty: a row without a
//! value asks for a prediction, and needs no unit. A record ends with its line.
//!
//! What no figure can be is refused here: numbers that are not finite, and below zero. Whether a
//! row's unit and value fit its metric is for whoever knows the workload to say.

use std::collections::BTreeMap;
use std::path::Path;

use placewise_sim::{Better, COLUMNS};
use placewise_workload as workload;
use serde::{Serialize, Serializer};

use super::commands;
use super::names::Names;
use super::unit::{Quantity, Unit};
use crate::input::InputError;
use crate::machine_readable::{direction, direction_name};

/// The policy that others are compared with.
const BASELINE: &str = "baseline";

/// One published figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Published {
    pub file: String,
    pub line: usize,
    pub series: String,
    #[serde(flatten)]
    pub written: Names,
    pub value: Option<f64>,
    /// There is one wherever there is a value.
    #[serde(serialize_with = "as_written")]
    pub unit: Option<Unit>,
    #[serde(serialize_with = "direction")]
    pub better: Option<Better>,
    pub spread_pct: Option<f64>,
    /// Positive is better.
    pub change_pct: Option<f64>,
    /// With what the command of its series adds. The case is as `placewise compare` prints it, so that one
    /// case has one name; as it was written where there is no such case.
    pub ran_as: Names,
}

impl Published {
    /// What a row is about: there is one of each in a file.
    pub fn identity(&self) -> [&str; 6] {
        let Names { machine, kernel, workload, case, metric, policy } = &self.ran_as;
        [machine, kernel, workload, case, metric, policy]
    }

    /// Of the row that this one's change is relative to.
    pub fn identity_of_baseline(&self) -> [&str; 6] {
        let mut identity = self.identity();
        identity[5] = BASELINE;
        identity
    }

    /// The question that a row asks, as others may with other cases.
    pub fn experiment(&self) -> [&str; 5] {
        let Names { machine, kernel, workload, policy, .. } = &self.ran_as;
        [&self.series, machine, kernel, workload, policy]
    }

    pub fn is_baseline(&self) -> bool {
        self.ran_as.policy == BASELINE
    }

    /// The paper gives the value relative to another row's.
    pub fn is_normalized(&self) -> bool {
        self.unit.as_ref().is_some_and(|unit| unit.quantity() == Quantity::Relative)
    }

    /// It can be held against a predicted one by their factor.
    pub fn is_baseline_figure(&self) -> bool {
        self.is_baseline() && !self.is_normalized() && self.value.is_some_and(|value| value > 0.0)
    }

    /// Empty where there is none.
    pub fn unit_written(&self) -> &str {
        self.unit.as_ref().map(Unit::written).unwrap_or_default()
    }

    /// An error about one of the fields.
    pub fn wrong(&self, column: &str, problem: &str) -> InputError {
        InputError(format!("{}:{}: {column}: {problem}", self.file, self.line))
    }
}

/// For each row, where the row stands that its change is relative to.
pub fn baselines<'a>(rows: impl Iterator<Item = &'a Published> + Clone) -> Vec<Option<usize>> {
    let of_row = |(at, row): (usize, &'a Published)| ((&row.file, row.identity()), at);
    let places: BTreeMap<_, usize> = rows.clone().enumerate().map(of_row).collect();
    let baseline_of = |row: &Published| {
        let place = places.get(&(&row.file, row.identity_of_baseline())).copied();
        place.filter(|_| !row.is_baseline())
    };
    rows.map(baseline_of).collect()
}

fn as_written<S: Serializer>(unit: &Option<Unit>, serializer: S) -> Result<S::Ok, S::Error> {
    unit.as_ref().map(Unit::written).unwrap_or_default().serialize(serializer)
}

pub fn read(path: &Path) -> Result<Vec<Published>, InputError> {
    let text = workload::read_text(path).map_err(|error| InputError(error.to_string()))?;
    parse(&path.display().to_string(), &text)
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
    if rows.is_empty() {
        let problem = "there is no row below the header; expected one for each figure";
        return Err(InputError(format!("{file}:{line}: {problem}")));
    }
    check_distinct(&rows)?;
    Ok(rows)
}

/// Where each column of the schema stands among all of a file.
struct Columns {
    places: [usize; COLUMNS.len()],
    count: usize,
}

fn columns(file: &str, line: usize, header: &str) -> Result<Columns, InputError> {
    let wrong = |problem: String| InputError(format!("{file}:{line}: {problem}"));
    let found = split(header).map_err(wrong)?;
    let mut places = [0; COLUMNS.len()];
    for (place, name) in places.iter_mut().zip(COLUMNS) {
        let mut named = found.iter().enumerate().filter(|(_, column)| *column == name);
        *place = match (named.next(), named.next()) {
            (Some((at, _)), None) => at,
            (Some(_), Some(_)) => {
                return Err(wrong(format!("column `{name}` is there twice; leave one out")));
            }
            (None, _) => {
                let all = COLUMNS.join(",");
                let problem = format!("column `{name}` is missing; expected a header with {all}");
                return Err(wrong(problem));
            }
        };
    }
    Ok(Columns { places, count: found.len() })
}

/// The fields of a line, or what is wrong with it.
fn split(line: &str) -> Result<Vec<String>, String> {
    if line.chars().any(|c| c.is_control() && c != '\t') {
        return Err("has a control character; leave it out".to_owned());
    }
    if !line.matches('"').count().is_multiple_of(2) {
        return Err("a quotation mark is not closed; close it in the same line".to_owned());
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .trim(csv::Trim::All)
        .from_reader(line.as_bytes());
    let record = reader.records().next().and_then(Result::ok).unwrap_or_default();
    Ok(record.iter().map(str::to_owned).collect())
}

fn check_distinct(rows: &[Published]) -> Result<(), InputError> {
    let mut lines = BTreeMap::new();
    for row in rows {
        if let Some(first) = lines.insert(row.identity(), row.line) {
            return Err(InputError(format!(
                "{}:{}: policy `{}` has this case and metric in line {first} already; \
                 leave one of the two out",
                row.file, row.line, row.ran_as.policy
            )));
        }
    }
    Ok(())
}

/// The fields of one line, with what it takes to say where one is wrong.
struct Record<'a> {
    file: &'a str,
    line: usize,
    columns: &'a Columns,
    fields: Vec<String>,
}

impl<'a> Record<'a> {
    fn new(
        file: &'a str,
        line: usize,
        text: &str,
        columns: &'a Columns,
    ) -> Result<Self, InputError> {
        let wrong = |problem: String| InputError(format!("{file}:{line}: {problem}"));
        let fields = split(text).map_err(wrong)?;
        if fields.len() != columns.count {
            let (found, expected) = (fields.len(), columns.count);
            let problem = format!("has {found} fields; expected {expected}, one for each column");
            return Err(wrong(problem));
        }
        Ok(Self { file, line, columns, fields })
    }

    fn published(&self) -> Result<Published, InputError> {
        let (value, better) = (self.size("value")?, self.better()?);
        let series = self.text("series").to_owned();
        let written = Names {
            machine: self.required("machine")?,
            kernel: self.required("kernel")?,
            workload: self.required("workload")?,
            case: self.text("case").to_owned(),
            metric: self.required("metric")?,
            policy: self.required("policy")?,
        };
        let mut ran_as = commands::ran_as(&series, &written);
        ran_as.case = ran_as.canonical_case().unwrap_or(ran_as.case);
        Ok(Published {
            file: self.file.to_owned(),
            line: self.line,
            series,
            written,
            unit: self.unit(value)?,
            value,
            better,
            spread_pct: self.size("spread_pct")?,
            change_pct: self.change(better)?,
            ran_as,
        })
    }

    fn text(&self, column: &str) -> &str {
        let mut places = COLUMNS.iter().zip(self.columns.places);
        let place = places.find(|(name, _)| **name == column).map(|(_, place)| place);
        &self.fields[place.expect("it is a column of the schema")]
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

    /// A number that is not below zero.
    fn size(&self, column: &str) -> Result<Option<f64>, InputError> {
        match self.number(column)? {
            Some(number) if number < 0.0 => Err(self.wrong(column, "a number from 0 on")),
            number => Ok(number),
        }
    }

    /// No figure falls by more than all of it.
    fn change(&self, better: Option<Better>) -> Result<Option<f64>, InputError> {
        match (better, self.number("change_pct")?) {
            (Some(Better::Lower), Some(change)) if change > 100.0 => {
                Err(self.wrong("change_pct", "100 or less where lower is better"))
            }
            (Some(Better::Higher), Some(change)) if change < -100.0 => {
                Err(self.wrong("change_pct", "-100 or more where higher is better"))
            }
            (_, change) => Ok(change),
        }
    }

    fn unit(&self, value: Option<f64>) -> Result<Option<Unit>, InputError> {
        match (self.text("unit"), value) {
            ("", None) => Ok(None),
            (text, _) => Unit::parse(text)
                .map(Some)
                .ok_or_else(|| self.wrong("unit", &format!("one of {}", Unit::known(None)))),
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
        const LONGEST: usize = 60;
        let found = self.text(column).chars().take(LONGEST).flat_map(char::escape_debug);
        let (file, line, found) = (self.file, self.line, found.collect::<String>());
        InputError(format!("{file}:{line}: {column}: expected {expected}, found `{found}`"))
    }
}

/// A row for tests.
#[cfg(test)]
pub fn row(series: &str, machine: &str, workload: &str, case: &str, policy: &str) -> Published {
    let names = Names {
        machine: machine.into(),
        kernel: "v6.0".into(),
        workload: workload.into(),
        case: case.into(),
        metric: "time".into(),
        policy: policy.into(),
    };
    Published {
        file: "a.csv".into(),
        line: 2,
        series: series.into(),
        written: names.clone(),
        value: None,
        unit: Unit::parse("s"),
        better: None,
        spread_pct: None,
        change_pct: None,
        ran_as: names,
    }
}

/// Those of all studies, for tests.
#[cfg(test)]
pub fn all() -> Vec<Published> {
    files().iter().flat_map(|study| read(study).unwrap()).collect()
}

#[cfg(test)]
fn files() -> Vec<std::path::PathBuf> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|file| file.extension().is_some_and(|of_file| of_file == "csv")).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;

    const ROW: &str = "s,uma-8,v6.0,schedpipe,,throughput,baseline,1.5,ops/s,higher,,";

    fn refused(header: &str, row: &str) -> String {
        parse("a.csv", &format!("{header}\n{row}\n")).unwrap_err().0
    }

    #[test]
    fn rows_know_their_lines_behind_comments() {
        let text = format!("# source: here\n{}\n\n# why\n{ROW}\n", COLUMNS.join(","));
        let rows = parse("a.csv", &text).unwrap();
        assert_eq!((rows.len(), rows[0].line, rows[0].value), (1, 5, Some(1.5)));
        assert_eq!((rows[0].better, rows[0].change_pct), (Some(Better::Higher), None));
    }

    #[test]
    fn a_row_keeps_its_names_beside_what_it_ran_as() {
        let row =
            ROW.replace("s,uma-8,v6.0,schedpipe,", "sis-util,spr-112,v6.0,hackbench,groups=4");
        let rows = parse("a.csv", &format!("{}\n{row}\n", COLUMNS.join(","))).unwrap();
        assert_eq!(rows[0].written.case, "groups=4");
        assert_eq!(rows[0].ran_as.case, "groups=4;fds=14;loops=1000000");
        let json = serde_json::to_value(&rows[0]).unwrap();
        assert_eq!(
            (&json["case"], &json["ran_as"]["machine"]),
            (&"groups=4".into(), &"spr-112".into())
        );
    }

    #[test]
    fn changes_are_relative_to_the_baseline_of_the_same_file_case_and_metric() {
        let mut rows = [
            ("groups=1", "short-task"),
            ("groups=1", "baseline"),
            ("groups=2", "baseline"),
            ("groups=2", "short-task"),
            ("groups=2", "short-task"),
            ("groups=2", "hint:none"),
        ]
        .map(|(case, policy)| row("s", "uma-8", "hackbench", case, policy));
        rows[4].ran_as.metric = "idle_share".into();
        rows[5].file = "b.csv".into();
        assert_eq!(baselines(rows.iter()), [Some(1), None, None, Some(2), None, None]);
    }

    #[test]
    fn columns_are_found_by_name_and_further_ones_ignored() {
        let mut columns = COLUMNS.to_vec();
        let mut fields: Vec<&str> = ROW.split(',').collect();
        columns.reverse();
        fields.reverse();
        let text = format!("{},note\n{},any\n", columns.join(","), fields.join(","));
        let in_order = format!("{}\n{ROW}\n", COLUMNS.join(","));
        assert_eq!(parse("a.csv", &text).unwrap(), parse("a.csv", &in_order).unwrap());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let header = COLUMNS.join(",");
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

    /// A study with some of its text overwritten.
    fn mutated_study() -> impl Strategy<Value = String> {
        let read = |path| std::fs::read_to_string(path).unwrap();
        let studies: Vec<String> = files().iter().map(read).collect();
        let new = prop_oneof![
            any::<f64>().prop_map(|number| number.to_string()),
            "[,\"\r\n;=_(#.0-9a-z-]{0,3}",
            "\\PC{0,3}",
        ];
        let patch = (any::<prop::sample::Index>(), 0..6_usize, new);
        (prop::sample::select(studies), prop::collection::vec(patch, 0..4)).prop_map(
            |(text, patches)| {
                let mut text: Vec<char> = text.chars().collect();
                for (at, length, new) in patches {
                    let at = at.index(text.len() + 1);
                    let end = (at + length).min(text.len());
                    text.splice(at..end, new.chars());
                }
                text.into_iter().collect()
            },
        )
    }

    fn any_table() -> impl Strategy<Value = String> {
        let behind_header = |text: String| format!("{}\n{text}", COLUMNS.join(","));
        let text = || "(.|\n)*";
        prop_oneof![text(), text().prop_map(behind_header), mutated_study()]
    }

    /// Accepted with figures that can be, or refused in one line with its place.
    fn assert_sound(text: &str) -> bool {
        match parse("a.csv", text) {
            Ok(rows) => {
                let can_be =
                    |figure: Option<f64>| figure.is_none_or(|it| it.is_finite() && it >= 0.0);
                for row in &rows {
                    assert!(can_be(row.value) && can_be(row.spread_pct), "{row:?}");
                    assert!(row.value.is_none() || row.unit.is_some(), "{row:?}");
                }
                !rows.is_empty()
            }
            Err(InputError(error)) => {
                assert!(error.starts_with("a.csv:") && !error.contains('\n'), "{error}");
                assert!(error.len() < 1_000, "{error}");
                false
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_in_one_line(text in any_table()) {
            assert_sound(&text);
        }
    }

    /// Keeps at it for PLACEWISE_FUZZ_SECONDS.
    #[test]
    #[ignore = "runs for PLACEWISE_FUZZ_SECONDS, 60 by default"]
    fn fuzz() {
        let seconds = std::env::var("PLACEWISE_FUZZ_SECONDS").ok();
        let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(60);
        let end = Instant::now() + Duration::from_secs(seconds);
        let (mut runner, tables) = (TestRunner::default(), any_table());
        let (mut tried, mut accepted) = (0_u64, 0_u64);
        while Instant::now() < end {
            accepted += u64::from(assert_sound(&tables.new_tree(&mut runner).unwrap().current()));
            tried += 1;
        }
        println!("{tried} tables, {accepted} accepted");
        assert!(accepted > 0);
    }
}
