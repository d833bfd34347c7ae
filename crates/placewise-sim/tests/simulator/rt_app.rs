//! Latencies of rt-app files: of timers and of wakeups by others, by task and by instance.

use super::common::{Setup, figure};
use placewise_sim::Outcome;
use placewise_workload::from_rt_app_text;

fn run(tasks: &str) -> Outcome {
    let text = format!("{{ \"tasks\": {{ {tasks} }}, \"global\": {{ \"duration\": 1 }} }}");
    Setup::new("uma-8", "v6.0", "baseline", from_rt_app_text("test", &text).unwrap()).run()
}

fn has(outcome: &Outcome, metric: &str) -> bool {
    outcome.figures.iter().any(|figure| figure.metric == metric)
}

/// Two instances want the same CPU at the same time for 2 ms, and neither preempts the other, so one of
/// them waits, while `calm` has a CPU to itself.
#[test]
fn who_waits_is_told_by_task_and_instance() {
    let outcome = run(r#"
        "shared": { "instance": 2, "cpus": [0], "policy": "SCHED_FIFO",
            "timer": { "ref": "unique", "period": 20000 }, "run": 2000 },
        "calm": { "cpus": [1], "run": 2000, "timer": { "ref": "c", "period": 20000 } }"#);
    let p99 = |task: &str| figure(&outcome, &format!("{task}: p99_wakeup_latency"));
    assert!(p99("calm") < 500.0, "{}", p99("calm"));
    assert!(p99("shared") > 1500.0, "{}", p99("shared"));
    // Of more samples, the hundredth part that waited longest is no worse.
    let of_one = f64::max(p99("shared#1"), p99("shared#2"));
    assert!(p99("shared") <= of_one, "{} {of_one}", p99("shared"));
    let of_all = figure(&outcome, "p99_wakeup_latency");
    assert!((1500.0..=p99("shared")).contains(&of_all), "{of_all}");
    assert!(!has(&outcome, "calm#1: p99_wakeup_latency"), "one instance is the task");
}

/// A real-time task has the CPU for 3 ms from the moment on at which `worker` is woken there.
#[test]
fn a_wakeup_by_another_task_is_sampled_until_the_task_runs() {
    let outcome = run(r#"
        "worker": { "cpus": [0], "suspend": "worker", "run": 100 },
        "waker": { "cpus": [1], "timer": { "ref": "w", "period": 20000 }, "run": 10, "resume": "worker" },
        "first": { "cpus": [0], "policy": "SCHED_FIFO", "timer": { "ref": "f", "period": 20000 }, "run": 3000 }"#);
    let woken = figure(&outcome, "worker: p50_woken_latency");
    assert!((2500.0..3100.0).contains(&woken), "{woken}");
    assert!(!has(&outcome, "worker: p50_wakeup_latency"), "it has no timer");
    assert!(figure(&outcome, "waker: p99_wakeup_latency") < 500.0);
}
