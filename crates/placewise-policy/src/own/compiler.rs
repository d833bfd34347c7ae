//! Makes a library of a directory of headers, as the native build makes one of `policy/`.
//!
//! What has been compiled is kept by what it was compiled of: the text after preprocessing, which has
//! all that was included, the compiler, and its flags. So a tree that has not changed, or has changed
//! back, is not compiled again. No shell is involved.

use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

use super::error::OwnError;
use super::permissions;

/// What stands around the headers: entry points with C linkage, the layout, a watch.
const SOURCE: &str = include_str!(concat!(env!("OUT_DIR"), "/own.c"));

/// The headers that it includes.
const NEEDED: [&str; 4] = ["place.h", "runqueue.h", "nohz.h", "distance.h"];

const COMPILERS: [&str; 3] = ["cc", "gcc", "clang"];

/// As those of the native build, and `-fno-strict-aliasing` as kernels are built, from which such code comes. What the
/// second says is of x86 only.
const FLAGS: &[&str] =
    &["-std=gnu11", "-O2", "-fno-strict-aliasing", "-fPIC", "-Wall", "-Wextra", "-DWATCHED"];
const FLAGS_OF_MACHINE: &[&str] = if cfg!(target_arch = "x86_64") { &["-mpopcnt"] } else { &[] };

/// Libraries kept, the newest.
const KEPT: usize = 64;

/// A library, compiled, that holds the code of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub path: PathBuf,
    /// What it is compiled of, and by what, in a number.
    pub identity: u64,
}

/// Refuses a directory that has no policy in it, or may not be compiled by us.
pub fn check_tree(directory: &Path) -> Result<(), OwnError> {
    match NEEDED.into_iter().find(|header| !directory.join(header).is_file()) {
        Some(header) => Err(OwnError::NoPolicy { directory: directory.to_owned(), header }),
        None => permissions::check(directory),
    }
}

/// A library of the tree, from before if it is the same.
pub fn compile(directory: &Path) -> Result<Object, OwnError> {
    check_tree(directory)?;
    let compiler = Compiler::find()?;
    let cache = permissions::cache()?;
    let includes = [OsStr::new("-I"), directory.as_os_str()];
    let text = compiler.run(
        directory,
        SOURCE.as_bytes(),
        "c",
        &[&["-E".as_ref()], &includes[..]].concat(),
    )?;
    let mut hasher = DefaultHasher::new();
    (&compiler.version, FLAGS, FLAGS_OF_MACHINE, &text).hash(&mut hasher);
    let identity = hasher.finish();
    let path = cache.join(format!("own-{identity:016x}.so"));
    if !path.exists() {
        let in_cache = |error| OwnError::Io { path: cache.clone(), error };
        let library = tempfile::NamedTempFile::new_in(&cache).map_err(in_cache)?;
        let output = [OsStr::new("-shared"), OsStr::new("-o"), library.path().as_os_str()];
        compiler.run(directory, &text, "cpp-output", &output)?;
        library.persist(&path).map_err(|error| in_cache(error.error))?;
        forget_oldest(&cache).map_err(in_cache)?;
    }
    Ok(Object { path, identity })
}

struct Compiler {
    name: &'static str,
    version: Vec<u8>,
}

impl Compiler {
    /// The first that is there.
    fn find() -> Result<Self, OwnError> {
        let version = |name| {
            let output = Command::new(name).arg("--version").stdin(Stdio::null()).output().ok()?;
            output.status.success().then_some(Compiler { name, version: output.stdout })
        };
        COMPILERS
            .into_iter()
            .find_map(version)
            .ok_or_else(|| OwnError::NoCompiler { tried: COMPILERS.join(", ") })
    }

    /// What it writes to standard output, of `source` in that language.
    fn run(
        &self,
        directory: &Path,
        source: &[u8],
        language: &str,
        more: &[&OsStr],
    ) -> Result<Vec<u8>, OwnError> {
        let output = self.output(source, language, more);
        let output = output.map_err(|error| OwnError::Io { path: self.name.into(), error })?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(OwnError::DoesNotCompile {
            directory: directory.to_owned(),
            compiler: self.name.to_owned(),
            messages: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    fn output(&self, source: &[u8], language: &str, more: &[&OsStr]) -> io::Result<Output> {
        let mut stdin = tempfile::tempfile()?;
        stdin.write_all(source)?;
        stdin.rewind()?;
        let mut command = Command::new(self.name);
        // Messages that name files as they were named, and in English.
        command.env("LC_ALL", "C");
        command.args(FLAGS).args(FLAGS_OF_MACHINE).args(["-x", language]).args(more).arg("-");
        command.stdin(stdin).output()
    }
}

/// What was compiled long ago goes.
fn forget_oldest(cache: &Path) -> io::Result<()> {
    let mut libraries: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(cache)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("own-") {
            libraries.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    libraries.sort();
    let surplus = libraries.len().saturating_sub(KEPT);
    // Another process may have been first.
    libraries[..surplus].iter().for_each(|(_, path)| drop(fs::remove_file(path)));
    Ok(())
}
