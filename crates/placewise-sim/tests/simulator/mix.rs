//! Several workloads at once: who gets how much, and whose figures are whose.

use placewise_sim::Outcome;

use crate::cgroups::ran;
use crate::common::{Setup, benchmark_of, figure};

const ONE_CPU: &str = "pack:1 l3:1 core:1 pu:1";
const EIGHT_CPUS: &str = "pack:1 l3:1 core:8 pu:1";

fn mix(machine: &str, parts: &str, warmup_ms: u32, window_ms: u32) -> Outcome {
    let case = format!("parts={parts};warmup_ms={warmup_ms};window_ms={window_ms}");
    Setup::new(machine, "v6.0", "baseline", benchmark_of("mix", &case)).run()
}

/// How much more CPU time the first task of the first part has than that of the second. All tasks are
/// always runnable: threads of STREAM that never cease to spin.
fn hogs(first: &str, second: &str) -> f64 {
    let stream = "stream:runs=100000,elements=1000000,spin_count=1000000000";
    let outcome = mix(ONE_CPU, &format!("{stream},{first}+{stream},{second}"), 0, 4_000);
    let [first, second, ..] = ran(&outcome, "stream")[..] else { panic!("two parts have tasks") };
    first / second
}

fn assert_near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.05, "{found}, and {expected} is fair");
}

/// Fails if weights were not those of cgroups, or not in proportion.
#[test]
fn cgroups_with_weights_divide_a_cpu() {
    assert_near(hogs("threads=1@a:100", "threads=1@b:300"), 1.0 / 3.0);
    assert_near(hogs("threads=1@a", "threads=1@b:300"), 1.0 / 3.0);
    assert_near(hogs("threads=1@a:300", "threads=1@b:300"), 1.0);
}

/// Fails if each part had a cgroup of its own whatever was named, or if the tasks of two cgroups were
/// weighed as tasks: the second part has three.
#[test]
fn one_cgroup_divides_a_cpu_by_task_and_two_do_not() {
    assert_near(hogs("threads=1@all", "threads=3@all"), 1.0);
    assert_near(hogs("threads=1", "threads=3"), 1.0);
    assert_near(hogs("threads=1@a", "threads=3@b"), 3.0);
}

/// Fails if the cgroups of lu, one for itself and one for each of two burners, stood beside the part's
/// and not inside: that of the hog would be one of four then.
#[test]
fn cgroups_of_a_part_are_inside_its_cgroup() {
    let hog = "stream:threads=1,runs=100000,elements=1000000@b";
    let outcome = mix(ONE_CPU, &format!("lu:threads=2@a+{hog}"), 500, 1_000);
    let elapsed = outcome.statistics.simulated_ns as f64 / 1e6;
    assert_near(ran(&outcome, "stream")[0] / elapsed, 0.5);
}

/// Fails if units were counted for another part, or sections or latencies mixed up: with a CPU for
/// each task, each part has the figures that it has alone.
#[test]
fn parts_that_do_not_compete_have_the_figures_they_have_alone() {
    let parts = [
        ("schedpipe", "", "throughput"),
        ("context_switch1", "", "throughput"),
        ("stream", "threads=2,elements=1000000,runs=100000", "triad"),
        (
            "schbench",
            "workers=2,cputime_us=100,message_cputime_us=50,sleeptime_us=100",
            "p50_wakeup_latency",
        ),
    ];
    let text = parts.map(|(name, settings, _)| format!("{name}:{settings}")).join("+");
    let together = mix("pack:1 l3:1 core:16 pu:1", &text, 50, 200);
    for (name, settings, metric) in parts {
        let case = format!("{settings};warmup_ms=50;window_ms=200").replace(',', ";");
        let alone = benchmark_of(name, &case);
        let alone = Setup::new("pack:1 l3:1 core:16 pu:1", "v6.0", "baseline", alone).run();
        let ratio = figure(&together, &format!("{name}: {metric}")) / figure(&alone, metric);
        assert!((0.7..1.4).contains(&ratio), "{name}: {ratio} of its {metric} alone");
    }
}

/// Fails if a part that is done were measured to the end of the run, or if it ended the run.
#[test]
fn a_part_that_finishes_is_measured_up_to_its_end() {
    let outcome =
        mix(EIGHT_CPUS, "schedpipe:loops=20000+hackbench:groups=1,fds=1,loops=50", 0, 300);
    assert!(outcome.statistics.simulated_ns < 299_000_000, "both are done before the window is");
    let short = outcome.statistics.simulated_ns;
    let parts = "schedpipe:loops=20000+hackbench:groups=1,fds=1,loops=50+context_switch1";
    let outcome = mix(EIGHT_CPUS, parts, 0, 300);
    assert!(outcome.statistics.simulated_ns >= 300_000_000, "the third goes on");
    let done_in = 20_000.0 / figure(&outcome, "schedpipe: throughput");
    let alone_in = short as f64 / 1e9;
    assert!((done_in / alone_in - 1.0).abs() < 0.3, "{done_in} s, {alone_in} s without a third");
    assert!(figure(&outcome, "hackbench: time") < 0.01);
}

/// Fails if the window began with the first part: the shell that starts lu is busy for a second
/// before, and the seeds draw times some percent off.
#[test]
fn the_window_begins_after_the_last_part_has_started() {
    let simulated = |parts| mix(EIGHT_CPUS, parts, 30, 20).statistics.simulated_ns / 1_000_000;
    assert_eq!(simulated("schedpipe"), 50);
    let ms = simulated("schedpipe+lu:threads=2");
    assert!((950..1150).contains(&ms), "{ms} ms");
}
