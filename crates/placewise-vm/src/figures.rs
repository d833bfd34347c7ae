//! Figures of a run by name: what the guest reported, and what an audit says of a trace of it.
//!
//! The guest's functions write a line `NAME VALUE` per figure.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum Figure {
    Number(f64),
    Word(String),
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Word(word) => write!(f, "{word}"),
        }
    }
}

#[derive(Debug, Default)]
pub struct Figures(BTreeMap<String, Figure>);

impl Figures {
    pub fn get(&self, name: &str) -> Option<&Figure> {
        self.0.get(name)
    }

    /// The numbers of `PREFIX.NAME`, by NAME.
    pub fn numbers_of<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        self.0.iter().filter_map(move |(name, figure)| match figure {
            Figure::Number(number) => {
                Some((name.strip_prefix(prefix)?.strip_prefix('.')?, *number))
            }
            Figure::Word(_) => None,
        })
    }

    pub fn insert(&mut self, name: impl Into<String>, figure: Figure) {
        self.0.insert(name.into(), figure);
    }

    /// The lines that the guest has written.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut figures = Self::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(' ') else {
                bail!("the guest reported `{line}`, expected `NAME VALUE`");
            };
            figures.insert(name, value.parse().map_or(Figure::Word(value.into()), Figure::Number));
        }
        Ok(figures)
    }

    /// Every number of an audit: `agreement.exact_cpu_pct` becomes `TRACE.agreement.exact_cpu_pct`.
    pub fn add_audit(&mut self, trace: &str, json: &str) -> anyhow::Result<()> {
        let audit = serde_json::from_str(json).context("the audit is no JSON")?;
        self.add_numbers(trace, &audit);
        Ok(())
    }

    fn add_numbers(&mut self, name: &str, value: &Value) {
        match value {
            Value::Number(number) => {
                self.insert(name, Figure::Number(number.as_f64().unwrap_or(f64::NAN)));
            }
            Value::Object(fields) => {
                for (field, value) in fields {
                    self.add_numbers(&format!("{name}.{field}"), value);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_reports_numbers_and_words() {
        let figures = Figures::parse("off.llcs 4\nkill.errno EPERM\n").unwrap();
        assert_eq!(figures.get("off.llcs"), Some(&Figure::Number(4.0)));
        assert_eq!(figures.get("kill.errno"), Some(&Figure::Word("EPERM".into())));
    }

    #[test]
    fn numbers_are_found_by_their_prefix() {
        let figures = Figures::parse("verify.tick 53\nverify.log none\nverified.tick 1").unwrap();
        assert_eq!(figures.numbers_of("verify").collect::<Vec<_>>(), [("tick", 53.0)]);
    }

    #[test]
    fn a_line_without_a_value_is_an_error() {
        let error = Figures::parse("llcs\n").unwrap_err();
        assert_eq!(error.to_string(), "the guest reported `llcs`, expected `NAME VALUE`");
    }

    #[test]
    fn numbers_of_an_audit_have_their_path() {
        let mut figures = Figures::default();
        figures.add_audit("load", r#"{"agreement": {"wakeups": 7, "reasons": []}}"#).unwrap();
        assert_eq!(figures.get("load.agreement.wakeups"), Some(&Figure::Number(7.0)));
    }
}
