//! A simulated trace with its decisions: the policy of the kernel that it was simulated with must
//! take each of them again as it was taken.

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

const MACHINE: &str = "numa:2 l3:2 core:4 pu:2";
const KERNELS: [&str; 3] = ["v6.0", "v6.12", "v6.18"];
const POLICIES: [&str; 3] = ["baseline", "short-task", "hint:wake_affine+fork_affine"];
/// With what fits into a moment, and the decisions to be expected at least.
const WORKLOADS: [(&str, &str, u64); 4] = [
    ("hackbench", "groups=2;fds=8;loops=400", 100),
    ("schbench", "workers=6;messengers=2;warmup_ms=50;window_ms=150", 20),
    ("context_switch1", "instances=10;warmup_ms=1;window_ms=2", 1_000),
    // In cgroups, where a task's own load is not what it adds to its CPU's.
    ("lu", "threads=30;burners=4;plane_us=5;spin_count=1;warmup_ms=10;window_ms=1000", 20),
];

fn placewise(arguments: &[&str]) -> Vec<u8> {
    let output = Command::cargo_bin("placewise").unwrap().args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Under each policy; returns the traces.
fn simulate(directory: &Path, kernel: &str, (workload, case, _): (&str, &str, u64)) -> Vec<String> {
    let trace = |infix: &str| directory.join(format!("trace{infix}.txt")).display().to_string();
    let what = ["--workload", workload, "--case", case, "--runs", "1", "--trace", &trace("")];
    let on = ["--machine", MACHINE, "--kernel", kernel, "--trace-decisions"];
    let policies = POLICIES.iter().flat_map(|policy| ["--policy", policy]);
    let words = ["compare"].into_iter().chain(what).chain(on).chain(policies);
    placewise(&words.collect::<Vec<_>>());
    let infix = |policy: &&str| trace(&format!(".{}", policy.replace(':', "_")));
    POLICIES.iter().map(infix).collect()
}

fn audit(trace: &str) -> Value {
    serde_json::from_slice(&placewise(&["audit", trace, "--format", "json"])).unwrap()
}

/// How often the trace has this event.
fn count(trace: &str, event: &str) -> u64 {
    let text = std::fs::read_to_string(Path::new(trace)).unwrap();
    text.lines().filter(|line| line.contains(event)).count() as u64
}

/// Machine, kernel and policy are those of the trace's header.
#[test]
fn every_recorded_decision_is_taken_again() {
    let directory = tempfile::tempdir().unwrap();
    for kernel in KERNELS {
        for workload in WORKLOADS {
            for trace in &simulate(directory.path(), kernel, workload) {
                let agreement = &audit(trace)["agreement"];
                let which = format!("{kernel}, {workload:?}, {trace}: {agreement}");
                let (wakeups, forks) =
                    (agreement["wakeups"].as_u64().unwrap(), agreement["forks"].as_u64().unwrap());
                assert!(wakeups >= workload.2, "{which}");
                assert_eq!(wakeups + forks, count(trace, " placewise_select_task_rq: "), "{which}");
                assert_eq!(agreement["exact_cpu_pct"], 100.0, "{which}");
                assert_eq!(agreement["forks_exact_cpu_pct"], 100.0, "{which}");
            }
        }
    }
}
