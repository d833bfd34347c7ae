//! Builds the C policy natively and translates what it shares with Rust.
//!
//! The headers stay the only place where a struct or an entry point is written
//! down: the `translate` module turns their structs, enums and constants into
//! `repr(C)` Rust, and a C table of offsets that a test compares with what rustc
//! made of it; the `entry_points` module turns prototypes into both sides of a
//! call. The headers themselves, and what C is made of them, go into the crate too,
//! for trees that are compiled later.

#[allow(dead_code)] // programs for BPF are made of the list where those are built
#[path = "build/entry_points.rs"]
mod entry_points;
#[path = "build/translate.rs"]
mod translate;

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Headers that declare state, in dependency order.
const DECLARATIONS: &[&str] = &[
    "cpumask.h",
    "profile.h",
    "state.h",
    "hint.h",
    "place.h",
    "runqueue.h",
    "balance.h",
    "nohz.h",
];

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let policy = manifest.join("../../policy");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));

    for entry in fs::read_dir(&policy).expect("policy/ is beside crates/") {
        let path = entry.expect("policy/ is readable").path();
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-changed=src/native.c");
    println!("cargo::rerun-if-changed=src/watch.h");
    println!("cargo::rerun-if-changed=build");

    let headers: String = DECLARATIONS.iter().map(|name| read(&policy, name)).collect();
    let items = translate::parse(&headers);
    let distances = translate::parse(&read(&policy, "distance.h"));
    let entry_points = entry_points::parse(&read(&policy, "entry_points.h"));
    let (layout, watch) = (translate::to_layout_table(&items), read(&manifest, "src/watch.h"));
    let native_entry_points = entry_points::to_native(&entry_points);
    let own = read(&manifest, "src/native.c")
        .replace("#include \"layout.h\"\n", &layout)
        .replace("#include \"watch.h\"\n", &watch)
        .replace("#include \"native_entry_points.h\"\n", &native_entry_points);
    let watch = translate::parse_some(&watch, |_| true);
    for (name, text) in [
        ("declarations.rs", translate::to_rust(&items, |_| "Clone, Copy, Debug")),
        ("rust_layout.rs", translate::to_rust_layout_table(&items)),
        ("distances.rs", translate::to_enum_macro(&distances, "distance")),
        ("layout.h", layout),
        ("entry_points.rs", entry_points::to_rust(&entry_points)),
        ("native_entry_points.h", native_entry_points),
        ("tree.rs", tree(&policy)),
        ("own.c", own),
        ("watch.rs", translate::to_rust(&watch, |_| "Clone, Copy, Debug")),
    ] {
        fs::write(out.join(name), text).expect("OUT_DIR is writable");
    }

    cc::Build::new()
        .file("src/native.c")
        .include(&policy)
        .include(&out)
        .flag("-std=gnu11")
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Werror")
        .opt_level(2)
        // With line tables too: it would be a register less.
        .force_frame_pointer(false)
        // Of x86 only: CPUs of machines worth simulating on have counted bits since 2008.
        .flag_if_supported("-mpopcnt")
        // Else gcc calls what brings averages up to date, which is done wherever a task comes or goes.
        .flag_if_supported("-finline-limit=1000")
        .flag_if_supported("--param=inline-unit-growth=300")
        .compile("placewise_policy");
}

/// The headers with their names, in the order of these.
fn tree(policy: &Path) -> String {
    let entries = fs::read_dir(policy).expect("policy/ is beside crates/");
    let mut headers: Vec<PathBuf> =
        entries.map(|entry| entry.expect("policy/ is readable").path()).collect();
    headers.sort();
    let header = |path: &PathBuf| {
        let name = path.file_name().expect("a file").to_str().expect("UTF-8");
        format!("    ({name:?}, include_str!({path:?})),\n")
    };
    let headers: String = headers.iter().map(header).collect();
    format!("&[\n{headers}]\n")
}

fn read(directory: &Path, name: &str) -> String {
    let path = directory.join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
