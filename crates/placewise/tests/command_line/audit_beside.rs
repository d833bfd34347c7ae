//! An audit beside something else: a second trace, and what the kernel itself has counted.

use assert_cmd::Command;
use serde_json::Value;

const HEADER: &str = "\
# kernel: 6.12.0
# cpu 0 core=0 llc=0-1 package=0
# cpu 1 core=1 llc=0-1 package=0
# node/node0 cpus=0-1 distance=10
# hz: 1000
";

/// `client` is woken beside an idle CPU and waits behind `hog` until `ran_at`, in microseconds.
fn trace(ran_at: u32) -> String {
    format!(
        "{HEADER}\
  <idle>-0   [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=hog next_pid=300 next_prio=120
  <idle>-0   [001] d..2. 1.000001: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=server next_pid=100 next_prio=120
  server-100 [001] d..3. 1.000100: sched_waking: comm=client pid=200 prio=120 target_cpu=000
  server-100 [001] d..4. 1.000102: sched_wakeup: comm=client pid=200 prio=120 target_cpu=000
  server-100 [001] d..2. 1.000103: sched_switch: prev_comm=server prev_pid=100 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
     hog-300 [000] d..2. 1.{ran_at:06}: sched_switch: prev_comm=hog prev_pid=300 prev_prio=120 prev_state=S ==> next_comm=client next_pid=200 next_prio=120
  client-200 [000] d..2. 1.010000: sched_switch: prev_comm=client prev_pid=200 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
"
    )
}

struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        Files(directory)
    }

    fn audit(&self, args: &[&str]) -> std::process::Output {
        let mut command = Command::cargo_bin("placewise").unwrap();
        command.current_dir(self.0.path()).arg("audit").args(args).output().unwrap()
    }

    fn printed(&self, args: &[&str]) -> String {
        let output = self.audit(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn figures(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.printed(&[args, &["--format", "json"]].concat())).unwrap()
    }

    #[track_caller]
    fn refused(&self, args: &[&str], part: &str) {
        let output = self.audit(args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains(part), "`{part}` is not in: {stderr}");
    }
}

fn change<'a>(difference: &'a Value, figure: &str) -> &'a Value {
    let changes = difference["changes"].as_array().unwrap();
    changes.iter().find(|change| change["figure"] == figure).expect(figure)
}

#[test]
fn two_traces_are_put_side_by_side() {
    let files = Files::new(&[("slow.txt", &trace(4_100)), ("fast.txt", &trace(1_100))]);
    let text = files.printed(&["slow.txt", "fast.txt"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("before: client waited 3.997 ms behind hog on CPU 0"), "{text}");
    assert!(lines[1].starts_with("after: client waited 997.0 us behind hog on CPU 0"), "{text}");
    assert!(!text.contains('!'), "they are of one machine and kernel: {text}");
    let worst = text.lines().find(|line| line.contains("worst wait of client")).unwrap();
    assert!(worst.contains("4.000 ms") && worst.ends_with("x0.2500"), "{worst}");

    let difference = files.figures(&["slow.txt", "fast.txt"]);
    let worst = change(&difference, "  worst wait of client");
    assert_eq!((&worst["before"], &worst["after"]), (&4e6.into(), &1e6.into()));
    assert_eq!(difference["before"], files.figures(&["slow.txt"]), "each as by itself");
    assert_eq!(difference["after"], files.figures(&["fast.txt"]));
    assert_eq!(difference["unlike"], serde_json::json!([]));
}

#[test]
fn a_trace_is_like_itself() {
    let files = Files::new(&[("one.txt", &trace(4_100))]);
    for change in files.figures(&["one.txt", "one.txt"])["changes"].as_array().unwrap() {
        assert_eq!(change["before"], change["after"]);
    }
}

#[test]
fn traces_of_unlike_machines_and_kernels_say_so() {
    let newer = trace(4_100).replace("6.12.0", "6.18.2");
    let split = trace(4_100).replace("llc=0-1", "llc=0");
    let split = split.replace("cpu 1 core=1 llc=0", "cpu 1 core=1 llc=1");
    let files =
        Files::new(&[("a.txt", &trace(4_100)), ("newer.txt", &newer), ("split.txt", &split)]);
    let text = files.printed(&["a.txt", "newer.txt"]);
    assert!(text.contains("! the kernels differ: 6.12.0 before, 6.18.2 after"), "{text}");
    let text = files.printed(&["a.txt", "split.txt"]);
    let machines =
        "! the machines differ: 2 CPUs, 1 LLC, 1 NUMA node before, 2 CPUs, 2 LLCs, 1 NUMA node";
    assert!(text.contains(machines), "{text}");
    files.refused(&["a.txt", "newer.txt", "--explain", "1"], "cannot be used with");
    files.refused(&["a.txt", "none.txt"], "none.txt");
}

/// Version 17: a CPU's numbers, and those of its one domain.
fn schedstat(of_cpu: [u64; 9], newly_idle_pulled: u64) -> String {
    let of_cpu: String = of_cpu.iter().map(|n| format!(" {n}")).collect();
    let mut domain = [0; 45];
    domain[2 * 11 + 7] = newly_idle_pulled;
    let domain: String = domain.iter().map(|n| format!(" {n}")).collect();
    let of = |cpu: u32| format!("cpu{cpu}{of_cpu}\ndomain0 MC 00000003{domain}\n");
    format!("version 17\ntimestamp 1\n{}{}", of(0), of(1))
}

#[test]
fn what_the_kernel_counted_stands_beside_the_trace() {
    let before = schedstat([0; 9], 5);
    let after = schedstat([0, 0, 9, 2, 1, 1, 7_000_000, 2_000_000, 3], 6);
    let files = Files::new(&[("trace", &trace(4_100)), ("before", &before), ("after", &after)]);
    let args = ["trace", "--schedstat", "before", "after"];
    let counted = &files.figures(&args)["schedstat"];
    assert_eq!((&counted["switched_in"], &counted["run_ns"]), (&6.into(), &14_000_000.into()));
    assert_eq!(counted["domains"][0]["newly_idle"]["pulled"], 2, "of both CPUs");
    let text = files.printed(&args);
    let row = |name: &str| {
        let row = text.lines().find(|line| line.trim_start().starts_with(name)).expect(name);
        row.split_whitespace().rev().take(4).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("waited to run"), "ms 4.000 ms 4.000", "as long in both: {text}");
    assert!(row("tasks switched in").starts_with("6 3 "), "{text}");
    assert_eq!(files.figures(&["trace"])["schedstat"], Value::Null);
    files.refused(
        &["trace", "--schedstat", "trace", "after"],
        "trace: line 1: expected `version 15`",
    );
    files.refused(&["trace", "--schedstat", "before"], "2 values required");
    files.refused(&["trace", "--schedstat", "before", "after", "--task", "hog"], "cannot be used");
    files.refused(&["trace", "--schedstat", "none", "after"], "none: No such file");
}

/// The reports are perf's own (7.3.4), of copies in which each counter has grown by another number.
#[test]
fn a_report_of_perf_says_the_same_as_copies() {
    for (before, after, report) in [
        (
            include_str!("perf_stats/v15.before"),
            include_str!("perf_stats/v15.after"),
            include_str!("perf_stats/v15.report"),
        ),
        (
            include_str!("perf_stats/v16.before"),
            include_str!("perf_stats/v16.after"),
            include_str!("perf_stats/v16.report"),
        ),
        (
            include_str!("perf_stats/v17.before"),
            include_str!("perf_stats/v17.after"),
            include_str!("perf_stats/v17.report"),
        ),
    ] {
        let files = Files::new(&[
            ("trace", &trace(4_100)),
            ("before", before),
            ("after", after),
            ("report", report),
        ]);
        let copies = ["trace", "--schedstat", "before", "after"];
        let of_perf = ["trace", "--perf-stats", "report"];
        assert_eq!(files.figures(&of_perf)["schedstat"], files.figures(&copies)["schedstat"]);
        assert_eq!(files.printed(&of_perf), files.printed(&copies));
        files.refused(&["trace", "--perf-stats", "before"], "before: it has no section `CPU: 0`");
        files.refused(&[&copies[..], &["--perf-stats", "report"]].concat(), "cannot be used");
    }
}
