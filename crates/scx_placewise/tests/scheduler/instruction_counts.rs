//! The verifier's work stays in bounds: no entry point takes more than a tenth
//! more instructions to verify than `instruction-counts.txt` says. Verifiers
//! differ, so this is only asked of the kernel that the file names.
//!
//! After a change that is worth it, `UPDATE_INSTRUCTION_COUNTS=1 cargo test -p
//! scx_placewise --test scheduler instruction_counts` writes the file anew.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use placewise_vm::instruction_counts::InstructionCounts;
use scx_placewise::{KernelPolicy, LoadError};

fn kernel_series() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("procfs is mounted");
    release.split('.').take(2).collect::<Vec<_>>().join(".")
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
    let count = |name: &str| (name.to_string(), kernel.verified_instructions(name).into());
    let counts = kernel.entry_points().map(count).collect();
    let counts = InstructionCounts { kernel: kernel_series(), counts };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("instruction-counts.txt");
    let recorded = counts.recorded(&path).expect("the counts were recorded");
    if recorded.kernel != counts.kernel {
        return skipped("they were recorded on another kernel");
    }
    let shortcomings = counts.shortcomings(&recorded);
    assert!(shortcomings.is_empty(), "{}", shortcomings.join("\n"));
}
