//! Policies as the command line names them: what is built in, and among it a directory with a policy
//! of somebody's own.
//!
//! `DIR` is anything with a `/` or a `.`; `NAME=DIR` gives it a name for reports. Patches, hints and
//! knobs are joined to it by commas as to anything else. Only what a user has typed may name a
//! directory: what stands in traces and studies is never compiled.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use placewise_policy::own::{self, OwnError};
use placewise_policy::{Code, Policy, patch_names};

use crate::input::InputError;
use crate::supervised;

/// A directory with a policy, and what reports call it.
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
    fn check(&self) -> Result<(), InputError> {
        let Self { name, directory } = self;
        if name == directory {
            return Ok(());
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if name.is_empty() || !name.chars().all(is_plain) {
            let expected = "expected a name of letters, digits, `-` and `_` before the `=`";
            return Err(InputError(format!("--policy {name}={directory}: {expected}")));
        }
        if *name == "baseline" || patch_names().iter().any(|(known, _)| known == name) {
            let problem = "is built in; choose another name";
            return Err(InputError(format!("--policy {name}={directory}: `{name}` {problem}")));
        }
        Ok(())
    }
}

/// Is a directory among what is named?
pub fn has_tree(spec: &str) -> bool {
    spec.split(',').any(|change| Tree::of(change).is_some())
}

/// What reports call it: directories that have names go by these.
pub fn name(spec: &str) -> String {
    let name = |change| Tree::of(change).map_or(change, |tree| tree.name);
    spec.split(',').map(name).collect::<Vec<_>>().join(",")
}

/// `kernel` with the changes that `spec` names, decided by the code in the directory that it names.
pub fn parse(kernel: &str, spec: &str) -> anyhow::Result<Policy> {
    let Some(code) = code(spec)? else { return Ok(Policy::parse(kernel, spec)?) };
    let built_in: Vec<&str> = spec.split(',').filter(|change| Tree::of(change).is_none()).collect();
    let built_in = if built_in.is_empty() { "baseline".to_owned() } else { built_in.join(",") };
    Ok(Policy { name: name(spec), code, ..Policy::parse(kernel, &built_in)? })
}

/// That of the directory that `spec` names, if it names one.
pub fn code(spec: &str) -> anyhow::Result<Option<&'static Code>> {
    let trees: Vec<Tree<'_>> = spec.split(',').filter_map(Tree::of).collect();
    match &trees[..] {
        [] => Ok(None),
        [tree] => {
            tree.check()?;
            load(tree.directory).map(Some)
        }
        [..] => {
            let problem = "names two directories; a policy has the code of one";
            Err(InputError(format!("--policy {spec}: {problem}")).into())
        }
    }
}

/// The code in a directory, which is read once: it may change while we run.
pub fn load(directory: &str) -> anyhow::Result<&'static Code> {
    static LOADED: LazyLock<Mutex<BTreeMap<String, &'static Code>>> = LazyLock::new(Mutex::default);
    let mut loaded = LOADED.lock().expect("nobody panics with it");
    if let Some(code) = loaded.get(directory) {
        return Ok(code);
    }
    let path = Path::new(directory);
    let code = own::compile(path).and_then(|object| {
        let tree = supervised::tree_number(directory);
        own::load(&object, path, supervised::slot_of_thread, tree)
    });
    if let Err(OwnError::DoesNotCompile { messages, .. }) = &code {
        io::stderr().write_all(messages.as_bytes())?;
    }
    let code = code?;
    loaded.insert(directory.to_owned(), code);
    Ok(code)
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
        assert_eq!(name("mine=../d,short-task,set:SIS_UTIL=0"), "mine,short-task,set:SIS_UTIL=0");
    }

    #[test]
    fn names_are_of_their_own() {
        let problem = |spec| parse("v6.0", spec).unwrap_err().to_string();
        assert!(problem("short-task=./a").contains("is built in"));
        assert!(problem("a b=./a").contains("expected a name"));
        assert!(problem("./a,./b").contains("two directories"));
        assert!(problem("no/such/place").contains("has no place.h"));
    }
}
