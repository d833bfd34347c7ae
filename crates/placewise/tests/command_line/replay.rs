//! `placewise replay` and replays in `placewise compare` from outside.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

fn placewise(args: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::cargo_bin("placewise").unwrap().args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// The trace of a simulated run, which names its machine and kernel.
fn recorded(directory: &Path) -> String {
    let trace = directory.join("trace.txt").display().to_string();
    let case = "--case=clients=3;window_ms=30;warmup_ms=5";
    let run = ["compare", "--machine=x86-12", "--kernel=v6.0", "--workload=pgbench", case];
    let (_, error, status) = placewise(&[&run[..], &["--runs=1", "--trace", &trace]].concat());
    assert_eq!(status, Some(0), "{error}");
    trace
}

#[test]
fn a_trace_and_the_file_made_of_it_are_the_same_workload() {
    let directory = tempfile::tempdir().unwrap();
    let trace = recorded(directory.path());
    let file = directory.path().join("replay.json").display().to_string();
    let (table, error, status) = placewise(&["replay", &trace, "-o", &file]);
    assert_eq!((error.as_str(), status), ("", Some(0)));
    assert!(table.contains("latency p99, us") && table.contains("postgres"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    let rows = |workload: &str| {
        let machines = ["--machine=x86-12", "--machine=icx-2s", "--kernel=v6.0"];
        let run = ["compare", "--workload", workload, "--runs=1", "--format=json"];
        let (json, error, status) = placewise(&[&run[..], &machines].concat());
        assert_eq!(status, Some(0), "{error}");
        serde_json::from_str::<Value>(&json).unwrap()["rows"].clone()
    };
    let of_trace = rows(&trace);
    assert!(of_trace.to_string().contains("postgres: throughput"), "{of_trace}");
    assert_eq!(of_trace, rows(&file));
}

#[test]
fn the_same_trace_gives_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let trace = recorded(directory.path());
    let json = || placewise(&["replay", &trace, "--format=json"]);
    assert_eq!(json(), json());
}

#[test]
fn a_replay_that_is_not_like_its_trace_is_told_of_in_a_comparison() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/vm16-k73-dispatch.txt.zst");
    let run = ["compare", "--machine=x86-12", "--kernel=v6.0", "--runs=1", "--workload", trace];
    let (_, error, status) = placewise(&run);
    assert_eq!(status, Some(0), "{error}");
    assert!(error.contains("do not trust what follows") && error.lines().count() == 1, "{error}");
}

#[test]
fn bad_input_is_one_line_and_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let line = "a-1 [000] d..2. 1.000000: sched_waking: comm=b pid=2 prio=120 target_cpu=001\n";
    fs::write(path("bare.txt"), line).unwrap();
    fs::write(path("bad.json"), "{\"placewise_replay\":1,\"tasks\":[]}").unwrap();
    let output = path("out.json");
    for (args, expected) in [
        (vec!["replay", "-"], "name a file"),
        (vec!["replay", "/nonexistent.txt"], "No such file"),
        (vec!["replay", &path("bare.txt"), "-o", &output], "name it with --machine"),
        (vec!["compare", "--machine=uma-8", "--workload", &path("bad.json")], "missing field"),
        (vec!["compare", "--machine=uma-8", "--workload", &path("bare.txt")], "--machine"),
    ] {
        let (_, error, status) = placewise(&args);
        assert_eq!((status, error.lines().count()), (Some(2), 1), "{args:?}: {error}");
        assert!(error.contains(expected), "{args:?}: {error}");
    }
    assert!(!Path::new(&output).exists());
}
