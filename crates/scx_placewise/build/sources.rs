//! What the scheduler is compiled of, but for the policy, for when somebody brings one: it goes into
//! the crate.

use std::fs;
use std::path::Path;

/// Of libbpf, with what these include.
const LIBBPF: [&str; 4] =
    ["bpf/bpf_core_read.h", "bpf/bpf_helpers.h", "bpf/bpf_helper_defs.h", "bpf/bpf_tracing.h"];

/// Writes a list of names and texts to `sources.rs`.
pub fn embed(manifest: &Path, libbpf: &Path, out: &Path) {
    let directory = manifest.join("src/bpf");
    let entries = fs::read_dir(&directory).expect("src/bpf is there");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("it is readable").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    let ours = names.iter().map(|name| (format!("scheduler/{name}"), directory.join(name)));
    let theirs = LIBBPF.into_iter().map(|name| (name.to_owned(), libbpf.join(name)));
    let list: String = ours
        .chain(theirs)
        .map(|(name, path)| format!("    ({name:?}, include_str!({path:?})),\n"))
        .collect();
    fs::write(out.join("sources.rs"), format!("&[\n{list}]\n")).expect("OUT_DIR is writable");
}
