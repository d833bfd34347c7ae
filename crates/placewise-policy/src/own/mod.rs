//! Policies of somebody's own: a directory with the headers of `policy/`, changed, compiled by the
//! compiler that is here and decided by beside what is built in.
//!
//! [`HEADERS`] is what to start from; [`compiler`] makes a library of a directory, [`library`] loads
//! it; [`permissions`] says whom a directory has to belong to before root compiles what is in it, and
//! [`Spec`] how the command line names one.
//!
//! What is compiled is the user's code, and is trusted as that: it may loop or crash, so that whoever
//! runs it should be another process than whoever reports it.

mod compiler;
mod library;
pub mod permissions;
mod spec;

pub use compiler::{check_tree, compile};
pub use library::{NOWHERE, WatchSlot, layout_assertions, load};
pub use spec::{Spec, name, names_directory};

use std::path::PathBuf;

/// The headers of `policy/`, by name.
pub const HEADERS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/tree.rs"));

/// A library, compiled, that holds the code of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub path: PathBuf,
    /// What it is compiled of, and by what, in a number.
    pub identity: u64,
}

/// Why there is no policy in a directory.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    #[error("{0}")]
    Spec(String),
    #[error(
        "{}: has no {header}; `placewise policy eject DIR` writes a policy to start from",
        .directory.display()
    )]
    NoPolicy { directory: PathBuf, header: &'static str },
    #[error("no C compiler is here to compile a policy: tried {tried}; install gcc or clang")]
    NoCompiler { tried: String },
    /// `messages` are all that the compiler said.
    #[error("{}: {compiler} does not compile it: {}", .directory.display(), first_error(.messages))]
    DoesNotCompile { directory: PathBuf, compiler: String, messages: String },
    #[error(
        "{}: the layout differs: {member} is {theirs}, expected {ours} as in this build: structs and enums have to stay \
         as `placewise policy eject` of the same version writes them",
        .directory.display()
    )]
    Layout { directory: PathBuf, member: &'static str, ours: usize, theirs: usize },
    #[error("{}: cannot be loaded: {problem}", .path.display())]
    Library { path: PathBuf, problem: String },
    #[error("{}: {problem}", .path.display())]
    Permissions { path: PathBuf, problem: String },
    #[error("{}: {error}", .path.display())]
    Io { path: PathBuf, error: std::io::Error },
}

/// The line of a compiler's messages that says first what is wrong.
fn first_error(messages: &str) -> &str {
    let says = |line: &&str| line.contains("error: ");
    messages.lines().find(says).or(messages.lines().next()).unwrap_or("it says nothing")
}
