//! The verifier's work stays in bounds: no entry point takes more than a tenth
//! more instructions to verify than `instruction-counts.txt` says. Verifiers
//! differ, so this is only asked of the kernel that the file names.
//!
//! After a change that is worth it, `UPDATE_INSTRUCTION_COUNTS=1 cargo test -p
//! scx_placewise --test instruction_counts` writes the file anew.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::{env, fs};

use scx_placewise::{KernelPolicy, LoadError};

/// The kernel refuses a program above this count.
const KERNEL_LIMIT: u32 = 1_000_000;

fn kernel_release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("procfs is mounted");
    release.split('.').take(2).collect::<Vec<_>>().join(".")
}

fn heading() -> String {
    format!("# Instructions verified by Linux {}\n", kernel_release())
}

fn report(counts: &[(String, u32)]) -> String {
    let mut report = heading();
    for (name, count) in counts {
        writeln!(report, "{count:>8} {name}").expect("strings can be written to");
    }
    report
}

fn parse(recorded: &str) -> Vec<(String, u32)> {
    let lines = recorded.lines().filter(|line| !line.starts_with('#'));
    let fields = lines.filter_map(|line| line.trim().split_once(' '));
    fields.map(|(count, name)| (name.to_string(), count.parse().expect("a count"))).collect()
}

/// Says so even where a passing test's output is swallowed.
fn skipped(reason: &str) {
    let line = format!("SKIPPED: instruction counts: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
}

#[test]
fn no_entry_point_grows_by_more_than_a_tenth() {
    let kernel = match KernelPolicy::load() {
        Ok(kernel) => kernel,
        Err(LoadError::Unavailable(reason)) => {
            return skipped(&reason);
        }
        Err(refused) => panic!("{refused}"),
    };
    let count = |name: &str| (name.to_string(), kernel.verified_instructions(name));
    let counts: Vec<(String, u32)> = kernel.entry_points().map(count).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("instruction-counts.txt");
    if env::var_os("UPDATE_INSTRUCTION_COUNTS").is_some() {
        fs::write(&path, report(&counts)).expect("the file is writable");
    }

    let recorded = fs::read_to_string(&path).expect("the counts were recorded");
    if !recorded.starts_with(&heading()) {
        return skipped("they were recorded on another kernel");
    }
    let recorded = parse(&recorded);
    for (name, count) in counts {
        let known = recorded.iter().find(|(recorded, _)| *recorded == name);
        let Some((_, before)) = known else {
            panic!("{name}: {count} instructions; record it with UPDATE_INSTRUCTION_COUNTS=1");
        };
        let limit = (before + before / 10).min(KERNEL_LIMIT);
        assert!(count <= limit, "{name}: {count} instructions instead of {before}");
    }
}
