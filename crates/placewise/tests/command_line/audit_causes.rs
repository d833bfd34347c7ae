//! Traces of loads that were made to go wrong in one way each: the first line of the audit names it.
//!
//! They are simulated, so nothing else disturbs them, on a machine of two LLCs of eight CPUs; some are
//! recorded as well, from a real kernel: `traces/causes`.

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

const MACHINE: &str = "numa:1 l3:2 core:4 pu:2";

/// What an audit makes of an rt-app workload: its first line, and all figures.
struct Audited {
    first_line: String,
    figures: Value,
}

fn placewise(arguments: &[&str]) -> String {
    let output = Command::cargo_bin("placewise").unwrap().args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn simulate(directory: &Path, tasks: &str, environment: &str) -> String {
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (workload, world, trace) = (path("load.json"), path("world.toml"), path("trace.txt"));
    let text = format!(r#"{{ "global": {{ "duration": 1 }}, "tasks": {{ {tasks} }} }}"#);
    std::fs::write(&workload, text).unwrap();
    std::fs::write(&world, environment).unwrap();
    let what = ["--workload", &workload, "--environment", &world, "--policy", "baseline"];
    let where_to = ["--machine", MACHINE, "--kernel", "v6.12", "--runs", "1", "--trace", &trace];
    placewise(&[&["compare"], &what[..], &where_to].concat());
    trace
}

fn audited(tasks: &str, environment: &str) -> Audited {
    let directory = tempfile::tempdir().unwrap();
    of_trace(&simulate(directory.path(), tasks, environment))
}

fn recorded(name: &str) -> Audited {
    of_trace(&format!("{}/../../traces/causes/{name}.txt.zst", env!("CARGO_MANIFEST_DIR")))
}

fn of_trace(trace: &str) -> Audited {
    let first_line = placewise(&["audit", trace]).lines().next().unwrap().to_owned();
    let json = placewise(&["audit", trace, "--format", "json"]);
    Audited { first_line, figures: serde_json::from_str(&json).unwrap() }
}

#[track_caller]
fn says(audited: &Audited, cause: &str, parts: &[&str]) {
    let finding = &audited.figures["findings"][0];
    assert_eq!(finding["cause"], cause, "{finding}");
    for part in parts {
        assert!(audited.first_line.contains(part), "`{part}` is not in: {}", audited.first_line);
    }
}

const PINNED: &str = r#"
    "encoder": { "cpus": [2], "loop": -1, "run": 4000, "sleep": 4000 },
    "indexer": { "cpus": [2], "loop": -1, "run": 6000, "sleep": 1000 },
    "idler": { "instance": 3, "loop": -1, "run": 500, "sleep": 4500 }"#;

#[test]
fn a_pinned_overload() {
    let audited = audited(PINNED, "");
    let parts = ["indexer waited", "behind encoder on CPU 2", "both are bound to it"];
    says(&audited, "bound", &parts);
    let parts = ["encoder waited", "mostly behind indexer, on CPU 2", "encoder is bound to it"];
    says(&recorded("pinned"), "bound", &parts);
}

/// They never sleep, so no wakeup shows that they refuse other CPUs.
#[test]
fn hogs_that_are_pinned() {
    let hogs = r#"
        "left": { "cpus": [3], "loop": -1, "run": 100000 },
        "right": { "cpus": [3], "loop": -1, "run": 100000 }"#;
    let audited = audited(hogs, "");
    says(&audited, "bound", &["waited 5", "on CPU 3", "both are bound to it"]);
}

#[test]
fn a_real_time_hog() {
    let tasks = r#"
        "audio": { "policy": "SCHED_FIFO", "priority": 50, "cpus": [1], "loop": -1,
                   "run": 8000, "sleep": 2000 },
        "render": { "cpus": [1], "loop": -1, "run": 3000, "sleep": 5000 }"#;
    says(&audited(tasks, ""), "real_time", &["render waited", "behind real-time audio on CPU 1"]);
    says(&recorded("real-time"), "real_time", &["render waited", "behind real-time audio"]);
}

#[test]
fn a_ping_pong_across_llcs() {
    let tasks = r#"
        "ping": { "cpus": [0], "loop": -1, "run": 10, "resume": "pong", "suspend": "ping" },
        "pong": { "cpus": [8], "loop": -1, "suspend": "pong", "run": 10, "resume": "ping" }"#;
    let audited = audited(tasks, "");
    // Which of the two waits longer is chance.
    says(&audited, "across_llcs", &["woke p", "ng across LLCs"]);
    let pair = &audited.figures["bouncing"]["pairs"][0];
    assert_eq!(pair["wakeups"], pair["across_llcs"], "each is in an LLC of its own");
    let parts = ["ping woke pong across LLCs: 1513 of 1513 times"];
    says(&recorded("ping-pong"), "across_llcs", &parts);
}

#[test]
fn a_fork_storm() {
    let tasks = r#"
        "make": { "loop": -1, "fork": "cc", "run": 20, "sleep": 80 },
        "cc": { "instance": 0, "loop": 1, "run": 8000 }"#;
    for audited in [audited(tasks, ""), recorded("overload")] {
        says(&audited, "overload", &["cc waited", "behind cc", "no CPU was idle", "were forked"]);
    }
}

#[test]
fn a_quota() {
    let worker = r#""worker": { "instance": 4, "loop": -1, "run": 3000, "sleep": 1000 }"#;
    let quota = "[[cgroup]]\nname = \"batch\"\ntasks = [\"worker\"]\ncpu.max = \"100000 100000\"\n";
    for audited in [audited(worker, quota), recorded("throttled")] {
        says(&audited, "throttled", &["worker was throttled for", "(cpu.max)"]);
    }
    let free = audited(worker, "");
    assert_eq!(free.figures["findings"], serde_json::json!([]), "it is the quota");
}

#[test]
fn a_cpuset_beside_idle_cpus() {
    let worker = r#""worker": { "instance": 6, "loop": -1, "run": 3000, "sleep": 1000 }"#;
    let cpuset = "[[cgroup]]\nname = \"batch\"\ntasks = [\"worker\"]\ncpuset.cpus = \"4-5\"\n";
    let audited = audited(worker, cpuset);
    says(&audited, "bound", &["worker waited", "on CPUs 4-5", "worker is bound to them"]);
}

#[test]
fn nothing_wrong() {
    let tasks = r#"
        "web": { "instance": 4, "loop": -1, "run": 500,
                 "timer": { "ref": "unique", "period": 5000 } }"#;
    for audited in [audited(tasks, ""), recorded("quiet")] {
        assert!(audited.first_line.starts_with("Nothing wrong: "), "{}", audited.first_line);
        assert_eq!(audited.figures["findings"], serde_json::json!([]));
    }
}

/// What only some tasks waited is theirs.
#[test]
fn a_selection_narrows_everything() {
    let directory = tempfile::tempdir().unwrap();
    let trace = simulate(directory.path(), PINNED, "");
    let json = placewise(&["audit", &trace, "--task", "enc*", "--format", "json"]);
    let figures: Value = serde_json::from_str(&json).unwrap();
    let all = placewise(&["audit", &trace, "--format", "json"]);
    let all: Value = serde_json::from_str(&all).unwrap();
    let names = |list: &str, key: &str| {
        let list = figures[list].as_array().unwrap();
        list.iter().for_each(|of| assert_eq!(of[key], "encoder", "{key}"));
    };
    for list in ["findings", "causes", "behind", "worst_decisions"] {
        names(list, "task");
    }
    for list in ["findings", "causes", "behind"] {
        assert_ne!(figures[list].as_array().unwrap().len(), 0, "{list}");
    }
    names("turns", "name");
    let own = all["causes"].as_array().unwrap().iter().find(|of| of["task"] == "encoder").unwrap();
    assert_eq!(figures["causes"][0]["cost_ns"], own["cost_ns"], "its own cost, as among all");
    let waited = |figures: &Value| figures["idle_beside"]["waited_ns"].as_u64().unwrap();
    assert!(waited(&figures) < waited(&all));
}

/// What stands first of each trace that comes along.
#[test]
fn bundled_traces() {
    for (trace, task, cause) in [
        ("vm16-k510-hackbench-sockets", "hackbench", "overload"),
        ("vm16-k61-stress-mix", "stress-ng-switc", "overload"),
        ("vm16-k612-pingpong", "pp", "idle_in_node"),
        ("vm16-k618-nps2-forkpar", "busybox", "idle_in_other_node"),
        ("vm32-k73-hackbench-pipe", "hackbench", "idle_in_other_node"),
        ("vm64-k618-overcommit", "hog", "idle_in_other_node"),
        ("vm8-k618-nosmt-hackbench-pipe", "hackbench", "overload"),
    ] {
        let path = format!("{}/../../traces/{trace}.txt.zst", env!("CARGO_MANIFEST_DIR"));
        let json = placewise(&["audit", &path, "--format", "json"]);
        let figures: Value = serde_json::from_str(&json).unwrap();
        let finding = &figures["findings"][0];
        assert_eq!((&finding["task"], &finding["cause"]), (&task.into(), &cause.into()), "{trace}");
        let text = placewise(&["audit", &path]);
        // Commands can be copied as they are.
        let lines = text.lines().filter(|line| !line.starts_with("  placewise audit "));
        lines.for_each(|line| assert!(line.chars().count() <= 100, "{trace}: {line}"));
    }
}

#[test]
fn the_worst_decisions_are_found_by_their_time() {
    let trace = "vm32-k73-hackbench-pipe";
    let path = format!("{}/../../traces/{trace}.txt.zst", env!("CARGO_MANIFEST_DIR"));
    let figures: Value =
        serde_json::from_str(&placewise(&["audit", &path, "--format", "json"])).unwrap();
    let worst = figures["worst_decisions"].as_array().unwrap();
    assert_eq!(worst.len(), 10);
    let costs = worst.iter().map(|decision| decision["cost_ns"].as_u64().unwrap());
    assert!(costs.is_sorted_by(|a, b| a >= b));
    for decision in [&worst[0], &worst[9]] {
        let time = decision["time_ns"].as_u64().unwrap();
        let at = format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
        let explained = placewise(&["audit", &path, "--at", &at, "--format", "json"]);
        let explained: Value = serde_json::from_str(&explained).unwrap();
        let mut explained = explained["decisions"].as_array().unwrap().iter();
        let same = explained.find(|of| of["pid"] == decision["pid"]).expect("it is at that time");
        for (key, its) in
            [("prev_cpu", "from_cpu"), ("actual_cpu", "to_cpu"), ("predicted_cpu", "predicted_cpu")]
        {
            assert_eq!(same[key], decision[its], "{key}");
        }
    }
}
