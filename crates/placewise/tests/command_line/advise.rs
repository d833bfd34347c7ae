//! `placewise advise` from outside: traps whose remedy is known, and a load that needs none.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

const PAIRS: &str = "--workload=netperf";
const TWO_PAIRS: &str = "--case=threads=2;window_ms=10;warmup_ms=5";
/// What their candidates take at least, or little more.
const FEW_RUNS: &str = "--budget=100";

fn placewise(args: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::cargo_bin("placewise").unwrap().args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// The trace of a simulated run.
fn recorded(directory: &Path, run: &[&str]) -> String {
    let trace = directory.join("trace.txt").display().to_string();
    let args = [&["compare", "--kernel=v6.12", "--runs=1", "--trace", &trace], run].concat();
    let (_, error, status) = placewise(&args);
    assert_eq!(status, Some(0), "{error}");
    trace
}

fn advice(args: &[&str]) -> Value {
    let (json, error, status) = placewise(&[&["advise", "--format=json"], args].concat());
    assert_eq!(status, Some(0), "{error}");
    serde_json::from_str(&json).unwrap()
}

/// Nothing brings their ends together, which began in different LLCs.
#[test]
fn pairs_that_talk_over_two_llcs_are_brought_together() {
    let directory = tempfile::tempdir().unwrap();
    let off = ["--machine=icx-2s", "--set=WA_IDLE=0", "--set=WA_WEIGHT=0"];
    let trace = recorded(directory.path(), &[&off[..], &[PAIRS, TWO_PAIRS]].concat());
    let advised = advice(&["--machine=icx-2s", FEW_RUNS, &trace]);
    let groups: Vec<_> =
        advised["groups"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(groups, ["netperf and netserver"; 2], "{advised:#}");
    let best = &advised["advice"][0];
    let what = best["what"].as_str().unwrap();
    assert!(what.starts_with("keep "), "{best:#}");
    assert!(best["change_low_pct"].as_f64().unwrap() > 2.0, "{best:#}");
    let command = best["commands"][0].as_str().unwrap();
    assert!(command.contains("taskset -pc ") && !command.contains("0-127"), "{best:#}");
    assert!(best["undo"][0].as_str().unwrap().contains("taskset -pc 0-127"), "{best:#}");
}

/// Workers wake where they were, far from who wakes them: half of their latency is the way.
#[test]
fn a_hint_is_advised_for_the_group_that_wants_it() {
    let directory = tempfile::tempdir().unwrap();
    let run = ["--workload=schbench", "--case=workers=4;warmup_ms=50;window_ms=2000"];
    let machine = "--machine=pack:1 l3:4 core:4 pu:2";
    let trace = recorded(directory.path(), &[&[machine][..], &run].concat());
    let advised = advice(&["--for=p99", &trace]);
    let all = advised["advice"].as_array().unwrap();
    let what = "hint wake_affine to messenger and 4 worker";
    let hint = all.iter().find(|it| it["what"] == what);
    let hint = hint.unwrap_or_else(|| panic!("{advised:#}"));
    assert!(hint["change_low_pct"].as_f64().unwrap() > 25.0, "{hint:#}");
    assert_eq!(hint["commands"][0], "scx_placewise --policy baseline &");
    let command = hint["commands"][2].as_str().unwrap();
    assert!(command.contains("placewise hint --wake affine --tid $t"), "{hint:#}");
    assert_eq!(hint["undo"].as_array().unwrap().len(), 2, "{hint:#}");
    assert_eq!(hint["undo"][1], "kill -INT $(pidof scx_placewise)");
}

/// A service, and a batch job of as many threads as its LLC has CPUs, which was put there.
#[test]
fn a_background_job_gives_way_to_the_service_whose_llc_it_takes() {
    let directory = tempfile::tempdir().unwrap();
    let workload = directory.path().join("beside.json");
    let tasks = r#"{"global": {"duration": 1}, "tasks": {
        "service": {"instance": 2, "loop": -1, "cpus": [0, 1, 2, 3], "run": 200, "sleep": 1500},
        "batch": {"instance": 8, "loop": -1, "cpus": [0, 1, 2, 3], "run": 9000, "sleep": 1000}}}"#;
    fs::write(&workload, tasks).unwrap();
    let workload = format!("--workload={}", workload.display());
    let machine = "--machine=pack:1 l3:2 core:4 pu:1";
    let trace = recorded(directory.path(), &[machine, &workload]);
    let trace = bound_in_the_header(&trace, &[("service", 2), ("batch", 8)], "0-3");
    let advised = advice(&["--for=p99", "--task=service", &trace]);
    let all = advised["advice"].as_array().unwrap();
    let what = |it: &Value| it["what"].as_str().unwrap().to_owned();
    let off = all.iter().find(|it| what(it) == "keep batch off LLC 0, where service is");
    let idle = all.iter().find(|it| what(it).starts_with("let batch run only where nobody else"));
    for (remedy, command) in [(off, "taskset -pc 4-7 $t"), (idle, "chrt -i -p 0 $t")] {
        let remedy = remedy.unwrap_or_else(|| panic!("{command}: {advised:#}"));
        assert!(remedy["change_low_pct"].as_f64().unwrap() > 25.0, "{remedy:#}");
        assert!(remedy["commands"][0].as_str().unwrap().contains(command), "{remedy:#}");
    }
}

#[test]
fn what_needs_no_remedy_is_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = ["--machine=x86-12", "--workload=schedpipe", "--case=window_ms=60;warmup_ms=2"];
    let trace = recorded(directory.path(), &pipe);
    let page = directory.path().join("advice.html");
    let (text, error, status) = placewise(&["advise", &trace, "--html", page.to_str().unwrap()]);
    assert_eq!((error.as_str(), status), ("", Some(0)));
    assert!(text.contains("Leave it as it is"), "{text}");
    assert!(fs::read_to_string(page).unwrap().starts_with("<!doctype html>"));
}

/// Three tasks on one CPU of eight, each of which wants most of it. On one CPU of each core they do better still.
#[test]
fn tasks_that_share_a_cpu_they_are_bound_to_are_set_free() {
    let directory = tempfile::tempdir().unwrap();
    let workload = directory.path().join("batch.json");
    let tasks = r#"{"global": {"duration": 1}, "tasks": {"batch": {
        "instance": 3, "loop": -1, "cpus": [0], "run": 700, "sleep": 200}}}"#;
    fs::write(&workload, tasks).unwrap();
    let workload = format!("--workload={}", workload.display());
    let trace = recorded(directory.path(), &["--machine=uma-8", &workload]);
    let advised = advice(&["--machine=uma-8", &bound_in_the_header(&trace, &[("batch", 3)], "0")]);
    let all = advised["advice"].as_array().unwrap();
    assert!(all.iter().any(|it| it["what"] == "let batch run on all CPUs"), "{advised:#}");
    for remedy in all {
        assert!(remedy["change_low_pct"].as_f64().unwrap() > 50.0, "{remedy:#}");
        let undo = remedy["undo"][0].as_str().unwrap();
        assert!(undo.ends_with("do taskset -pc 0 $t; done"), "{remedy:#}");
    }
}

/// Four threads in an LLC of two cores, beside one that is idle: siblings halve each other, and what else they
/// take from each other, the bandwidth of their LLC, no trace shows.
#[test]
fn a_streaming_team_that_is_crammed_into_one_llc_is_spread() {
    let directory = tempfile::tempdir().unwrap();
    let team = "threads=4;cpus=0-3;elements=4000000;runs=1000;spin_count=1;window_ms=400";
    let case = format!("--case={team}");
    let run = ["--machine=pack:1 l3:2 core:2 pu:2", "--workload=stream", &case];
    let trace = recorded(directory.path(), &run);
    let advised = advice(&[FEW_RUNS, &bound_in_the_header(&trace, &[("stream", 4)], "0-3")]);
    let all = advised["advice"].as_array().unwrap();
    for what in
        ["keep 4 stream on one CPU of each core (CPUs 0,2,4,6)", "let stream run on all CPUs"]
    {
        let remedy = all.iter().find(|it| it["what"] == what);
        let remedy = remedy.unwrap_or_else(|| panic!("{what}: {advised:#}"));
        assert!(remedy["change_low_pct"].as_f64().unwrap() > 5.0, "{remedy:#}");
        assert!(remedy["undo"][0].as_str().unwrap().ends_with("do taskset -pc 0-3 $t; done"));
    }
}

/// The end of the trace, as if it had been recorded of so many tasks of each name that were there and
/// bound to these CPUs.
fn bound_in_the_header(trace: &str, tasks: &[(&str, usize)], cpus: &str) -> String {
    let line = |name: &str, pid: &String| {
        format!("# task {pid} comm={name} policy=SCHED_OTHER cpus={cpus}")
    };
    end_of(trace, tasks, |name, pids| pids.iter().map(|pid| line(name, pid)).collect())
}

/// The end of the trace, with what the header says of so many tasks of each name.
fn end_of(
    trace: &str,
    tasks: &[(&str, usize)],
    header: impl Fn(&str, &[String]) -> Vec<String>,
) -> String {
    let text = fs::read_to_string(trace).unwrap();
    let (mut head, mut events): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with('#'));
    events.drain(..events.len() / 2);
    let mut lines = Vec::new();
    for (name, count) in tasks {
        let next = format!("next_comm={name} next_pid=");
        let pid = |line: &&str| line.split_once(&next)?.1.split(' ').next().map(str::to_owned);
        let pids: BTreeSet<String> = events.iter().filter_map(pid).collect();
        assert_eq!(pids.len(), *count, "{name}");
        lines.extend(header(name, &pids.into_iter().collect::<Vec<_>>()));
    }
    head.extend(lines.iter().map(String::as_str));
    head.extend(events);
    fs::write(trace, head.join("\n") + "\n").unwrap();
    trace.to_owned()
}

/// Advice for the service of a cgroup, beside four batch tasks in another that weighs as much.
fn advice_beside_batch(machine: &str, service_us: u32, service_sleeps_us: u32) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let workload = directory.path().join("beside.json");
    let tasks = format!(
        r#"{{"global": {{"duration": 1}}, "tasks": {{
        "service": {{"instance": 4, "loop": -1, "run": {service_us}, "sleep": {service_sleeps_us}}},
        "batch": {{"instance": 4, "loop": -1, "run": 9000, "sleep": 100}}}}}}"#
    );
    fs::write(&workload, tasks).unwrap();
    let environment = directory.path().join("cgroups.toml");
    let cgroup = |name: &str| format!("[[cgroup]]\nname = \"{name}\"\ntasks = [\"{name}\"]\n");
    fs::write(&environment, cgroup("service") + &cgroup("batch")).unwrap();
    let machine = format!("--machine={machine}");
    let workload = format!("--workload={}", workload.display());
    let environment = format!("--environment={}", environment.display());
    let trace = recorded(directory.path(), &[&machine, &workload, &environment]);
    let cgroup =
        |name: &str, pids: &[String]| vec![format!("# cgroup: {} /{name}", pids.join(","))];
    let trace = end_of(&trace, &[("service", 4), ("batch", 4)], cgroup);
    advice(&[FEW_RUNS, "--task=service", &trace])
}

/// Twice as many tasks as CPUs: who is to wait is a matter of weight, and batch loses nothing when nobody
/// else wants a CPU. Most wakeups wait: where half of them preempt, no two runs agree on the median.
#[test]
fn a_cgroup_that_takes_the_services_cpus_weighs_less() {
    let advised = advice_beside_batch("pack:1 l3:1 core:4 pu:1", 3000, 500);
    let all = advised["advice"].as_array().unwrap();
    let lighter = |one: &&Value| one["what"] == "let cgroup /batch weigh 10 instead of 100";
    let lighter = all.iter().find(lighter).unwrap_or_else(|| panic!("{advised:#}"));
    assert!(lighter["change_low_pct"].as_f64().unwrap() > 10.0, "{lighter:#}");
    assert_eq!(lighter["commands"][0], "echo 10 > /sys/fs/cgroup/batch/cpu.weight");
    assert_eq!(lighter["undo"][0], "echo 100 > /sys/fs/cgroup/batch/cpu.weight");
}

/// Each has a CPU to itself, so that no weight matters, but the other thread of its core is batch's.
#[test]
fn a_cgroup_on_the_siblings_of_the_services_cpus_gets_a_quota() {
    let advised = advice_beside_batch("pack:1 l3:1 core:4 pu:2", 2000, 100);
    let best = &advised["advice"][0];
    let commands = &best["commands"];
    assert_eq!(commands[0], "was=$(cat /sys/fs/cgroup/batch/cpu.max)", "{advised:#}");
    assert!(commands[1].as_str().unwrap().ends_with(" 100000 > /sys/fs/cgroup/batch/cpu.max"));
    assert_eq!(best["undo"][0], "echo $was > /sys/fs/cgroup/batch/cpu.max");
    assert!(best["change_low_pct"].as_f64().unwrap() > 10.0, "{best:#}");
    let costs = best["costs"].to_string();
    assert!(costs.contains("batch"), "{best:#}");
}

/// Nothing is changed where advice cannot be carried out here, or there is none.
#[test]
fn advice_on_another_host_is_not_carried_out() {
    let directory = tempfile::tempdir().unwrap();
    let off = ["--machine=icx-2s", "--set=WA_IDLE=0", "--set=WA_WEIGHT=0"];
    let trace = recorded(directory.path(), &[&off[..], &[PAIRS, TWO_PAIRS]].concat());
    let run = |args: &[&str]| {
        let mut command = Command::cargo_bin("placewise").unwrap();
        command.env("RUNTIME_DIRECTORY", directory.path()).arg("advise").args(args);
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr), output.status.code())
    };
    // What is printed before: the advice, if it was looked for.
    let refused = |options: &[&str], problem: &str| {
        let args = [options, &["--machine=icx-2s", FEW_RUNS, &trace]].concat();
        let (printed, error, status) = run(&args);
        assert_eq!((error.lines().count(), status), (1, Some(2)), "{error}");
        assert!(error.contains(problem), "{error}");
        printed
    };
    assert_eq!(refused(&["--apply=1", "--yes"], "the trace is of 6.12, and this host"), "");
    let text = fs::read_to_string(&trace).unwrap();
    let here = rustix::system::uname().release().to_string_lossy().into_owned();
    fs::write(&trace, text.replace("# kernel: 6.12", &format!("# kernel: {here}"))).unwrap();
    assert_eq!(refused(&["--apply=1"], "use a terminal, or --yes"), "");
    let advice = refused(&["--apply=9", "--yes", "--kernel=v6.12"], "--apply 9: there");
    assert!(advice.contains("undo:"), "{advice}");
    let (_, error, status) = run(&["--undo"]);
    assert_eq!(status, Some(2), "{error}");
    assert!(error.contains("no advice is carried out here"), "{error}");
    let (_, error, status) = run(&["--undo", &trace]);
    assert_eq!(status, Some(2), "{error}");
    assert!(!directory.path().join("placewise-advice.json").exists());
}

#[test]
fn a_replay_that_is_not_like_its_trace_is_told_of_first() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/vm16-k73-dispatch.txt.zst");
    let advised = advice(&["--budget=1000", trace]);
    assert_eq!(advised["is_trusted"], false);
    let blamed = advised["left_out"][0].as_str().unwrap();
    assert!(!advised["tasks"].as_array().unwrap().contains(&blamed.into()), "{advised:#}");
    let of_blamed = advice(&["--task", blamed, trace]);
    assert_eq!(of_blamed["advice"].as_array().unwrap().len(), 0, "{of_blamed:#}");
    let (text, _, _) = placewise(&["advise", "--task", blamed, trace]);
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(at("do not trust") < at("No advice"), "{text}");
}

#[test]
fn the_answer_depends_on_the_budget_alone_and_one_that_is_too_small_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let trace = recorded(directory.path(), &["--machine=icx-2s", PAIRS, TWO_PAIRS]);
    let on = |jobs: &str| placewise(&["advise", &trace, FEW_RUNS, "--jobs", jobs]);
    assert_eq!(on("1"), on("3"));
    let (_, error, status) = placewise(&["advise", &trace, "--budget=9"]);
    assert_eq!((status, error.lines().count()), (Some(2), 1), "{error}");
    assert!(error.contains("--budget 9: ") && error.contains("runs at least"), "{error}");
    let (_, error, status) = placewise(&["advise", &trace, "--task=nobody"]);
    assert_eq!(status, Some(2));
    assert!(error.contains("--task nobody: ") && error.contains("netserver"), "{error}");
    let (_, error, status) = placewise(&["advise", "-"]);
    assert_eq!(status, Some(2));
    assert!(error.contains("name a file"), "{error}");
}
