//! What a program is for, in words that need no knowledge of placement, and the hint for it.
//!
//! The table is `intents.toml`; a file of the same form replaces it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::hint::Hint;

const TABLE: &str = include_str!("intents.toml");

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intent {
    #[serde(deserialize_with = "hint_of_names")]
    pub hint: Hint,
    /// For whom, and why this hint.
    pub about: String,
}

/// The table, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intents(BTreeMap<String, Intent>);

/// Why there is no hint for an intent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntentError {
    /// With the line.
    #[error("not a table of intents: {0}")]
    Form(String),
    #[error("unknown intent '{name}'; known: {known}")]
    Unknown { name: String, known: String },
}

fn hint_of_names<'de, D: Deserializer<'de>>(names: D) -> Result<Hint, D::Error> {
    String::deserialize(names)?.parse().map_err(D::Error::custom)
}

impl Default for Intents {
    fn default() -> Self {
        Self::parse(TABLE).expect("the built-in table is tested")
    }
}

impl Intents {
    pub fn parse(text: &str) -> Result<Self, IntentError> {
        toml::from_str(text).map(Self).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let number = before.map(|before| before.matches('\n').count());
            let line = number.and_then(|number| Some((number, text.lines().nth(number)?)));
            let place = line.map(|(number, line)| format!("line {}, `{line}`: ", number + 1));
            IntentError::Form(format!("{}{}", place.unwrap_or_default(), error.message()))
        })
    }

    pub fn hint(&self, name: &str) -> Result<Hint, IntentError> {
        let unknown = || IntentError::Unknown {
            name: name.into(),
            known: self.0.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        };
        self.0.get(name).map(|intent| intent.hint).ok_or_else(unknown)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Intent)> {
        self.0.iter().map(|(name, intent)| (name.as_str(), intent))
    }
}

impl fmt::Display for Intents {
    /// A line each, for the help text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, intent) in self.iter() {
            writeln!(f, "  {name:<14}{:<24}{}", intent.hint, intent.about)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_intent_has_a_hint() {
        let intents = Intents::default();
        for name in ["tail-latency", "interactive", "background", "throughput", "efficient"] {
            assert_ne!(intents.hint(name).unwrap(), Hint::NONE, "{name}");
        }
        let unknown = intents.hint("fast").unwrap_err().to_string();
        assert!(unknown.contains("throughput"), "{unknown}");
    }

    #[test]
    fn a_table_of_ones_own_replaces_the_built_in_one() {
        let own = "[batch]\nhint = \"fork_spread\"\nabout = \"nightly jobs\"\n";
        let intents = Intents::parse(own).unwrap();
        assert_eq!(intents.hint("batch").unwrap().mask(), 2);
        assert!(intents.hint("throughput").is_err());
    }

    #[test]
    fn a_bad_table_is_told_by_line_and_field() {
        for (bad, parts) in [
            ("[batch]\nhint = \"fork_spread\"\nabout = \"x\"\nweight = 3\n", ["line 4", "weight"]),
            ("[batch]\nhint = \"fork_spred\"\nabout = \"x\"\n", ["line 2, `hint", "fork_spread"]),
            ("[batch]\nhint = 3\nabout = \"x\"\n", ["line 2, `hint", "a string"]),
            ("[batch]\nhint = \"wake_hold\"\n", ["line 1, `[batch]`", "about"]),
            ("[batch\n", ["line 1", "`[batch`"]),
        ] {
            let told = Intents::parse(bad).unwrap_err().to_string();
            assert!(parts.iter().all(|part| told.contains(part)), "{told}");
        }
    }
}
