//! A recorded decision carries enough: a state that knows the machine, the
//! policy and nothing else gives the same answer from it.

use placewise_policy::{
    CACHE_AWARE_WAKEUP, FIRST_TASK, FORK_REWORK, Placement, Profile, SIS_CACHE_NONE, topology,
};
use placewise_trace::{AffineReason, Decision, Readings, SearchReason};
use proptest::prelude::*;

use crate::cgroups::spread_over_cgroups;
use crate::common::{Setup, benchmark};
use crate::properties::{
    BENCHMARKS, MACHINES, Part, Pattern, config, kernel_and_policy, part, workload,
};
use placewise_audit::DecisionTasks;
use placewise_audit::recorded::{apply, select, wrong_idle_cpus};

/// Beside the small ones: cores of two kinds, clusters, more LLCs than a word has CPUs.
const MORE_MACHINES: [&str; 5] = ["arm64-8", "x86-12", "arm64-224", "zen3-2s-nps4", "xeon-4n80"];

fn machine() -> impl Strategy<Value = &'static str> {
    prop::sample::select([&MACHINES[..], &MORE_MACHINES].concat())
}

/// The decisions of a run, as its text tells them.
fn decisions(setup: &Setup) -> Vec<Decision> {
    let text = setup.traced_with_decisions();
    let details = |line: &str| {
        let (_, event) = line.split_once(Decision::EVENT)?;
        Some(Decision::parse(event.strip_prefix(": ")?).expect("what was written can be read"))
    };
    text.lines().filter_map(details).collect()
}

/// Numbers for the tasks of a decision; idle tasks have those of their CPUs.
fn tasks(decision: &Decision) -> DecisionTasks {
    let placed = FIRST_TASK;
    let waker = match decision.waker_pid {
        0 => decision.waking_cpu.into(),
        _ => FIRST_TASK + 1,
    };
    let prev_curr = match &decision.placement {
        Readings::Wakeup(wakeup) => match wakeup.prev_curr_pid {
            0 => decision.prev_cpu.into(),
            pid if pid == decision.waker_pid => waker,
            _ => FIRST_TASK + 2,
        },
        _ => waker,
    };
    DecisionTasks { placed, waker, prev_curr }
}

fn assert_same_answer(decision: &Decision, state: &mut Placement) {
    let result = select(decision, state, tasks(decision));
    let answer = (
        result,
        state.decision.target_cpu,
        AffineReason::ALL[state.decision.affine as usize],
        SearchReason::ALL[state.decision.search as usize],
    );
    let recorded =
        (u32::from(decision.result_cpu), decision.target_cpu, decision.affine, decision.search);
    assert_eq!(answer, recorded, "{decision}");
}

/// Some patches make wakeups read of other LLCs, of processes or of sleepers.
fn is_carried(profile: &Profile) -> bool {
    !profile.scan_node
        && !profile.scan_filter
        && profile.sis_cache == SIS_CACHE_NONE
        && profile.cache_aware != CACHE_AWARE_WAKEUP
}

/// Decisions of one run that are taken again in a state of their own.
const FRESH_STATES: usize = 50;

/// Fails if a decision reads anything that changes and is not carried, or if applying the readings
/// leaves something of an earlier decision standing.
fn check(setup: &Setup) -> usize {
    let profile = &setup.policy.profile;
    let boot = || topology::boot(&setup.machine, profile).expect("the machine is sound").0;
    let covered = |decision: &Decision| match decision.placement {
        Readings::Wakeup(_) => is_carried(profile),
        _ => profile.fork == FORK_REWORK,
    };
    let mut decisions = decisions(setup);
    decisions.retain(covered);
    let mut used = boot();
    decisions.iter().for_each(|decision| assert_same_answer(decision, &mut used));
    let step = decisions.len() / FRESH_STATES + 1;
    for decision in decisions.iter().step_by(step) {
        assert_same_answer(decision, &mut boot());
    }
    decisions.len()
}

proptest! {
    #![proptest_config(config(40, 2))]

    #[test]
    fn random_programs_decide_again_alike(
        machine in machine(),
        (kernel, policy) in kernel_and_policy(),
        parts in prop::collection::vec(part(), 1..5),
        in_cgroups in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut workload = workload(&parts, 5);
        if in_cgroups {
            workload = spread_over_cgroups(workload);
        }
        check(&Setup { seed, ..Setup::new(machine, &kernel, &policy, workload) });
    }

    #[test]
    fn benchmarks_decide_again_alike(
        machine in machine(),
        (kernel, policy) in kernel_and_policy()
            .prop_filter("of three", |(kernel, _)| ["v6.0", "v6.12", "v6.18"].contains(&&kernel[..])),
        benchmark_case in prop::sample::select(BENCHMARKS.to_vec()),
        seed in any::<u64>(),
    ) {
        let (name, case) = benchmark_case;
        let workload = benchmark(name, case);
        let setup = Setup { seed, ..Setup::new(machine, &kernel, &policy, workload) };
        prop_assert!(check(&setup) > 0);
    }
}

/// Fails if a task's own load were recorded, not what it counts for in its CPU's load: that of a
/// cgroup's many tasks together is that of one.
#[test]
fn decisions_in_cgroups_are_taken_again_alike() {
    let mut weighed = 0;
    for kernel in ["v5.10", "v6.0", "v6.12", "v6.18"] {
        let case = "groups=4,fds=8,loops=100,window_ms=20,warmup_ms=0";
        let workload = spread_over_cgroups(benchmark("hackbench", case));
        let setup = Setup::new("pack:2 l3:2 core:3 pu:2", kernel, "baseline", workload);
        check(&setup);
        weighed += decisions(&setup).iter().filter(|it| it.affine == AffineReason::Weight).count();
    }
    assert!(weighed > 100, "loads were compared {weighed} times");
}

/// Fails if averages were carried for v3.10, which compares the weights queued at the moment: those of
/// a waker that mostly sleeps are far below its weight, which keeps the wakee on the empty prev CPU.
#[test]
fn queued_weights_are_compared_again_alike() {
    let waiter = Part::idling(Pattern::Condition { tasks: 1, holds_mutex: false });
    let workload = workload(&[waiter], 5);
    let setup = Setup::new("pack:1 l3:2 core:2 pu:1", "v3.10", "baseline", workload);
    let setup = Setup { seed: 0, ..setup };
    check(&setup);
    let of_one = |decision: &&Decision| match &decision.placement {
        Readings::Wakeup(wakeup) => wakeup.waking.load == 1024 && wakeup.prev.load == 0,
        _ => false,
    };
    let decisions = decisions(&setup);
    let stays = |decision: &&Decision| decision.affine == AffineReason::Undecided;
    let stayed = decisions.iter().filter(of_one).filter(stays).count();
    assert!(stayed > 5, "the wakee stayed {stayed} times");
}

#[test]
fn readings_replace_the_masks_of_the_state() {
    let workload = benchmark("context_switch1", "instances=3,warmup_ms=1,window_ms=4");
    let setup = Setup::new("pack:1 l3:2 core:2 pu:2", "v6.0", "baseline", workload);
    let decisions = decisions(&setup);
    let decision = decisions.last().expect("tasks were woken");
    let (mut state, _) =
        topology::boot(&setup.machine, &setup.policy.profile).expect("the machine is sound");
    assert!(wrong_idle_cpus(decision, &state) > 0, "at boot all CPUs are idle");
    apply(decision, &mut state, tasks(decision));
    assert_eq!(wrong_idle_cpus(decision, &state), 0);
}

/// Keys of a wakeup, each with a value that changes the answer to some decision: that the answers
/// above agree is not for want of reading.
const TELLING: [(&str, &str); 28] = [
    ("jiffies", "1000000"),
    ("idle", ""),
    ("sched_idle", "0-1023"),
    ("allowed", "0"),
    ("hint", "4"),
    ("sync", "0"),
    ("waking_nr_running", "2"),
    ("waking_h_nr_delayed", "1"),
    ("waking_load", "100000"),
    ("waking_has_idle_cores", "0"),
    ("waking_nr_idle_scan", "0"),
    ("prev_nr_running", "7"),
    ("prev_load", "100000"),
    ("prev_has_idle_cores", "0"),
    ("prev_nr_idle_scan", "0"),
    ("avg_idle", "0"),
    ("wake_avg_idle", "0"),
    ("avg_scan_cost", "1000000000"),
    ("waker_wakee_flips", "1000000"),
    ("waker_last_wakee", "0"),
    ("waker_load", "100000"),
    ("waker_sum_exec_runtime", "100000000000"),
    ("waker_nvcsw", "0"),
    ("waker_run_length_avg", "100000000"),
    ("wakee_wakee_flips", "1000000"),
    ("wakee_load", "100000"),
    ("wakee_run_length_avg", "100000000"),
    ("wakee_recent_used_cpu", "0"),
];

/// The decision with another value of a key.
fn with(decision: &Decision, key: &str, value: &str) -> Decision {
    let text = decision.to_string();
    let words = text.split(' ').skip(1).map(|word| match word.split_once('=') {
        Some((name, _)) if name == key => format!("{key}={value}"),
        _ => word.to_string(),
    });
    Decision::parse(&words.collect::<Vec<_>>().join(" ")).expect("the value is a possible one")
}

const POLICIES: [&str; 5] =
    ["baseline", "short-task:v1", "short-task:v4", "short-task:current", "hint:wake_hold"];

/// Fails if a key is carried but not put into the state.
#[test]
fn readings_decide() {
    let mut silent = TELLING.to_vec();
    for machine in ["pack:2 l3:2 core:3 pu:2", "pack:1 l3:2 core:2 pu:2"] {
        for kernel in ["v5.10", "v5.19", "v6.0", "v6.18"] {
            for policy in POLICIES {
                for (name, case) in [BENCHMARKS[1], BENCHMARKS[4], BENCHMARKS[7]] {
                    let setup = Setup::new(machine, kernel, policy, benchmark(name, case));
                    retain_silent(&mut silent, &setup);
                }
            }
        }
    }
    assert_eq!(silent, [], "these change no answer");
}

/// Fails if weights are carried for v3.10 but put where only later kernels read loads.
#[test]
fn queued_weights_decide() {
    let mut silent: Vec<_> =
        TELLING.into_iter().filter(|(key, _)| key.ends_with("_load")).collect();
    assert_eq!(silent.len(), 4, "{silent:?}");
    for (name, case) in BENCHMARKS {
        for machine in ["pack:2 l3:2 core:3 pu:2", "pack:2 l3:2 core:2 pu:1"] {
            let workload = benchmark(name, case);
            retain_silent(&mut silent, &Setup::new(machine, "v3.10", "baseline", workload));
        }
    }
    assert_eq!(silent, [], "these change no answer");
}

/// Leaves the keys that change no answer of the run.
fn retain_silent(silent: &mut Vec<(&str, &str)>, setup: &Setup) {
    let (mut state, _) =
        topology::boot(&setup.machine, &setup.policy.profile).expect("the machine is sound");
    let mut decisions = decisions(setup);
    decisions.retain(|decision| matches!(decision.placement, Readings::Wakeup(_)));
    silent.retain(|(key, value)| {
        !decisions.iter().any(|decision| {
            let mut alike = |decision: &Decision| {
                let answer = select(decision, &mut state, tasks(decision));
                answer == u32::from(decision.result_cpu)
            };
            alike(decision) && !alike(&with(decision, key, value))
        })
    });
}
