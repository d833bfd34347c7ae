//! Where new tasks start: `fork.h`.

use super::common::{Machine, NOW, Shape, set};
use placewise_policy::kernel::{V5_3, V5_10, V5_17, V5_19, V6_0, V6_12, V6_12_117, V6_18, V7_3};
use placewise_policy::*;

fn icx(profile: Profile) -> Machine {
    Machine::new(profile, Shape::ICX)
}

#[test]
fn small_jobs_stay_in_their_node_only_while_the_difference_is_small() {
    for (threads, split) in [(2, [2, 0]), (4, [3, 1]), (8, [5, 3]), (16, [8, 8])] {
        assert_eq!(icx(V6_0).fork_split(threads, 0), split, "{threads} threads");
    }
}

#[test]
fn fork_spread_replaces_the_rule_of_the_node() {
    for (threads, split) in [(2, [1, 1]), (4, [2, 2]), (8, [4, 4]), (16, [8, 8])] {
        assert_eq!(icx(V6_0).fork_split(threads, HINT_FORK_SPREAD), split, "{threads} threads");
    }
}

#[test]
fn v5_19_fills_a_node_up_to_its_limit_whatever_the_difference() {
    let machine = || {
        let mut m = icx(V5_19);
        let level = u32::from(m.p.cpu[0].nr_domains) - 1;
        m.span(0, level).imb_numa_nr = 16;
        m
    };
    assert_eq!(machine().fork_split(16, 0), [16, 0]);
    assert_eq!(machine().fork_split(17, 0), [16, 1]);
}

#[test]
fn v5_10_fills_a_node_until_no_cpu_idles_there() {
    assert_eq!(icx(V5_10).fork_split(64, 0), [64, 0]);
    assert_eq!(icx(V5_10).fork_split(65, 0), [64, 1]);
}

fn policy(kernel: &str, patch: &str) -> Profile {
    Policy::parse(kernel, patch).unwrap().profile
}

#[test]
fn v5_17_fills_a_node_while_a_quarter_of_the_machine_would_run() {
    let split = |profile, threads| Machine::new(profile, Shape::ZEN3).fork_split(threads, 0);
    assert_eq!(split(V5_17, 64), [64, 0], "of 256 CPUs");
    assert_eq!(split(V5_17, 65), [64, 1]);
    // 8 LLCs a node.
    assert_eq!(split(policy("v5.17", "numaimb-v6"), 8), [8, 0]);
    assert_eq!(split(policy("v5.17", "numaimb-v6"), 16), [8, 8]);
}

/// Where the seven children of a thread start that shares eight CPUs with them, one in every other
/// LLC. The CPUs went idle in the order of their numbers.
fn children_of_stream(profile: Profile) -> Vec<u32> {
    let allowed: Vec<u32> = (0..8).map(|nth| 16 * nth).collect();
    let mut m = Machine::new(profile, Shape::ZEN3);
    m.cpus().for_each(|cpu| m.rq(cpu).idle_stamp = 1 + u64::from(cpu));
    let main = m.new_task();
    m.allow(main, &allowed);
    m.enqueue(main, 16);
    let mut start = || {
        let child = m.new_task();
        m.allow(child, &allowed);
        let cpu = m.place_fork(child, 16);
        m.enqueue(child, cpu);
        cpu
    };
    (0..7).map(|_| start()).collect()
}

#[test]
fn numaimb_affinity_leaves_the_node_once_its_allowed_cpus_are_taken() {
    assert_eq!(children_of_stream(policy("v5.18", "baseline")), [32, 48, 0, 16, 16, 16, 16]);
    let patched = policy("v5.18", "numaimb-affinity");
    assert_eq!(children_of_stream(patched), [32, 48, 0, 112, 96, 80, 64]);
}

#[test]
fn numaimb_affinity_is_nothing_to_tasks_that_may_run_everywhere() {
    for threads in [8, 9, 16, 40] {
        let split =
            |patch| Machine::new(policy("v5.18", patch), Shape::ZEN3).fork_split(threads, 0);
        assert_eq!(split("numaimb-affinity"), split("baseline"), "{threads} threads");
    }
}

#[test]
fn a_pinned_child_counts_only_the_cpus_it_may_use_in_the_limit() {
    let place = |allowed: &[u32]| {
        let mut m = icx(V6_0);
        m.queue_each([0, 1], 1);
        let child = m.new_task();
        m.allow(child, allowed);
        let cpu = m.place_fork(child, 0);
        m.p.cpu[cpu as usize].node
    };
    let remote = 32..64;
    let with = |local: std::ops::Range<u32>| local.chain(remote.clone()).collect::<Vec<_>>();
    assert_eq!(place(&with(0..32)), 0, "3 running of 8, and a difference of 2");
    assert_eq!(place(&with(0..2)), 1, "3 running of 2");
}

/// How many children stay in the LLC of their parent before one leaves it.
fn children_in_llc(hint: u32) -> u32 {
    let mut m = Machine::new(V6_0, Shape::ZEN3);
    m.queue(0, 1);
    let llc = m.p.cpu[0].llc;
    (0..)
        .find(|_| {
            let cpu = m.fork(0, hint);
            m.p.cpu[cpu as usize].llc != llc
        })
        .unwrap()
}

#[test]
fn fork_affine_fills_half_an_llc_first() {
    assert_eq!(children_in_llc(0), 0);
    assert_eq!(children_in_llc(HINT_FORK_AFFINE), 7, "with the parent, 8 of 16 CPUs");
}

#[test]
fn fork_spread_breaks_a_tie_of_idle_cpus_by_utilisation() {
    let place = |hint| {
        let mut m = icx(V6_0);
        m.queue_each([0, 32], 1);
        m.rq(1).cfs.avg.util_avg = 300;
        let child = m.new_task();
        m.task(child).hint = hint as u8;
        let cpu = m.place_fork(child, 0);
        m.p.cpu[cpu as usize].node
    };
    assert_eq!(place(0), 0);
    assert_eq!(place(HINT_FORK_AFFINE), 0);
    assert_eq!(place(HINT_FORK_SPREAD), 1);
}

/// Two LLCs of 4 CPUs; the parent's is busy, so the child goes to one of the CPUs 4 to 7.
fn other_llc(profile: Profile) -> Machine {
    let mut m = Machine::new(profile, Shape::TWO_LLCS);
    m.queue_each(0..4, 2);
    m
}

fn place(m: &mut Machine) -> u32 {
    let child = m.new_task();
    m.place_fork(child, 0)
}

fn idle_states(m: &mut Machine, states: [(u32, u64); 4]) {
    for (cpu, (latency, stamp)) in (4..).zip(states) {
        m.rq(cpu).idle_exit_latency = latency;
        m.rq(cpu).idle_stamp = stamp;
    }
}

#[test]
fn the_shallowest_idle_state_wins_then_the_latest_idled_then_the_first() {
    let mut m = other_llc(V6_0);
    idle_states(&mut m, [(100, 9), (10, 1), (10, 2), (50, 9)]);
    assert_eq!(place(&mut m), 6, "latency 10, idle since 2");
    idle_states(&mut m, [(100, 9), (10, 2), (10, 2), (50, 9)]);
    assert_eq!(place(&mut m), 5, "equal: the first");
    idle_states(&mut m, [(100, 9), (50, 1), (10, 1), (50, 9)]);
    assert_eq!(place(&mut m), 6, "a shallower state beats a later stamp");
}

#[test]
fn a_cpu_in_no_idle_state_competes_by_its_stamp() {
    let mut m = other_llc(V6_0);
    idle_states(&mut m, [(10, 5), (LATENCY_UNKNOWN, 4), (10, 1), (10, 2)]);
    assert_eq!(place(&mut m), 4);
    idle_states(&mut m, [(10, 5), (LATENCY_UNKNOWN, 6), (10, 1), (10, 2)]);
    assert_eq!(place(&mut m), 5);
    idle_states(
        &mut m,
        [(LATENCY_UNKNOWN, 0), (LATENCY_UNKNOWN, 1), (LATENCY_UNKNOWN, 1), (LATENCY_UNKNOWN, 0)],
    );
    assert_eq!(place(&mut m), 5, "without a stamp never, equal: the first");
}

#[test]
fn a_cpu_with_sched_idle_tasks_only_beats_idle_ones() {
    let place_in = |profile, idle_policy| {
        let mut m = other_llc(profile);
        // The level of single CPUs would go on from a busy CPU to an idle one.
        m.span(6, 0).flags &= !SD_BALANCE_FORK;
        m.queue(6, 1);
        set(&mut m.p.root.sched_idle, 6, true);
        let child = m.new_task();
        m.task(child).idle_policy = idle_policy;
        m.place_fork(child, 0)
    };
    let place_with = |usable, wakee_usable, idle_policy| {
        let profile =
            Profile { sched_idle_usable: usable, sched_idle_wakee_usable: wakee_usable, ..V6_0 };
        place_in(profile, idle_policy)
    };
    assert_eq!(place_with(true, true, 0), 6);
    assert_eq!(place_with(true, true, 1), 6);
    assert_eq!(place_with(true, false, 0), 6);
    assert_eq!(place_with(true, false, 1), 4);
    assert_eq!(place_with(false, true, 0), 4);
    assert_eq!((place_in(V6_18, 0), place_in(V6_18, 1)), (6, 6));
    assert_eq!((place_in(V7_3, 0), place_in(V7_3, 1)), (6, 4));
}

#[test]
fn among_loaded_cpus_the_first_with_the_least_load_wins() {
    let mut m = other_llc(V6_0);
    for (cpu, load) in [(4, 700), (5, 300), (6, 300), (7, 500)] {
        m.queue(cpu, 1);
        m.rq(cpu).cfs.avg.load_avg = load;
    }
    assert_eq!(place(&mut m), 5);
}

#[test]
fn a_group_of_a_lower_type_wins_and_local_wins_a_tie() {
    let mut m = Machine::new(V6_0, Shape::TWO_LLCS);
    m.queue_each(0..3, 1);
    m.queue_each(4..8, 1);
    assert!(place(&mut m) < 4, "room here, none there");
    let mut m = Machine::new(V6_0, Shape::TWO_LLCS);
    m.queue_each(0..4, 1);
    m.queue_each(4..7, 1);
    assert_eq!(place(&mut m), 7, "room there only");
    let mut m = Machine::new(V6_0, Shape::TWO_LLCS);
    m.queue_each([0, 1, 4, 5], 1);
    assert!(place(&mut m) < 4, "as many idle CPUs on both sides");
    let mut m = Machine::new(V6_0, Shape::TWO_LLCS);
    m.queue_each([0, 1, 4], 1);
    assert!(place(&mut m) >= 4, "more idle CPUs there");
}

/// All CPUs busy, those of the first four with load 1024: does the child leave for `remote`?
fn leaves(shape: Shape, remote: u64) -> bool {
    let mut m = Machine::new(V6_0, shape);
    m.queue_each(0..8, 1);
    (4..8).for_each(|cpu| m.rq(cpu).cfs.avg.load_avg = remote);
    place(&mut m) >= 4
}

#[test]
fn between_busy_groups_only_a_clear_difference_of_load_counts() {
    assert!(!leaves(Shape::TWO_LLCS, 900), "within imbalance_pct");
    assert!(leaves(Shape::TWO_LLCS, 860));
    assert!(!leaves(Shape::TWO_NODES, 860), "within 174 on a NUMA level");
    assert!(leaves(Shape::TWO_NODES, 800));
}

#[test]
fn statistics_count_allowed_cpus_only_where_the_profile_says_so() {
    let place_in = |profile| {
        let mut m = Machine::new(profile, Shape::TWO_LLCS);
        m.queue_each([0, 6, 7], 1);
        let child = m.new_task();
        m.allow(child, &[0, 4, 5]);
        m.place_fork(child, 0)
    };
    for profile in [V6_0, V6_12, V6_18] {
        assert_eq!(place_in(profile), 0, "3 idle CPUs here, none of them allowed");
    }
    for profile in [V6_12_117, V7_3] {
        assert_eq!(place_in(profile), 4);
    }
}

#[test]
fn an_exec_does_not_count_the_task_itself() {
    let mut m = Machine::new(V6_0, Shape::TWO_LLCS);
    let task = m.queue(1, 1)[0];
    assert_eq!(m.p.select_task_rq(task, 1, 1, WF_EXEC, NOW), 1);
    // A second task in the way makes the other LLC the idler one.
    m.queue(1, 1);
    assert_eq!(m.p.select_task_rq(task, 1, 1, WF_EXEC, NOW), 4);
}

#[test]
fn an_exec_does_not_count_the_task_as_running() {
    let mut m = Machine::new(V5_19, Shape::TWO_NODES);
    (0..8).for_each(|cpu| m.span(cpu, 1).imb_numa_nr = 2);
    let task = m.queue(1, 1)[0];
    m.queue(2, 1);
    assert_eq!(m.p.select_task_rq(task, 1, 1, WF_EXEC, NOW), 1, "with it, 2 run: the limit");
    m.queue(3, 1);
    assert_eq!(m.p.select_task_rq(task, 1, 1, WF_EXEC, NOW), 4);
}

#[test]
fn before_the_rework_load_decides_and_idle_cpus_do_not() {
    let place_with = |profile| {
        let mut m = Machine::new(profile, Shape::TWO_LLCS);
        for cpu in 0..3 {
            let task = m.queue(cpu, 1)[0];
            m.task(task).avg.load_avg = 13;
            m.rq(cpu).cfs.avg.load_avg = 13;
        }
        m.queue_each(4..5, 1);
        place(&mut m)
    };
    assert!(place_with(V5_3) < 4, "three small tasks weigh less than a big one");
    assert!(place_with(V6_0) >= 4, "three idle CPUs there, one here");
}

#[test]
fn before_the_rework_blocked_load_is_no_runnable_load() {
    let place_with = |blocked| {
        let mut m = Machine::new(V5_3, Shape::TWO_LLCS);
        m.queue_each(0..2, 1);
        (4..8).for_each(|cpu| m.rq(cpu).cfs.avg.load_avg = blocked);
        place(&mut m)
    };
    assert!(place_with(0) >= 4);
    assert!(place_with(4096) >= 4, "the load that sleepers left there keeps nobody away");
}

#[test]
fn the_walk_is_reported_as_the_slow_path() {
    let mut m = other_llc(V6_0);
    place(&mut m);
    assert_eq!(m.p.decision.slow_path, 1);
    // 8 CPUs in two groups, 4 in the idlest one, then its 4 single-CPU groups.
    assert_eq!(m.p.decision.scanned, 8 + 4 + 4);
}
