//! Whom files have to belong to before they are compiled for root, or loaded.
//!
//! What root compiles and loads must not be anybody's to change: the directory, all that is in it, and
//! every directory above belong to root or to who has called sudo, and no other may write to them. The
//! cache is ours alone, whoever we are.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::error::OwnError;

/// Group and others may write.
const WRITABLE: u32 = 0o022;
/// Only the owner of a file may move it: /tmp.
const STICKY: u32 = 0o1000;

/// Refuses a tree that somebody else could change, where we are root.
pub fn check(directory: &Path) -> Result<(), OwnError> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let directory = directory.canonicalize().map_err(failed(directory))?;
    check_above(&directory)?;
    check_all(&directory)
}

/// Whoever may write to a directory may put another in the place of what is in it.
fn check_above(directory: &Path) -> Result<(), OwnError> {
    let above = directory.ancestors().skip(1);
    above.filter(|above| !is_sticky(above)).try_for_each(check_one)
}

fn is_sticky(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|found| found.mode() & STICKY != 0)
}

fn check_all(directory: &Path) -> Result<(), OwnError> {
    check_one(directory)?;
    for entry in fs::read_dir(directory).map_err(failed(directory))? {
        let path = entry.map_err(failed(directory))?.path();
        if path.is_dir() && !path.is_symlink() { check_all(&path)? } else { check_one(&path)? }
    }
    Ok(())
}

fn check_one(path: &Path) -> Result<(), OwnError> {
    let found = fs::symlink_metadata(path).map_err(failed(path))?;
    let problem = if found.is_symlink() {
        "is a symbolic link".to_owned()
    } else if ![Some(0), invoking_user()].contains(&Some(found.uid())) {
        format!("belongs to user {}", found.uid())
    } else if found.mode() & WRITABLE != 0 {
        format!("others may write to it (mode {:03o})", found.mode() & 0o777)
    } else {
        return Ok(());
    };
    let problem = format!("{problem}; root compiles only what nobody else can change");
    Err(OwnError::Permissions { path: path.to_owned(), problem })
}

fn failed(path: &Path) -> impl Fn(io::Error) -> OwnError + use<'_> {
    move |error| OwnError::Io { path: path.to_owned(), error }
}

/// Who has called sudo.
fn invoking_user() -> Option<u32> {
    std::env::var("SUDO_UID").ok()?.parse().ok()
}

/// Our own directory for what is compiled, which is made if it is not there.
pub fn cache() -> Result<PathBuf, OwnError> {
    let from_env =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = from_env("XDG_CACHE_HOME").or_else(|| Some(from_env("HOME")?.join(".cache")));
    let path =
        caches.map(|caches| caches.join("placewise")).ok_or_else(|| OwnError::Permissions {
            path: "$XDG_CACHE_HOME".into(),
            problem: "is not set, nor is $HOME; set it to where compiled policies may be kept"
                .into(),
        })?;
    DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(failed(&path))?;
    if geteuid().is_root() {
        check_above(&path.canonicalize().map_err(failed(&path))?)?;
    }
    let found = fs::metadata(&path).map_err(failed(&path))?;
    if found.uid() == geteuid().as_raw() && found.mode() & WRITABLE == 0 {
        return Ok(path);
    }
    let problem = "has to be ours, and nobody else's to write to, for compiled policies to be kept \
                   there; name another place with $XDG_CACHE_HOME";
    Err(OwnError::Permissions { path, problem: problem.into() })
}
