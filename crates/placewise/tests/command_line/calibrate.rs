//! `placewise calibrate` from outside: costs that are known are found again from simulated baselines,
//! other rows change nothing, and input that cannot be used is refused.

use std::fs;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

const HEADER: &str =
    "series,machine,kernel,workload,case,metric,policy,value,unit,better,spread_pct,change_pct";

fn placewise(directory: &Path, args: &[&str]) -> Output {
    let mut command = Command::cargo_bin("placewise").unwrap();
    command.current_dir(directory).args(args).output().unwrap()
}

fn stdout(directory: &Path, args: &[&str]) -> String {
    let output = placewise(directory, args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "progress is for terminals only");
    String::from_utf8(output.stdout).unwrap()
}

fn json(directory: &Path, args: &[&str]) -> Value {
    let text = stdout(directory, &[args, &["--format", "json"]].concat());
    serde_json::from_str(&text).unwrap()
}

/// A machine of one core, which nothing idles on, whose costs are those of uma-8 but for the figures given.
fn machine(directory: &Path, costs: &[(&str, u64)]) {
    let costs: String = costs
        .iter()
        .map(|(name, value)| {
            format!("{name} = {{ value = {value}, source = \"calibrated: it\" }}\n")
        })
        .collect();
    let text = format!(
        "description = \"one core\"\nthread_numbering = \"siblings-apart\"\ncosts_from = \"uma-8\"\n\
         [[package]]\nllcs_per_node = 1\ncores_per_llc = 1\nthreads_per_core = 1\n[costs]\n{costs}"
    );
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join("mine.toml"), text).unwrap();
}

/// What a machine of these costs gives, as a study.
fn simulated(directory: &Path, file: &str, costs: &[(&str, u64)], workload: &str, case: &str) {
    let truth = directory.join("truth");
    machine(&truth, costs);
    let more = ["--policy=baseline", "--runs=3", "--seed=100", "--format=csv"];
    let args = ["compare", "--machine=mine.toml", "--workload", workload, "--case", case];
    fs::write(directory.join(file), stdout(&truth, &[&args[..], &more].concat())).unwrap();
}

fn figure<'a>(report: &'a Value, name: &str) -> &'a Value {
    let figures = report["figures"].as_array().unwrap();
    figures.iter().find(|figure| figure["figure"] == name).unwrap()
}

const PAIR: [&str; 2] = ["schedpipe", "warmup_ms=1;window_ms=5"];
const REQUESTS: [&str; 2] = ["netperf", "proto=TCP_RR;threads=1;warmup_ms=1;window_ms=5"];

/// What a round trip through pipes takes tells of switches, and one through sockets of messages as well.
#[test]
fn known_costs_are_found_again_and_what_nothing_tells_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let truth = [("context_switch_ns", 800), ("tcp_message_ns", 400)];
    simulated(directory, "pipes.csv", &truth, PAIR[0], PAIR[1]);
    simulated(directory, "sockets.csv", &truth, REQUESTS[0], REQUESTS[1]);
    let wrong = [("context_switch_ns", 1100), ("tcp_message_ns", 600), ("udp_message_ns", 700)];
    machine(directory, &wrong);
    let on = ["calibrate", "mine.toml", "--on=pipes.csv", "--on=sockets.csv", "-o=found.toml"];
    let report = json(directory, &on);
    let off = |name: &str, truth: f64| figure(&report, name)["after"].as_f64().unwrap() / truth;
    assert!((off("context_switch_ns", 800.0) - 1.0).abs() < 0.03, "{report:#}");
    assert!((off("tcp_message_ns", 400.0) - 1.0).abs() < 0.1, "{report:#}");
    let udp = figure(&report, "udp_message_ns");
    assert_eq!((&udp["told"], &udp["after"]), (&"without effect".into(), &700.into()));
    for fit in report["fits"].as_array().unwrap() {
        assert!(fit["after"]["worst"].as_f64() < fit["before"]["worst"].as_f64(), "{fit}");
    }

    let found = json(directory, &["machine", "show", "found.toml"]);
    let switch = &found["costs"]["context_switch_ns"];
    assert_eq!(switch["value"], figure(&report, "context_switch_ns")["after"]);
    let source = switch["source"].as_str().unwrap();
    assert!(source.starts_with("calibrated: on pipes.csv (1 row), sockets.csv ("), "{source}");
    assert!(source.ends_with("within a factor of 2 of 1100"), "{source}");
    assert_eq!(found["costs"]["udp_message_ns"]["source"], "calibrated: it");
    let entry: toml::Table = report["provenance"].as_str().unwrap().parse().unwrap();
    let choice = &entry["choice"][0];
    assert_eq!(choice["what"].as_str(), Some("context_switch_ns, tcp_message_ns"));
    assert_eq!(choice["in_view"][0]["workload"].as_str(), Some("schedpipe"));
}

/// A round trip takes as many system calls as messages.
#[test]
fn figures_that_do_the_same_are_named_and_one_of_them_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let costs = [("syscall_ns", 120), ("pipe_message_ns", 120)];
    simulated(directory, "pair.csv", &costs, PAIR[0], PAIR[1]);
    machine(directory, &costs);
    let report = json(directory, &["calibrate", "mine.toml", "--on", "pair.csv"]);
    let figures = report["figures"].as_array().unwrap();
    let (left, fitted): (Vec<&Value>, Vec<&Value>) =
        figures.iter().partition(|figure| figure["told"] == "not told apart");
    assert_eq!((left.len(), &fitted[0]["told"]), (1, &"fitted".into()), "{report:#}");
    assert_eq!(left[0]["like"], fitted[0]["figure"]);
    assert_eq!((&left[0]["after"], &left[0]["factor"]), (&120.into(), &1.0.into()));
}

fn study(rows: &[&str]) -> String {
    format!("{HEADER}\n{}\n", rows.join("\n"))
}

const BASELINE: &str =
    "s,uma-8,v6.0,schedpipe,warmup_ms=1;window_ms=2,throughput,baseline,90000,ops/s,higher,1,";

#[test]
fn other_rows_and_the_number_of_threads_change_no_byte() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let with = |values: [&str; 2], jobs: &str| {
        let of = |policy: &str, value: &str| {
            BASELINE.replace("baseline,90000", &format!("{policy},{value}"))
        };
        let rows = [BASELINE, &of("short-task", values[0]), &of("hint:none", values[1])];
        fs::write(directory.join("study.csv"), study(&rows)).unwrap();
        let args = ["calibrate", "uma-8", "--figure=syscall_ns", "--on=study.csv", "--runs=2"];
        let more = ["--budget=7", "-o=found.toml", "--jobs", jobs];
        let table = stdout(directory, &[&args[..], &more].concat());
        (table, fs::read_to_string(directory.join("found.toml")).unwrap())
    };
    let one = with(["95000", "80000"], "1");
    assert_eq!(one, with(["1", "1000000"], "3"));
    assert!(one.0.contains("- 2 of another policy than baseline"), "{}", one.0);
}

#[test]
fn what_cannot_be_used_is_refused_in_one_line_and_nothing_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::write(directory.join("good.csv"), study(&[BASELINE])).unwrap();
    let normalized = BASELINE.replace("90000,ops/s", "1.00,normalized");
    fs::write(directory.join("shape.csv"), study(&[&normalized])).unwrap();
    let elsewhere = BASELINE.replace("uma-8", "x86-12");
    fs::write(directory.join("other.csv"), study(&[&elsewhere])).unwrap();
    for (args, problem) in [
        ("--on=shape.csv --figure=syscall_ns", "shape.csv: has no baseline row with a value"),
        ("--on=other.csv --figure=syscall_ns", "other.csv: has no baseline row of machine `uma-8`"),
        ("--on=good.csv --figure=speed", "--figure speed: is no cost figure"),
        ("--on=good.csv --figure=hz", "--figure hz: stands as it is"),
        ("--on=good.csv", "uma-8: no cost figure is marked `calibrated`"),
        ("--on=good.csv --figure=syscall_ns --budget=6", "--budget 6: is too little"),
        ("--on=good.csv --figure=syscall_ns -o=no/found.toml", "no/found.toml: no such directory"),
        ("--figure=syscall_ns", "--on <FILE.csv>"),
    ] {
        let args: Vec<&str> = ["calibrate", "uma-8"].into_iter().chain(args.split(' ')).collect();
        let output = placewise(directory, &args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(problem) && output.stdout.is_empty(), "{said}");
        assert!(!directory.join("found.toml").exists());
    }
}
