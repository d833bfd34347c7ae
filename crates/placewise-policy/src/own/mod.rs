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
mod error;
mod library;
pub mod permissions;
mod spec;

pub use compiler::{Object, check_tree, compile};
pub use error::OwnError;
pub use library::{NOWHERE, WatchSlot, layout_assertions, load};
pub use spec::{Spec, name, names_directory};

/// The headers of `policy/`, by name.
pub const HEADERS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/tree.rs"));
