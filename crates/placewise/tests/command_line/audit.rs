//! `placewise audit` from outside: what it makes of a small trace, in every format, and of input
//! that is no trace.
//!
//! The trace is written by hand. On a machine of two LLCs of four CPUs, `server` wakes `client`
//! three times: onto its idle previous CPU; behind `hog`, while half of the LLC is idle, where it
//! waits for 4 ms; and into the other LLC. Then it forks, and the balancer moves `hog`.

use assert_cmd::Command;
use serde_json::Value;

const MACHINE: &str = "\
# kernel: 6.12.0
# cpu 0 core=0-1 llc=0-3 package=0
# cpu 1 core=0-1 llc=0-3 package=0
# cpu 2 core=2-3 llc=0-3 package=0
# cpu 3 core=2-3 llc=0-3 package=0
# cpu 4 core=4-5 llc=4-7 package=0
# cpu 5 core=4-5 llc=4-7 package=0
# cpu 6 core=6-7 llc=4-7 package=0
# cpu 7 core=6-7 llc=4-7 package=0
# node/node0 cpus=0-7 distance=10
# hz: 1000
";

const EVENTS: &str = "\
  <idle>-0   [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=server next_pid=100 next_prio=120
  <idle>-0   [002] d..2. 1.000001: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=client next_pid=200 next_prio=120
  client-200 [002] d..2. 1.000010: sched_switch: prev_comm=client prev_pid=200 prev_prio=120 prev_state=S ==> next_comm=swapper/2 next_pid=0 next_prio=120
  server-100 [000] d..3. 1.000100: sched_waking: comm=client pid=200 prio=120 target_cpu=002
  <idle>-0   [002] d.h2. 1.000102: sched_wakeup: comm=client pid=200 prio=120 target_cpu=002
  <idle>-0   [002] d..2. 1.000104: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=client next_pid=200 next_prio=120
  client-200 [002] d..2. 1.000200: sched_switch: prev_comm=client prev_pid=200 prev_prio=120 prev_state=S ==> next_comm=hog next_pid=300 next_prio=120
  server-100 [000] d..3. 1.000300: sched_waking: comm=client pid=200 prio=120 target_cpu=002
  server-100 [000] d..4. 1.000302: sched_wakeup: comm=client pid=200 prio=120 target_cpu=002
     hog-300 [002] d..2. 1.004300: sched_switch: prev_comm=hog prev_pid=300 prev_prio=120 prev_state=R ==> next_comm=client next_pid=200 next_prio=120
  client-200 [002] d..2. 1.004400: sched_switch: prev_comm=client prev_pid=200 prev_prio=120 prev_state=S ==> next_comm=hog next_pid=300 next_prio=120
  server-100 [000] d..3. 1.004500: sched_waking: comm=client pid=200 prio=120 target_cpu=002
  server-100 [000] d..3. 1.004501: sched_migrate_task: comm=client pid=200 prio=120 orig_cpu=2 dest_cpu=5
  <idle>-0   [005] d.h2. 1.004503: sched_wakeup: comm=client pid=200 prio=120 target_cpu=005
  <idle>-0   [005] d..2. 1.004510: sched_switch: prev_comm=swapper/5 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=client next_pid=200 next_prio=120
  server-100 [000] ..... 1.004600: sched_process_fork: comm=server pid=100 child_comm=server child_pid=101
  server-100 [000] d..2. 1.004610: sched_wakeup_new: comm=server pid=101 prio=120 target_cpu=006
  <idle>-0   [006] d..2. 1.004620: sched_switch: prev_comm=swapper/6 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=server next_pid=101 next_prio=120
     hog-300 [002] d..2. 1.004700: sched_migrate_task: comm=hog pid=300 prio=120 orig_cpu=2 dest_cpu=3
";

fn trace() -> String {
    format!("{MACHINE}{EVENTS}")
}

fn command(trace: &str, args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("placewise").unwrap();
    command.args(["audit", "-"]).args(args).write_stdin(trace);
    command
}

/// What is printed of a trace on standard input.
fn audited(trace: &str, args: &[&str]) -> String {
    let output = command(trace, args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    assert!(stderr.is_empty(), "progress is for terminals only");
    String::from_utf8(output.stdout).unwrap()
}

fn figures(trace: &str, args: &[&str]) -> Value {
    serde_json::from_str(&audited(trace, &[args, &["--format", "json"]].concat())).unwrap()
}

#[track_caller]
fn refused(trace: &str, args: &[&str], parts: &[&str]) {
    let output = command(trace, args).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("placewise: ") && !stderr.contains("panicked"), "{stderr}");
    assert!(output.stdout.is_empty(), "{args:?} printed a result");
    for part in parts {
        assert!(stderr.contains(part), "`{part}` is not in: {stderr}");
    }
}

#[test]
fn table_layout() {
    insta::assert_snapshot!(audited(&trace(), &["--policy", "short-task"]));
}

#[test]
fn markdown_layout() {
    insta::assert_snapshot!(audited(&trace(), &["--format", "markdown"]));
}

#[test]
fn moves_are_counted_by_distance() {
    let figures = figures(&trace(), &[]);
    let counts = |kind: &str| {
        let of = &figures["by_distance"][kind];
        ["same_cpu", "smt", "llc", "other_llc", "other_node"].map(|to| of[to].as_u64().unwrap())
    };
    assert_eq!(counts("wakeups"), [2, 0, 0, 1, 0]);
    assert_eq!(counts("forks"), [0, 0, 0, 1, 0]);
    assert_eq!(counts("balance"), [0, 1, 0, 0, 0]);
    assert_eq!(figures["placements"]["wakeups"], 3);
    assert_eq!(figures["trace"]["events"], 19);
}

#[test]
fn waiting_beside_an_idle_cpu_is_found() {
    let figures = figures(&trace(), &[]);
    let missed = &figures["missed_idle"];
    assert_eq!((&missed["same_llc"], &missed["same_node"]), (&1.into(), &0.into()));
    assert_eq!(missed["wait_ns"], 4_000_000);
    let finding = figures["findings"][0]["text"].as_str().unwrap();
    assert!(finding.contains("client") && finding.contains("idle CPU was in the LLC"), "{finding}");

    // Without hog there is nobody to wait behind.
    let calm = trace().replace("next_comm=hog next_pid=300", "next_comm=swapper/2 next_pid=0");
    let calm = calm.replace("prev_comm=hog prev_pid=300", "prev_comm=swapper/2 prev_pid=0");
    let calm = calm.replace("   hog-300", "<idle>-0").replace("comm=hog pid=300", "comm=a pid=7");
    let missed = &self::figures(&calm, &[])["missed_idle"];
    assert_eq!((&missed["same_llc"], &missed["wait_ns"]), (&0.into(), &0.into()));
}

#[test]
fn agreement_stands_beside_the_trivial_predictor() {
    let of = &figures(&trace(), &[])["agreement"];
    assert_eq!((&of["wakeups"], &of["forks"]), (&3.into(), &1.into()));
    let exact = of["exact_cpu_pct"].as_f64().unwrap();
    assert!((exact - 100.0 / 3.0).abs() < 0.1, "only the idle previous CPU was foreseen: {exact}");
    let trivial = of["prev_cpu_exact_pct"].as_f64().unwrap();
    assert!((trivial - 200.0 / 3.0).abs() < 0.1, "{trivial}");
    let reasons = of["reasons"].as_array().unwrap();
    let missed = reasons.iter().find(|reason| reason["search"] == "idle_cpu").unwrap();
    assert_eq!(missed["went"], serde_json::json!([{ "name": "prev_cpu", "count": 1 }]));
}

#[test]
fn a_policy_that_foresees_no_more_than_the_trivial_predictor_is_said_to_guess() {
    let caution = "! the policy of v6.12 foresees 33.3 % of the wakeups";
    assert!(audited(&trace(), &[]).contains(caution));
    assert!(audited(&trace(), &["--explain", "2"]).contains(caution));
    assert_eq!(
        figures(&trace(), &[])["trace"]["cautions"].as_array().unwrap().len(),
        1,
        "of forks"
    );
    let foreseen = figures(&trace(), &["--task", "server"]);
    assert_eq!(foreseen["trace"]["cautions"], serde_json::json!([]));
}

#[test]
fn other_policies_are_compared_with_that_of_the_kernel() {
    let args = ["--policy", "baseline", "--policy", "short-task"];
    let policies = &figures(&trace(), &args)["policies"];
    assert_eq!(
        (&policies[0]["policy"], &policies[0]["decisions"]),
        (&"baseline".into(), &4.into())
    );
    assert_eq!(policies[0]["other_cpu"], 0, "the kernel's policy is its own baseline");
    assert!(policies[1]["other_cpu"].as_u64() > Some(0), "short wakers pull");
}

#[test]
fn a_task_may_be_all_that_counts() {
    let figures = figures(&trace(), &["--task", "server"]);
    let placements = &figures["placements"];
    assert_eq!((&placements["wakeups"], &placements["forks"]), (&0.into(), &1.into()));
    assert_eq!(figures["agreement"]["exact_cpu_pct"], Value::Null);
    assert_eq!(figures["by_task"].as_array().unwrap().len(), 1);
}

#[test]
fn tasks_are_chosen_by_pattern_pid_or_all_that_the_kernel_has_of_a_name() {
    let wakeups =
        |task: &str| figures(&trace(), &["--task", task])["placements"]["wakeups"].clone();
    for task in ["client", "cl*", "[a-d]lien?", "200"] {
        assert_eq!(wakeups(task), 3, "{task}");
    }
    let long = trace().replace("client", "a-fifteen-bytes");
    assert_eq!(figures(&long, &["--task", "a-fifteen-bytes-name"])["placements"]["wakeups"], 3);
    let names = "no task of the trace is `nginx`; there are client, hog, server";
    refused(&trace(), &["--task", "nginx"], &["standard input: ", names]);
}

#[test]
fn a_process_is_chosen_with_all_its_threads() {
    let threads = trace().replace("client-200 [", "client-200 (    100) [");
    let threads = threads.replace("server-100 [", "server-100 (    100) [");
    let placements = |task: &str| figures(&threads, &["--task", task])["placements"].clone();
    let (process, thread) = (placements("100"), placements("200"));
    assert_eq!((&process["wakeups"], &process["forks"]), (&3.into(), &0.into()));
    assert_eq!((&thread["wakeups"], &thread["forks"]), (&3.into(), &0.into()));
    refused(&threads, &["--task", "101000"], &["no task of the trace is `101000`; there are"]);
}

#[test]
fn a_cgroup_is_chosen_with_those_below_and_their_children() {
    let cgroups = "# cgroup: 100,200 /web/front\n# cgroup: 300 /batch\n";
    let trace = format!("{MACHINE}{cgroups}{EVENTS}");
    let placements = |task: &str| figures(&trace, &["--task", task])["placements"].clone();
    for task in ["/web", "/web/front", "/w*"] {
        let placements = placements(task);
        assert_eq!(
            (&placements["wakeups"], &placements["forks"]),
            (&3.into(), &1.into()),
            "{task}"
        );
    }
    assert_eq!(placements("/batch")["balance"], 1);
    let paths = "no task of the trace is in the cgroup `/web/f`; there are /batch, /web/front";
    refused(&trace, &["--task", "/web/f"], &["standard input: ", paths]);
    refused(&self::trace(), &["--task", "/web"], &["it says of no task in which cgroup it is"]);
}

#[test]
fn a_decision_is_explained_rule_by_rule() {
    let second = audited(&trace(), &["--explain", "2"]);
    insta::assert_snapshot!(second);
    assert_eq!(second, audited(&trace(), &["--at", "1.000300"]));
    assert_eq!(second, audited(&trace(), &["--at", "1.000101"]), "the first decision after it");
    assert!(audited(&trace(), &["--explain", "4"]).contains("idle CPUs by LLC: 2/4 3/4"));
}

#[test]
fn annotations_name_llcs_and_mark_their_changes() {
    let text = audited(&trace(), &["--annotate"]);
    let line = |event: &str| text.lines().find(|line| line.contains(event)).unwrap();
    assert!(line("1.000100: sched_waking").ends_with("target_cpu=002 (LLC 0)"));
    let moved = "orig_cpu=2 (LLC 0) dest_cpu=5 (LLC 1)    <== LLC 0 -> 1";
    assert!(line("1.004501").ends_with(moved), "{}", line("1.004501"));
    assert!(line("1.004610").ends_with("target_cpu=006 (LLC 1)    <== LLC 0 -> 1"));
    assert_eq!(text.lines().count(), 19);
    assert_eq!(text.matches("<==").count(), 2, "each change is marked once");
}

#[test]
fn csv_has_a_row_for_each_figure() {
    let text = audited(&trace(), &["--format", "csv"]);
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    let value =
        |figure: &str| rows.iter().find(|row| &row[0] == figure).map(|row| row[1].to_owned());
    assert_eq!(value("placements.wakeups").as_deref(), Some("3"));
    assert_eq!(value("missed_idle.same_llc").as_deref(), Some("1"));
}

#[test]
fn losses_stand_at_the_top() {
    let lossy = trace().replacen("  client-200", "CPU:2 [LOST 12 EVENTS]\n  client-200", 1);
    let lossy = format!("{lossy}  server-100 [000] d..3. nonsense\n");
    let text = audited(&lossy, &[]);
    let top: Vec<&str> = text.lines().take(14).collect();
    assert!(top.contains(&"! 12 events lost while recording"), "{text}");
    assert!(top.iter().any(|line| line.starts_with("! 1 lines cannot be read")), "{text}");
    assert_eq!(figures(&lossy, &[])["trace"]["lost"], 12);
}

/// `client` waits behind `hog` when the clock jumps, as it does where a machine is suspended.
#[test]
fn a_jump_of_the_clock_is_no_waiting() {
    let (before, after) = EVENTS.split_once("     hog-300").unwrap();
    let after = after.replace(" 1.00", " 3000000001.00");
    let jump = format!("{MACHINE}{before}     hog-300{after}");
    let figures = figures(&jump, &[]);
    assert!(figures["trace"]["seconds"].as_f64() < Some(1.0), "{}", figures["trace"]);
    assert!(figures["findings"][0]["cost_ns"].as_u64() < Some(1_000_000_000));
    let text = audited(&jump, &[]);
    let problem =
        "! 1 times no CPU had an event for more than 10 s: 3000000000 s, which are left out";
    assert!(text.contains(problem), "{text}");
    let decision = audited(&jump, &["--at", "3000000001.004500"]);
    assert!(decision.contains("at 3000000001.004500: client-200"), "{decision}");
}

#[test]
fn two_traces_are_refused_where_the_second_begins() {
    let joined = trace() + &trace();
    let line = trace().lines().count() + 1;
    refused(&joined, &[], &[&format!("standard input: line {line}: a header behind events")]);
    let time = "time goes back from 1.004610 s to 1.000000 s on CPU 0";
    let bare = trace() + EVENTS;
    refused(&bare, &[], &[&format!("line {line}: {time}")]);
}

#[test]
fn what_the_trace_does_not_say_must_be_given() {
    refused(EVENTS, &[], &["standard input", "does not describe the machine", "--machine"]);
    let machine = ["--machine", "l3:2 core:2 pu:2"];
    refused(EVENTS, &machine, &["names no kernel release", "--kernel", "v6.12"]);
    let given = [&machine[..], &["--kernel", "v6.12"]].concat();
    let all = figures(EVENTS, &given);
    assert_eq!(all["by_distance"], figures(&trace(), &[])["by_distance"]);
    assert_eq!(
        (&all["trace"]["kernel"], &all["trace"]["release"]),
        (&"v6.12".into(), &Value::Null)
    );
    let old = trace().replace("6.12.0", "2.6.32");
    refused(&old, &[], &["`2.6.32`", "--kernel"]);
}

#[test]
fn the_newest_kernel_that_is_not_newer_stands_for_a_release() {
    let release = |release: &str| {
        figures(&trace().replace("6.12.0", release), &[])["trace"]["kernel"]
            .as_str()
            .map(str::to_owned)
    };
    assert_eq!(release("6.12.0-generic").as_deref(), Some("v6.12"));
    assert_eq!(release("6.8.0").as_deref(), Some("v6.6"));
}

#[test]
fn bad_input_is_one_line() {
    let trace = trace();
    refused("", &[], &["no scheduler event"]);
    refused(MACHINE, &[], &["no scheduler event"]);
    refused("\u{0}\u{1}\u{2}\n", &[], &["no scheduler event"]);
    refused(&trace.replace(" 1.00", " 18446744073.00"), &[], &["an event at 18446744073 s"]);
    refused(&trace, &["--explain", "5"], &["--explain 5", "4 placement decisions"]);
    refused(&trace, &["--explain", "0"], &["--explain"]);
    refused(&trace, &["--at", "2"], &["--at", "no placement decision"]);
    refused(&trace, &["--at", "soon"], &["--at", "such as 5.544334"]);
    refused(&trace, &["--at", "1", "--explain", "1"], &["cannot be used with"]);
    refused(&trace, &["--annotate", "--policy", "short-task"], &["cannot be used with"]);
    refused(&trace, &["--policy", "shorttask"], &["shorttask"]);
    refused(&trace, &["--policy", "short-task", "--policy", "short-task"], &["given twice"]);
    refused(&trace, &["--kernel", "v9"], &["v9"]);
    refused(&trace, &["--machine", "nowhere"], &["nowhere"]);
    refused(&trace, &["--top", "0"], &["--top"]);
}
