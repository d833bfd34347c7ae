//! `placewise compare --environment`: the examples run as they say, and what they set comes into
//! force.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn examples() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("examples/environment")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The command in the comment at the head of an example.
fn command(example: &Path) -> Vec<String> {
    let text = fs::read_to_string(example).unwrap();
    let comment = text.lines().map_while(|line| line.strip_prefix('#'));
    let words = comment.flat_map(str::split_whitespace).skip_while(|word| *word != "placewise");
    words.skip(1).filter(|word| *word != "\\").map(String::from).collect()
}

fn run(args: &[String]) -> Value {
    let output = Command::cargo_bin("placewise")
        .unwrap()
        .current_dir(root())
        .args(args)
        .args(["--format", "json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn stat(result: &Value, metric: &str) -> f64 {
    let rows = result["stats"].as_array().unwrap();
    let row = rows.iter().find(|row| row["metric"] == metric);
    row.unwrap_or_else(|| panic!("no {metric}"))["mean"].as_f64().unwrap()
}

#[test]
fn examples_run_as_they_say() {
    let results: Vec<Value> = examples().iter().map(|example| run(&command(example))).collect();
    let [quota, cpuset, hotplug, hierarchy] = &results[..] else { panic!("four examples") };
    assert!(stat(quota, "background_nr_throttled") > 15.0, "in each of 20 periods");
    assert!(stat(quota, "idle_share") > 50.0, "two CPUs and the periodic tasks are busy");
    assert!(stat(cpuset, "migrations_displaced") >= 2.0);
    assert!(stat(hotplug, "migrations_displaced") >= 4.0);
    assert!(stat(hierarchy, "scavenger_nr_throttled") > stat(hierarchy, "batch_nr_throttled"));
}

/// Fails if `session` were looked for among files, or were the root cgroup.
#[test]
fn a_session_is_an_environment() {
    let args = "compare --machine zen3-2s-nps1 --kernel v6.4 --workload netperf --quick --runs 1 \
        --case threads=200 --policy shared-runq --environment none --environment session";
    let result = run(&args.split_whitespace().map(String::from).collect::<Vec<_>>());
    let rows = result["rows"].as_array().unwrap();
    let rate = |environment| {
        let row = rows.iter().find(|row| row["environment"] == environment).unwrap();
        row["mean"].as_f64().unwrap()
    };
    assert!(rate("session") < 0.8 * rate("none"), "{} of {}", rate("session"), rate("none"));
}

#[test]
fn the_documentation_lists_the_examples() {
    let text = fs::read_to_string(root().join("docs/environment.md")).unwrap();
    for example in examples() {
        let name = example.file_name().unwrap().to_str().unwrap();
        assert!(text.contains(&format!("[{name}](../examples/environment/{name})")), "{name}");
    }
}

/// The trace of a machine whose CPUs come and go can be audited like any other.
#[test]
fn the_trace_of_a_changing_machine_can_be_audited() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace.txt");
    for decisions in [None, Some("--trace-decisions")] {
        let mut args = command(&examples()[2]);
        args.extend(["--trace".to_owned(), trace.to_str().unwrap().to_owned()]);
        args.extend(decisions.map(String::from));
        run(&args);
        let output = Command::cargo_bin("placewise")
            .unwrap()
            .args(["audit", trace.to_str().unwrap(), "--machine", "uma-8"])
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{decisions:?}: {stderr}");
    }
}
