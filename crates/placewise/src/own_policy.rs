//! Policies of somebody's own, as the command line names them: compiled and loaded.
//!
//! Only what a user has typed may name a directory: what stands in traces and studies is never compiled.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use placewise_policy::own::{self, OwnError, Spec};
use placewise_policy::{Code, Policy, PolicyError};

use crate::input::InputError;
use crate::supervised;

/// `kernel` with the changes that `spec` names, decided by the code in the directory that it names.
pub fn parse(kernel: &str, spec: &str) -> anyhow::Result<Policy> {
    let spec = Spec::parse(spec)?;
    let policy = spec.policy(kernel).map_err(|error| match error {
        PolicyError::UnknownPatch { name } if Path::new(&name).is_dir() => {
            InputError(format!("policy '{name}' is unknown; the directory is `./{name}`")).into()
        }
        error => anyhow::Error::new(error),
    })?;
    match spec.directory {
        Some(directory) => Ok(Policy { code: load(directory)?, ..policy }),
        None => Ok(policy),
    }
}

/// What reports call it; a directory that it names is loaded by then.
pub fn prepare(spec: &str) -> anyhow::Result<String> {
    let spec = Spec::parse(spec)?;
    spec.directory.map(load).transpose()?;
    Ok(spec.name)
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
