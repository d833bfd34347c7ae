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
    recorded_under("v5.10", 3, directory)
}

fn recorded_under(kernel: &str, clients: u32, directory: &Path) -> String {
    let trace = directory.join("trace.txt").display().to_string();
    let case = format!("--case=clients={clients};window_ms=30;warmup_ms=5");
    let run = ["compare", "--machine=x86-12", "--kernel", kernel, "--workload=pgbench", &case];
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
    let compared = |workload: &str, kernel: &[&str]| {
        let run = ["compare", "--workload", workload, "--runs=1", "--format=json"];
        let machines = ["--machine=x86-12", "--machine=icx-2s"];
        let (json, error, status) = placewise(&[&run[..], &machines, kernel].concat());
        assert_eq!(status, Some(0), "{error}");
        let json = serde_json::from_str::<Value>(&json).unwrap();
        (json["kernel"].as_str().unwrap().to_owned(), json["rows"].clone())
    };
    let of_trace = compared(&trace, &[]);
    assert_eq!(of_trace.0, "v5.10", "that of the trace");
    assert!(of_trace.1.to_string().contains("postgres: throughput"), "{of_trace:?}");
    assert_eq!(of_trace, compared(&file, &[]));
    assert_eq!(compared(&file, &["--kernel=v6.0"]).0, "v6.0");
}

/// Fails if the kernel of a trace were taken to preempt as the one does that stands for it.
#[test]
fn a_replay_preempts_as_its_trace_says() {
    let directory = tempfile::tempdir().unwrap();
    let trace = recorded_under("v6.18.32", 80, directory.path());
    let text = fs::read_to_string(&trace).unwrap();
    fs::write(&trace, format!("# preempt: full\n{text}")).unwrap();
    let file = directory.path().join("replay.json").display().to_string();
    let (_, error, status) = placewise(&["replay", &trace, "-o", &file]);
    assert_eq!((error.as_str(), status), ("", Some(0)));
    let workload: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(workload["preempt"], "full");
    let figures = |options: &[&str]| {
        let run = ["compare", "--workload", &file, "--machine=x86-12", "--runs=1", "--format=json"];
        let (json, error, status) = placewise(&[&run[..], options].concat());
        assert_eq!(status, Some(0), "{error}");
        let json: Value = serde_json::from_str(&json).unwrap();
        let rows = json["rows"].as_array().unwrap().iter();
        rows.map(|row| row["mean"].to_string()).collect::<Vec<_>>()
    };
    let as_recorded = figures(&[]);
    assert_eq!(as_recorded, figures(&["--kernel=v6.18.32", "--set=preempt=full"]));
    assert_ne!(as_recorded, figures(&["--kernel=v6.18.32"]));
    assert_eq!(figures(&["--kernel=v6.18.32"]), figures(&["--set=preempt=lazy"]));
}

#[test]
fn the_same_trace_gives_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let trace = recorded(directory.path());
    let json = || placewise(&["replay", &trace, "--format=json"]);
    assert_eq!(json(), json());
}

/// The workload that `replay` writes, as JSON.
fn written(trace: &str, mode: &[&str]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("replay.json").display().to_string();
    let (_, error, status) = placewise(&[&["replay", trace, "-o", &file], mode].concat());
    assert_eq!((error.as_str(), status), ("", Some(0)));
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

fn tasks_of(workload: &Value, name: &str) -> usize {
    workload["tasks"].as_array().unwrap().iter().filter(|task| task["name"] == name).count()
}

#[test]
fn a_model_is_as_long_as_asked_for_and_has_as_many_tasks_of_a_name() {
    let directory = tempfile::tempdir().unwrap();
    let trace = recorded(directory.path());
    let exact = written(&trace, &[]);
    assert_eq!(exact, written(&trace, &["--mode=exact"]));
    let model = |options: &[&str]| written(&trace, &[&["--mode=model"], options].concat());
    let drawn = model(&["--length=120ms", "--scale=pgbench=3"]);
    assert_eq!(drawn["length_ns"], 120_000_000);
    assert!(exact["length_ns"].as_u64().unwrap() < 60_000_000, "the trace is shorter");
    assert_eq!((tasks_of(&exact, "pgbench"), tasks_of(&drawn, "pgbench")), (1, 3));
    let as_it_was = model(&[]);
    assert_eq!(tasks_of(&as_it_was, "pgbench"), 1);
    assert_ne!(as_it_was["tasks"][0]["steps"], exact["tasks"][0]["steps"], "they are drawn");
}

#[test]
fn cases_of_a_comparison_say_how_a_trace_is_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let trace = recorded(directory.path());
    let cases = ["--case=mode=model", "--case=mode=model;length=200ms"];
    let run = ["compare", "--machine=x86-12", "--kernel=v6.0", "--workload", &trace, "--runs=1"];
    let (json, error, status) = placewise(&[&run[..], &cases, &["--format=json"]].concat());
    assert_eq!(status, Some(0), "{error}");
    let json: Value = serde_json::from_str(&json).unwrap();
    let time = |case: &str| {
        let rows = json["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["case"] == case && row["metric"] == "time");
        row.unwrap_or_else(|| panic!("no time of {case}"))["mean"].as_f64().unwrap()
    };
    let [short, long] = ["mode=model", "mode=model;length=200ms"].map(time);
    assert!(long > 2.0 * short, "{short} s, and {long} s of four times as much");
}

/// a computes for 300 us and sleeps until a timer wakes it.
const TIMED: &str = "\
<idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
a-10 [000] d..2. 1.000300: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
<idle>-0 [000] d.h2. 1.002000: sched_waking: comm=a pid=10 prio=120 target_cpu=000
<idle>-0 [000] d.h2. 1.002000: sched_wakeup: comm=a pid=10 prio=120 target_cpu=000
<idle>-0 [000] d..2. 1.002001: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
a-10 [000] d..2. 1.002300: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
";

#[test]
fn a_load_that_waits_for_nobody_is_written_for_rt_app_and_another_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let [timed, file, none] = ["timed.txt", "rt-app.json", "none.json"].map(path);
    fs::write(&timed, TIMED).unwrap();
    let origin = ["--machine=uma-8", "--kernel=v6.12"];
    let replay = |trace: &str, file: &str| {
        placewise(&[&["replay", trace, "--rt-app", file], &origin[..]].concat())
    };
    let (_, error, status) = replay(&timed, &file);
    assert_eq!((error.as_str(), status), ("", Some(0)));
    let said: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let phases = said["tasks"]["a-0"]["phases"].as_object().unwrap();
    assert!(phases.values().any(|phase| phase["timer"]["mode"] == "absolute"), "{said}");
    let run = ["compare", "--machine=uma-8", "--runs=1", "--workload", &file];
    assert_eq!(placewise(&run).2, Some(0), "it is a workload of rt-app");
    let (_, error, status) = replay(&recorded(directory.path()), &none);
    assert_eq!((status, error.lines().count()), (Some(2), 1));
    assert!(error.contains("wait for each other") && !Path::new(&none).exists(), "{error}");
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
    let trace = recorded(directory.path());
    let line = "a-1 [000] d..2. 1.000000: sched_waking: comm=b pid=2 prio=120 target_cpu=001\n";
    fs::write(path("bare.txt"), line).unwrap();
    fs::write(path("bad.json"), "{\"placewise_replay\":2,\"tasks\":[]}").unwrap();
    let output = path("out.json");
    for (args, expected) in [
        (vec!["replay", "-"], "name a file"),
        (vec!["replay", "/nonexistent.txt"], "No such file"),
        (vec!["replay", &path("bare.txt"), "-o", &output], "name it with --machine"),
        (vec!["replay", &trace, "--length=1"], "take --mode model"),
        (vec!["replay", &trace, "--scale=pgbench=2"], "take --mode model"),
        (vec!["replay", &trace, "--mode=model", "--scale=pgbench=0"], "from 1 to 1000"),
        (vec!["replay", &trace, "--mode=model", "--scale=nobody=2"], "`nobody`: expected the name"),
        (vec!["compare", "--machine=uma-8", "--workload", &path("bad.json")], "missing field"),
        (vec!["compare", "--machine=uma-8", "--workload", &path("bare.txt")], "--machine"),
    ] {
        let (_, error, status) = placewise(&args);
        assert_eq!((status, error.lines().count()), (Some(2), 1), "{args:?}: {error}");
        assert!(error.contains(expected), "{args:?}: {error}");
    }
    assert!(!Path::new(&output).exists());
}
