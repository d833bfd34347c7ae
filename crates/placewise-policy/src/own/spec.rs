//! How the command line names a policy: what is built in, and among it a directory of one's own.
//!
//! `DIR` is anything with a `/` or a `.`; `NAME=DIR` gives it a name for reports. Patches, hints and
//! knobs are joined to it by commas as to anything else.

use super::error::OwnError;
use crate::patch::{Policy, PolicyError, patch_names};

/// A policy as it was named, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub struct Spec<'a> {
    /// What reports call it.
    pub name: String,
    /// Whose code decides.
    pub directory: Option<&'a str>,
    /// The rest.
    built_in: String,
}

impl<'a> Spec<'a> {
    pub fn parse(spec: &'a str) -> Result<Self, OwnError> {
        let trees: Vec<Tree<'a>> = spec.split(',').filter_map(Tree::of).collect();
        trees.iter().try_for_each(Tree::check)?;
        if trees.len() > 1 {
            let problem = "names two directories; a policy has the code of one";
            return Err(OwnError::Spec(format!("policy '{spec}' {problem}")));
        }
        let rest: Vec<&str> = spec.split(',').filter(|change| Tree::of(change).is_none()).collect();
        Ok(Self {
            name: name(spec),
            directory: trees.first().map(|tree| tree.directory),
            built_in: if rest.is_empty() { "baseline".to_owned() } else { rest.join(",") },
        })
    }

    /// `kernel` with the changes that are built in, decided by the built-in code.
    pub fn policy(&self, kernel: &str) -> Result<Policy, PolicyError> {
        Ok(Policy { name: self.name.clone(), ..Policy::parse(kernel, &self.built_in)? })
    }
}

/// Is a directory among what is named?
pub fn names_directory(spec: &str) -> bool {
    spec.split(',').any(|change| Tree::of(change).is_some())
}

/// What reports call a policy: directories that have names go by these.
pub fn name(spec: &str) -> String {
    let name = |change| Tree::of(change).map_or(change, |tree| tree.name);
    spec.split(',').map(name).collect::<Vec<_>>().join(",")
}

#[derive(Debug, PartialEq)]
struct Tree<'a> {
    name: &'a str,
    directory: &'a str,
}

impl<'a> Tree<'a> {
    fn of(change: &'a str) -> Option<Self> {
        if change.starts_with("set:") || change.starts_with("hint:") {
            return None;
        }
        match change.split_once('=') {
            Some((name, directory)) => Some(Self { name, directory }),
            None => change.contains(['/', '.']).then_some(Self { name: change, directory: change }),
        }
    }

    /// A name of its own, which nothing takes for something else.
    fn check(&self) -> Result<(), OwnError> {
        let Self { name, directory } = self;
        let refuse =
            |problem: &str| Err(OwnError::Spec(format!("policy '{name}={directory}': {problem}")));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if name == directory {
            Ok(())
        } else if name.is_empty() || !name.chars().all(is_plain) {
            refuse("expected a name of letters, digits, `-` and `_` before the `=`")
        } else if *name == "baseline" || patch_names().iter().any(|(known, _)| known == name) {
            refuse("that name is built in; choose another")
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_a_slash_a_point_or_a_name() {
        for (change, name, directory) in [
            ("./mine", "./mine", "./mine"),
            ("..", "..", ".."),
            ("a/b", "a/b", "a/b"),
            ("x=y", "x", "y"),
        ] {
            assert_eq!(Tree::of(change), Some(Tree { name, directory }));
        }
        for change in ["baseline", "short-task:v4", "set:nr_migrate=4", "hint:wake_hold", "mine"] {
            assert_eq!(Tree::of(change), None, "{change}");
        }
    }

    #[test]
    fn what_is_built_in_stays_beside_a_directory() {
        let spec = Spec::parse("short-task,mine=../d,set:SIS_UTIL=0").unwrap();
        assert_eq!(spec.name, "short-task,mine,set:SIS_UTIL=0");
        assert_eq!(
            (spec.directory, spec.built_in.as_str()),
            (Some("../d"), "short-task,set:SIS_UTIL=0")
        );
        let alone = Spec::parse("./mine").unwrap();
        assert_eq!((alone.name.as_str(), alone.built_in.as_str()), ("./mine", "baseline"));
    }

    #[test]
    fn names_are_of_their_own() {
        let problem = |spec| Spec::parse(spec).unwrap_err().to_string();
        assert!(problem("short-task=./a").contains("that name is built in"));
        assert!(problem("a b=./a").contains("expected a name"));
        assert!(problem("./a,./b").contains("two directories"));
    }
}
