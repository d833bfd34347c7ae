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

/// A trace is as wide as its lines are, and a document's tables do not wrap.
#[test]
fn no_text_is_wider_than_100_columns() {
    let study = "reproduce studies/wake-wide_x86_12_pgbench.csv --only-published --sample 1";
    let quick = "compare --machine zen3-2s-nps1 --workload hackbench --runs 2 --policy baseline \
                 --policy short-task --case groups=1;fds=2;warmup_ms=1;window_ms=2";
    for args in [
        "list",
        "help",
        "compare --help",
        "record --help",
        "reproduce --help",
        "machine list",
        "machine show zen3-2s-nps4 --costs",
        "machine show arm64-224",
        "hint intents",
        study,
        quick,
    ] {
        let mut command = Command::new(cargo_bin("placewise"));
        let command = command.args(args.split_whitespace()).current_dir(repository());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= 100, "{args}: {} {widest}", widest.chars().count());
    }
}

fn repository() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../..")
}
