//! Builds `src/policy.bpf.c` and the scheduler, if a clang is here that can.
//!
//! Without one the crate builds all the same, and `cfg(bpf_object)` is not set:
//! loading the policy then fails with the reason that stands in
//! `BPF_OBJECT_MISSING`.

#[path = "build/shared.rs"]
mod shared;
#[path = "../placewise/build/version.rs"]
mod version;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Newest first; a plain `clang` may be any version.
const COMPILERS: &[&str] = &["clang-19", "clang"];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(bpf_object)");
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let policy = manifest.join("../../policy");
    for entry in fs::read_dir(&policy).expect("policy/ is beside crates/") {
        println!(
            "cargo::rerun-if-changed={}",
            entry.expect("policy/ is readable").path().display()
        );
    }
    println!("cargo::rerun-if-changed=src/policy.bpf.c");
    println!("cargo::rerun-if-changed=src/bpf");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=../placewise-policy/build");
    println!("cargo::rerun-if-changed=../placewise/build/version.rs");
    version::tell();
    println!("cargo::rerun-if-env-changed=PATH");

    shared::translate(&policy, &out_directory());

    match COMPILERS.iter().find(|compiler| knows_arenas(compiler)) {
        Some(compiler) => {
            compile(compiler, &policy, "src/policy.bpf.c", &[]);
            compile(compiler, &policy, "src/bpf/main.bpf.c", &scheduler_flags());
            println!("cargo::rustc-cfg=bpf_object");
        }
        None => println!(
            "cargo::rustc-env=BPF_OBJECT_MISSING=no clang for BPF arenas when it was built \
             (tried {}; install clang-19)",
            COMPILERS.join(", ")
        ),
    }
}

fn out_directory() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"))
}

/// Arenas need `__BPF_FEATURE_ADDR_SPACE_CAST`, which clang has since version 19.
fn knows_arenas(compiler: &str) -> bool {
    let macros = Command::new(compiler)
        .args(["-target", "bpf", "-mcpu=v4", "-dM", "-E", "-x", "c", "/dev/null"])
        .output();
    macros.is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout).contains("__BPF_FEATURE_ADDR_SPACE_CAST")
    })
}

/// The scheduler takes libbpf's headers, from the crate that builds libbpf; a feature `test-FAULT`
/// is `TEST_FAULT` there.
fn scheduler_flags() -> Vec<String> {
    let headers = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    let mut flags = vec![format!("-I{headers}"), "-Wno-unused-parameter".to_string()];
    flags.extend(env::vars().filter_map(|(name, _)| {
        let fault = name.strip_prefix("CARGO_FEATURE_TEST_")?;
        Some(format!("-DTEST_{fault}"))
    }));
    flags
}

/// Freestanding, or clang would make memset() of some stores to the arena, with
/// an address that BPF cannot use.
fn compile(compiler: &str, policy: &Path, source: &str, flags: &[String]) {
    let out = out_directory();
    let name = Path::new(source).with_extension("o");
    let status = Command::new(compiler)
        .args(["-target", "bpf", "-mcpu=v4", "-O2", "-g", "-std=gnu11", "-ffreestanding"])
        .args(["-Wall", "-Wextra", "-Werror"])
        .arg("-I")
        .arg(policy)
        .arg("-I")
        .arg(&out)
        .args(flags)
        .args(["-c", source, "-o"])
        .arg(out.join(name.file_name().expect("a file")))
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{compiler} cannot build {source}");
}
