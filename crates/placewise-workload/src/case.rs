//! The case of a workload: which of its parameters are set, and to what.
//!
//! A case is written as published tables write it: `tasks=process;ipc=pipe;groups=1`. Reading one
//! checks only this form; whether the keys and values mean anything is the workload's to say
//! (see [`canonical`](crate::canonical)).

use std::fmt;
use std::str::FromStr;

use crate::error::{WorkloadError, quoted};

/// Settings in the order they were written. The empty case leaves everything at its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    settings: Vec<(String, String)>,
}

impl Case {
    /// The same case with one more setting.
    pub fn with(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.settings.push((key.to_string(), value.to_string()));
        self
    }

    /// The same case with what its workload does by itself for `key`.
    pub fn without(mut self, key: &str) -> Self {
        self.settings.retain(|(candidate, _)| candidate != key);
        self
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(candidate, _)| *candidate == key).map(|(_, value)| value)
    }

    /// Keys and values in the order they were written.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Reads settings that are joined by `separator`.
    pub(crate) fn separated_by(separator: char, text: &str) -> Result<Self, WorkloadError> {
        let mut case = Case::default();
        for part in text.split(separator).map(str::trim).filter(|part| !part.is_empty()) {
            let wrong =
                |problem: &str| Err(WorkloadError::new(format!("case {}", quoted(part)), problem));
            let Some((key, value)) = part.split_once('=') else {
                return wrong(&format!(
                    "expected key=value, with `{separator}` between settings, such as \
                     `groups=2{separator}ipc=pipe`"
                ));
            };
            let (key, value) = (key.trim(), value.trim());
            if key.is_empty() || value.is_empty() {
                return wrong("expected a key before the `=` and a value after it");
            }
            if case.get(key).is_some() {
                return wrong("this key is set twice; leave one of the two out");
            }
            case = case.with(key, value);
        }
        Ok(case)
    }
}

impl FromStr for Case {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        Self::separated_by(';', text)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, value)) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { ";" };
            write!(out, "{separator}{key}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn published_cases_round_trip() {
        for text in [
            "",
            "groups=16",
            "tasks=process;ipc=pipe;groups=1",
            "threads=76;burners=2;cgroups=split",
        ] {
            assert_eq!(text.parse::<Case>().unwrap().to_string(), text);
        }
        assert_eq!(" a = 1 ;; b=2; ".parse::<Case>().unwrap().to_string(), "a=1;b=2");
    }

    #[test]
    fn malformed_cases_name_the_part() {
        for (text, part) in [
            ("groups", "`groups`"),
            ("groups=2;=3", "`=3`"),
            ("groups=", "`groups=`"),
            ("groups=2;groups=4", "`groups=4`: this key is set twice"),
        ] {
            let message = text.parse::<Case>().unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_in_one_line(text in any::<String>()) {
            match text.parse::<Case>() {
                Ok(case) => prop_assert_eq!(case.to_string().parse::<Case>().unwrap(), case),
                Err(error) => prop_assert!(!error.to_string().contains('\n')),
            }
        }
    }
}
