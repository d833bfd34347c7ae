//! Whom files have to belong to before they are compiled for root, or loaded.
//!
//! What root compiles and loads must not be anybody's to change: the directory, the headers in it, and
//! every directory above it belong to root or to who has called sudo, and no other may write to them.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::OwnError;

/// Group and others may write.
const WRITABLE: u32 = 0o022;
/// Only the owner of a file may move it: /tmp.
const STICKY: u32 = 0o1000;

/// Refuses a tree that somebody else could change, where we are root.
pub fn check(directory: &Path) -> Result<(), OwnError> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let trusted = [Some(0), invoking_user()];
    let io = |path: &Path| {
        let path = path.to_owned();
        move |error| OwnError::Io { path, error }
    };
    let directory = directory.canonicalize().map_err(io(directory))?;
    for above in directory.ancestors().skip(1) {
        let found = fs::metadata(above).map_err(io(above))?;
        if found.mode() & STICKY == 0 {
            check_one(above, &found, &trusted)?;
        }
    }
    check_one(&directory, &fs::metadata(&directory).map_err(io(&directory))?, &trusted)?;
    for entry in fs::read_dir(&directory).map_err(io(&directory))? {
        let path = entry.map_err(io(&directory))?.path();
        check_one(&path, &fs::metadata(&path).map_err(io(&path))?, &trusted)?;
    }
    Ok(())
}

/// Who has called sudo.
fn invoking_user() -> Option<u32> {
    std::env::var("SUDO_UID").ok()?.parse().ok()
}

fn check_one(path: &Path, found: &Metadata, trusted: &[Option<u32>]) -> Result<(), OwnError> {
    let refuse = |problem: String| {
        Err(OwnError::Permissions {
            path: path.to_owned(),
            problem: format!("{problem}; root compiles only what nobody else can change"),
        })
    };
    if !trusted.contains(&Some(found.uid())) {
        return refuse(format!("belongs to user {}", found.uid()));
    }
    match found.mode() & WRITABLE {
        0 => Ok(()),
        _ => refuse(format!("others may write to it (mode {:03o})", found.mode() & 0o777)),
    }
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
    let io = |error| OwnError::Io { path: path.clone(), error };
    std::os::unix::fs::DirBuilderExt::mode(fs::DirBuilder::new().recursive(true), 0o700)
        .create(&path)
        .map_err(io)?;
    let found = fs::metadata(&path).map_err(io)?;
    if found.uid() == geteuid().as_raw() && found.mode() & WRITABLE == 0 {
        return Ok(path);
    }
    let problem = "has to be ours, and nobody else's to write to, for compiled policies to be kept \
                   there; name another place with $XDG_CACHE_HOME";
    Err(OwnError::Permissions { path, problem: problem.into() })
}
