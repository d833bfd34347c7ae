//! Names that others gave cannot act on the terminal, the line, the table or the page that shows
//! them, whatever verb prints them and in whatever format.

use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;

/// As long as a task's name may be: an escape sequence, the end of a cell, an override of the
/// direction of the text, markup.
const HOSTILE: &str = "\x1b[31m|\u{202e}`<b\u{9b}";
/// Where control characters are refused.
const HOSTILE_TEXT: &str = "|\u{202e}`<b";
/// Where a name may have line breaks as well.
const HOSTILE_LINES: &str = "\x1b[31m|\n# x\r`<b>\u{202e}\u{9b}";

fn run(directory: &Path, args: &[&str]) -> std::process::Output {
    let mut command = Command::cargo_bin("placewise").unwrap();
    command.current_dir(directory).args(args).output().unwrap()
}

fn shown(directory: &Path, args: &[&str]) -> String {
    let output = run(directory, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_harmless(&text);
    text
}

#[track_caller]
fn assert_harmless(text: &str) {
    let acts = |c: &char| c.is_control() && *c != '\n' || ('\u{202a}'..='\u{202e}').contains(c);
    let found = text.lines().find(|line| line.chars().any(|c| acts(&c)));
    assert_eq!(found, None);
}

/// In `text` every row of a pipe table has as many cells as the one above it, and nothing opens an
/// element of HTML.
fn assert_tables(text: &str) {
    let bare = text.replace(r"\\", "").replace(r"\|", "").replace(r"\<", "");
    let cells = |line: &str| line.matches('|').count();
    for pair in bare.lines().collect::<Vec<_>>().windows(2) {
        let in_table = pair.iter().all(|line| line.starts_with('|'));
        assert!(!in_table || cells(pair[0]) == cells(pair[1]), "{pair:#?}");
    }
    let outside_code = bare.split("```").step_by(2).collect::<String>();
    assert!(outside_code.contains("| ") && !outside_code.contains('<'), "{outside_code}");
    assert!(!outside_code.lines().any(|line| line.starts_with("# x")), "{outside_code}");
}

/// Two LLCs; the waker and its wakee, which goes from one to the other, are named `name`.
fn trace(directory: &TempDir, name: &str) -> &'static str {
    let mut text = "# kernel: 6.12.0\n# hz: 1000\n# node/node0 cpus=0-3 distance=10\n".to_owned();
    for cpu in 0..4 {
        let llc = if cpu < 2 { "0-1" } else { "2-3" };
        text += &format!("# cpu {cpu} core={cpu} llc={llc} package=0\n");
    }
    let who = |pid: u32| format!("comm={name} pid={pid} prio=120");
    let mut event = |us: u32, cpu: u32, event: String| {
        text += &format!("{name:>16}-100     [{cpu:03}] d..2.     1.{us:06}: {event}\n");
    };
    for us in [100, 200] {
        event(us, 0, format!("sched_waking: {} target_cpu=001", who(200)));
        event(us + 1, 0, format!("sched_migrate_task: {} orig_cpu=1 dest_cpu=2", who(200)));
        event(us + 2, 0, format!("sched_wakeup: {} target_cpu=002", who(200)));
        event(
            us + 3,
            0,
            format!("sched_process_fork: comm={name} pid=100 child_comm={name} child_pid={us}"),
        );
        event(us + 4, 0, format!("sched_wakeup_new: {} target_cpu=003", who(us)));
    }
    std::fs::write(directory.path().join("trace.txt"), text).unwrap();
    "trace.txt"
}

#[test]
fn tasks_of_a_trace() {
    let directory = TempDir::new().unwrap();
    let audits = |name: &str| {
        let trace = trace(&directory, name);
        let of = |args: &[&str]| shown(directory.path(), &[&["audit", trace], args].concat());
        [
            &["--policy", "short-task"][..],
            &["--format", "markdown"],
            &["--format", "csv"],
            &["--format", "json"],
            &["--task", name],
            &["--at", "1.000100"],
            &["--explain", "1", "--format", "markdown"],
            &["--explain", "1", "--format", "csv"],
            &["--annotate"],
        ]
        .map(of)
    };
    let (hostile, plain) = (audits(HOSTILE), audits("name"));
    for (hostile, plain) in hostile.iter().zip(&plain) {
        assert_eq!(hostile.lines().count(), plain.lines().count(), "{hostile}");
    }
    let [table, markdown, csv, json, task, at, explained, _, annotated] = &hostile;
    let spelt = r"\u{1b}[31m|\u{202e}`<b\u{9b}";
    for text in [table, csv, task, at, annotated] {
        assert!(text.contains(spelt), "{text}");
    }
    for text in [markdown, explained] {
        assert_tables(text);
        assert!(text.contains(r"\\u{1b}\[31m\|\\u{202e}\`\<b\\u{9b}"), "{text}");
    }
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(json["by_task"][0]["name"], HOSTILE, "JSON says what the name is");
}

/// A machine of that description, and a workload in a file of that name.
fn files(directory: &TempDir) -> (&'static str, String) {
    let preset = include_str!("../../../../machines/uma-8.toml");
    let (_, rest) = preset.split_once("\ndescription = ").unwrap();
    let rest = rest.split_once('\n').unwrap().1;
    let description = serde_json::to_string(HOSTILE_LINES).unwrap();
    let machine = format!("description = {description}\n{rest}");
    std::fs::write(directory.path().join("machine.toml"), machine).unwrap();
    let workload = HOSTILE_LINES.to_owned() + ".json";
    let task =
        serde_json::json!({ "tasks": { HOSTILE_LINES: { "run": 100, "sleep": 50, "loop": 3 } } });
    std::fs::write(directory.path().join(&workload), task.to_string()).unwrap();
    ("machine.toml", workload)
}

#[test]
fn machines_workloads_and_their_files() {
    let directory = TempDir::new().unwrap();
    let (machine, workload) = files(&directory);
    for format in ["table", "json", "dot"] {
        shown(directory.path(), &["machine", "show", machine, "--costs", "--format", format]);
    }
    let compare = ["compare", "--runs=2", "--stats", "--machine", machine, "--workload", &workload];
    for format in ["table", "lkml", "markdown", "csv", "json"] {
        let text = shown(directory.path(), &[&compare[..], &["--format", format]].concat());
        assert!(text.contains(r"\n# x\r"), "{format}: {text}");
        if format == "markdown" {
            assert_tables(&text);
        }
    }
}

#[test]
fn rows_of_a_study() {
    let directory = TempDir::new().unwrap();
    let study = format!(
        "# source: made up\nseries,machine,kernel,workload,case,metric,policy,value,unit,better,spread_pct,change_pct\n\
         s,uma-8,v6.0,schedpipe,window_ms=5,throughput,baseline,100000,\"ops/s({HOSTILE_TEXT}\",higher,0.5,\n\
         s,uma-8,v6.0,\"{HOSTILE_TEXT}\",window_ms=5,throughput,baseline,100000,ops/s,higher,0.5,\n"
    );
    let file = HOSTILE_LINES.to_owned() + ".csv";
    std::fs::write(directory.path().join(&file), study).unwrap();
    for format in ["table", "markdown", "csv", "json"] {
        let text = shown(directory.path(), &["reproduce", &file, "--runs=1", "--format", format]);
        if format == "markdown" {
            assert_tables(&text);
        }
    }
}

#[test]
fn intents_of_a_file() {
    let directory = TempDir::new().unwrap();
    let about = serde_json::to_string(HOSTILE_LINES).unwrap();
    let intents = format!("[batch]\nhint = \"fork_spread\"\nabout = {about}\n");
    std::fs::write(directory.path().join("own.toml"), intents).unwrap();
    for format in ["table", "json"] {
        let args = ["hint", "intents", "--intents", "own.toml", "--format", format];
        assert!(shown(directory.path(), &args).contains(r"\n# x\r"));
    }
}

#[test]
fn messages_that_echo_input() {
    let directory = TempDir::new().unwrap();
    let option = format!("--{HOSTILE}");
    for args in [
        &["audit", HOSTILE_LINES][..],
        &["machine", "show", HOSTILE],
        &["compare", "--machine", "uma-8", "--workload", HOSTILE],
        &["compare", "--machine", "uma-8", "--workload", "hackbench", "--case", HOSTILE],
        &["compare", "--machine", "uma-8", "--workload", "hackbench", "--policy", HOSTILE],
        &["reproduce", HOSTILE_LINES],
        &["hint", "--fork", "spread", "--cgroup", HOSTILE_LINES],
        &["hint", "show", "--socket", HOSTILE_LINES],
        &["list", &option],
        &[HOSTILE],
    ] {
        let output = run(directory.path(), args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{args:?}");
        assert_eq!(stderr.lines().count(), 1, "{stderr:?}");
        assert_harmless(&stderr);
        assert!(stderr.contains("|"), "{stderr}");
    }
}
