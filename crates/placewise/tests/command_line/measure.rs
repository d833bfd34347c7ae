//! `placewise machine measure` and `check` from outside: the file is a machine of this host's shape,
//! and what is simulated beside the real loads is this host.

use assert_cmd::Command;
use serde_json::Value;

use crate::schemas::assert_value_fits;

fn placewise(words: &[&str]) -> Command {
    let mut command = Command::cargo_bin("placewise").unwrap();
    command.args(words);
    command
}

fn json(words: &[&str]) -> Value {
    let output = placewise(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "progress is for terminals only");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_file_that_measure_writes_is_this_host_and_check_takes_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mine.toml");
    let file = file.to_str().unwrap();
    let measured = json(&["machine", "measure", "--seconds", "2", "--format", "json", "-o", file]);
    assert_value_fits("machine-measure", &measured);
    let shown = json(&["machine", "show", file, "--format", "json"]);
    assert_eq!(shown["costs"], measured["costs"]);
    let host = json(&["machine", "show", "host", "--format", "json"]);
    for part in ["cpus", "node_distances", "node_reclaim_distance", "domains"] {
        assert_eq!(shown[part], host[part], "{part}");
    }
    let source = shown["costs"]["syscall_ns"]["source"].as_str().unwrap();
    assert!(source.starts_with("measured: system call; median"), "{source}");

    let words = ["machine", "check", "--machine", file, "--seconds", "1", "--format", "json"];
    let checked = json(&words);
    assert_value_fits("machine-check", &checked);
    let rows = checked["rows"].as_array().unwrap();
    let anywhere = rows.iter().find(|row| row["load"] == "ping-pong anywhere").unwrap();
    assert!(anywhere["real_on_one_cpu_pct"].is_number(), "{anywhere}");
    assert_eq!(rows.last().unwrap()["load"], "hackbench, 4 groups");
    for row in rows {
        let ratio = row["simulated"].as_f64().unwrap() / row["real"]["median"].as_f64().unwrap();
        assert!((row["ratio"].as_f64().unwrap() / ratio - 1.0).abs() < 1e-6, "{row}");
    }
}

#[test]
fn a_machine_of_other_cpus_is_not_checked() {
    let output = placewise(&["machine", "check", "--machine", "zen3-2s-nps1"]).output().unwrap();
    let problem = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{problem}");
    assert!(problem.contains("--machine zen3-2s-nps1: has CPUs 0-255"), "{problem}");
    assert_eq!(problem.lines().count(), 1);
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let output = placewise(&["machine", "measure", "-o", "/nowhere/at/all.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let problem = String::from_utf8(output.stderr).unwrap();
    assert!(problem.contains("/nowhere/at/all.toml: no such directory"), "{problem}");
}
