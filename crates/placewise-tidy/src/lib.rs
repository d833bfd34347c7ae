//! What keeps the sources in order, for the tests beside this: which files of a
//! crate import which, and how long functions are.
//!
//! Both read tokens, not meaning: what a macro expands to is not seen, and a
//! name is followed by its path only.

pub mod function;
pub mod import;
mod source;
