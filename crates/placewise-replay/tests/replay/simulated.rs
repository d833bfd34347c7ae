//! Replays of simulated runs do what these did, and change as these change.

use std::thread;

use placewise_policy::Policy;
use placewise_replay::{Begins, Step, validate};
use placewise_sim::{Scenario, simulate};
use placewise_workload::program::Workload;

use crate::common::{CASES, Lab, is_like_the_recording, print, row};

#[test]
fn a_replay_on_the_recorded_machine_is_like_the_recording() {
    for (name, case) in CASES {
        let lab = Lab::new("zen3-2s-nps1", "v6.0", name, case);
        let (_, validation) = lab.validated(name);
        is_like_the_recording(name, &validation);
    }
}

/// Most of the messages wake nobody: without them twice as many of the wakeups are missing. How often readers sleep
/// hangs on who is ahead in a pipe, though: the replay, whose messages all take their mean, has an eighth to a fifth less
/// of it.
#[test]
fn readers_find_messages_that_wake_nobody() {
    let mut errors = ["120", "140", "160"].map(|loops| {
        let case = format!("groups=4;loops={loops}");
        let lab = Lab::new("icx-2s", "v6.18", "hackbench", &case);
        let wakeups = |all: &[_]| row(all, "wakeups").error.expect("there were some");
        let (_, validation) = lab.validated("hackbench");
        print(&validation);
        assert!(validation.is_trusted, "{loops} loops");
        let (mut plain, measured) = lab.read("hackbench");
        let unaware = validate(&mut plain, &measured, &lab.machine, &lab.kernel);
        let without = wakeups(&unaware.expect("the replay ends well").all);
        let with = wakeups(&validation.all);
        assert!(without < 2.0 * with, "{loops} loops: {without} without, {with} with them");
        with
    });
    errors.sort_by(f64::total_cmp);
    assert!(errors[0] > -30.0 && errors[1].abs() < 25.0, "{errors:?}");
}

/// As if servers slept before they answer.
#[test]
fn a_replay_that_is_not_like_its_recording_says_so_and_whose_it_is() {
    let lab = Lab::new("zen3-2s-nps1", "v6.0", "tbench", "clients=2;window_ms=20;warmup_ms=5");
    let (mut recording, measured) = lab.read("unlike");
    for task in recording.tasks.iter_mut().filter(|task| task.name == "tbench_srv") {
        let late = |step: &Step| match step {
            Step::Post(..) => vec![Step::Sleep(20_000), *step],
            _ => vec![*step],
        };
        task.steps = task.steps.iter().flat_map(late).collect();
    }
    let validation = validate(&mut recording, &measured, &lab.machine, &lab.kernel);
    let validation = validation.expect("the replay ends well");
    print(&validation);
    assert!(row(&validation.all, "throughput").is_off() && !validation.is_trusted);
    let blamed = validation.blamed.expect("somebody is to blame");
    assert!(["tbench", "tbench_srv"].contains(&blamed.as_str()), "{blamed}");
}

/// Another machine, kernel and policy.
#[derive(Clone, Copy)]
struct Change {
    machine: &'static str,
    kernel: &'static str,
    policy: &'static str,
}

/// Of eight runs.
fn sum(lab: &Lab, change: &Change, workload: &Workload, figure: &str) -> f64 {
    let machine = placewise_machine::load(change.machine).expect("the machine is known");
    let policy = Policy::parse(change.kernel, change.policy).expect("the policy is known");
    let values = (1..=8).map(|seed| {
        let scenario = Scenario { machine: &machine, policy: &policy, workload, seed };
        let outcome = simulate(&scenario, None).expect("the run ends well");
        let found = outcome.figures.iter().find(|it| it.metric == figure);
        found.unwrap_or_else(|| panic!("no {figure} of {}", lab.workload.name)).value
    });
    values.sum()
}

/// By how much a figure changes from one to each of the others, in percent: of the original, and of
/// the replay.
fn changes(
    (name, case, figure): (&str, &str, &str),
    from: &Change,
    to: &[Change],
) -> Vec<[f64; 2]> {
    let lab = Lab::new(from.machine, from.kernel, name, case);
    let (recording, _) = lab.validated(&format!("{name}-of-{}", from.machine));
    let rates = |change: &Change| {
        let machine = placewise_machine::load(change.machine).expect("the machine is known");
        let is_home = change.machine == from.machine;
        let begins = if is_home { Begins::WhereTheyWere } else { Begins::Anywhere };
        let workload = recording.workload("replay", &machine, begins);
        let of_all = figure.rsplit(' ').next().expect("it has a last word");
        let original = sum(&lab, change, &lab.workload, of_all);
        [original, sum(&lab, change, &workload, figure)]
    };
    let before = rates(from);
    let percent = |to: &Change| {
        let after = rates(to);
        let percent: [f64; 2] =
            std::array::from_fn(|at| (after[at] - before[at]) * 100.0 / before[at]);
        let Change { machine, kernel, policy } = to;
        let [original, replayed] = percent;
        println!("{name} to {machine} {kernel} {policy}: {original:+.1} % {replayed:+.1} %");
        percent
    };
    to.iter().map(percent).collect()
}

/// Changes of fewer percent are not held to.
const FEWEST_PCT: f64 = 5.0;

/// With more clients tbench settles in one of two states, by its seed: no change has a sign then.
#[test]
fn changes_have_the_sign_of_those_of_the_original() {
    let on = |machine| Change { machine, kernel: "v6.0", policy: "baseline" };
    let [zen, icx, x86, uma] = ["zen3-2s-nps1", "icx-2s", "x86-12", "uma-8"].map(on);
    let hold = Change { policy: "hint:wake_hold", ..zen };
    let affine = Change { policy: "hint:wake_affine", ..zen };
    let older = Change { kernel: "v5.10", ..zen };
    let tbench = ("tbench", "clients=6;window_ms=20;warmup_ms=10", "tbench: throughput");
    let pgbench = ("pgbench", "clients=24;window_ms=40;warmup_ms=20", "postgres: throughput");
    let hackbench = ("hackbench", "groups=2;loops=100", "time");
    let asked: [(_, _, &[Change]); 8] = [
        (tbench, zen, &[hold, affine, older, icx, x86, uma]),
        (tbench, icx, &[zen, x86]),
        (tbench, x86, &[zen, icx]),
        (pgbench, zen, &[hold, affine, older, icx, x86, uma]),
        (pgbench, x86, &[zen, icx, uma]),
        (hackbench, zen, &[hold, affine, older, icx, x86, uma]),
        (hackbench, icx, &[zen, x86, uma]),
        (hackbench, x86, &[zen, icx, uma]),
    ];
    let mut found: Vec<[f64; 2]> = thread::scope(|scope| {
        let asked = asked.map(|(load, from, to)| scope.spawn(move || changes(load, &from, to)));
        asked.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    found.retain(|[original, _]| original.abs() >= FEWEST_PCT);
    let right = found.iter().filter(|[original, replayed]| original * replayed > 0.0).count();
    assert!(found.len() >= 6, "there are changes: {found:?}");
    assert!(right * 10 >= found.len() * 9, "{right} of {}: {found:?}", found.len());
}
