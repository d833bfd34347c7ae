//! Somebody's own policy as a scheduler: compiled for BPF by the clang that is here, from a directory
//! that is root's to trust.
//!
//! Nothing is kept: what root loads is compiled each time, in a directory of its own. No shell is
//! involved.

use std::fs;
use std::io;
use std::path::Path;

use placewise_policy::own::{OwnError, check_tree, layout_assertions};

use crate::clang;

/// The scheduler without the policy, and libbpf's headers, by name.
const SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// The scheduler, and what holds the policy's structs to those that the loader writes.
const MAIN: &str = "#include \"scheduler/main.bpf.c\"\n#include \"layout.h\"\n";

/// The object of the scheduler with the policy in `directory`.
pub fn compile(directory: &Path) -> Result<Vec<u8>, OwnError> {
    check_tree(directory)?;
    let compiler =
        clang::find().ok_or_else(|| OwnError::NoCompiler { tried: clang::COMPILERS.join(", ") })?;
    let place = tempfile::tempdir().map_err(failed("a temporary directory"))?;
    let assertions = layout_assertions();
    let own = [("main.bpf.c", MAIN), ("layout.h", &assertions)];
    for (name, text) in SOURCES.iter().chain(&own) {
        write(&place.path().join(name), text).map_err(failed(name))?;
    }
    let (source, object) = (place.path().join("main.bpf.c"), place.path().join("main.bpf.o"));
    let mut command = clang::command(compiler, &[directory, place.path()], &source, &object);
    // A struct that has grown moves all its fields.
    command.env("LC_ALL", "C").args(["-Wno-unused-parameter", "-ferror-limit=5"]);
    let output = command.output().map_err(failed(compiler))?;
    if !output.status.success() {
        return Err(OwnError::DoesNotCompile {
            directory: directory.to_owned(),
            compiler: compiler.to_owned(),
            messages: String::from_utf8_lossy(&output.stderr).into_owned(),
        });
    }
    fs::read(&object).map_err(failed("the object"))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(path.parent().expect("it is in the directory"))?;
    fs::write(path, text)
}

fn failed(what: &str) -> impl Fn(io::Error) -> OwnError {
    move |error| OwnError::Io { path: what.into(), error }
}

#[cfg(all(test, bpf_object))]
mod tests {
    use super::*;
    use placewise_policy::own::HEADERS;

    fn ejected() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in HEADERS {
            write(&directory.path().join(name), text).unwrap();
        }
        directory
    }

    /// Of the same instructions; what tells of sources names other files.
    #[test]
    fn an_unchanged_policy_is_the_built_in_scheduler() {
        let directory = ejected();
        let own = compile(directory.path()).unwrap();
        let built_in = crate::object::built().unwrap().scheduler;
        let code = |object: &[u8]| {
            let object = crate::object::open(object).unwrap();
            let code = |program: libbpf_rs::OpenProgram<'_>| {
                (program.name().to_owned(), program.insns().to_vec().len())
            };
            object.progs().map(code).collect::<Vec<_>>()
        };
        assert_eq!(code(&own), code(built_in));
    }

    #[test]
    fn a_struct_that_has_grown_is_refused() {
        let directory = ejected();
        let path = directory.path().join("state.h");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("struct task {", "struct task {\n\tu64 mine;")).unwrap();
        let error = compile(directory.path()).unwrap_err().to_string();
        assert!(error.contains("the layout differs: task"), "{error}");
    }
}
