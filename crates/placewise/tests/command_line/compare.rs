//! `placewise compare` from outside: the same input gives the same bytes, and every format keeps
//! its layout. Figures are blanked: what they are is the simulator's business.

use std::path::Path;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;

/// Two short cases and three policies on a small machine.
const QUICK: [&str; 16] = [
    "compare",
    "--machine",
    "x86-12",
    "--workload",
    "hackbench",
    "--case",
    "groups=1;fds=4;loops=20",
    "--case",
    "groups=2;fds=4;loops=20",
    "--policy",
    "baseline",
    "--policy",
    "short-task",
    "--policy",
    "hint:wake_affine",
    "--runs=3",
];

fn quick(changes: &[&str]) -> String {
    let mut command = Command::cargo_bin("placewise").unwrap();
    let output = command.args(QUICK).args(changes).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "progress is for terminals only");
    String::from_utf8(output.stdout).unwrap()
}

/// JSON and the last trace of the quick comparison.
fn bytes(directory: &Path, jobs: &str) -> (String, Vec<u8>) {
    let trace = directory.join("trace.txt");
    let options = ["--format", "json", "--stats", "--jobs", jobs, "--trace"];
    let json = quick(&[&options[..], &[trace.to_str().unwrap()]].concat());
    (json, std::fs::read(directory.join("trace.hint_wake_affine.txt")).unwrap())
}

#[test]
fn two_runs_and_any_number_of_jobs_give_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let first = bytes(directory.path(), "1");
    assert!(!first.1.is_empty());
    assert_eq!(first, bytes(directory.path(), "1"));
    assert_eq!(first, bytes(directory.path(), "2"));
}

/// The trace of the quick comparison with its decisions.
fn trace_with_decisions(directory: &Path, jobs: &str) -> String {
    let trace = directory.join("decisions.txt");
    let options = ["--trace-decisions", "--jobs", jobs, "--trace"];
    quick(&[&options[..], &[trace.to_str().unwrap()]].concat());
    std::fs::read_to_string(directory.join("decisions.hint_wake_affine.txt")).unwrap()
}

#[test]
fn each_policy_has_a_trace_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    bytes(directory.path(), "2");
    let policy_in = |label: &str| {
        let path = directory.path().join(format!("trace.{label}.txt"));
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().find_map(|line| Some(line.split_once("policy: ")?.1.to_owned()))
    };
    for (label, policy) in [
        ("baseline", "baseline"),
        ("short-task", "short-task"),
        ("hint_wake_affine", "hint:wake_affine"),
    ] {
        assert_eq!(policy_in(label).as_deref(), Some(policy), "{label}");
    }
    assert_eq!(directory.path().read_dir().unwrap().count(), 3);
}

/// The subjects of the rows of the first metric of a short case on the small machine.
fn subjects(options: &[&str]) -> Vec<[String; 4]> {
    let mut command = Command::cargo_bin("placewise").unwrap();
    command.args(["compare", "--workload", "hackbench", "--case", "groups=1;fds=4;loops=20"]);
    let output = command.args(["--runs=1", "--format=json"]).args(options).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert!(rows[0]["change_pct"].is_null() && rows[1..].iter().all(|r| r["change_pct"].is_f64()));
    let axes = ["machine", "kernel", "environment", "policy"];
    let subject = |row: &Value| axes.map(|axis| row[axis].as_str().unwrap().to_owned());
    rows.iter().map(subject).collect()
}

#[test]
fn one_policy_is_compared_with_the_kernel_as_it_is() {
    let of = |options: &[&str]| -> Vec<String> {
        let options = [&["--machine", "uma-8"], options].concat();
        subjects(&options).into_iter().map(|[.., policy]| policy).collect()
    };
    assert_eq!(of(&["--policy", "short-task"]), ["baseline", "short-task"]);
    assert_eq!(of(&["--policy", "baseline"]), ["baseline"]);
    assert_eq!(of(&["--policy=hint:none", "--policy=short-task"]), ["hint:none", "short-task"]);
    // Kernels are what is compared here.
    assert_eq!(of(&["--policy=short-task", "--kernel=v6.0", "--kernel=v6.12"]), ["short-task"; 2]);
}

fn report_of(options: &[&str]) -> Value {
    let mut command = Command::cargo_bin("placewise").unwrap();
    command.args(["compare", "--workload", "schbench", "--runs=2", "--format=json", "--case"]);
    let output =
        command.arg("workers=2;warmup_ms=20;window_ms=200").args(options).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_host_has_the_kernel_that_stands_for_the_running_one() {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let kernel = placewise_policy::kernel_for_release(&release).expect("a kernel with sysfs");
    let report = report_of(&["--machine=host"]);
    assert_eq!((&report["kernel"], &report["release"]), (&kernel.into(), &release.trim().into()));
    let named = report_of(&["--machine=host", "--kernel=v5.10"]);
    assert_eq!((&named["kernel"], &named["release"]), (&"v5.10".into(), &Value::Null));
    let preset = report_of(&["--machine=uma-8"]);
    assert_eq!((&preset["kernel"], &preset["release"]), (&"v6.0".into(), &Value::Null));
}

/// A string of a preset's shape and numbering is that preset, and the report says whose costs it has.
#[test]
fn costs_are_those_that_the_report_names() {
    let string = "pack:1 l3:1 core:6 pu:2(indexes=2*6:1*2)";
    let of = |options: &[&str]| {
        let report = report_of(options);
        (report["costs_of"].clone(), report["rows"][0]["mean"].clone())
    };
    let (preset, alike) = (of(&["--machine=x86-12"]), of(&["--machine", string]));
    assert_eq!(alike, (Value::from("those of x86-12"), preset.1.clone()));
    let others = of(&["--machine", string, "--costs-from=icx-2s"]);
    assert_eq!(others.0, "those of icx-2s");
    assert_ne!(others.1, preset.1);
    let lkml = quick(&["--format=lkml", "--costs-from=icx-2s"]);
    assert!(lkml.contains("\nCosts:    those of icx-2s, not measured here"), "{lkml}");
    assert!(lkml.contains("--costs-from icx-2s"), "{lkml}");
}

#[test]
fn every_axis_may_have_several_values() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("quota.toml");
    let quota = "[[cgroup]]\nname = \"a\"\ntasks = [\"sender\"]\ncpu.max = \"20000 100000\"\n";
    std::fs::write(&file, quota).unwrap();
    let file = file.to_str().unwrap();
    let options = [
        &["--machine=uma-8", "--machine=x86-12", "--kernel=v6.0", "--kernel=v6.12"][..],
        &["--environment=none", "--environment", file, "--policy=baseline", "--policy=hint:none"],
    ];
    let subjects = subjects(&options.concat());
    assert_eq!(subjects.len(), 16);
    assert_eq!(subjects[0], ["uma-8", "v6.0", "none", "baseline"]);
    assert_eq!(subjects[1], ["uma-8", "v6.0", "none", "hint:none"]);
    assert_eq!(subjects[2], ["uma-8", "v6.0", file, "baseline"]);
    assert_eq!(subjects[4], ["uma-8", "v6.12", "none", "baseline"]);
    assert_eq!(subjects[8], ["x86-12", "v6.0", "none", "baseline"]);
}

/// Two rows that differ in the machine have the figures that each has alone, with the same seeds.
#[test]
fn what_is_compared_is_what_runs_alone() {
    let means = |options: &[&str]| -> Vec<Value> {
        let mut command = Command::cargo_bin("placewise").unwrap();
        command.args(["compare", "--workload=hackbench", "--case=groups=1;fds=4;loops=20"]);
        let output = command.args(["--runs=2", "--format=json"]).args(options).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["rows"].as_array().unwrap().iter().map(|row| row["mean"].clone()).collect()
    };
    let both = means(&["--machine=uma-8", "--machine=icx-2s"]);
    assert_eq!(both, [means(&["--machine=uma-8"]), means(&["--machine=icx-2s"])].concat());
    assert_ne!(both[0], both[1]);
}

#[test]
fn decisions_are_lines_more_and_change_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let (_, plain) = bytes(directory.path(), "1");
    let text = trace_with_decisions(directory.path(), "1");
    assert_eq!(text, trace_with_decisions(directory.path(), "2"));
    let is_decision = |line: &&str| line.contains(": placewise_select_task_rq: pid=");
    let without: String = text.split_inclusive('\n').filter(|line| !is_decision(line)).collect();
    assert_eq!(without.as_bytes(), plain);
    let kind = |kind| text.lines().filter(is_decision).filter(|line| line.contains(kind)).count();
    assert_eq!(kind(" placement=fork "), text.matches(": sched_wakeup_new: ").count());
    assert!(kind(" placement=wakeup ") > 0);
}

#[test]
fn decisions_need_a_trace() {
    let mut command = Command::cargo_bin("placewise").unwrap();
    let output = command.args(QUICK).arg("--trace-decisions").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--trace <FILE>"));
}

/// The trace takes more than 8 KB.
#[test]
fn a_full_disk_costs_the_trace_and_not_the_table() {
    let mount = "mount -t tmpfs -o size=8k tmpfs . && cd \"$PWD\" && exec \"$@\"";
    let on_small_disk = |words: &[&str]| {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", mount, "sh"]).args(words);
        command.current_dir(directory.path()).output()
    };
    if !on_small_disk(&["true"]).is_ok_and(|output| output.status.success()) {
        return println!("skipped: needs root and unshare");
    }
    let script = "\"$@\" --trace trace.txt; status=$?; ls -A >&2; exit $status";
    let program = env!("CARGO_BIN_EXE_placewise");
    let words = [&["sh", "-c", script, "sh", program][..], &QUICK].concat();
    let output = on_small_disk(&words).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), quick(&[]));
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("placewise: cannot write trace.baseline.txt: "), "{stderr}");
}

/// Whether `pid` has a file of the directory open, named or not.
fn has_file_in(pid: u32, directory: &Path) -> bool {
    let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let mut files = files.flatten().filter_map(|file| file.path().read_link().ok());
    files.any(|file| file.starts_with(directory))
}

#[test]
fn nothing_is_left_of_a_comparison_that_is_killed() {
    for signal in ["-INT", "-TERM", "-HUP", "-QUIT", "-KILL"] {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let mut command = std::process::Command::new("sh");
        // A job in the background of a script is started with SIGINT ignored.
        command.args([
            "-c",
            "ulimit -c 0; exec env --default-signal \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_placewise"),
        ]);
        let long = QUICK.iter().filter(|arg| **arg != "--runs=3");
        command.args(long).args(["--runs=10000", "--trace", "trace.txt"]);
        let mut child = command.current_dir(directory).spawn().unwrap();
        while !has_file_in(child.id(), directory) {
            assert_eq!(child.try_wait().unwrap(), None, "ended before it could be killed");
            std::thread::sleep(Duration::from_millis(10));
        }
        let kill = ["kill", signal, &child.id().to_string()].join(" ");
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let interrupted = if signal == "-INT" { Some(130) } else { None };
        assert_eq!(child.wait().unwrap().code(), interrupted, "{signal}");
        assert_eq!(directory.read_dir().unwrap().count(), 0, "{signal}");
    }
}

/// What Ctrl-C gets after that long, of more runs than there is time for.
fn interrupted_after(delay: Duration) -> std::process::Output {
    let mut command = std::process::Command::new("env");
    let long = QUICK.iter().filter(|arg| **arg != "--runs=3");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_placewise")]).args(long);
    command.args(["--runs=10000", "--format=json"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    std::thread::sleep(delay);
    let kill = ["kill -INT", &child.id().to_string()].join(" ");
    assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    child.wait_with_output().unwrap()
}

#[test]
fn an_interrupt_prints_what_is_complete_and_says_what_is_missing() {
    // Until one is late enough for a run of each policy.
    let mut delays = (1..).map(|quarters| Duration::from_millis(250 * quarters));
    let output = delays
        .by_ref()
        .map(interrupted_after)
        .find(|output| output.status.code() == Some(130) && !output.stdout.is_empty())
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let done = rows[0]["runs"].as_u64().unwrap();
    assert!(done < 10_000 && rows[..3].iter().all(|row| row["runs"] == done), "{rows:?}");
    let missing = report["missing"].as_array().unwrap();
    let first = format!("{} of 10000 runs of groups=1;fds=4;loops=20", 10_000 - done);
    assert_eq!(missing[0], first.as_str());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains(&format!("placewise: interrupted; missing: {first}; ")), "{stderr}");
}

/// Of the 100 ms that the model warms up, and the window of the case.
#[test]
fn a_first_look_has_fewer_and_shorter_runs() {
    let of = |options: &[&str]| -> Value {
        let mut command = Command::cargo_bin("placewise").unwrap();
        command.args(["compare", "--machine=uma-8", "--workload=schedpipe", "--format=json"]);
        serde_json::from_slice(&command.args(options).output().unwrap().stdout).unwrap()
    };
    let quick = of(&["--case=window_ms=50", "--quick"]);
    let spelt_out = of(&["--case=warmup_ms=20;window_ms=10", "--runs=3"]);
    assert_eq!((&quick["runs"], &quick["quick"]), (&3.into(), &true.into()));
    assert_eq!(quick["rows"][0]["mean"], spelt_out["rows"][0]["mean"]);
    assert_eq!(of(&["--case=window_ms=50", "--quick", "--runs=2"])["runs"], 2);
}

/// Five pairs on eight CPUs, under rules for tasks that have no wake flips left: soon after their start all have some.
#[test]
fn rules_that_wait_for_wake_flips_to_decay_act_in_the_window() {
    let of = |case: &str, options: &[&str]| -> [f64; 2] {
        let mut command = Command::cargo_bin("placewise").unwrap();
        command.args(["compare", "--machine=arm64-8", "--kernel=v6.2", "--workload=netperf"]);
        command.args(["--case", case, "--policy=sis-short", "--runs=1", "--format=json"]);
        let output = command.args(options).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        [0, 1].map(|row: usize| report["rows"][row]["mean"].as_f64().unwrap())
    };
    for quick in [&[][..], &["--quick"]] {
        let [baseline, sis_short] = of("threads=5;window_ms=100", quick);
        assert!(sis_short > 1.1 * baseline, "{baseline}, {sis_short}");
    }
    let [baseline, sis_short] = of("threads=5;window_ms=100;warmup_ms=300", &[]);
    assert_eq!(baseline, sis_short);
}

#[test]
fn other_seeds_give_other_figures() {
    let json = |seed| quick(&["--format", "json", "--seed", seed]);
    let means = |text: String| -> Vec<Value> {
        let report: Value = serde_json::from_str(&text).unwrap();
        let rows = report["rows"].as_array().unwrap();
        rows.iter().map(|row| row["mean"].clone()).collect()
    };
    assert_ne!(means(json("1")), means(json("1000")));
}

#[test]
fn json_has_the_documented_fields() {
    let report: Value = serde_json::from_str(&quick(&["--format", "json", "--stats"])).unwrap();
    assert_eq!(report["machine"], "x86-12");
    assert_eq!(report["kernel"], "v6.0");
    assert_eq!(report["workload"], "hackbench");
    assert_eq!(report["runs"], 3);
    assert_eq!(report["seed"], 1);

    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len() % 6, 0, "every metric has two cases of three policies");
    let row = rows.iter().find(|row| row["metric"] == "time").unwrap();
    assert_eq!(row["case"], "groups=1;fds=4;loops=20");
    assert_eq!(row["policy"], "baseline");
    assert_eq!(row["unit"], "s");
    assert_eq!(row["better"], "lower");
    assert!(row["mean"].as_f64().unwrap() > 0.0);
    assert!(row["std_pct"].is_number());
    assert!(row["change_pct"].is_null() && row["significant"].is_null());
    let is_short = |row: &&Value| row["policy"] == "short-task";
    let other = rows.iter().find(is_short).unwrap();
    assert!(other["change_pct"].is_number() && other["significant"].is_boolean());

    let stats = report["stats"].as_array().unwrap();
    assert!(stats.iter().any(|stat| {
        stat["metric"].as_str().unwrap().starts_with("schedstat_") && stat["mean"].is_number()
    }));
}

#[test]
fn json_tells_what_load_balancing_did() {
    let without: Value = serde_json::from_str(&quick(&["--format", "json"])).unwrap();
    assert_eq!(without["load_balance"], Value::Array(Vec::new()));
    let report: Value = serde_json::from_str(&quick(&["--format", "json", "--stats"])).unwrap();
    let rows = report["load_balance"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.len().is_multiple_of(3), "a row of each of three policies");
    let count = |row: &Value, name: &str| row[name].as_f64().unwrap();
    for row in rows {
        assert!(["smt", "mc"].contains(&row["level"].as_str().unwrap()), "{row}");
        assert!(["idle", "busy", "newly_idle"].contains(&row["idle"].as_str().unwrap()), "{row}");
        let reasons = row["moved_nothing"].as_object().unwrap();
        let why: f64 = reasons.values().map(|mean| mean.as_f64().unwrap()).sum();
        let fruitful = count(row, "lb_count") - why;
        assert!(fruitful > -1e-6 && fruitful <= count(row, "lb_gained") + 1e-6, "{row}");
    }
    let newly_idle: Vec<&Value> = rows.iter().filter(|row| row["idle"] == "newly_idle").collect();
    assert!(newly_idle.iter().any(|row| count(row, "lb_gained") > 0.0));
    assert!(newly_idle.iter().any(|row| count(&row["moved_nothing"], "hot") > 0.0));
}

/// Two parts that would each fill the one CPU there is, in cgroups of these weights.
fn mixed(weights: [u32; 2], format: &str) -> String {
    let [web, batch] = weights;
    let case = format!(
        "parts=schedpipe@web:{web}+context_switch1@batch:{batch};warmup_ms=20;window_ms=300"
    );
    let mut command = Command::cargo_bin("placewise").unwrap();
    let options = ["compare", "--machine", "pack:1 l3:1 core:1 pu:1", "--workload", "mix"];
    command.args(options).args(["--case", &case, "--runs=2", "--stats", "--format", format]);
    let output = command.args(["--policy", "baseline", "--policy", "short-task"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn each_part_of_a_mix_has_its_rows() {
    let report: Value = serde_json::from_str(&mixed([100, 100], "json")).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let metrics: Vec<&str> = rows.iter().map(|row| row["metric"].as_str().unwrap()).collect();
    let (web, batch) = ("schedpipe@web: throughput", "context_switch1@batch: throughput");
    assert_eq!(metrics[..4], [web, web, batch, batch]);
    assert!(rows[..4].iter().all(|row| row["mean"].as_f64().unwrap() > 0.0));
    assert!(!report["stats"].as_array().unwrap().is_empty());
    let table = mixed([100, 100], "table");
    for told in ["\nschedpipe@web\n", "throughput (ops/s)", "\ncontext_switch1@batch\n"] {
        assert!(table.contains(told), "no `{told}` in {table}");
    }
}

/// Half of the CPU and half of it, or ten parts of eleven and one; a switch is charged to whom it is to, and
/// so falls on the one part more often.
#[test]
fn weights_of_a_mix_show_in_its_figures() {
    let rates = |weights| {
        let report: Value = serde_json::from_str(&mixed(weights, "json")).unwrap();
        [0, 2].map(|row: usize| report["rows"][row]["mean"].as_f64().unwrap())
    };
    let (even, uneven) = (rates([100, 100]), rates([1000, 100]));
    let gain = [0, 1].map(|part: usize| uneven[part] / even[part]);
    assert!((gain[0] / (20.0 / 11.0) - 1.0).abs() < 0.15, "{gain:?}");
    assert!((gain[1] / (2.0 / 11.0) - 1.0).abs() < 0.25, "{gain:?}");
}

#[test]
fn one_run_leaves_significance_unknown() {
    let several: Value = serde_json::from_str(&quick(&["--format", "json"])).unwrap();
    let judged = |report: &Value| {
        let rows = report["rows"].as_array().unwrap();
        rows.iter().filter(|row| row["significant"].is_boolean()).count()
    };
    assert!(judged(&several) > 0);
    let one: Value = serde_json::from_str(&quick_once("json")).unwrap();
    assert_eq!(judged(&one), 0);
    assert!(quick_once("table").contains(" ?"));
}

/// Where the interval is far from 0 or small, the first three runs do; where not, the budget is spent.
#[test]
fn runs_are_added_until_each_change_is_known() {
    let rows_at = |precision: &str| -> Vec<Value> {
        let unsure = "groups=7;fds=2;loops=20";
        let options = ["--format=json", "--budget=7", "--case", unsure, "--precision", precision];
        let report: Value = serde_json::from_str(&quick(&options)).unwrap();
        report["rows"].as_array().unwrap().clone()
    };
    let is_known = |row: &Value, precision: f64| {
        let end = |name: &str| row[name].as_f64().unwrap();
        let (low, high) = (end("change_low_pct"), end("change_high_pct"));
        low > 0.0 || high < 0.0 || (low >= -precision && high <= precision)
    };
    let (coarse, fine) = (rows_at("100"), rows_at("0.000001"));
    assert!(coarse.iter().all(|row| row["runs"] == 3), "{coarse:?}");
    for of_case in fine.chunk_by(|one, other| one["case"] == other["case"]) {
        let runs = of_case[0]["runs"].as_u64().unwrap();
        assert!([3, 6, 7].contains(&runs) && of_case.iter().all(|row| row["runs"] == runs));
        let mut changes = of_case.iter().filter(|row| row["change_low_pct"].is_number());
        assert!(runs == 7 || changes.all(|row| is_known(row, 0.000001)), "{of_case:?}");
    }
    assert!(fine.iter().any(|row| row["runs"] != 3));
}

#[test]
fn a_budget_below_the_first_runs_is_refused() {
    let mut command = Command::cargo_bin("placewise").unwrap();
    let output = command.args(QUICK).args(["--precision=1", "--budget=2"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(output.stderr).unwrap().contains("--budget 2: is less than --runs 3")
    );
}

/// As [`quick`], with one run.
fn quick_once(format: &str) -> String {
    let mut command = Command::cargo_bin("placewise").unwrap();
    let args = QUICK.iter().filter(|arg| **arg != "--runs=3");
    let output = command.args(args).args(["--runs=1", "--format", format]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Figures and marks go, and with them what depends on their width: blanks and rules.
fn without_figures(text: &str) -> String {
    let line = |line: &str| {
        let words = line.split_whitespace().filter(|word| !is_figure(word));
        words.map(short_rule).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A number as a cell holds it: with a point, or large, or nothing at all.
fn is_figure(word: &str) -> bool {
    let number = word.parse::<f64>();
    let is_cell = |number: f64| word.contains('.') || number >= 1000.0 || number == 0.0;
    word == "~" || word == "?" || number.is_ok_and(is_cell)
}

fn short_rule(word: &str) -> &str {
    match word.chars().all(|c| "─═-|".contains(c)) && word.len() > 1 {
        true => "---",
        false => word,
    }
}

#[test]
fn table_layout() {
    insta::assert_snapshot!(without_figures(&quick(&[])));
}

#[test]
fn lkml_layout() {
    for stats in ["--stats", "--stats=all"] {
        let text = quick(&["--format", "lkml", stats]);
        assert!(text.lines().all(|line| line.chars().count() < 80), "{text}");
        let table = quick(&[stats]);
        assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    }
    let without_stats = quick(&["--format", "lkml"]);
    // Which commit it was is another thing each time.
    let released = without_stats.replace(env!("PLACEWISE_VERSION"), env!("CARGO_PKG_VERSION"));
    insta::assert_snapshot!(without_figures(&released));
}

#[test]
fn a_posted_table_says_first_that_it_is_simulated() {
    let text = quick(&["--format", "lkml"]);
    let version = env!("CARGO_PKG_VERSION");
    assert!(text.starts_with(&format!("Simulated by placewise {version}")), "{text}");
}

/// Every counter, or those that moved: of hints that no task has, none.
#[test]
fn texts_tell_what_moved_and_all_where_asked() {
    let all = quick(&["--stats=all"]);
    for zero in ["sched yield count", "migrations active", "load balance, means of", "hot"] {
        assert!(all.contains(zero), "{zero}: {all}");
    }
    assert!(!all.contains("jiffies"));
    let moved = quick(&["--stats"]);
    assert!(!moved.contains("migrations active") && !moved.contains("load balance, means"));
    let nothing = subjects_text(&["--policy=baseline", "--policy=hint:none", "--stats"]);
    assert!(nothing.contains("why: no counter moved beyond the noise"), "{nothing}");
}

fn subjects_text(options: &[&str]) -> String {
    let mut command = Command::cargo_bin("placewise").unwrap();
    command.args(["compare", "--machine=uma-8", "--workload=hackbench", "--runs=3"]);
    let output = command.arg("--case=groups=1;fds=4;loops=20").args(options).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn markdown_layout() {
    insta::assert_snapshot!(without_figures(&quick(&["--format", "markdown"])));
}

#[test]
fn csv_has_the_published_schema() {
    let text = quick(&["--format", "csv", "--stats"]);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let published =
        "series,machine,kernel,workload,case,metric,policy,value,unit,better,spread_pct,change_pct";
    assert_eq!(header.join(","), format!("{published},significant,runs,seed,environment"));
    let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let time = records.iter().find(|record| &record[5] == "time").unwrap();
    assert_eq!(time[9], *"lower");
    assert!(time[7].parse::<f64>().unwrap() > 0.0);
    assert_eq!([&time[12], &time[14]], ["", "1"], "the first policy has no change");
    assert!(time[13].parse::<u32>().unwrap() > 1);
    let changed = records.iter().filter(|record| &record[5] == "time").nth(1).unwrap();
    assert!(["true", "false"].contains(&&changed[12]), "{changed:?}");
    assert!(records.iter().any(|record| record[5].starts_with("schedstat_")));
    assert!(records.iter().any(|record| record[5] == *"lb_count_mc_newly_idle"));
    assert!(records.iter().any(|record| record[5] == *"lb_moved_nothing_hot_mc_newly_idle"));
    assert!(!text.to_lowercase().contains("nan") && !text.contains("inf"));
}

#[test]
fn no_colours_off_the_terminal() {
    assert!(!quick(&[]).contains('\u{1b}'));
}

/// The command that a posted table ends with gives that table.
#[test]
fn the_printed_command_reproduces_the_report() {
    let text = quick(&["--format", "lkml"]);
    let (_, command) = text.split_once("Simulated with:").unwrap();
    let words = shell_words::split(command).unwrap();
    assert_eq!(words[0], "placewise");
    let mut again = Command::cargo_bin("placewise").unwrap();
    let output = again.args(&words[1..]).args(["--format", "lkml"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
}

/// Each part is a table with all its metrics, and cases too long for a row are called by number.
#[test]
fn a_mix_has_a_table_for_each_part() {
    let case = |workers: u32| {
        format!(
            "--case=parts=schbench:workers={workers}+schedpipe:user_ns=1000@batch;warmup_ms=50;window_ms=50"
        )
    };
    let mut command = Command::cargo_bin("placewise").unwrap();
    let output = command
        .args(["compare", "--machine=uma-8", "--workload=mix", "--runs=1", &case(2), &case(4)])
        .args(["--policy=baseline", "--policy=short-task", "--stats"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let headings =
        text.lines().filter(|line| ["schbench", "schedpipe@batch", "cases"].contains(line));
    assert_eq!(headings.collect::<Vec<_>>(), ["cases", "schbench", "schedpipe@batch"], "{text}");
    let (_, schbench) = text.split_once("\nschbench\n").unwrap();
    let (schbench, _) = schbench.split_once("schedpipe@batch").unwrap();
    for told in ["case 1", "case 2", "p50_wakeup_latency (us)", "p99_wakeup_latency (us)"] {
        assert!(schbench.contains(told), "no {told} in {schbench}");
    }
    assert!(text.contains(" case 2   parts=schbench:workers=4+"), "{text}");
    let why = text.lines().filter(|line| line.starts_with("why: "));
    let cases = why.map(|line| line.rsplit_once(", means of ").map(|(_, case)| case));
    assert_eq!(cases.collect::<Vec<_>>(), [Some("case 1"), Some("case 2")], "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

/// A knob that is set for all policies is the word in each of them, and it acts.
#[test]
fn a_knob_is_a_word_of_each_policy() {
    let case = ["--case", "groups=1;fds=4;loops=20", "--format", "csv"];
    let compare = |options: &[&str]| {
        let mut command = Command::cargo_bin("placewise").unwrap();
        let fixed = ["compare", "--machine", "x86-12", "--workload", "hackbench", "--stats"];
        let output = command.args(fixed).args(case).args(options).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let both = ["--policy", "baseline", "--policy", "short-task"];
    let set = compare(&[&both[..], &["--set", "WAKEUP_PREEMPTION=0"]].concat());
    let words = "set:WAKEUP_PREEMPTION=0";
    let words = ["--policy", words, "--policy", &format!("short-task,{words}")];
    assert_eq!(set, compare(&words));
    assert_ne!(set, compare(&both).replace("baseline", words[1]).replace("short-task", words[3]));
}
