//! What is printed arrives, or else the exit status says so.

use std::fs::File;
use std::process::{Command, Output, Stdio};

use assert_cmd::cargo::cargo_bin;

/// Everything that prints in a way of its own.
const PRINTING: [&str; 5] = [
    "list",
    "list --format json",
    "--help",
    "--version",
    "compare --machine uma-8 --workload schedpipe --case window_ms=1 --runs 1",
];

fn placewise(args: &str, stdout: impl Into<Stdio>) -> Output {
    let mut command = Command::new(cargo_bin("placewise"));
    let command = command.args(args.split(' ')).stdout(stdout).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

#[track_caller]
fn assert_fails(args: &str, output: &Output, says: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{args}: {stderr}");
    assert!(stderr.starts_with("placewise: ") && stderr.contains(says), "{args}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{args}: {stderr}");
}

#[test]
fn a_closed_standard_output_is_a_failure() {
    for args in PRINTING {
        let closed = format!("exec \"$0\" {args} >&-");
        let program = cargo_bin("placewise");
        let output = Command::new("sh").args(["-c", &closed]).arg(program).output().unwrap();
        assert_fails(args, &output, "standard output is closed");
    }
}

#[test]
fn a_standard_output_for_reading_is_a_failure() {
    for args in PRINTING {
        let output = placewise(args, File::open("/dev/null").unwrap());
        assert_fails(args, &output, "not open for writing");
    }
}

#[test]
fn a_full_disk_is_a_failure() {
    for args in PRINTING {
        let output = placewise(args, File::create("/dev/full").unwrap());
        assert_fails(args, &output, "No space left on device");
    }
}

/// Others open /dev/null for reading too, as Rust's runtime does where nothing is open.
#[test]
fn what_is_thrown_away_on_purpose_is_no_failure() {
    let both_ways = File::options().read(true).write(true).open("/dev/null").unwrap();
    assert!(placewise("list", both_ways).status.success());
    assert!(placewise("list", Stdio::null()).status.success());
}
