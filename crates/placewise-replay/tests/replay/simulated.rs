//! Replays of simulated runs do what these did, and change as these change.

use placewise_policy::Policy;
use placewise_replay::Begins;
use placewise_sim::{Scenario, simulate};
use placewise_workload::program::Workload;

use crate::common::{Lab, print, row};

const CASES: [(&str, &str); 3] = [
    ("schbench", "workers=4;window_ms=1000;warmup_ms=100"),
    ("tbench", "clients=6;window_ms=50;warmup_ms=10"),
    ("pgbench", "clients=6;window_ms=100;warmup_ms=20"),
];

#[test]
fn a_replay_on_the_recorded_machine_is_like_the_recording() {
    for (name, case) in CASES {
        let lab = Lab::new("zen3-2s-nps1", "v6.0", name, case);
        let (_, validation) = lab.validated(name);
        print(&validation);
        for row in &validation.all {
            let Some(error) = row.error else { continue };
            let most = match row.figure {
                "throughput" | "run_time" => 5.0,
                "latency_p99" => 15.0,
                distance if distance.starts_with("on_") => 5.0,
                _ => continue,
            };
            assert!(error.abs() <= most, "{name}: {} is {error:.1} off", row.figure);
        }
        assert!(validation.is_trusted && validation.blamed.is_none());
    }
}

/// Of programs beside each other, which are too fast in their replay.
#[test]
fn a_replay_of_a_mix_keeps_who_wakes_whom_and_where() {
    let parts = "schbench:workers=3@web+tbench:clients=4@batch";
    let case = format!("parts={parts};window_ms=50;warmup_ms=10");
    let (_, validation) = Lab::new("zen3-2s-nps1", "v6.0", "mix", &case).validated("mix");
    print(&validation);
    for figure in ["wakeups", "latency_p50", "latency_p99", "on_same_cpu", "on_llc"] {
        let error = row(&validation.all, figure).error.expect("both have it");
        assert!(error.abs() <= 5.0, "{figure} is {error:.1} off");
    }
}

/// Tasks that exchange more messages than wakeups meet their queues at other times than recorded.
#[test]
fn a_replay_that_is_not_like_its_recording_says_so_and_whose_it_is() {
    let lab = Lab::new("zen3-2s-nps1", "v6.0", "hackbench", "groups=2;loops=100");
    let (_, validation) = lab.validated("hackbench");
    print(&validation);
    assert!(row(&validation.all, "latency_p99").is_off() && !validation.is_trusted);
    let blamed = validation.blamed.expect("somebody is to blame");
    assert!(["sender", "receiver"].contains(&blamed.as_str()), "{blamed}");
}

/// Another machine, kernel and policy.
#[derive(Clone, Copy)]
struct Change {
    machine: &'static str,
    kernel: &'static str,
    policy: &'static str,
}

fn rate(lab: &Lab, change: &Change, workload: &Workload, figure: &str) -> f64 {
    let machine = placewise_machine::load(change.machine).expect("the machine is known");
    let policy = Policy::parse(change.kernel, change.policy).expect("the policy is known");
    let rates = (1..=2).map(|seed| {
        let scenario = Scenario { machine: &machine, policy: &policy, workload, seed };
        let outcome = simulate(&scenario, None).expect("the run ends well");
        let found = outcome.figures.iter().find(|it| it.metric == figure);
        found.unwrap_or_else(|| panic!("no {figure} of {}", lab.workload.name)).value
    });
    rates.sum()
}

/// By how much a figure changes, in percent.
fn changes(lab: &Lab, name: &str, figure: &str, from: &Change, to: &Change) -> [f64; 2] {
    let (recording, _) = lab.validated(name);
    let percent = |before: f64, after: f64| (after - before) * 100.0 / before;
    let original = [from, to].map(|change| rate(lab, change, &lab.workload, "throughput"));
    let replayed = [from, to].map(|change| {
        let machine = placewise_machine::load(change.machine).expect("the machine is known");
        let is_home = change.machine == from.machine;
        let begins = if is_home { Begins::WhereTheyWere } else { Begins::Anywhere };
        let workload = recording.workload("replay", &machine, begins);
        rate(lab, change, &workload, figure)
    });
    [percent(original[0], original[1]), percent(replayed[0], replayed[1])]
}

#[test]
fn changes_have_the_sign_of_those_of_the_original() {
    let tbench = "clients=24;window_ms=20;warmup_ms=10";
    let icx = Change { machine: "icx-2s", kernel: "v6.0", policy: "baseline" };
    let zen = Change { machine: "zen3-2s-nps1", ..icx };
    for (name, case, figure, from, to) in [
        ("tbench", tbench, "tbench: throughput", &icx, zen),
        ("tbench", tbench, "tbench: throughput", &zen, Change { policy: "hint:wake_hold", ..zen }),
        ("tbench", tbench, "tbench: throughput", &zen, Change { kernel: "v7.3", ..zen }),
    ] {
        let lab = Lab::new(from.machine, from.kernel, name, case);
        let [original, replayed] = changes(&lab, name, figure, from, &to);
        let Change { machine, kernel, policy } = to;
        println!("{name} to {machine} {kernel} {policy}: {original:+.1} % {replayed:+.1} %");
        assert!(original.abs() >= 5.0, "there is a change");
        assert!(original * replayed > 0.0, "{original} and {replayed}");
    }
}
