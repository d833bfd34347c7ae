//! Builds the C policy natively and translates its data structures to Rust.
//!
//! The headers stay the only place where a struct is written down: the
//! `translate` module turns their structs, enums and constants into `repr(C)`
//! Rust, and a C table of offsets that a test compares with what rustc made of it.

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
    println!("cargo::rerun-if-changed=build/translate.rs");

    let headers: String = DECLARATIONS.iter().filter_map(|name| read(&policy, name)).collect();
    let items = translate::parse(&headers);
    fs::write(out.join("declarations.rs"), translate::to_rust(&items))
        .expect("OUT_DIR is writable");
    fs::write(out.join("layout.h"), translate::to_layout_table(&items))
        .expect("OUT_DIR is writable");

    cc::Build::new()
        .file("src/native.c")
        .include(&policy)
        .include(&out)
        .flag("-std=gnu11")
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Werror")
        .opt_level(2)
        // Of x86 only: CPUs of machines worth simulating on have counted bits since 2008.
        .flag_if_supported("-mpopcnt")
        .compile("placewise_policy");
}

fn read(policy: &Path, name: &str) -> Option<String> {
    fs::read_to_string(policy.join(name)).ok()
}
