//! What is kept of a trace written by hand. On a machine of two LLCs of four CPUs `server` wakes
//! `client` onto its idle previous CPU; behind `hog`, where it waits for 4 ms while half of the LLC is
//! idle; and into the other LLC.

use placewise_audit::{Options, audit};
use placewise_machine::load;
use placewise_policy::Policy;
use placewise_report::{Part, Recorder};
use placewise_trace::TraceReader;
use serde_json::{Value, json};

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
  client-200 [005] d..2. 1.004600: sched_switch: prev_comm=client prev_pid=200 prev_prio=120 prev_state=S ==> next_comm=swapper/5 next_pid=0 next_prio=120
";

fn recorded(part: Part) -> Value {
    let machine = load("pack:1 l3:2 core:4 pu:1").unwrap();
    let kernel = Policy::parse("v6.12", "baseline").unwrap();
    let options = Options { machine: &machine, kernel: &kernel, others: &[], task: None };
    let mut reader = TraceReader::from_reader("trace", EVENTS.as_bytes()).unwrap();
    let mut recorder = Recorder::new(&machine, part);
    audit(&mut reader, &options, &mut recorder).unwrap();
    serde_json::to_value(recorder.finish("trace")).unwrap()
}

fn whole() -> Value {
    recorded(0..=u64::MAX)
}

/// The time that a thread ran on each LLC.
fn residency(recording: &Value, name: &str) -> Value {
    let threads = recording["threads"].as_array().unwrap();
    let thread = threads.iter().position(|thread| thread["name"] == name).unwrap();
    let residency = recording["residency"].as_array().unwrap();
    residency.iter().find(|one| one["thread"] == thread).unwrap()["ns_by_llc"].clone()
}

#[test]
fn run_time_is_told_by_llc() {
    let recording = whole();
    assert_eq!(residency(&recording, "client"), json!([205_000, 90_000]));
    assert_eq!(residency(&recording, "hog"), json!([4_300_000, 0]));
    assert_eq!(residency(&recording, "server"), json!([4_600_000, 0]));
}

#[test]
fn moves_and_wakeups_across_llcs_are_told() {
    let recording = whole();
    assert_eq!(recording["moves"], json!([[0, 1], [0, 0]]));
    assert_eq!(recording["wakeups"]["gaps"][1], 1, "one of the three wakeups");
}

#[test]
fn a_latency_is_from_being_woken_to_running() {
    let recording = whole();
    let client = &recording["latencies"][0];
    assert_eq!(client["name"], "client");
    assert_eq!(client["total_ns"], 4_000 + 4_000_000 + 10_000);
    let wakeups = |llc: usize| client["by_llc"][llc].as_array().unwrap().len();
    assert_eq!((wakeups(0), wakeups(1)), (2, 1), "by where it ran");
}

#[test]
fn a_placement_behind_another_beside_an_idle_cpu_is_explained() {
    let recording = whole();
    let explained = recording["explained"].as_array().unwrap();
    assert_eq!(explained.len(), 1);
    assert_eq!(explained[0]["time_ns"], 1_000_300_000);
    assert_eq!(explained[0]["at_ns"], 300_000);
    assert_eq!((&explained[0]["task"], &explained[0]["actual_cpu"]), (&json!("client"), &json!(2)));
}

#[test]
fn a_part_has_only_what_is_in_it() {
    let recording = recorded(1_004_450_000..=1_004_600_000);
    assert_eq!(
        (&recording["start_ns"], &recording["duration_ns"]),
        (&json!(1_004_450_000), &json!(150_000))
    );
    assert_eq!(residency(&recording, "client"), json!([0, 90_000]));
    assert_eq!(residency(&recording, "server"), json!([150_000, 0]));
    assert_eq!(recording["latencies"][0]["by_llc"], json!([[], [[10_239, 1]]]));
    assert_eq!(recording["explained"], json!([]));
}
