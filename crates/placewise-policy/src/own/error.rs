//! Why there is no policy in a directory, or none that root may take from there.

use std::io;
use std::path::PathBuf;

/// What is wrong with a policy of somebody's own, or keeps it from being compiled.
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
        "{}: the layout differs: {member} is {theirs}, expected {ours} as in this build: structs and \
         enums have to stay as `placewise policy eject` of the same version writes them",
        .directory.display()
    )]
    Layout { directory: PathBuf, member: &'static str, ours: usize, theirs: usize },
    #[error("{}: cannot be loaded: {problem}", .path.display())]
    Library { path: PathBuf, problem: String },
    #[error("{}: {problem}", .path.display())]
    Permissions { path: PathBuf, problem: String },
    #[error("{}: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// The line of a compiler's messages that says first what is wrong.
fn first_error(messages: &str) -> &str {
    let says = |line: &&str| line.contains("error: ");
    messages.lines().find(says).or(messages.lines().next()).unwrap_or("it says nothing")
}
