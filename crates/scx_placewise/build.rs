//! Builds `src/policy.bpf.c` and the scheduler, if a clang is here that can.
//!
//! Without one the crate builds all the same, and `cfg(bpf_object)` is not set:
//! loading the policy then fails with the reason that stands in
//! `BPF_OBJECT_MISSING`.

#[path = "src/clang.rs"]
mod clang;
#[path = "build/shared.rs"]
mod shared;
#[path = "build/sources.rs"]
mod sources;
#[path = "../placewise/build/version.rs"]
mod version;

use std::path::{Path, PathBuf};
use std::{env, fs};

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
    println!("cargo::rerun-if-changed=src/clang.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=../placewise-policy/build");
    println!("cargo::rerun-if-changed=../placewise/build/version.rs");
    version::tell();
    println!("cargo::rerun-if-env-changed=PATH");

    shared::translate(&policy, &out_directory());

    sources::embed(&manifest, &libbpf_headers(), &out_directory());

    match clang::find() {
        Some(compiler) => {
            compile(compiler, &policy, "src/policy.bpf.c", &[]);
            compile(compiler, &policy, "src/bpf/main.bpf.c", &scheduler_flags());
            println!("cargo::rustc-cfg=bpf_object");
        }
        None => println!(
            "cargo::rustc-env=BPF_OBJECT_MISSING=no clang for BPF arenas when it was built \
             (tried {}; install clang-19)",
            clang::COMPILERS.join(", ")
        ),
    }
}

fn out_directory() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"))
}

/// From the crate that builds libbpf.
fn libbpf_headers() -> PathBuf {
    env::var_os("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are").into()
}

/// The scheduler takes libbpf's headers; a feature `test-FAULT` is `TEST_FAULT` there.
fn scheduler_flags() -> Vec<String> {
    let mut flags = vec!["-Wno-unused-parameter".to_string()];
    flags.extend(env::vars().filter_map(|(name, _)| {
        let fault = name.strip_prefix("CARGO_FEATURE_TEST_")?;
        Some(format!("-DTEST_{fault}"))
    }));
    flags
}

fn compile(compiler: &str, policy: &Path, source: &str, flags: &[String]) {
    let (out, source) = (out_directory(), Path::new(source));
    let name = source.with_extension("o");
    let object = out.join(name.file_name().expect("a file"));
    let includes = [policy, &out, &libbpf_headers()];
    let mut command = clang::command(compiler, &includes, source, &object);
    let status = command.arg("-Werror").args(flags).status();
    let source = source.display();
    assert!(status.is_ok_and(|status| status.success()), "{compiler} cannot build {source}");
}
