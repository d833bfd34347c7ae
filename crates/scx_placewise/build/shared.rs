//! Translates what BPF programs and Rust both say from the C where it stands: the programs of the
//! policy's entry points, structs that both sides read and write, and the list of figures.

use std::fs;
use std::path::Path;

#[allow(dead_code)] // what only the native build needs
#[path = "../../placewise-policy/build/entry_points.rs"]
mod entry_points;
#[allow(dead_code)]
#[path = "../../placewise-policy/build/translate.rs"]
mod translate;

/// What declares something that the loader, or a test, reads or writes.
const SHARING: &[&str] = &[
    "src/policy.bpf.c",
    "src/bpf/kernel.h",
    "src/bpf/shadow.h",
    "src/bpf/count.h",
    "src/bpf/exit.h",
    "src/bpf/task.h",
];

/// Of these.
const SHARED: &[&str] = &[
    "NR_WAKEUPS",
    "wakeup_to_decide",
    "memory",
    "call",
    "sched_ext_ops",
    "scratch",
    "queue",
    "entity",
    "GROUP_WORDS",
    "shadow",
    "placed_kind",
    "exit_record",
    "hint_entry",
];

/// Values of maps are copied as bytes, and wakeups are compared.
fn derived(name: &str) -> &'static str {
    match name {
        "hint_entry" => "Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout",
        "wakeup_to_decide" => "Clone, Copy, Debug, PartialEq",
        _ => "Clone, Copy, Debug",
    }
}

pub fn translate(policy: &Path, out: &Path) {
    let entry_points = entry_points::parse(&read(&policy.join("entry_points.h")));
    let distances = translate::parse(&read(&policy.join("distance.h")));
    let figures = read(Path::new("src/bpf/figures.h"));
    let sources: String = SHARING.iter().map(|source| read(Path::new(source))).collect();
    let shared = translate::parse_some(&sources, |name| SHARED.contains(&name));
    for (name, text) in [
        ("bpf_entry_points.h", entry_points::to_bpf(&entry_points)),
        ("figures.rs", figures_macro(&distances, &figures)),
        ("shared.rs", translate::to_rust(&shared, derived)),
        ("rust_layout.rs", translate::to_rust_layout_table(&shared)),
    ] {
        fs::write(out.join(name), text).expect("OUT_DIR is writable");
    }
}

/// A macro that hands the figures to another one, those by distance first.
fn figures_macro(distances: &[translate::Item], figures: &str) -> String {
    let by_distance = translate::meanings(distances, "distance")
        .into_iter()
        .map(|(name, help)| format!("PLACED({}, share, {help:?})", name.to_lowercase()));
    let listed = figures
        .lines()
        .filter(|line| ["PLACED(", "BALANCED("].iter().any(|kind| line.starts_with(kind)));
    let list: Vec<String> = by_distance.chain(listed.map(str::to_string)).collect();
    format!(
        "macro_rules! for_each_figure {{\n    ($expand:ident) => {{ $expand! {{\n{}\n}} }};\n}}\n",
        list.join("\n")
    )
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
