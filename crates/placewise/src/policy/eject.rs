//! `placewise policy eject`: the headers of the policy as they are built in, with what to know of them.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use anyhow::Context;
use placewise_policy::own::HEADERS;

use crate::input::InputError;

const README: &str = include_str!("eject/README.md");

/// All of it appears at once, or nothing.
pub fn run(directory: &Path) -> anyhow::Result<()> {
    refuse_what_is_there(directory)?;
    let failed = || format!("cannot write to {}", directory.display());
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    fs::create_dir_all(parent).with_context(failed)?;
    let written = tempfile::tempdir_in(parent).with_context(failed)?;
    for (name, text) in HEADERS.iter().chain(&[("README.md", README)]) {
        fs::write(written.path().join(name), text).with_context(failed)?;
    }
    open_to_others(written.path()).with_context(failed)?;
    // An empty directory is replaced.
    fs::rename(written.path(), directory).with_context(failed)?;
    let (directory, nr_headers) = (directory.display(), HEADERS.len());
    writeln!(io::stdout(), "wrote {nr_headers} headers and README.md to {directory}")?;
    Ok(())
}

fn refuse_what_is_there(directory: &Path) -> anyhow::Result<()> {
    let refuse = |problem: &str| {
        Err(InputError(format!("{}: {problem}; name a new directory", directory.display())).into())
    };
    match fs::read_dir(directory).map(|entries| entries.count()) {
        Ok(0) => Ok(()),
        Ok(_) => refuse("is not empty"),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => refuse("is a file"),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", directory.display())),
    }
}

/// As any new directory: a temporary one is its owner's alone.
fn open_to_others(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let umask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(umask);
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777 & !umask.as_raw_mode()))
}
