//! What `CONTRIBUTING.md` asks of all sources, asked of them.

mod documents;
mod structure;

use std::path::{Path, PathBuf};

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/placewise-tidy")
}

fn crates() -> Vec<PathBuf> {
    entries(&workspace().join("crates"))
}

/// What is in a directory, in the order of names.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let read = directory.read_dir().unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let mut entries: Vec<PathBuf> = read.map(|entry| entry.expect("it is read").path()).collect();
    entries.sort();
    entries
}

/// The files below a directory whose names end in `.extension`.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(directory) {
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|of_file| of_file == extension) {
            found.push(path);
        }
    }
    found
}
