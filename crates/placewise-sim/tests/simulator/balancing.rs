//! Who pulls and who is pushed.

use placewise_machine::CpuSet;
use placewise_policy::{NEWIDLE_ALWAYS, NEWIDLE_BY_SUCCESS, NEWIDLE_BY_SUCCESS_AND_RATE};
use placewise_sim::{LoadBalance, NewidleMemory, Outcome};
use placewise_workload::program::{FOREVER, Object, Op, Program, Workload};

use crate::common::{Setup, benchmark, counter, figure, main_of, programs};

const TWO_LLCS: &str = "pack:1 l3:2 core:2 pu:1";
const TWO_NODES: &str = "../../studies/interventions/machines/two-nodes-16.toml";

fn compute(name: &str, ms: u32, before: Vec<Op>) -> Program {
    let to = before.len() as u32;
    let mut ops = before;
    let times = 20 * ms;
    ops.extend([Op::Run { ns: 50_000 }, Op::Repeat { counter: 0, times, to }, Op::Exit]);
    Program::new(name, ops)
}

/// Tasks that wait at a gate, and main, which wakes them all into its own LLC.
fn through_a_gate(tasks: Vec<Program>, ms: u64) -> Workload {
    let fork = |program| Op::Fork { program, count: 1, base: 0, step: 0 };
    let mut main: Vec<Op> = (1..=tasks.len() as u32).map(fork).collect();
    main.extend([
        Op::Sleep { ns: 30_000_000, random_pct: 0 },
        Op::GateOpen { gate: Object::shared(0) },
        Op::Join,
        Op::Exit,
    ]);
    let mut all = vec![Program::new("main", main)];
    all.extend(tasks);
    Workload { gates: 1, ..programs(all, ms) }
}

fn waits(name: &str, ms: u32) -> Program {
    compute(name, ms, vec![Op::GateWait { gate: Object::shared(0) }])
}

/// Two tasks that find themselves in one of two LLCs.
pub fn two_in_one_llc(footprint_kib: u32, ms: u32) -> Setup {
    let task = |name| waits(name, ms).with_footprint(footprint_kib);
    let workload = through_a_gate(vec![task("first"), task("second")], 1_000);
    Setup::new(TWO_LLCS, "v6.0", "baseline", workload)
}

/// Fails without active balance: both run already, so that there is nothing to pull.
#[test]
fn a_running_task_is_pushed_off_a_crowded_llc() {
    let outcome = two_in_one_llc(0, 100).run();
    assert_eq!(counter(&outcome, "migrations_active"), 1.0, "pushes");
}

/// When tasks were pushed, in ms: their CPU's stopper moves them.
fn pushes_ms(trace: &str) -> Vec<f64> {
    let pushes = trace.lines().filter_map(|line| {
        let (before, event) = line.split_once(": sched_migrate_task: ")?;
        let (head, seconds) = before.rsplit_once(' ')?;
        let cpu: u32 = head.split(['[', ']']).nth(1)?.parse().ok()?;
        let is_push = event.contains(&format!("orig_cpu={cpu} ")) && head.contains("<idle>");
        is_push.then(|| 1_000.0 * seconds.parse::<f64>().unwrap())
    });
    pushes.collect()
}

/// As Linux 6.18 does on such a machine (docs/vm.md): four passes that move nothing,
/// one in as many ms as the level has CPUs, and then a push.
#[test]
fn tasks_that_one_llc_has_room_for_are_pushed_apart_every_four_intervals() {
    let tasks = (0..8).map(|_| waits("task", 700)).collect();
    let workload = through_a_gate(tasks, 1_000);
    let setup = Setup::new("pack:1 l3:2 core:8 pu:2", "v6.18", "baseline", workload);
    let pushes = pushes_ms(&setup.traced().1);
    let gaps: Vec<f64> = pushes.windows(2).map(|pair| (pair[1] - pair[0]).round()).collect();
    assert_eq!(gaps, [128.0; 3], "{pushes:?}");
}

/// Fails if CPUs that run out did not look at the lists of their LLC: what waits there has mostly run
/// too recently for the balancer.
#[test]
fn shared_runq_moves_what_newly_idle_balance_leaves() {
    let pulled = |policy| {
        let workload = benchmark("hackbench", "groups=1,fds=8,warmup_ms=0,window_ms=10");
        let outcome = Setup::new("pack:1 l3:2 core:4 pu:1", "v6.5", policy, workload).run();
        counter(&outcome, "migrations_newly_idle")
    };
    let (baseline, shared) = (pulled("baseline"), pulled("shared-runq"));
    assert!(shared > 2.0 * baseline, "{shared} tasks, and {baseline} without the lists");
}

/// Fails if a woken task left its list before its CPU has picked it: a CPU that runs out then finds none with pairs
/// that have two CPUs each. One that does not look for such short rests leaves them alone, as without lists.
#[test]
fn shared_runq_takes_over_what_is_on_its_way_to_an_idle_cpu() {
    let run = |policy| {
        let workload = benchmark("netperf", "proto=TCP_RR,threads=64,warmup_ms=10,window_ms=10");
        Setup::new("zen3-2s-nps1", "v6.5", policy, workload).run()
    };
    let [baseline, shared, checked] =
        ["baseline", "shared-runq", "shared-runq-idle-check"].map(run);
    let pulled = |outcome: &Outcome| counter(outcome, "migrations_newly_idle");
    assert_eq!([pulled(&baseline), pulled(&checked)], [0.0; 2]);
    assert!(pulled(&shared) > 100.0, "{} tasks", pulled(&shared));
    let [without, with] = [&baseline, &shared].map(|outcome| figure(outcome, "throughput"));
    assert!(with < 0.95 * without, "{with} transactions, and {without} without the lists");
}

/// Fails without nohz balance: nothing else looks for work on behalf of CPUs that rest tickless.
#[test]
fn idle_cpus_are_given_waiting_tasks() {
    let tasks = ["a", "b", "c", "d", "e", "f"].map(|name| waits(name, 60)).to_vec();
    let machine = "pack:1 l3:2 core:4 pu:1";
    let outcome = Setup::new(machine, "v6.0", "baseline", through_a_gate(tasks, 1_000)).run();
    let pulled = counter(&outcome, "migrations_nohz");
    assert!(pulled >= 1.0, "{pulled} tasks pulled for idle CPUs");
    let elapsed = outcome.statistics.simulated_ns as f64 / 1e6;
    assert!(elapsed < 30.0 + 60.0 * 1.4, "six tasks on eight CPUs took {elapsed} ms");
}

/// Fails without newly-idle balance: a CPU whose task sleeps would rest while others wait.
#[test]
fn a_cpu_about_to_idle_pulls() {
    let ops = vec![
        Op::Run { ns: 4_000_000 },
        Op::Sleep { ns: 1_000_000, random_pct: 50 },
        Op::Repeat { counter: 0, times: FOREVER, to: 0 },
        Op::Exit,
    ];
    let task = |name| Program::new(name, ops.clone());
    let all = vec![main_of(3), task("a"), task("b"), task("c")];
    let machine = "pack:1 l3:1 core:2 pu:1";
    for kernel in ["v5.3", "v6.0", "v6.12"] {
        let outcome = Setup::new(machine, kernel, "baseline", programs(all.clone(), 300)).run();
        let pulled = counter(&outcome, "migrations_newly_idle");
        assert!(pulled >= 3.0, "{kernel}: {pulled} tasks pulled");
    }
}

/// Fails if nothing but ordinary passes were remembered: CPUs would look at every turn and pull what waits, so that
/// none is idle when a wakeup looks for one, and the wakee stays with its waker.
#[test]
fn an_outlier_keeps_newly_idle_cpus_from_looking() {
    let shares = |outlier_ns| {
        let workload = benchmark("hackbench", "groups=2,warmup_ms=40,window_ms=40");
        let mut setup = Setup::new("zen3-2s-nps1", "v6.0", "baseline", workload);
        setup.machine.costs.newidle_outlier_ns = outlier_ns;
        let run = setup.run();
        let per_search = |name| counter(&run, name) / counter(&run, "sis_search");
        ["sis_failed", "migrations_newly_idle"].map(per_search)
    };
    let [ordinary, outliers] = [0, 30_000].map(shares);
    assert!(outliers[0] < 0.7 * ordinary[0], "searches fail: {ordinary:?}, then {outliers:?}");
    assert!(
        outliers[1] < 0.5 * ordinary[1],
        "searches that fail, pulls: {ordinary:?}, then {outliers:?}"
    );
}

/// Two groups of hackbench for a fiftieth of a second, or less.
fn short_run(newidle_random: u32, loops: u32) -> Setup {
    let case = format!("groups=2,fds=8,loops={loops},warmup_ms=0,window_ms=900");
    let workload = benchmark("hackbench", &case);
    let mut setup = Setup::new(TWO_NODES, "v6.18.15", "baseline", workload);
    setup.policy.profile.newidle_random = newidle_random;
    setup
}

/// Newly-idle passes for each idle entry, times the number of CPUs.
fn looks(run: &Outcome) -> f64 {
    let idle_entries = counter(run, "schedstat_schedule_left_the_processor_idle");
    lb_counter(run, "lb_count", &["newly_idle"]) as f64 / idle_entries
}

/// Sixty runs. Fails if each started as after a boot, where every other look is taken to be worth it. Their dearest
/// pass, which CPUs remember as well, keeps them from fewer looks.
#[test]
fn a_run_starts_with_what_newly_idle_cpus_found_before() {
    let [always, by_success] = [NEWIDLE_ALWAYS, NEWIDLE_BY_SUCCESS].map(|rule| {
        let (setup, mut memory) = (short_run(rule, 200), NewidleMemory::default());
        let looks: Vec<f64> = (0..60).map(|_| looks(&setup.run_after(&mut memory))).collect();
        looks[40..].iter().sum::<f64>() / 20.0 / looks[0]
    });
    assert!(by_success < 0.75 * always, "fewer looks: {by_success}, and {always} by their costs");
}

/// A machine that just booted has rested, too. Fails if a rest went by unseen, or if all kernels forgot in it.
#[test]
fn some_kernels_look_again_after_a_rest() {
    let rules = [NEWIDLE_BY_SUCCESS, NEWIDLE_BY_SUCCESS_AND_RATE];
    let [by_success, by_rate] = rules.map(|rule| {
        let setup = short_run(rule, 800);
        let some_runs = |memory: &mut NewidleMemory| -> f64 {
            (0..20).map(|_| looks(&setup.run_after(memory))).sum()
        };
        let mut memory = NewidleMemory::default();
        let booted = some_runs(&mut memory);
        let mut rested = memory.clone();
        rested.rest(10_000_000_000);
        [booted, some_runs(&mut memory), some_runs(&mut rested)]
    });

    assert_eq!(by_success[1], by_success[2]);
    assert!(by_rate[2] > 1.2 * by_rate[1], "{by_rate:?}");
    assert!(by_rate[0] > 1.2 * by_success[0], "{by_rate:?}, {by_success:?}");
}

/// A counter of load balancing, over all levels that CPUs of these idle types balanced.
fn lb_counter(outcome: &Outcome, name: &str, idle: &[&str]) -> u64 {
    let at = LoadBalance::COUNTERS.iter().position(|known| *known == name).expect("a counter");
    let levels = outcome.statistics.load_balance.iter();
    levels.filter(|level| idle.contains(&level.idle)).map(|level| level.counters[at]).sum()
}

/// How often load balancing moved nothing for this reason.
fn moved_nothing(outcome: &Outcome, reason: &str) -> u64 {
    let at = LoadBalance::REASONS.iter().position(|known| *known == reason).expect("a reason");
    outcome.statistics.load_balance.iter().map(|level| level.moved_nothing[at]).sum()
}

/// Fails if an attempt were counted under another idle type, twice, or before the window.
#[test]
fn tasks_gained_are_tasks_moved() {
    for kernel in ["v5.3", "v6.0", "v6.18"] {
        let workload = benchmark("hackbench", "groups=1,fds=8,warmup_ms=5,window_ms=40");
        let outcome = Setup::new("pack:2 l3:2 core:2 pu:2", kernel, "baseline", workload).run();
        let gained = |idle: &[&str]| lb_counter(&outcome, "lb_gained", idle) as f64;
        let moved = |causes: &[&str]| -> f64 {
            causes.iter().map(|cause| counter(&outcome, &format!("migrations_{cause}"))).sum()
        };
        assert!(gained(&["newly_idle"]) > 0.0, "{kernel}");
        assert_eq!(gained(&["newly_idle"]), moved(&["newly_idle"]), "{kernel}");
        assert_eq!(gained(&["idle", "busy"]), moved(&["periodic", "nohz", "active"]), "{kernel}");
        for level in &outcome.statistics.load_balance {
            let [count, _, _, _, gained, ..] = level.counters;
            let fruitful = count - level.moved_nothing.iter().sum::<u64>();
            assert!(fruitful <= gained, "{kernel}: {level:?}");
        }
    }
}

/// Fails if affinity were no reason, or a reason where nothing is pinned: of three tasks on two CPUs
/// of an LLC, all waiting for the first one, the second CPU may have none, or takes one.
#[test]
fn pinned_tasks_are_why_an_idle_cpu_gets_none() {
    let reasons = |is_pinned: bool| {
        let cpus = is_pinned.then(|| CpuSet::single(0));
        let task = |name| Program { cpus, ..compute(name, 200, vec![]) };
        let all = vec![main_of(3), task("a"), task("b"), task("c")];
        let outcome =
            Setup::new("pack:1 l3:1 core:2 pu:1", "v6.0", "baseline", programs(all, 300)).run();
        (moved_nothing(&outcome, "all_pinned"), lb_counter(&outcome, "lb_count", &["idle"]))
    };
    let (pinned, idle_attempts) = reasons(true);
    assert!(pinned > 0 && idle_attempts > 0, "{pinned} of {idle_attempts}");
    assert_eq!(reasons(false).0, 0);
}

/// Seconds of lu beside two burners.
fn lu(cgroups: &str, policy: &str, seed: u64) -> Outcome {
    let workload = benchmark("lu", &format!("cgroups={cgroups},warmup_ms=5000,window_ms=10000"));
    Setup { seed, ..Setup::new("xeon-4n80", "v5.3", policy, workload) }.run()
}

fn lu_threads_on_nodes(outcome: &Outcome) -> [f64; 4] {
    [0, 1, 2, 3].map(|node| counter(outcome, &format!("lu.C.x_on_node_{node}")))
}

/// Fails without task groups, whose loads mislead the balancer before the rework, and without the
/// rework, which counts tasks: a node with a burner passes for busy, so lu crowds the others. Fails
/// as well if lu starts on a node with a burner.
#[test]
fn burners_of_other_cgroups_stall_lu_until_the_rework() {
    let (before, after) = (lu("split", "baseline", 1), lu("split", "lb-rework", 1));
    let nodes = lu_threads_on_nodes(&before);
    let burners = [0, 1, 2, 3].map(|node| counter(&before, &format!("stress_on_node_{node}")));
    for (threads, burners) in nodes.into_iter().zip(burners) {
        let crowded = if burners > 0.0 { threads < 13.0 } else { threads > 24.0 };
        assert!(crowded, "{threads} threads beside {burners} burners");
    }
    let nodes = lu_threads_on_nodes(&after);
    assert!(nodes.iter().all(|threads| (17.0..=21.0).contains(threads)), "{nodes:?}");
    let (before, after) = (figure(&before, "throughput"), figure(&after, "throughput"));
    assert!(after > 8.0 * before, "{after} Mop/s with the rework, {before} without");
}

/// Fails if anything but the cgroups makes the difference. Runs of seconds differ by some percent, so
/// three are taken together.
#[test]
fn burners_of_the_same_cgroup_do_not_stall_lu() {
    let speed = |policy| -> f64 {
        (1..=3).map(|seed| figure(&lu("one", policy, seed), "throughput") / 3.0).sum()
    };
    let (before, after) = (speed("baseline"), speed("lb-rework"));
    assert!((after / before - 1.0).abs() < 0.05, "{after} Mop/s with the rework, {before} without");
}
