//! CPUs of unlike capacity, and CPUs that RT tasks use up.

use std::collections::BTreeMap;

use placewise_machine::CpuSet;
use placewise_workload::program::{FOREVER, Object, Op, Program, SchedPolicy, Workload};
use proptest::prelude::*;

use crate::common::{MS, Setup, counter, main_of, programs};
use crate::properties::{config, kernel, part, workload};

const TWO_CPUS: &str = "pack:1 l3:1 core:2 pu:1";
/// Little CPUs 0 to 3, big ones 4 to 7, one LLC each.
const BIG_LITTLE: &str = "hikey960";
/// P cores of two threads are CPUs 0 to 15, E cores CPUs 16 to 23.
const HYBRID: &str = "adl-24";

fn computes(ms: u32) -> Vec<Op> {
    vec![Op::Run { ns: 50_000 }, Op::Repeat { counter: 0, times: 20 * ms, to: 0 }, Op::Exit]
}

fn on(cpus: &str, program: Program) -> Program {
    Program { cpus: Some(CpuSet::parse_list(cpus).expect("a CPU list")), ..program }
}

/// Runs for `work` of each 4 ms, after it has slept for so long: never when a tick comes, for ticks come each 4 ms.
fn between_ticks(first: u64, work: u64) -> Vec<Op> {
    vec![
        Op::Sleep { ns: first, random_pct: 0 },
        Op::StartTimer { timer: Object::shared(0) },
        Op::Run { ns: work },
        Op::Timer { timer: Object::shared(0), period: 4 * MS, absolute: true },
        Op::Repeat { counter: 0, times: FOREVER, to: 2 },
        Op::Exit,
    ]
}

/// Main, which forks `beside` and then computes for `ms` on the CPU where both are.
fn main_beside(beside: Vec<Program>, ms: u32, window_ms: u64) -> Workload {
    let forks =
        (1..=beside.len() as u32).map(|program| Op::Fork { program, count: 1, base: 0, step: 0 });
    let mut main: Vec<Op> = forks.collect();
    let to = main.len() as u32;
    main.extend([
        Op::Run { ns: 50_000 },
        Op::Repeat { counter: 0, times: 20 * ms, to },
        Op::Count,
        Op::Exit,
    ]);
    let mut all = vec![Program::new("main", main)];
    all.extend(beside);
    Workload { timers: 1, ..programs(all, window_ms) }
}

/// The CPU on which each task of a name was last, by pid.
fn last_cpus(trace: &str, comm: &str) -> Vec<u32> {
    let mut cpus: BTreeMap<&str, u32> = BTreeMap::new();
    let named = format!("comm={comm} ");
    for line in trace.lines().filter(|line| line.contains(&named)) {
        let field = |name: &str| {
            let (_, rest) = line.split_once(name)?;
            rest.split_whitespace().next()
        };
        let placed = match line {
            line if line.contains("sched_wakeup_new:") => field(" target_cpu="),
            line if line.contains("sched_migrate_task:") => field(" dest_cpu="),
            _ => None,
        };
        if let (Some(pid), Some(cpu)) = (field(" pid="), placed) {
            cpus.insert(pid, cpu.parse().expect("a CPU"));
        }
    }
    cpus.into_values().collect()
}

fn elapsed_ms(setup: &Setup) -> f64 {
    let (outcome, _) = setup.checked(50);
    outcome.statistics.simulated_ns as f64 / MS as f64
}

/// Fails without idle CPUs that pull what waits behind an RT task: it would never end.
#[test]
fn a_task_behind_an_rt_hog_is_pulled_by_an_idle_cpu() {
    let hog = vec![
        Op::Sleep { ns: 20 * MS, random_pct: 0 },
        Op::Run { ns: 300 * MS },
        Op::Repeat { counter: 0, times: FOREVER, to: 1 },
        Op::Exit,
    ];
    for kernel in ["v5.10", "v6.0", "v6.12", "v7.3"] {
        let hog = on("0", Program::new("hog", hog.clone()).with_policy(SchedPolicy::Fifo(50)));
        let setup = Setup::new(TWO_CPUS, kernel, "baseline", main_beside(vec![hog], 200, 1_000));
        let (outcome, trace) = setup.traced();
        setup.checked(20);
        let ended = trace.lines().rfind(|line| line.contains("sched_process_exit: comm=main"));
        assert!(ended.is_some(), "{kernel}: main never ends");
        assert_eq!(last_cpus(&trace, "main"), [1], "{kernel}");
        assert_eq!(counter(&outcome, "migrations_active"), 0.0, "{kernel}: it only waits");
    }
}

/// Migrations by a push, of a task that shares CPU 0 with an RT task that takes `work` of 4 ms.
fn pushes_beside_rt(kernel: &str, work: u64, rule: bool) -> f64 {
    let rt = Program::new("rt", between_ticks(4_500_000, work)).with_policy(SchedPolicy::Fifo(50));
    let workload = main_beside(vec![on("0", rt)], 1_000, 400);
    let mut setup = Setup::new(TWO_CPUS, kernel, "baseline", workload);
    setup.policy.profile.misfit_reduced_capacity &= rule;
    let (outcome, _) = setup.checked(20);
    counter(&outcome, "migrations_active")
}

/// Fails without the capacity that RT tasks take away, the mark of such a CPU as busy with a
/// misfit, or the push for the sake of more capacity: at every tick the task runs alone.
#[test]
fn a_task_on_a_cpu_of_reduced_capacity_is_pushed_to_an_idle_one() {
    for kernel in ["v6.0", "v6.12", "v6.18", "v7.3"] {
        assert_eq!(pushes_beside_rt(kernel, 2_500_000, true), 1.0, "{kernel}");
        assert_eq!(pushes_beside_rt(kernel, 2_500_000, false), 0.0, "{kernel} without the rule");
        assert_eq!(pushes_beside_rt(kernel, 200_000, true), 0.0, "{kernel}: hardly reduced");
    }
    assert_eq!(pushes_beside_rt("v5.19", 2_500_000, true), 0.0, "before there was such a rule");
}

/// Fails if an RT task that wakes where one of higher priority runs waits for it.
#[test]
fn an_rt_task_is_woken_beside_a_more_important_one() {
    let task = |name, at| {
        let ops = vec![Op::Sleep { ns: at, random_pct: 0 }, Op::Run { ns: 30 * MS }, Op::Exit];
        Program::new(name, ops)
    };
    let first = on("0", task("first", 10 * MS).with_policy(SchedPolicy::Fifo(60)));
    let second = task("second", 20 * MS).with_policy(SchedPolicy::Fifo(50));
    let workload = programs(vec![main_of(2), first, second], 200);
    let setup = Setup::new(TWO_CPUS, "v6.0", "baseline", workload);
    let (_, trace) = setup.traced();
    setup.checked(1);
    assert_eq!(last_cpus(&trace, "second"), [1]);
    assert!(elapsed_ms(&setup) < 55.0, "neither waits");
}

/// Which of the tasks ends first: two that compute as long, of which the second begins later.
fn first_to_end(first: SchedPolicy, second: SchedPolicy) -> String {
    let task = |name, at, policy| {
        let mut ops = vec![Op::Sleep { ns: at, random_pct: 0 }];
        ops.extend([Op::Run { ns: MS }, Op::Repeat { counter: 0, times: 250, to: 1 }, Op::Exit]);
        Program::new(name, ops).with_policy(policy)
    };
    let all = vec![main_of(2), task("first", 10 * MS, first), task("second", 20 * MS, second)];
    let workload = programs(all, 2_000);
    let setup = Setup::new("pack:1 l3:1 core:1 pu:1", "v6.0", "baseline", workload);
    setup.checked(5);
    let (_, trace) = setup.traced();
    let mut exits = trace.lines().filter(|line| line.contains("sched_process_exit:"));
    let exit = exits.find(|line| !line.contains("comm=main")).expect("both end");
    exit.split_once("comm=").expect("a name").1.split(' ').next().expect("a name").to_string()
}

/// Fails if RT tasks do not run by priority, or if SCHED_RR does not take turns.
#[test]
fn rt_tasks_run_by_priority_and_then_in_turn() {
    use SchedPolicy::{Fifo, Other, RoundRobin};
    assert_eq!(first_to_end(Fifo(50), Fifo(50)), "first");
    assert_eq!(first_to_end(Fifo(50), Fifo(51)), "second");
    assert_eq!(first_to_end(RoundRobin(50), Fifo(50)), "second", "the first has had its 100 ms");
    assert_eq!(first_to_end(Fifo(50), RoundRobin(50)), "first");
    assert_eq!(first_to_end(Other, Fifo(1)), "second");
}

/// Fails if CPUs are equally fast.
#[test]
fn computing_takes_longer_on_a_slow_cpu() {
    let elapsed = |machine, cpus| {
        let all = vec![main_of(1), on(cpus, Program::new("task", computes(100)))];
        elapsed_ms(&Setup::new(machine, "v6.0", "baseline", programs(all, 1_000)))
    };
    for (machine, cpu, speed) in [
        (BIG_LITTLE, "0", 462.0),
        (BIG_LITTLE, "4", 1024.0),
        (HYBRID, "0", 1024.0),
        (HYBRID, "16", 605.0),
    ] {
        let (found, expected) = (elapsed(machine, cpu), 100.0 * 1024.0 / speed);
        assert!((found / expected - 1.0).abs() < 0.05, "CPU {cpu} of {machine}: {found} ms");
    }
}

/// Fails without misfit balance: nothing else makes a bigger CPU take a lone task.
#[test]
fn a_hog_on_a_little_cpu_is_pushed_to_a_big_one() {
    let hog = |cpus: &str| on(cpus, Program::new("main", computes(300)));
    for kernel in ["v5.3", "v5.10", "v6.0", "v6.12", "v7.3"] {
        let setup =
            |cpus| Setup::new(BIG_LITTLE, kernel, "baseline", programs(vec![hog(cpus)], 2_000));
        let free = setup("0-7");
        let (outcome, _) = free.checked(20);
        assert_eq!(counter(&outcome, "migrations_active"), 1.0, "{kernel}");
        assert!(elapsed_ms(&free) < 450.0, "{kernel}: most of it on a big CPU");
        let (outcome, _) = setup("0-3").checked(20);
        assert_eq!(counter(&outcome, "migrations_active"), 0.0, "{kernel}: it may not");
    }
}

/// Fails if wakeups do not look for a CPU that a task fits: it is idle whenever balancing looks.
#[test]
fn a_wakee_that_outgrows_its_cpu_is_woken_on_a_bigger_one() {
    let last = |work| {
        let main = Workload {
            timers: 1,
            ..programs(vec![Program::new("main", between_ticks(3_900_000, work))], 600)
        };
        let (outcome, trace) = Setup::new("sm8250", "v6.0", "baseline", main).traced();
        assert_eq!(counter(&outcome, "migrations_active"), 0.0);
        last_cpus(&trace, "main").first().copied()
    };
    assert_eq!(last(100_000), None, "a small one stays on CPU 0");
    assert!(last(900_000).is_some_and(|cpu| cpu >= 4), "28 % of a CPU, on CPUs of 284");
}

/// Where `count` tasks that compute are in the end.
fn hogs_on_hybrid(kernel: &str, count: u32) -> Vec<u32> {
    let main = vec![Op::Fork { program: 1, count, base: 0, step: 0 }, Op::Join, Op::Exit];
    let all = vec![Program::new("main", main), Program::new("hog", computes(2_000))];
    let setup = Setup::new(HYBRID, kernel, "baseline", programs(all, 600));
    setup.checked(100);
    last_cpus(&setup.traced().1, "hog")
}

/// Fails without asym packing: fork placement prefers the clusters of E cores, which have more
/// idle CPUs than any P core.
#[test]
fn tasks_gather_on_p_cores_one_on_each() {
    for kernel in ["v5.10", "v6.0", "v6.12", "v6.18", "v7.3"] {
        for count in [1, 2, 8] {
            let cpus = hogs_on_hybrid(kernel, count);
            let mut cores: Vec<u32> =
                cpus.iter().filter(|cpu| **cpu < 16).map(|cpu| cpu / 2).collect();
            cores.sort_unstable();
            cores.dedup();
            assert_eq!(cores.len() as u32, count, "{kernel}: {cpus:?}");
        }
    }
}

/// Fails if the second thread of a P core counts for more than an E core of its own.
#[test]
fn e_cores_come_before_second_threads() {
    for kernel in ["v6.0", "v6.12", "v7.3"] {
        let cpus = hogs_on_hybrid(kernel, 10);
        let e_cores = cpus.iter().filter(|cpu| **cpu >= 16).count();
        assert_eq!(e_cores, 2, "{kernel}: {cpus:?}");
    }
}

const UNLIKE: [&str; 5] = [BIG_LITTLE, HYBRID, "sm8250", TWO_CPUS, "pack:2 l3:2 core:3 pu:2"];

fn any_policy() -> impl Strategy<Value = SchedPolicy> {
    prop_oneof![
        4 => Just(SchedPolicy::Other),
        1 => Just(SchedPolicy::Idle),
        1 => (1..4_u8).prop_map(SchedPolicy::Fifo),
        1 => (1..4_u8).prop_map(SchedPolicy::RoundRobin),
    ]
}

proptest! {
    #![proptest_config(config(60, 2))]

    #[test]
    fn random_programs_of_all_classes_run_without_contradiction(
        machine in prop::sample::select(UNLIKE.to_vec()),
        kernel in kernel(),
        parts in prop::collection::vec(part(), 1..5),
        policies in prop::collection::vec(any_policy(), 12),
        seed in any::<u64>(),
    ) {
        let mut workload = workload(&parts, 25);
        let (main, others) = workload.programs.split_first_mut().expect("main is there");
        // Whoever forks them all is not to wait behind them.
        main.policy = SchedPolicy::Fifo(99);
        for (program, policy) in others.iter_mut().zip(&policies) {
            program.policy = *policy;
        }
        let setup = Setup { seed, ..Setup::new(machine, &kernel, "baseline", workload) };
        let (_, audit) = setup.checked(7);
        prop_assert!(audit.checks > 0);
    }
}
