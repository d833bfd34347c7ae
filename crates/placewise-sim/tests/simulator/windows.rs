//! When a run is measured: not before what it does at first is over.

use placewise_sim::Outcome;
use placewise_workload::program::{FOREVER, Metric, Op, Program, Window, Workload};

use crate::common::{MS, Setup, counter, figure};

const WARM_UP: u64 = 200 * MS;

/// One task that does units one after another: `(us of a unit, ms in which they take that)`, and the
/// last for ever.
fn run_of(stages: &[(u32, u32)], until_steady: bool) -> Outcome {
    let stage = |(at, &(us, ms)): (usize, &(u32, u32))| {
        let times = if at + 1 == stages.len() { FOREVER } else { ms * 1_000 / us };
        let again = Op::Repeat { counter: 0, times, to: 3 * at as u32 };
        [Op::Run { ns: u64::from(us) * 1_000 }, Op::Count, again]
    };
    let ops = stages.iter().enumerate().flat_map(stage).chain([Op::Exit]).collect();
    let window = Window { warm_up: WARM_UP, until_steady, measure: WARM_UP };
    let metrics =
        vec![Metric::Throughput { unit: "units/s", scale: 1.0 }, Metric::Time { units: UNITS }];
    let workload = Workload::new("test", vec![Program::new("main", ops)], window);
    Setup::new("uma-8", "v6.0", "baseline", Workload { metrics, ..workload }).run()
}

/// More than there are in any run.
const UNITS: u64 = 1_000_000;

const FAST: (u32, u32) = (10, 0);
/// For longer than the warm-up lasts.
const SLOW: (u32, u32) = (20, 300);

fn warm_ups(outcome: &Outcome) -> f64 {
    counter(outcome, "warm_up") * 1e9 / WARM_UP as f64
}

fn throughput(outcome: &Outcome) -> f64 {
    figure(outcome, "throughput")
}

/// Fails if a window is kept that began before the workload had settled, or if anything counted in one
/// that was given up stays.
#[test]
fn a_window_that_began_too_early_is_given_up() {
    let (at_once, late) = (run_of(&[FAST], true), run_of(&[SLOW, FAST], true));
    assert_eq!((warm_ups(&at_once), warm_ups(&late)), (1.0, 2.0));
    assert!((throughput(&late) / throughput(&at_once) - 1.0).abs() < 0.001);
    assert_eq!(counter(&late, "settled"), 1.0);
    assert_eq!(counter(&late, "main_on_node_0"), counter(&at_once, "main_on_node_0"));
}

/// Fails if the time of a whole run were that of its window alone: before it, 15,000 units took as long as 30,000.
#[test]
fn what_took_longer_before_the_window_is_in_the_time_of_the_run() {
    let [at_once, late] = [&[FAST][..], &[SLOW, FAST]].map(|stages| run_of(stages, true));
    let (at_once, late) = (figure(&at_once, "time"), figure(&late, "time"));
    assert!((at_once - 10.0).abs() < 0.1, "{at_once}");
    assert!((late - at_once - 0.15).abs() < 0.01, "{late} and {at_once}");
}

/// One task does as much all the while; for so long others compute on the other node.
fn run_beside_tasks_of_the_other_node(ms: u64) -> f64 {
    let others = Op::Fork { program: 1, count: 3, base: 0, step: 0 };
    let unit = [Op::Run { ns: 10_000 }, Op::Count];
    let again = Op::Repeat { counter: 0, times: FOREVER, to: 1 };
    let main = [&[others][..], &unit, &[again, Op::Exit]].concat();
    let mut other = Program::new("other", vec![Op::Run { ns: ms * MS }, Op::Exit]);
    let mut main = Program::new("main", main);
    (main.nodes, other.nodes) = (Some([0].into_iter().collect()), Some([1].into_iter().collect()));
    let window = Window { warm_up: WARM_UP, until_steady: true, measure: WARM_UP };
    let workload = Workload::new("test", vec![main, other], window);
    let machine = "pack:2 l3:1 core:4 pu:1";
    warm_ups(&Setup::new(machine, "v6.0", "baseline", workload).run())
}

/// Fails if it were only looked at what gets done.
#[test]
fn tasks_that_leave_a_node_are_waited_for() {
    assert_eq!(run_beside_tasks_of_the_other_node(10_000), 1.0);
    assert_eq!(run_beside_tasks_of_the_other_node(300), 2.0);
}

/// Fails if a warm-up that is asked for is made longer.
#[test]
fn a_warm_up_that_is_set_stays_what_it_is() {
    let fixed = run_of(&[SLOW, FAST], false);
    assert_eq!(warm_ups(&fixed), 1.0);
    assert!(throughput(&fixed) < 0.8 * throughput(&run_of(&[FAST], true)));
}

/// Fails if a run goes on for ever, or is said to have settled when it had not.
#[test]
fn a_workload_that_does_not_settle_is_measured_in_the_end_and_told() {
    // One change or more in each of the two windows.
    let ever_faster: Vec<_> = (0..12).map(|stage| (2_048 >> stage, 170)).collect();
    let outcome = run_of(&ever_faster, true);
    assert_eq!(warm_ups(&outcome), 2.0, "as long as it had lasted then, and no more");
    assert_eq!(counter(&outcome, "settled"), 0.0);
}

/// Run queues that are looked at in a search of an LLC of 112 CPUs that has just become busy.
fn scanned_per_search(warm_up: u64) -> f64 {
    let burner = Op::Fork { program: 1, count: 112, base: 0, step: 0 };
    let pause = Op::Sleep { ns: MS / 2, random_pct: 0 };
    let main = vec![burner, pause, Op::Repeat { counter: 0, times: FOREVER, to: 1 }, Op::Exit];
    let burns = vec![Op::Run { ns: 60_000 * MS }, Op::Exit];
    let programs = vec![Program::new("main", main), Program::new("burner", burns)];
    let window = Window { warm_up, until_steady: false, measure: 50 * MS };
    let outcome =
        Setup::new("spr-112", "v6.0", "baseline", Workload::new("test", programs, window)).run();
    counter(&outcome, "scanned_per_domain_search")
}

/// Fails if what a busy CPU's balancing tells searches, seconds after a wide LLC became busy, is not
/// known by the end of the warm-up.
#[test]
fn the_limit_of_searches_has_settled_by_the_window() {
    let (at_once, settled) = (scanned_per_search(0), scanned_per_search(400 * MS));
    assert!(at_once > 20.0, "{at_once}");
    assert!(settled < 5.0, "{settled}");
}
