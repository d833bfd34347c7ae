//! Load balance: `busiest.h`, `detach.h`, `balance.h` and `nohz.h`.

use super::common::{Machine, NOW, Shape, TICK, moved, set};
use placewise_policy::kernel::{
    V5_3, V5_10, V5_17, V5_18, V5_19, V6_0, V6_1_176, V6_12, V6_12_117, V6_18, V6_18_15, V7_3,
};
use placewise_policy::*;

/// The level above the LLCs of `Shape::TWO_LLCS` and `Shape::TWO_NODES`.
const TOP: u32 = 1;
const LLC: u32 = 0;

fn two_llcs(profile: Profile) -> Machine {
    Machine::new(profile, Shape::TWO_LLCS)
}

fn two_nodes(profile: Profile) -> Machine {
    Machine::new(profile, Shape::TWO_NODES)
}

/// Without PREFER_SIBLING a spare group compares idle CPUs instead of tasks.
fn without_prefer_sibling(m: &mut Machine) {
    for cpu in [0, 4] {
        m.span(cpu, LLC).flags &= !SD_PREFER_SIBLING;
        m.group(cpu, TOP).flags &= !SD_PREFER_SIBLING;
    }
}

fn imbalance(m: &mut Machine, level: u32, idle: u32, kind: u32) -> u64 {
    m.sd(0, level).stats.lb_imbalance[idle as usize][kind as usize]
}

/// Tasks that make a group of 4 CPUs one of these types.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    HasSpare,
    FullyBusy,
    Imbalanced,
    Overloaded,
}

use Kind::*;

const KINDS: [Kind; 4] = [HasSpare, FullyBusy, Imbalanced, Overloaded];

/// Queues them on the last CPUs of the group that starts with `first`; `spare` tasks if it has room.
fn make(m: &mut Machine, first: u32, kind: Kind, spare: u32) {
    let tasks = match kind {
        HasSpare | Imbalanced => spare,
        FullyBusy => 4,
        Overloaded => 8,
    };
    let used = if first == 0 { 3 } else { 4 };
    for task in 0..tasks {
        m.queue(first + 3 - task % used, 1);
    }
    if kind == FullyBusy || kind == Overloaded {
        // The group's time is used up, however its tasks are spread.
        (first..first + 4).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = 1024);
    }
    m.group(first, TOP).imbalance = (kind == Imbalanced).into();
}

/// Does idle CPU 0 find something to do for these types of groups?
fn acts(busiest: Kind, local: Kind, busiest_spare: u32) -> bool {
    let mut m = two_llcs(V6_0);
    without_prefer_sibling(&mut m);
    make(&mut m, 0, local, 0);
    make(&mut m, 4, busiest, busiest_spare);
    if busiest == Overloaded && local == Overloaded {
        (1..4).for_each(|cpu| m.rq(cpu).cfs.avg.load_avg = 1024);
    }
    m.balance(0, TOP, CPU_IDLE).balanced == 0
}

#[test]
fn the_types_of_the_groups_decide_whether_to_act() {
    for busiest in KINDS {
        for local in KINDS {
            let expected = match (busiest, local) {
                (Imbalanced, _) => true,
                (HasSpare, HasSpare) => true, // 2 idle CPUs there, 4 here
                (HasSpare, _) => false,
                (FullyBusy, HasSpare) => true,
                (FullyBusy, _) => false,
                // A group marked imbalanced has no average load: it takes load all the same.
                (Overloaded, _) => true,
            };
            assert_eq!(acts(busiest, local, 2), expected, "busiest {busiest:?}, local {local:?}");
        }
    }
}

#[test]
fn spare_groups_compare_idle_cpus() {
    assert!(acts(HasSpare, HasSpare, 2), "4 idle here, 2 there");
    let mut m = two_llcs(V6_0);
    without_prefer_sibling(&mut m);
    m.queue_each(1..2, 1);
    m.queue_each(6..8, 1);
    assert_eq!(m.balance(0, TOP, CPU_IDLE).balanced, 1, "3 idle here, 2 there");
}

#[test]
fn a_busy_cpu_pulls_from_overloaded_groups_only() {
    for (tasks, balanced) in [(1, 1), (2, 0)] {
        let mut m = two_llcs(V6_0);
        without_prefer_sibling(&mut m);
        m.queue_each(0..1, 1);
        m.queue_each(4..8, tasks);
        (1..4).for_each(|cpu| m.newly_idle(cpu));
        assert_eq!(m.balance(0, TOP, CPU_NOT_IDLE).balanced, balanced, "{tasks} on each CPU there");
    }
}

#[test]
fn a_busy_cpu_leaves_small_tasks_where_they_queue() {
    let act = |idle| {
        let mut m = two_llcs(V6_0);
        m.queue(0, 1);
        m.queue(1, 3);
        for cpu in [0, 1] {
            m.rq(cpu).cfs.avg.util_avg = 100;
            m.rq(cpu).cfs.avg.runnable_avg = 200;
        }
        m.balance(0, LLC, idle).balanced == 0
    };
    assert!(!act(CPU_NOT_IDLE));
    assert!(act(CPU_IDLE), "3 tasks there, 1 here");
}

#[test]
fn a_group_with_one_task_is_left_alone() {
    let act = |tasks| {
        let mut m = two_llcs(V6_0);
        without_prefer_sibling(&mut m);
        // So that no CPU idles beside the task.
        (5..8).for_each(|cpu| set(&mut m.p.root.online, cpu, false));
        m.queue(4, tasks);
        m.balance(0, TOP, CPU_IDLE).balanced == 0
    };
    assert!(!act(1));
    assert!(act(2));
}

#[test]
fn overloaded_groups_compare_average_loads() {
    // Loads of a CPU here and there.
    for (local, remote, act) in
        [(2048, 2048, false), (2048, 2300, false), (2048, 2500, true), (2500, 2048, false)]
    {
        let mut m = two_llcs(V6_0);
        m.queue_each(0..8, 2);
        (0..4).for_each(|cpu| m.rq(cpu).cfs.avg.load_avg = local);
        (4..8).for_each(|cpu| m.rq(cpu).cfs.avg.load_avg = remote);
        assert_eq!(m.balance(0, TOP, CPU_NOT_IDLE).balanced == 0, act, "{local} {remote}");
    }
}

#[test]
fn prefer_sibling_evens_out_tasks() {
    let act = |here: u32, there: u32| {
        let mut m = two_llcs(V6_0);
        m.queue_each(1..1 + here, 1);
        m.queue_each(4..4 + there, 1);
        let act = m.balance(0, TOP, CPU_IDLE).balanced == 0;
        (act, imbalance(&mut m, TOP, CPU_IDLE, MIGRATE_TASK))
    };
    assert_eq!(act(0, 4), (true, 2));
    assert_eq!(act(0, 2), (true, 1));
    assert_eq!(act(0, 1), (false, 0));
    assert_eq!(act(1, 2), (false, 0));
}

#[test]
fn spare_capacity_is_filled_by_utilisation_from_an_overloaded_group() {
    let mut m = two_llcs(V6_0);
    m.queue_each(4..8, 2);
    m.rq(1).cfs.avg.util_avg = 96;
    m.balance(0, TOP, CPU_IDLE);
    assert_eq!(imbalance(&mut m, TOP, CPU_IDLE, MIGRATE_UTIL), 4096 - 96);

    (0..4).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = 1024);
    m.balance(0, TOP, CPU_IDLE);
    assert_eq!(imbalance(&mut m, TOP, CPU_IDLE, MIGRATE_TASK), 1, "no capacity left, but idle");
}

#[test]
fn inside_an_llc_tasks_are_counted_even_from_an_overloaded_cpu() {
    let mut m = two_llcs(V6_0);
    m.queue(1, 5);
    let result = m.balance(0, LLC, CPU_IDLE);
    assert_eq!(imbalance(&mut m, LLC, CPU_IDLE, MIGRATE_TASK), 2);
    assert_eq!((result.src, result.nr), (1, 2));
}

/// The tasks that idle CPU 0 wants from a node with `there` tasks while `here` run beside it.
fn numa_imbalance(rule: u32, here: u32, there: u32) -> u64 {
    let mut m = two_nodes(Profile { balance_numa: rule, ..V6_0 });
    (0..8).for_each(|cpu| m.span(cpu, TOP).imb_numa_nr = 2);
    m.queue_each(1..1 + here, 1);
    m.queue_each(4..4 + there, 1);
    m.balance(0, TOP, CPU_IDLE);
    imbalance(&mut m, TOP, CPU_IDLE, MIGRATE_TASK)
}

#[test]
fn a_numa_level_tolerates_what_its_rule_says() {
    // Differences of 2, 3 and 4 from an empty node.
    let table = [
        (BALANCE_NUMA_NONE, [1, 1, 2]),
        (BALANCE_NUMA_BUSIEST_TWO, [0, 1, 2]),
        // A node of 4 CPUs runs less than a quarter of them when it runs nothing.
        (BALANCE_NUMA_QUARTER_HALVED, [1, 1, 2]),
        (BALANCE_NUMA_LIMIT_HALVED, [0, 0, 0]),
        (BALANCE_NUMA_LIMIT, [0, 1, 2]),
    ];
    for (rule, expected) in table {
        let found = [2, 3, 4].map(|there| numa_imbalance(rule, 0, there));
        assert_eq!(found, expected, "rule {rule}");
    }
    // Two tasks here: one more is above the limit of 2.
    assert_eq!(numa_imbalance(BALANCE_NUMA_LIMIT, 2, 4), 1);
    assert_eq!(numa_imbalance(BALANCE_NUMA_LIMIT_HALVED, 2, 4), 1);
}

/// The tasks that idle CPU 0 wants from a node of 64 CPUs that runs `there`.
fn imbalance_of_large_nodes(profile: Profile, there: u32) -> u64 {
    let mut m = Machine::new(profile, Shape::ICX);
    let top = u32::from(m.p.cpu[0].nr_domains) - 1;
    (0..128).for_each(|cpu| m.span(cpu, top).imb_numa_nr = 1);
    m.queue_each(1..5, 1);
    m.queue_each((32..64).chain(96..128).take(there as usize), 1);
    m.balance(0, top, CPU_IDLE);
    imbalance(&mut m, top, CPU_IDLE, MIGRATE_TASK)
}

#[test]
fn v5_17_tolerates_a_pair_from_a_node_that_runs_less_than_a_quarter_of_its_cpus() {
    assert_eq!(imbalance_of_large_nodes(V5_17, 8), 0, "half of the difference is 2");
    assert_eq!(imbalance_of_large_nodes(V5_17, 10), 3, "and now 3");
    let full = |profile: Profile| {
        let mut m = Machine::new(profile, Shape::ICX);
        let top = u32::from(m.p.cpu[0].nr_domains) - 1;
        (0..128).for_each(|cpu| m.span(cpu, top).imb_numa_nr = 16);
        m.queue_each(1..14, 1);
        m.queue_each((32..64).take(16), 1);
        m.balance(0, top, CPU_IDLE);
        imbalance(&mut m, top, CPU_IDLE, MIGRATE_TASK)
    };
    assert_eq!(full(V5_17), 1, "16 of 64 are a quarter");
    assert_eq!(full(V5_18), 0, "13 here, and one, are no more than 16");
}

/// CPU 0's node is fully busy, the other one overloaded: loads of a CPU here and there.
fn load_imbalance(profile: Profile, here: u64, there: u64) -> u64 {
    let mut m = two_nodes(profile);
    m.queue_each(0..4, 1);
    m.queue_each(4..8, 2);
    (0..4).for_each(|cpu| m.rq(cpu).cfs.avg.load_avg = here);
    (4..8).for_each(|cpu| m.rq(cpu).cfs.avg.load_avg = there);
    m.balance(0, TOP, CPU_NOT_IDLE);
    imbalance(&mut m, TOP, CPU_NOT_IDLE, MIGRATE_LOAD)
}

#[test]
fn load_is_evened_out_at_the_average_of_the_domain() {
    assert_eq!(load_imbalance(V6_0, 1000, 2000), 4 * 500);
    assert_eq!(load_imbalance(V6_0, 2000, 2000), 0);
    assert_eq!(load_imbalance(V6_0, 2100, 2000), 0);
}

/// One node with three LLCs of 4 CPUs.
fn three_llcs(profile: Profile) -> Machine {
    Machine::new(profile, Shape { llcs: 3, ..Shape::TWO_LLCS })
}

/// `tasks` on each CPU of the first LLC; the second one is overloaded by `busiest` for each CPU,
/// the third one with next to no load.
fn above_average(profile: Profile, tasks: u32, busiest: u64) -> BalanceResult {
    let mut m = three_llcs(profile);
    m.queue_each(0..4, tasks);
    m.queue_each(4..12, 2);
    for cpu in 0..12 {
        m.rq(cpu).cfs.avg.load_avg = [1500, busiest, 100][cpu as usize / 4];
    }
    m.balance(0, TOP, CPU_NOT_IDLE)
}

#[test]
fn an_overloaded_group_above_the_average_pulls_nothing() {
    assert_eq!(above_average(V6_0, 2, 2400).balanced, 1, "average 1333");
    assert_eq!(above_average(V6_0, 2, 3000).balanced, 0, "average 1533");
}

#[test]
fn a_fully_busy_group_above_the_average_pulls_nothing_where_the_profile_says_so() {
    assert_eq!(above_average(V6_0, 1, 2400).balanced, 0);
    assert_eq!(above_average(V6_12, 1, 2400).balanced, 1);
    assert_eq!(above_average(V6_12, 1, 3000).balanced, 0);
}

#[test]
fn of_equal_groups_the_first_in_the_ring_is_busiest() {
    let src = |cpu, second: u32, third: u32| {
        let mut m = three_llcs(V6_0);
        m.queue_each(4..4 + second, 1);
        m.queue_each(8..8 + third, 1);
        m.balance(cpu, TOP, CPU_IDLE).src
    };
    assert_eq!(src(0, 3, 3), 4);
    assert_eq!(src(0, 2, 3), 8, "fewer idle CPUs");
    let ring = |busy: [u32; 2]| {
        let mut m = three_llcs(V6_0);
        busy.iter().for_each(|&cpu| m.queue_each(cpu..cpu + 3, 1));
        let first = [0, 4, 8].into_iter().find(|cpu| !busy.contains(cpu)).unwrap();
        m.balance(first, TOP, CPU_IDLE).src
    };
    assert_eq!(ring([0, 8]), 8, "seen from the second LLC");
    assert_eq!(ring([0, 4]), 0, "seen from the third");
}

#[test]
fn of_equal_fully_busy_groups_the_later_one_is_busiest_where_the_profile_says_so() {
    let src = |profile, flags| {
        let mut m = three_llcs(profile);
        m.queue_each(4..12, 1);
        m.group(4, TOP).flags |= flags;
        m.group(8, TOP).flags |= flags;
        // Cores would be relieved of their second task first.
        m.balance(0, TOP, CPU_IDLE).src
    };
    assert_eq!(src(V6_0, 0), 4);
    assert_eq!(src(V6_12, 0), 8);
    assert_eq!(src(V6_12, SD_SHARE_CPUCAPACITY), 4);
}

#[test]
fn an_imbalanced_group_gives_one_task() {
    let mut m = two_llcs(V6_0);
    m.queue_each(4..6, 2);
    m.group(4, TOP).imbalance = 1;
    m.balance(0, TOP, CPU_IDLE);
    assert_eq!(imbalance(&mut m, TOP, CPU_IDLE, MIGRATE_TASK), 1);
}

#[test]
fn asym_packing_pulls_all_tasks_to_the_preferred_cpu() {
    let act = |idle| {
        let mut m = two_llcs(V6_0);
        without_prefer_sibling(&mut m);
        m.span(0, TOP).flags |= SD_ASYM_PACKING;
        m.queue_each(4..7, 1);
        (1..4).for_each(|cpu| m.newly_idle(cpu));
        m.balance(0, TOP, idle);
        imbalance(&mut m, TOP, idle, MIGRATE_TASK)
    };
    assert_eq!(act(CPU_IDLE), 3);
    assert_eq!(act(CPU_NOT_IDLE), 0, "a busy CPU attracts nothing");
}

#[test]
fn a_misfit_task_is_pulled_by_a_bigger_cpu() {
    let act = |capacity| {
        let mut m = two_llcs(V6_0);
        m.span(0, TOP).flags |= SD_ASYM_CPUCAPACITY;
        m.queue(5, 1);
        m.rq(5).misfit_task_load = 700;
        m.rq(5).capacity = 500;
        m.group(4, TOP).max_capacity = 500;
        m.rq(0).capacity = capacity;
        let result = m.balance(0, TOP, CPU_IDLE);
        assert_eq!(m.sd(0, TOP).nr_balance_failed, 0, "that it runs is no failure");
        (imbalance(&mut m, TOP, CPU_IDLE, MIGRATE_MISFIT), result.active_balance)
    };
    assert_eq!(act(1024), (1, 1), "it runs, so it is pushed");
    assert_eq!(act(500), (0, 0));
}

#[test]
fn a_core_with_two_tasks_gives_one_to_a_cpu_without_siblings() {
    let act = |balance_smt, tasks| {
        let mut m = Machine::new(Profile { balance_smt, ..V6_12 }, Shape::SMT);
        // Core 0 is CPU 0 alone; cores 1 to 3 are CPUs c and c + 4.
        set(&mut m.p.root.online, 4, false);
        (0..4).for_each(|cpu| m.group(cpu, 1).flags &= !SD_PREFER_SIBLING);
        m.span(0, 0).flags &= !SD_PREFER_SIBLING;
        m.group(0, 1).flags = 0;
        m.queue_each([3, 7].into_iter().take(tasks), 1);
        m.balance(0, 1, CPU_IDLE);
        imbalance(&mut m, 1, CPU_IDLE, MIGRATE_TASK)
    };
    assert_eq!(act(true, 2), 1);
    assert_eq!(act(true, 1), 0, "the last task of a core");
    assert_eq!(act(false, 2), 0, "1 idle CPU here, none there");
}

#[test]
fn siblings_are_compared_by_tasks_per_core() {
    // 4 cores here, 1 core there: 3 tasks against 2 are fewer for each core.
    let act = |balance_smt, cores| {
        let mut m = two_llcs(Profile { balance_smt, ..V6_12 });
        m.group(4, TOP).cores = cores;
        m.queue_each(1..3, 1);
        m.queue_each(4..7, 1);
        m.balance(0, TOP, CPU_IDLE);
        imbalance(&mut m, TOP, CPU_IDLE, MIGRATE_TASK)
    };
    // (2 * (4 * 3 - 1 * 2) + 5) / 5 = 5, halved.
    assert_eq!(act(true, 1), 2);
    assert_eq!(act(true, 4), 0, "a difference of 1");
    assert_eq!(act(false, 1), 0, "a difference of 1, whatever the cores");
}

#[test]
fn an_empty_core_takes_a_task_from_many_cores_with_few() {
    let act = |local: u32| {
        let mut m = two_llcs(V6_12);
        m.group(0, TOP).cores = 1;
        m.group(4, TOP).cores = 8;
        m.queue_each(1..1 + local, 1);
        m.queue_each(4..6, 1);
        m.balance(0, TOP, CPU_IDLE);
        imbalance(&mut m, TOP, CPU_IDLE, MIGRATE_TASK)
    };
    // (2 * (1 * 2 - 8 * 0) + 9) / 9 = 1, which would halve to nothing.
    assert_eq!(act(0), 1);
    assert_eq!(act(1), 0);
}

#[test]
fn the_first_idle_cpu_of_the_group_balances_it() {
    let chosen = |m: &mut Machine, idle| -> Vec<u32> {
        (0..4).filter(|&cpu| m.balance(cpu, TOP, idle).continue_balancing == 1).collect()
    };
    let mut m = two_llcs(V6_0);
    m.queue(0, 1);
    assert_eq!(chosen(&mut m, CPU_IDLE), [1]);
    m.queue_each(1..4, 1);
    assert_eq!(chosen(&mut m, CPU_NOT_IDLE), [0], "none idle: the first");
    assert_eq!(chosen(&mut two_llcs(V6_0), CPU_NEWLY_IDLE), [0, 1, 2, 3]);
}

#[test]
fn an_idle_core_balances_before_an_idle_sibling() {
    let chosen = |balance_smt| {
        let mut m =
            Machine::new(Profile { balance_smt, ..V6_12 }, Shape { packages: 2, ..Shape::SMT });
        // Core 0 is CPUs 0 and 8; its second thread is busy.
        m.queue(8, 1);
        (0..4).find(|&cpu| m.balance(cpu, 2, CPU_IDLE).continue_balancing == 1)
    };
    assert_eq!(chosen(false), Some(0));
    assert_eq!(chosen(true), Some(1));
}

#[test]
fn the_busiest_queue_depends_on_what_is_moved() {
    // One task with a big load, two with little, three with hardly any utilisation.
    let prepare = |m: &mut Machine| {
        for (cpu, nr, load, util) in
            [(4, 1, 4000, 1024), (5, 2, 3000, 900), (6, 3, 1500, 400), (7, 3, 1500, 1000)]
        {
            m.queue(cpu, nr);
            m.rq(cpu).cfs.avg.load_avg = load;
            m.rq(cpu).cfs.avg.util_avg = util;
        }
        // Overloaded whatever the utilisation says.
        (4..8).for_each(|cpu| m.rq(cpu).cfs.avg.runnable_avg = 4096);
    };
    let mut m = two_llcs(V6_0);
    prepare(&mut m);
    assert_eq!(m.balance(0, TOP, CPU_IDLE).src, 7, "utilisation, among queues with two tasks");

    let mut m = two_llcs(V6_0);
    prepare(&mut m);
    (0..4).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = 1024);
    assert_eq!(m.balance(0, TOP, CPU_IDLE).src, 6, "tasks; the first of two with three");

    let mut m = two_llcs(V6_0);
    prepare(&mut m);
    m.queue_each(0..4, 1);
    assert_eq!(
        m.balance(0, TOP, CPU_NOT_IDLE).src,
        5,
        "load; the lone task is bigger than the imbalance"
    );
    m.rq(7).capacity = 400;
    assert_eq!(m.balance(0, TOP, CPU_NOT_IDLE).src, 7, "load for its capacity");
}

#[test]
fn the_busiest_queue_by_utilisation_counts_waiting_where_the_profile_says_so() {
    let src = |uses_runnable| {
        let mut m = two_llcs(Profile { queue_util_uses_runnable: uses_runnable, ..V6_0 });
        m.queue_each(4..8, 2);
        for (cpu, util, runnable) in [(4, 900, 900), (5, 800, 1000), (6, 800, 700), (7, 800, 700)] {
            m.rq(cpu).cfs.avg.util_avg = util;
            m.rq(cpu).cfs.avg.runnable_avg = runnable;
        }
        m.group(4, TOP).capacity = 2048;
        m.balance(0, TOP, CPU_IDLE).src
    };
    assert_eq!(src(false), 4);
    assert_eq!(src(true), 5);
}

/// CPU 1 has `nr` tasks for CPU 0 of the same LLC: who moves?
fn pull(m: &mut Machine, idle: u32) -> Vec<u32> {
    let result = m.balance(0, LLC, idle);
    moved(&result).to_vec()
}

#[test]
fn the_task_that_waits_longest_moves_and_the_running_one_never() {
    let mut m = two_llcs(V6_0);
    let tasks = m.queue(1, 5);
    // tasks[0] runs and is at the tail.
    assert_eq!(pull(&mut m, CPU_IDLE), [tasks[1], tasks[2]]);
    assert_eq!(m.rq(1).mru_head, tasks[0], "skipped tasks go to the head");
    let stats = m.sd(0, LLC).stats;
    assert_eq!((stats.lb_count[0], stats.lb_gained[0], stats.lb_failed[0]), (1, 2, 0));
}

#[test]
fn the_last_task_is_never_stolen() {
    let mut m = two_llcs(V6_0);
    let tasks = m.queue(5, 3);
    m.group(4, TOP).imbalance = 0;
    m.group(4, TOP).capacity = 512;
    m.queue_each([4, 6, 7], 1);
    // A whole LLC's utilisation is to move, but one task stays.
    let waiting = m.new_task();
    m.rq(5).curr = waiting;
    let result = m.balance(0, TOP, CPU_IDLE);
    assert_eq!((result.src, moved(&result)), (5, &tasks[..2]));
}

#[test]
fn hot_tasks_move_only_after_failures() {
    let gained = |exec_start, failed, level_flags| {
        let mut m = two_llcs(V6_0);
        m.queue(1, 3).iter().for_each(|&task| m.task(task).exec_start = exec_start);
        m.sd(0, LLC).nr_balance_failed = failed;
        m.span(0, LLC).flags |= level_flags;
        let nr = pull(&mut m, CPU_IDLE).len();
        (nr, m.sd(0, LLC).stats.lb_hot_gained[0])
    };
    let (hot, cold) = (NOW - 499_999, NOW - 500_000);
    assert_eq!(gained(cold, 0, 0), (1, 0));
    assert_eq!(gained(hot, 0, 0), (0, 0));
    assert_eq!(gained(hot, 1, 0), (0, 0), "cache_nice_tries is 1");
    assert_eq!(gained(hot, 2, 0), (1, 1));
    assert_eq!(gained(hot, 0, SD_SHARE_CPUCAPACITY), (1, 0), "siblings share the cache");
    assert_eq!(gained(0, 0, 0), (1, 0), "just migrated");
}

#[test]
fn sched_idle_tasks_are_never_hot_and_bound_kthreads_never_move() {
    let gained = |idle_policy, per_cpu_kthread| {
        let mut m = two_llcs(V6_0);
        for task in m.queue(1, 3) {
            m.task(task).exec_start = NOW;
            m.task(task).idle_policy = idle_policy;
            m.task(task).per_cpu_kthread = per_cpu_kthread;
        }
        pull(&mut m, CPU_IDLE).len()
    };
    assert_eq!(gained(0, 0), 0);
    assert_eq!(gained(1, 0), 1);
    assert_eq!(gained(1, 1), 0);
}

#[test]
fn the_migration_cost_can_make_all_tasks_hot_or_none() {
    let gained = |migration_cost, ran_for| {
        let mut m = two_llcs(Profile { migration_cost, ..V6_0 });
        m.queue(1, 3).iter().for_each(|&task| m.task(task).exec_start = NOW - ran_for);
        pull(&mut m, CPU_IDLE).len()
    };
    assert_eq!(gained(u64::MAX, 1 << 40), 0);
    assert_eq!(gained(0, 1), 1);
}

#[test]
fn an_attempt_looks_at_nr_migrate_tasks() {
    let gained = |knobs, tasks| {
        let mut m = two_llcs(Policy::parse("v6.0", knobs).unwrap().profile);
        m.queue(1, tasks);
        pull(&mut m, CPU_IDLE).len()
    };
    // The first that it looks at runs.
    for (tasks, expected) in [(9, [4, 2, 0]), (3, [1, 1, 0])] {
        let knobs = ["baseline", "set:nr_migrate=3", "set:nr_migrate=0"];
        assert_eq!(knobs.map(|knobs| gained(knobs, tasks)), expected, "{tasks}");
    }
}

#[test]
fn migration_cost_ns_says_what_is_hot_and_boots_as_it_was() {
    let policy = |knobs| Policy::parse("v6.0", knobs).unwrap().profile;
    let gained = |knobs, ran_for| {
        let mut m = two_llcs(policy(knobs));
        m.queue(1, 3).iter().for_each(|&task| m.task(task).exec_start = NOW - ran_for);
        pull(&mut m, CPU_IDLE).len()
    };
    for (ran_for, expected) in [(100_000, [0, 1, 0]), (1_000_000, [1, 1, 0]), (9_000_000, [1; 3])] {
        let knobs = ["baseline", "set:migration_cost_ns=0", "set:migration_cost_ns=5000000"];
        assert_eq!(knobs.map(|knobs| gained(knobs, ran_for)), expected, "{ran_for}");
    }
    let machine = placewise_machine::load("uma-8").unwrap();
    let (state, _) = topology::boot(&machine, &policy("set:migration_cost_ns=0")).unwrap();
    assert_eq!((state.rq[0].avg_idle, state.rq[0].max_idle_balance_cost), (1_000_000, 500_000));
}

#[test]
fn a_newly_idle_preemptible_kernel_takes_one_task() {
    let taken = |preemption, idle| {
        let mut m = two_llcs(Profile { preemption, ..V6_0 });
        m.queue(1, 5);
        if idle == CPU_NEWLY_IDLE {
            m.newly_idle(0);
        }
        pull(&mut m, idle).len()
    };
    assert_eq!(taken(false, CPU_NEWLY_IDLE), 2);
    assert_eq!(taken(true, CPU_NEWLY_IDLE), 1);
    assert_eq!(taken(true, CPU_IDLE), 2);
}

#[test]
fn tasks_that_may_not_come_mark_the_group_of_the_level_above() {
    let mut m = two_llcs(V6_0);
    for task in m.queue(1, 3) {
        m.allow(task, &[1]);
    }
    let result = m.balance(0, LLC, CPU_IDLE);
    assert_eq!((result.nr, result.balanced), (0, 1));
    assert_eq!(m.group(0, TOP).imbalance, 1);
    assert_eq!(m.group(4, TOP).imbalance, 0);
    assert_eq!(m.sd(0, LLC).stats.lb_balanced[0], 1);

    // A later pass without obstacles takes the mark away.
    let mut quiet = two_llcs(V6_0);
    quiet.group(0, TOP).imbalance = 1;
    quiet.balance(0, LLC, CPU_IDLE);
    assert_eq!(quiet.group(0, TOP).imbalance, 0);
}

/// CPU 0 looks for work at `level` once the machine is prepared: why does it get none?
fn reason_of(mut m: Machine, level: u32, prepare: impl Fn(&mut Machine)) -> Option<u32> {
    prepare(&mut m);
    let moved = m.balance(0, level, CPU_IDLE).nr > 0;
    let reasons = m.sd(0, level).stats.lb_moved_nothing;
    let counts = reasons[CPU_IDLE as usize];
    assert_eq!(counts.iter().sum::<u32>(), u32::from(!moved), "an attempt has one reason or none");
    assert_eq!(reasons.as_flattened().iter().sum::<u32>(), u32::from(!moved), "of its idle type");
    counts.iter().position(|&count| count == 1).map(|reason| reason as u32)
}

#[test]
fn an_attempt_that_moves_nothing_says_why() {
    let three_on_cpu_1 = |profile, change: &dyn Fn(&mut Machine, &[u32])| {
        reason_of(two_llcs(profile), LLC, |m| {
            let tasks = m.queue(1, 3);
            change(m, &tasks);
        })
    };
    assert_eq!(three_on_cpu_1(V6_0, &|_, _| ()), None, "one moves");
    assert_eq!(reason_of(two_llcs(V6_0), LLC, |_| ()), Some(LB_NO_BUSIEST_GROUP));

    let pinned = |m: &mut Machine, tasks: &[u32]| tasks.iter().for_each(|&t| m.allow(t, &[1]));
    assert_eq!(three_on_cpu_1(V6_0, &pinned), Some(LB_ALL_PINNED));
    let ran = |ago| {
        three_on_cpu_1(V6_0, &|m, tasks| {
            tasks.iter().for_each(|&task| m.task(task).exec_start = NOW - ago);
        })
    };
    assert_eq!(ran(499_999), Some(LB_HOT));
    assert_eq!(ran(500_000), None);
}

#[test]
fn a_level_that_another_cpu_balances_is_not_looked_at() {
    let reason = |is_idle: bool| {
        reason_of(two_llcs(V6_0), TOP, |m| {
            m.queue(4, 3);
            if !is_idle {
                m.newly_idle(0);
            }
        })
    };
    assert_eq!(reason(true), None);
    assert_eq!(reason(false), Some(LB_NOT_CHOSEN), "CPU 1 is the first idle one of the group");
}

#[test]
fn pinned_tasks_are_no_reason_where_another_source_has_hot_ones() {
    let reason = |others| {
        reason_of(two_llcs(V6_0), LLC, |m| {
            m.queue(1, 4).iter().for_each(|&task| m.allow(task, &[1]));
            m.queue(2, others).iter().for_each(|&task| m.task(task).exec_start = NOW);
        })
    };
    assert_eq!(reason(0), Some(LB_ALL_PINNED), "though no group is busiest without CPU 1");
    assert_eq!(reason(3), Some(LB_HOT), "these came nearer to moving");
}

/// All CPUs of the other LLC have two tasks, one of them of another class.
#[test]
fn queues_with_one_fair_task_each_are_no_source() {
    let reason = |fair| {
        reason_of(two_llcs(V6_0), TOP, |m| {
            m.queue_each(5..8, 1);
            m.queue(4, fair);
            (4..8).for_each(|cpu| m.rq(cpu).nr_running += 1);
            m.group(0, TOP).capacity = 8192;
        })
    };
    assert_eq!(reason(1), Some(LB_NO_BUSIEST_QUEUE));
    assert_eq!(reason(2), None);
}

#[test]
fn a_lone_task_that_runs_stays() {
    let lone = |m: &mut Machine| {
        m.queue_each([4, 5], 1);
        m.group(4, TOP).imbalance = 1;
    };
    assert_eq!(reason_of(two_llcs(V6_0), TOP, lone), Some(LB_RUNNING));
}

#[test]
fn a_task_larger_than_the_imbalance_stays() {
    let reason = |util| {
        reason_of(two_llcs(V6_0), TOP, |m| {
            m.queue_each(5..8, 1);
            for task in m.queue(4, 2) {
                m.task(task).avg.util_avg = util;
            }
            m.group(0, TOP).capacity = 500;
        })
    };
    assert_eq!(reason(501), Some(LB_TOO_LARGE));
    assert_eq!(reason(500), None);
}

#[test]
fn a_hint_is_the_reason_only_while_it_holds_tasks_in_their_llc() {
    let reason = |level, hint: u32| {
        reason_of(two_llcs(V6_0), level, |m| {
            let source = if level == LLC { 1 } else { 4 };
            m.queue(source, 3).iter().for_each(|&task| m.task(task).hint = hint as u8);
        })
    };
    assert_eq!(reason(TOP, HINT_WAKE_AFFINE), Some(LB_HINTED));
    assert_eq!(reason(TOP, 0), None);
    assert_eq!(reason(LLC, HINT_WAKE_AFFINE), None);
}

#[test]
fn tasks_ahead_of_their_share_stay_since_6_18() {
    let reason = |profile, eligible| {
        reason_of(two_llcs(profile), LLC, |m| {
            m.queue(0, 1);
            m.queue(1, 4).iter().for_each(|&task| m.task(task).eligible = eligible);
            // Not overloaded but imbalanced: one task is to move.
            m.rq(1).cfs.avg.util_avg = 100;
            m.rq(1).cfs.avg.runnable_avg = 1000;
            m.group(1, LLC).imbalance = 1;
        })
    };
    assert_eq!(reason(V6_18, 0), Some(LB_INELIGIBLE));
    assert_eq!(reason(V6_18, 1), None);
    assert_eq!(reason(V6_0, 0), None);
}

#[test]
fn a_lock_held_elsewhere_is_a_reason() {
    let reason = |busy| {
        reason_of(two_nodes(V7_3), TOP, |m| {
            m.queue(4, 3);
            m.p.root.serialize_busy = busy;
        })
    };
    assert_eq!(reason(1), Some(LB_SERIALIZED));
    assert_eq!(reason(0), None);
}

#[test]
fn when_one_source_is_all_pinned_another_one_is_tried() {
    let mut m = two_llcs(V6_0);
    for task in m.queue(1, 4) {
        m.allow(task, &[1]);
    }
    let others = m.queue(2, 3);
    let result = m.balance(0, LLC, CPU_IDLE);
    assert_eq!((result.src, moved(&result)), (2, &others[1..2]));
}

#[test]
fn a_pinned_task_may_go_to_a_neighbour_of_the_destination() {
    let dst = |idle| {
        let mut m = two_llcs(V6_0);
        if idle == CPU_NEWLY_IDLE {
            m.newly_idle(0);
        }
        for task in m.queue(5, 4) {
            m.allow(task, &[2, 5]);
        }
        let result = m.balance(0, TOP, idle);
        (result.dst[..result.nr as usize].to_vec(), result.balanced)
    };
    let (cpus, balanced) = dst(CPU_IDLE);
    assert!(!cpus.is_empty() && cpus.iter().all(|&cpu| cpu == 2), "{cpus:?}");
    assert_eq!(balanced, 0);
    assert_eq!(dst(CPU_NEWLY_IDLE), (vec![], 1));
}

/// CPU 4 has three tasks with a hint; three more CPUs of its LLC have `others` each.
fn pull_hinted(hint: u32, others: u32, level: u32) -> BalanceResult {
    let mut m = two_llcs(V6_0);
    let (src, dst) = if level == TOP { (4, 0) } else { (1, 0) };
    m.queue(src, 3).iter().for_each(|&task| m.task(task).hint = hint as u8);
    if level == TOP {
        m.queue_each(5..8, others);
        (5..8).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = 100);
    }
    m.balance(dst, level, CPU_IDLE)
}

#[test]
fn wakeup_hints_hold_tasks_in_an_llc_that_has_room() {
    assert!(pull_hinted(0, 0, TOP).nr > 0);
    for hint in [HINT_WAKE_AFFINE, HINT_WAKE_HOLD] {
        let held = pull_hinted(hint, 0, TOP);
        assert_eq!((held.nr, held.balanced), (0, 1), "a queue of hinted tasks looks pinned");
        assert!(pull_hinted(hint, 1, TOP).nr > 0, "6 tasks on 4 CPUs");
        assert!(pull_hinted(hint, 0, LLC).nr > 0, "inside the LLC");
    }
    assert!(pull_hinted(HINT_FORK_SPREAD, 0, TOP).nr > 0);
}

#[test]
fn sched_idle_tasks_take_no_room_from_hinted_ones() {
    let src = |nr_idle| {
        let mut m = two_llcs(V6_0);
        m.queue(4, 3).iter().for_each(|&task| m.task(task).hint = HINT_WAKE_HOLD as u8);
        m.queue(5, 2);
        m.rq(5).cfs.h_nr_idle = nr_idle;
        let result = m.balance(0, TOP, CPU_IDLE);
        assert!(result.nr > 0);
        result.src
    };
    assert_eq!(src(0), 4, "5 tasks on 4 CPUs");
    assert_eq!(src(1), 5, "4 tasks and a SCHED_IDLE one: the hinted ones stay");
}

#[test]
fn a_push_leaves_hinted_tasks_in_their_llc() {
    let pushed = |dst| {
        let mut m = two_llcs(V6_0);
        m.queue(4, 1).iter().for_each(|&task| m.task(task).hint = HINT_WAKE_HOLD as u8);
        m.p.active_balance_task(4, dst, NOW) != NO_TASK
    };
    assert!(pushed(5));
    assert!(!pushed(0));
}

#[test]
fn detach_respects_the_amount_of_load_and_relaxes_with_failures() {
    let taken = |failed| {
        let mut m = two_nodes(V6_0);
        m.queue_each(0..4, 1);
        m.queue_each(4..8, 2);
        (0..8).for_each(|cpu| m.sd(cpu, TOP).nr_balance_failed = failed);
        (0..4).for_each(|cpu| m.rq(cpu).cfs.avg.load_avg = 1848);
        let result = m.balance(0, TOP, CPU_NOT_IDLE);
        assert_eq!(imbalance(&mut m, TOP, CPU_NOT_IDLE, MIGRATE_LOAD), 400);
        result.nr
    };
    assert_eq!(taken(0), 0, "1024 > 400");
    assert_eq!(taken(1), 0, "512 > 400");
    assert_eq!(taken(2), 1, "256");
}

#[test]
fn detach_by_utilisation_relaxes_only_where_the_profile_says_so() {
    let taken = |shifted, failed| {
        let mut m = two_llcs(Profile { detach_util_shifted: shifted, ..V6_0 });
        m.queue_each(4..8, 2);
        (0..4).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = 924);
        m.sd(0, TOP).nr_balance_failed = failed;
        m.balance(0, TOP, CPU_IDLE).nr
    };
    assert_eq!(taken(false, 0), 0, "512 > 400");
    assert_eq!(taken(false, 1), 0);
    assert_eq!(taken(true, 0), 0);
    assert_eq!(taken(true, 1), 1, "256");
}

#[test]
fn delayed_and_ineligible_tasks_stay_where_the_profile_says_so() {
    let taken = |profile, delayed, eligible, failed| {
        let mut m = two_llcs(profile);
        for task in m.queue(1, 4) {
            m.task(task).delayed = delayed;
            m.task(task).eligible = eligible;
        }
        // Not overloaded but imbalanced: one task is to move.
        m.rq(1).cfs.avg.util_avg = 100;
        m.rq(1).cfs.avg.runnable_avg = 1000;
        // The destination has company for them.
        m.queue(0, 1);
        m.sd(0, LLC).nr_balance_failed = failed;
        (0..4).for_each(|cpu| m.group(cpu, LLC).imbalance = u32::from(cpu == 1));
        pull(&mut m, CPU_NOT_IDLE).len()
    };
    assert_eq!(taken(V6_12, 1, 1, 0), 1);
    assert_eq!(taken(V6_18, 0, 1, 0), 1);
    assert_eq!(taken(V6_18, 1, 1, 0), 0, "delayed");
    assert_eq!(taken(V6_18, 0, 0, 0), 0, "ineligible");
    assert_eq!(taken(V6_18, 0, 0, 1), 1, "ineligible, after a failure");
    assert_eq!(taken(V6_12, 0, 0, 0), 1);
}

#[test]
fn delayed_tasks_are_not_runnable_where_the_profile_says_so() {
    for (profile, runnable) in [(V6_12, true), (V6_12_117, false), (V6_18, false), (V7_3, false)] {
        let mut m = two_llcs(profile);
        m.queue(1, 2);
        m.rq(1).cfs.h_nr_delayed = 2;
        assert_eq!(m.balance(0, LLC, CPU_IDLE).balanced == 0, runnable, "no group to relieve");
        m.rq(1).cfs.load_weight = 2048;
        m.rq(1).cfs.avg.last_update_time = NOW;
        m.p.update_blocked_averages(1, NOW + 320_000_000);
        assert_eq!(m.rq(1).cfs.avg.runnable_avg > 500, runnable, "PELT");
    }
}

/// A level that has failed `failed` times fails once more: is the running task to be pushed?
fn pushes(profile: Profile, failed: u32, kind: u32) -> (bool, Machine) {
    let mut m = two_llcs(profile);
    // The imbalance is of one kind or the other, and nothing can be detached.
    m.queue_each(4..8, if kind == MIGRATE_TASK { 1 } else { 2 });
    let tasks: Vec<u32> = (FIRST_TASK..FIRST_TASK + 8).collect();
    tasks.iter().for_each(|&task| m.task(task).per_cpu_kthread = 1);
    m.sd(0, TOP).nr_balance_failed = failed;
    m.sd(0, TOP).balance_interval = 12;
    let result = m.balance(0, TOP, CPU_IDLE);
    (result.active_balance == 1, m)
}

#[test]
fn a_level_that_keeps_failing_asks_for_a_push() {
    // cache_nice_tries is 1: the failure being counted must be the fourth.
    assert!(!pushes(V6_0, 2, MIGRATE_TASK).0);
    let (active, mut m) = pushes(V6_0, 3, MIGRATE_TASK);
    assert!(active);
    let result = m.p.balance;
    assert_eq!((result.active_src, result.active_dst, m.rq(4).active_balance), (4, 0, 1));
    assert_eq!(m.sd(0, TOP).nr_balance_failed, 4);
    assert_eq!(m.sd(0, TOP).stats.lb_failed[0], 1);

    let again = m.balance(0, TOP, CPU_IDLE);
    assert_eq!(again.active_balance, 0, "a push from there is under way");
}

#[test]
fn a_push_without_tasks_to_count_depends_on_the_profile() {
    let any_type = Profile { active_balance_any_type: true, ..V6_0 };
    // Utilisation is to move, and every task is a per-CPU kthread, so affinity does not matter.
    let (_, mut m) = pushes(V6_0, 9, MIGRATE_UTIL);
    assert!(imbalance(&mut m, TOP, CPU_IDLE, MIGRATE_UTIL) > 0);
    let attempt = |profile| {
        let mut m = two_llcs(profile);
        m.queue_each(4..8, 2);
        for task in FIRST_TASK..FIRST_TASK + 8 {
            m.task(task).exec_start = NOW;
            m.task(task).avg.util_avg = 5000;
        }
        m.sd(0, TOP).nr_balance_failed = 9;
        m.balance(0, TOP, CPU_IDLE).active_balance == 1
    };
    assert!(!attempt(V6_0));
    assert!(attempt(any_type));
}

#[test]
fn a_push_that_was_asked_for_backs_off_before_v5_19() {
    let (_, mut m) = pushes(V5_10, 5, MIGRATE_TASK);
    assert_eq!(m.sd(0, TOP).nr_balance_failed, 2, "cache_nice_tries + 1");
    assert_eq!(m.sd(0, TOP).balance_interval, 24, "doubled");
    let (_, mut m) = pushes(V5_19, 5, MIGRATE_TASK);
    assert_eq!((m.sd(0, TOP).nr_balance_failed, m.sd(0, TOP).balance_interval), (6, 8));
}

#[test]
fn a_level_backs_off_even_if_the_push_is_one_of_another_cpu() {
    let failed = |profile| {
        let mut m = two_llcs(profile);
        m.queue_each(4..8, 1);
        m.rq(4).active_balance = 1;
        m.sd(0, TOP).nr_balance_failed = 5;
        assert_eq!(m.balance(0, TOP, CPU_IDLE).active_balance, 0);
        m.sd(0, TOP).nr_balance_failed
    };
    assert_eq!(failed(V5_10), 2, "cache_nice_tries + 1");
    assert_eq!(failed(V5_19), 6);
}

#[test]
fn a_push_to_a_preferred_cpu_needs_no_failure_and_does_not_back_off() {
    for profile in [V5_10, V6_0] {
        let mut m = two_llcs(profile);
        m.span(0, TOP).flags |= SD_ASYM_PACKING;
        m.queue(5, 1);
        m.sd(0, TOP).balance_interval = 12;
        assert_eq!(m.balance(0, TOP, CPU_IDLE).active_balance, 1);
        assert_eq!(m.sd(0, TOP).balance_interval, 8);
    }
}

#[test]
fn the_running_task_must_be_allowed_here_to_be_pushed() {
    let mut m = two_llcs(V6_0);
    for task in [4, 5, 6, 7].map(|cpu| m.queue(cpu, 1)[0]) {
        m.allow(task, &[4, 5, 6, 7]);
    }
    m.sd(0, TOP).nr_balance_failed = 9;
    let result = m.balance(0, TOP, CPU_IDLE);
    assert_eq!((result.active_balance, m.rq(4).active_balance), (0, 0));
    assert_eq!(m.sd(0, TOP).balance_interval, 16, "as if balanced");
}

#[test]
fn the_stopper_pushes_the_longest_waiting_task_even_if_hot() {
    let mut m = two_llcs(V6_0);
    let tasks = m.queue(4, 2);
    m.task(tasks[1]).exec_start = NOW;
    m.rq(4).active_balance = 1;
    m.sd(0, TOP).nr_balance_failed = 4;
    m.allow(tasks[0], &[4]);
    assert_eq!(m.p.active_balance_task(4, 0, NOW), tasks[1]);
    let stats = m.sd(0, TOP).stats;
    assert_eq!((stats.alb_count, stats.alb_pushed, stats.alb_failed), (1, 1, 0));
    assert_eq!((m.sd(0, TOP).nr_balance_failed, m.rq(4).active_balance), (0, 0));

    m.allow(tasks[1], &[4]);
    assert_eq!(m.p.active_balance_task(4, 0, NOW), NO_TASK);
    assert_eq!(m.sd(0, TOP).stats.alb_failed, 1);
}

#[test]
fn intervals_double_while_balanced_and_restart_with_an_imbalance() {
    let mut m = two_llcs(V6_0);
    assert_eq!(m.sd(0, LLC).balance_interval, 4);
    m.sd(0, LLC).nr_balance_failed = 3;
    m.balance(0, LLC, CPU_IDLE);
    assert_eq!((m.sd(0, LLC).balance_interval, m.sd(0, LLC).nr_balance_failed), (8, 0));
    m.balance(0, LLC, CPU_IDLE);
    assert_eq!(m.sd(0, LLC).balance_interval, 8, "the maximum");
    m.queue(1, 3);
    m.balance(0, LLC, CPU_IDLE);
    assert_eq!(m.sd(0, LLC).balance_interval, 4);

    let mut newly = two_llcs(V6_0);
    newly.balance(0, LLC, CPU_NEWLY_IDLE);
    assert_eq!(newly.sd(0, LLC).balance_interval, 4, "newly-idle passes change nothing");
}

#[test]
fn pinned_levels_double_their_interval_up_to_half_a_second() {
    let mut m = two_llcs(V6_0);
    for task in m.queue(1, 3) {
        m.allow(task, &[1]);
    }
    (0..20).for_each(|_| {
        m.balance(0, LLC, CPU_IDLE);
    });
    assert_eq!(m.sd(0, LLC).balance_interval, 512);
}

#[test]
fn failures_count_except_in_newly_idle_passes() {
    for (idle, failed) in [(CPU_IDLE, 1), (CPU_NEWLY_IDLE, 0)] {
        let mut m = two_llcs(V6_0);
        m.queue(1, 3).iter().for_each(|&task| m.task(task).exec_start = NOW);
        m.balance(0, LLC, idle);
        assert_eq!(m.sd(0, LLC).nr_balance_failed, failed);
        assert_eq!(m.sd(0, LLC).stats.lb_failed[idle as usize], 1);
    }
}

#[test]
fn an_llc_pass_tells_sis_util_how_busy_it_is() {
    let written = |profile, level, idle| {
        let mut m = two_llcs(profile);
        m.p.llc[0].nr_idle_scan = 99;
        m.rq(2).cfs.avg.util_avg = 1024;
        m.balance(0, level, idle);
        m.p.llc[0].nr_idle_scan
    };
    assert_eq!(written(V6_0, LLC, CPU_IDLE), nr_idle_scan_of(1024, 4, 117));
    assert_eq!(written(V6_0, LLC, CPU_NEWLY_IDLE), 99);
    assert_eq!(written(V6_0, TOP, CPU_IDLE), 99);
    assert_eq!(written(V5_19, LLC, CPU_IDLE), 99);
}

#[test]
fn only_a_pass_over_the_machine_clears_overload() {
    let mut m = two_llcs(V6_0);
    m.p.root.overload = 1;
    m.balance(0, LLC, CPU_IDLE);
    assert_eq!(m.p.root.overload, 1);
    m.balance(0, TOP, CPU_IDLE);
    assert_eq!(m.p.root.overload, 0);
    m.queue(2, 2);
    m.balance(0, TOP, CPU_IDLE);
    assert_eq!(m.p.root.overload, 1);
}

fn walk() -> BalanceWalk {
    BalanceWalk {
        next_balance: 0,
        cost: 0,
        cpu: 0,
        level: 0,
        idle: 0,
        not_my_job: 0,
        need_decay: 0,
        pulled: 0,
    }
}

/// The levels that are due for CPU 0 at `now`, when each is declared balanced.
fn due(m: &mut Machine, idle: u32, now: u64, my_job: bool) -> Vec<u32> {
    let mut w = walk();
    let mut levels = Vec::new();
    m.p.rebalance_domains_start(&mut w, 0, idle, now);
    loop {
        let level = m.p.rebalance_domains_next(&mut w, now);
        if level == NR_LEVELS {
            break;
        }
        levels.push(level);
        m.p.rebalance_domains_level_done(&mut w, false, my_job, now);
    }
    m.p.rebalance_domains_end(&mut w);
    levels
}

fn at(jiffies: u64) -> u64 {
    NOW + jiffies * TICK
}

#[test]
fn levels_are_due_by_their_interval_which_is_longer_for_busy_cpus() {
    // 4 ms and 8 ms are 1 and 2 ticks; times 16, less one, at most HZ * 8 / 10, for busy ones.
    let mut m = two_llcs(V6_0);
    assert_eq!(due(&mut m, CPU_IDLE, at(0), true), [0u32; 0]);
    assert_eq!(m.rq(0).next_balance, NOW / TICK + 1);
    assert_eq!(due(&mut m, CPU_IDLE, at(1), true), [LLC]);
    assert_eq!(due(&mut m, CPU_IDLE, at(2), true), [LLC, TOP]);
    assert_eq!(m.rq(0).next_balance, NOW / TICK + 3);

    let mut m = two_llcs(V6_0);
    assert_eq!(due(&mut m, CPU_NOT_IDLE, at(14), true), [0u32; 0]);
    assert_eq!(due(&mut m, CPU_NOT_IDLE, at(15), true), [LLC]);
    assert_eq!(due(&mut m, CPU_NOT_IDLE, at(31), true), [LLC, TOP]);
    let mut m = two_llcs(Profile { busy_factor: 32, ..V6_0 });
    assert_eq!(due(&mut m, CPU_NOT_IDLE, at(30), true), [0u32; 0]);

    let mut m = two_llcs(V6_0);
    set(&mut m.p.root.sched_idle, 0, true);
    assert_eq!(due(&mut m, CPU_NOT_IDLE, at(1), true), [LLC], "SCHED_IDLE tasks are no work");
}

#[test]
fn no_interval_is_longer_than_a_tenth_of_a_second_for_each_cpu() {
    let mut m = two_llcs(V6_0);
    m.sd(0, TOP).balance_interval = 10_000;
    m.sd(0, LLC).balance_interval = 10_000;
    assert_eq!(due(&mut m, CPU_IDLE, at(199), true), [0u32; 0]);
    assert_eq!(due(&mut m, CPU_IDLE, at(200), true), [LLC, TOP]);
}

#[test]
fn a_level_that_moved_tasks_may_have_ended_the_idleness() {
    let idle_after = |moved| {
        let mut m = two_llcs(V6_0);
        let mut w = walk();
        m.p.rebalance_domains_start(&mut w, 0, CPU_IDLE, at(9));
        assert_eq!(m.p.rebalance_domains_next(&mut w, at(9)), LLC);
        m.queue(0, 1);
        m.p.rebalance_domains_level_done(&mut w, moved, true, at(9));
        w.idle
    };
    assert_eq!(idle_after(true), CPU_NOT_IDLE);
    assert_eq!(idle_after(false), CPU_IDLE);
}

#[test]
fn a_newly_idle_visit_only_brings_the_next_balance_forward() {
    let next = |before| {
        let mut m = two_llcs(V6_0);
        m.rq(0).next_balance = before;
        newidle(&mut m, 1000, false);
        m.rq(0).next_balance
    };
    assert_eq!(next(u64::MAX), NOW / TICK + 1);
    assert_eq!(next(5), 5);
}

#[test]
fn no_level_is_balanced_above_one_that_a_neighbour_balances() {
    let mut m = two_llcs(V6_0);
    assert_eq!(due(&mut m, CPU_IDLE, at(9), false), [LLC]);
}

#[test]
fn one_cpu_balances_numa_levels_at_a_time() {
    let mut m = two_nodes(V6_0);
    m.p.root.serialize_busy = 1;
    assert_eq!(due(&mut m, CPU_IDLE, at(9), true), [LLC]);
    assert_eq!(m.sd(0, TOP).last_balance, NOW / TICK);
    m.p.root.serialize_busy = 0;
    assert_eq!(due(&mut m, CPU_IDLE, at(9), true), [TOP]);
    assert_eq!(m.p.root.serialize_busy, 0);

    let mut w = walk();
    m.p.rebalance_domains_start(&mut w, 0, CPU_IDLE, at(20));
    while m.p.rebalance_domains_next(&mut w, at(20)) != TOP {
        m.p.rebalance_domains_level_done(&mut w, false, true, at(20));
    }
    assert_eq!(m.p.root.serialize_busy, 1, "held while the level is balanced");
}

#[test]
fn since_6_19_the_lock_of_numa_levels_is_taken_inside_an_attempt() {
    let attempt = |profile, busy| {
        let mut m = two_nodes(profile);
        m.queue(4, 3);
        m.p.root.serialize_busy = busy;
        let balanced = m.balance(0, TOP, CPU_IDLE).balanced;
        assert_eq!(m.p.root.serialize_busy, busy, "released if it was taken");
        assert_eq!(m.sd(0, TOP).stats.lb_balanced[CPU_IDLE as usize], u32::from(balanced));
        balanced
    };
    assert_eq!(attempt(V7_3, 0), 0);
    assert_eq!(attempt(V7_3, 1), 1, "held elsewhere: nothing to do");
    assert_eq!(attempt(V6_18, 1), 0, "the lock is around the attempt");

    let mut m = two_nodes(V7_3);
    m.queue(4, 3);
    m.p.root.serialize_busy = 1;
    assert_eq!(m.balance(0, LLC, CPU_IDLE).balanced, 1);
    assert_eq!(m.sd(0, LLC).stats.lb_nobusyg[CPU_IDLE as usize], 1, "it looked: no NUMA level");
    assert_eq!(due(&mut m, CPU_IDLE, at(9), true), [LLC, TOP], "the level is not passed over");
    assert_eq!(m.sd(0, TOP).last_balance, NOW / TICK + 9);
    assert_eq!(m.p.root.serialize_busy, 1);
}

#[test]
fn a_cpu_that_is_not_to_balance_takes_no_lock() {
    let mut m = two_nodes(V7_3);
    m.queue(4, 3);
    m.p.root.serialize_busy = 1;
    assert_eq!(m.balance(1, TOP, CPU_IDLE).continue_balancing, 0);
    assert_eq!(m.balance(0, TOP, CPU_IDLE).continue_balancing, 1, "even if the lock is held");
}

#[test]
fn recorded_costs_decay_by_a_percent_a_second() {
    let mut m = two_llcs(V6_0);
    (0..2).for_each(|level| m.sd(0, level).max_newidle_lb_cost = 2_560_000);
    due(&mut m, CPU_IDLE, at(250), true);
    assert_eq!(m.sd(0, LLC).max_newidle_lb_cost, 2_560_000, "not before a second has passed");
    due(&mut m, CPU_IDLE, at(251), true);
    assert_eq!(
        (m.sd(0, LLC).max_newidle_lb_cost, m.sd(0, TOP).max_newidle_lb_cost),
        (2_530_000, 2_530_000)
    );
    assert_eq!(m.rq(0).max_idle_balance_cost, 5_060_000);

    let mut cheap = two_llcs(V6_0);
    due(&mut cheap, CPU_IDLE, at(251), true);
    assert_eq!(cheap.rq(0).max_idle_balance_cost, 500_000, "the floor");
}

#[test]
fn levels_above_still_decay_when_a_neighbour_balances() {
    let mut m = two_llcs(V6_0);
    (0..2).for_each(|level| m.sd(0, level).max_newidle_lb_cost = 2_560_000);
    due(&mut m, CPU_IDLE, at(251), false);
    assert_eq!(m.sd(0, TOP).max_newidle_lb_cost, 2_530_000);
}

/// Does CPU 0 look for tasks, given what it idles on average and what the lowest level cost?
fn newidle_gate(profile: Profile, overload: u32, avg_idle: u64, cost: u64) -> bool {
    let mut m = two_llcs(profile);
    m.p.root.overload = overload;
    m.rq(0).avg_idle = avg_idle;
    m.sd(0, LLC).max_newidle_lb_cost = cost;
    let open = m.p.newidle_balance_start(&mut walk(), 0, NOW);
    assert_eq!(m.rq(0).idle_stamp, NOW);
    open
}

#[test]
fn the_newly_idle_gate_compares_the_idle_time_to_come() {
    for profile in [V6_0, V5_10] {
        assert!(newidle_gate(profile, 1, 600_000, 100));
        assert!(!newidle_gate(profile, 0, 600_000, 100), "nobody is overloaded");
    }
    assert!(newidle_gate(V6_0, 1, 400_000, 400_000));
    assert!(!newidle_gate(V6_0, 1, 399_999, 400_000), "the lowest level costs more");
    assert!(!newidle_gate(V5_10, 1, 499_999, 100), "below the migration cost");
    assert!(newidle_gate(V5_10, 1, 500_000, 900_000));
}

#[test]
fn a_pending_wakeup_makes_looking_needless() {
    let start = |profile| {
        let mut m = two_llcs(profile);
        m.p.root.overload = 1;
        m.rq(0).ttwu_pending = 1;
        m.p.newidle_balance_start(&mut walk(), 0, NOW)
    };
    assert!(!start(V6_0));
    assert!(start(V5_10));
}

/// A newly-idle visit in which each level takes `cost` and pulls or not.
fn newidle(m: &mut Machine, cost: u64, pulled: bool) -> Vec<u32> {
    let mut w = walk();
    let mut levels = Vec::new();
    m.p.root.overload = 1;
    assert!(m.p.newidle_balance_start(&mut w, 0, NOW));
    loop {
        let level = m.p.newidle_balance_next(&mut w);
        if level == NR_LEVELS {
            break;
        }
        levels.push(level);
        m.p.newidle_balance_level_done(&mut w, cost, pulled, NOW);
    }
    m.p.newidle_balance_end(&mut w);
    levels
}

#[test]
fn a_newly_idle_visit_ends_when_it_pulls_or_gets_too_dear() {
    let mut m = two_llcs(V6_0);
    assert_eq!(newidle(&mut m, 1000, false), [LLC, TOP]);
    assert_eq!(m.rq(0).idle_stamp, NOW);
    assert_eq!(m.rq(0).max_idle_balance_cost, 2000);
    assert_eq!(newidle(&mut m, 1000, true), [LLC]);
    assert_eq!(m.rq(0).idle_stamp, 0, "not idle after all");
    m.rq(0).avg_idle = 50_000;
    m.sd(0, TOP).max_newidle_lb_cost = 49_500;
    assert_eq!(newidle(&mut m, 1000, false), [LLC], "1000 + 49,500 > 50,000");
}

#[test]
fn work_that_arrives_ends_a_newly_idle_visit() {
    let mut m = two_llcs(V6_0);
    let mut w = walk();
    m.p.root.overload = 1;
    m.p.newidle_balance_start(&mut w, 0, NOW);
    assert_eq!(m.p.newidle_balance_next(&mut w), LLC);
    m.rq(0).ttwu_pending = 1;
    m.p.newidle_balance_level_done(&mut w, 1000, false, NOW);
    assert_eq!(m.p.newidle_balance_next(&mut w), NR_LEVELS);
}

#[test]
fn the_recorded_cost_is_a_maximum_or_grows_with_failures() {
    let mut m = two_llcs(V6_12);
    m.sd(0, LLC).max_newidle_lb_cost = 3000;
    newidle(&mut m, 1000, false);
    assert_eq!(m.sd(0, LLC).max_newidle_lb_cost, 3000);
    newidle(&mut m, 4000, false);
    assert_eq!(m.sd(0, LLC).max_newidle_lb_cost, 4000);

    let mut m = two_llcs(V6_18);
    newidle(&mut m, 1000, true);
    assert_eq!(m.sd(0, LLC).max_newidle_lb_cost, 1000);
    newidle(&mut m, 1000, false);
    assert_eq!(m.sd(0, LLC).max_newidle_lb_cost, 1500);
    newidle(&mut m, 700_000, true);
    assert_eq!(m.sd(0, LLC).max_newidle_lb_cost, 500_200, "migration cost + 200 at most");

    let mut m = two_llcs(V7_3);
    m.sd(0, LLC).newidle_ratio = 1024;
    m.sd(0, LLC).newidle_call = 512;
    m.sd(0, LLC).max_newidle_lb_cost = 1000;
    newidle(&mut m, 700_000, false);
    assert_eq!(m.sd(0, LLC).max_newidle_lb_cost, 700_000, "the elapsed time again");
}

/// How many of 1,000 newly-idle visits look at the LLC, at a ratio of 1,024.
fn looks(profile: Profile, ratio: u32) -> usize {
    let mut m = two_llcs(profile);
    let mut looks = 0;
    for _ in 0..1000 {
        let sd = m.sd(0, LLC);
        (sd.newidle_call, sd.newidle_ratio) = (512, ratio);
        looks += usize::from(newidle(&mut m, 0, false).contains(&LLC));
    }
    looks
}

#[test]
fn a_newly_idle_cpu_looks_at_levels_by_their_success_where_the_profile_says_so() {
    for profile in [V6_12, V6_18] {
        assert_eq!(looks(profile, 1), 1000);
    }
    for profile in [V6_1_176, V6_12_117, V6_18_15, V7_3] {
        assert!((200..300).contains(&looks(profile, 255)), "a quarter");
        assert!(looks(profile, 0) < 10);
        assert_eq!(looks(profile, 1024), 1000);
    }
}

#[test]
fn a_level_that_is_not_looked_at_counts_as_a_failure_and_the_next_one_follows() {
    let mut m = two_llcs(V7_3);
    let lucky = (0..).find(|&seed| {
        m.p.root.random = seed;
        (m.sd(0, LLC).newidle_call, m.sd(0, LLC).newidle_ratio) = (600, 0);
        m.sd(0, LLC).newidle_success = 9;
        m.sd(0, TOP).newidle_ratio = 1024;
        m.sd(0, TOP).newidle_call = 600;
        newidle(&mut m, 1000, false) == [TOP]
    });
    assert!(lucky.is_some());
    let sd = m.sd(0, LLC);
    assert_eq!((sd.newidle_call, sd.newidle_success), (601, 9));
    assert_eq!(m.sd(0, TOP).newidle_call, 601, "one that fails counts alike");
}

#[test]
fn a_level_just_built_counts_as_pulling_every_other_time() {
    // The first throws of these seeds are above and below a half.
    for (seed, looks, pulled, success) in
        [(0, false, true, 256), (3, true, false, 256), (3, true, true, 258)]
    {
        let mut m = two_llcs(V7_3);
        m.p.root.random = seed;
        assert_eq!(newidle(&mut m, 1000, pulled).contains(&LLC), looks, "seed {seed}");
        let sd = m.sd(0, LLC);
        assert_eq!((sd.newidle_ratio, sd.newidle_call), (512, 513));
        assert_eq!(sd.newidle_success, success, "1,024 / 513 for each pull");
    }
    let mut m = two_llcs(V6_18);
    newidle(&mut m, 1000, true);
    assert_eq!(m.sd(0, LLC).newidle_call, 0, "nothing is counted");
}

#[test]
fn the_success_of_a_level_is_renewed_every_512_calls() {
    let renewed = |profile, success, age: u64, cost| {
        let mut m = two_llcs(profile);
        let sd = m.sd(0, LLC);
        (sd.newidle_call, sd.newidle_success, sd.newidle_ratio) = (1023, success, 1023);
        sd.newidle_stamp = NOW - (age << 22);
        newidle(&mut m, cost, true);
        let sd = m.sd(0, LLC);
        (sd.newidle_ratio, sd.newidle_call, sd.newidle_success, sd.newidle_stamp == NOW)
    };
    assert_eq!(renewed(V6_12_117, 99, 10, 1), (100, 512, 50, true));
    assert_eq!(renewed(V7_3, 99, 10, 1), (110, 512, 50, true), "one more for each 4 ms");
    assert_eq!(renewed(V7_3, 99, 2000, 1), (1024, 512, 50, true), "always, at most");
    assert_eq!(renewed(V7_3, 99, 10, 0), (1023, 1023, 99, false), "a look that took no time");
}

/// CPU 0 has a busy tick while some CPUs are tickless.
fn tickless(m: &mut Machine, cpus: &[u32]) {
    cpus.iter().for_each(|&cpu| m.p.nohz_balance_enter_idle(cpu));
    m.p.root.nohz_next_blocked = u64::MAX;
    m.p.root.nohz_next_balance = NOW / TICK;
}

#[test]
fn a_busy_tick_interrupts_a_tickless_cpu_if_balancing_helps() {
    let kick = |prepare: &dyn Fn(&mut Machine)| {
        let mut m = two_llcs(V6_0);
        // One busy CPU in its LLC.
        tickless(&mut m, &[1, 2, 3, 5]);
        m.queue(0, 1);
        prepare(&mut m);
        m.p.nohz_balancer_kick(0, NOW)
    };
    assert_eq!(kick(&|_| ()), NO_CPU, "a lone task");
    assert_eq!(
        kick(&|m| {
            m.queue(0, 1);
        }),
        1,
        "two tasks"
    );
    assert_eq!(kick(&|m| m.p.nohz_balance_exit_idle(3)), 1, "another busy CPU in the LLC");
    assert_eq!(
        kick(&|m| {
            m.p.nohz_balance_exit_idle(3);
            m.p.root.asym_capacity = 1
        }),
        NO_CPU
    );
    assert_eq!(kick(&|m| m.rq(0).capacity = 800), 1, "reduced capacity");
    assert_eq!(
        kick(&|m| {
            m.queue(0, 1);
            m.p.root.nohz_next_balance += 1
        }),
        NO_CPU,
        "not due"
    );
    assert_eq!(
        kick(&|m| {
            m.queue(0, 1);
            m.queue(1, 1);
        }),
        2,
        "the first idle one"
    );
    assert_eq!(
        kick(&|m| {
            m.queue(0, 1);
            m.rq(1).nohz_flags = NOHZ_BALANCE_KICK as u8
        }),
        NO_CPU,
        "on its way already"
    );
    assert_eq!(
        kick(&|m| {
            m.span(0, LLC).flags |= SD_ASYM_CPUCAPACITY_FULL;
            m.span(0, LLC).asym_capacity_max = 2048;
            m.rq(0).misfit_task_load = 700;
        }),
        1,
        "a task too big for its CPU"
    );
    assert_eq!(
        kick(&|m| {
            m.span(0, LLC).flags |= SD_ASYM_PACKING;
            m.p.cpu[2].asym_priority = 9
        }),
        1
    );
}

#[test]
fn since_7_3_a_cpu_of_an_idle_core_balances_for_all() {
    let kick = |profile, busy: &[u32]| {
        let mut m = Machine::new(profile, Shape::SMT);
        tickless(&mut m, &[1, 2, 3, 5, 6, 7]);
        m.queue(0, 2);
        busy.iter().for_each(|&cpu| drop(m.queue(cpu, 1)));
        m.p.nohz_balancer_kick(0, NOW)
    };
    // CPUs 1 and 5 share a core, 2 and 6, 3 and 7.
    assert_eq!(kick(V7_3, &[]), 1);
    assert_eq!((kick(V6_18, &[5]), kick(V7_3, &[5])), (1, 2));
    assert_eq!(kick(V7_3, &[5, 6]), 3);
    assert_eq!(kick(V7_3, &[5, 6, 7]), 1, "no core is idle: the first CPU");
    assert_eq!(kick(V7_3, &[1, 2, 3, 5, 6, 7]), NO_CPU);
}

#[test]
fn without_tickless_cpus_or_on_an_idle_cpu_nobody_is_interrupted() {
    let mut m = two_llcs(V6_0);
    m.queue(0, 2);
    tickless(&mut m, &[]);
    assert_eq!(m.p.nohz_balancer_kick(0, NOW), NO_CPU);
    tickless(&mut m, &[5, 6]);
    m.p.llc[1].nr_busy_cpus = 4;
    assert_eq!(m.p.nohz_balancer_kick(5, NOW), NO_CPU, "an idle CPU's tick");
    assert_eq!(m.p.nohz_balancer_kick(0, NOW), 5);
    assert_eq!(u32::from(m.rq(5).nohz_flags), NOHZ_STATS_KICK | NOHZ_BALANCE_KICK);
    assert_eq!(m.p.root.nohz_next_balance, NOW / TICK + 1);
}

#[test]
fn blocked_load_is_refreshed_now_and_then() {
    let mut m = two_llcs(V6_0);
    tickless(&mut m, &[1, 2, 3]);
    m.queue(0, 1);
    m.p.root.nohz_next_blocked = NOW / TICK - 1;
    assert_eq!(m.p.nohz_balancer_kick(0, NOW), 1);
    assert_eq!(u32::from(m.rq(1).nohz_flags), NOHZ_STATS_KICK);
    let mut w = nohz_walk();
    assert!(m.p.nohz_balance_start(&mut w, 1, NOW));
    assert_eq!(m.p.nohz_balance_next(&mut w, NOW), NO_CPU, "nothing to balance");
    m.p.nohz_balance_end(&mut w, NOW);
    assert_eq!(m.p.root.nohz_next_blocked, NOW / TICK + 8, "32 ms");
}

fn nohz_walk() -> NohzWalk {
    NohzWalk { next_balance: 0, this_cpu: 0, cpu: 0, flags: 0, aborted: 0 }
}

#[test]
fn the_interrupted_cpu_visits_the_tickless_ones_after_it_and_itself_last() {
    let mut m = two_llcs(V6_0);
    tickless(&mut m, &[1, 2, 3, 5, 6]);
    m.rq(3).nohz_flags = NOHZ_BALANCE_KICK as u8;
    m.rq(5).next_balance = NOW / TICK + 3; // not due
    m.queue(6, 1); // not idle any more
    let mut w = nohz_walk();
    assert!(m.p.nohz_balance_start(&mut w, 3, NOW));
    let mut visited = Vec::new();
    loop {
        let cpu = m.p.nohz_balance_next(&mut w, NOW);
        if cpu == NO_CPU {
            break;
        }
        visited.push(cpu);
        m.rq(cpu).next_balance = NOW / TICK + 9;
    }
    m.p.nohz_balance_end(&mut w, NOW);
    assert_eq!(visited, [1, 2, 3]);
    assert_eq!(m.p.root.nohz_next_balance, NOW / TICK + 3, "the earliest of those visited");
    assert!(!m.p.nohz_balance_start(&mut w, 3, NOW), "its flags are used up");
}

#[test]
fn work_for_the_interrupted_cpu_ends_its_round() {
    let mut m = two_llcs(V6_0);
    tickless(&mut m, &[1, 2, 3]);
    m.rq(1).nohz_flags = NOHZ_BALANCE_KICK as u8;
    let before = m.p.root.nohz_next_balance;
    let mut w = nohz_walk();
    m.p.nohz_balance_start(&mut w, 1, NOW);
    assert_eq!(m.p.nohz_balance_next(&mut w, NOW), 2);
    m.queue(1, 1);
    assert_eq!(m.p.nohz_balance_next(&mut w, NOW), NO_CPU);
    m.p.nohz_balance_end(&mut w, NOW + 9 * TICK);
    assert_eq!(m.p.root.nohz_next_balance, before);
}

#[test]
fn stopping_and_starting_the_tick_keeps_the_count_of_busy_cpus() {
    let mut m = two_llcs(V6_0);
    m.p.nohz_balance_enter_idle(1);
    m.p.nohz_balance_enter_idle(1);
    assert_eq!(m.p.llc[0].nr_busy_cpus, 3);
    assert_eq!(m.p.root.tickless.bits[0], 1 << 1);
    m.queue(1, 1);
    m.p.nohz_balancer_kick(1, NOW);
    assert_eq!(m.p.llc[0].nr_busy_cpus, 4, "its first busy tick");
    assert_eq!(m.p.root.tickless.bits[0], 0);
    m.p.nohz_balance_exit_idle(1);
    assert_eq!(m.p.llc[0].nr_busy_cpus, 4);
}

#[test]
fn the_softirq_is_raised_when_the_next_balance_is_due() {
    let mut m = two_llcs(V6_0);
    m.rq(0).next_balance = NOW / TICK + 2;
    assert!(!m.p.trigger_load_balance(0, at(1)));
    assert!(m.p.trigger_load_balance(0, at(2)));
}

#[test]
fn kernels_before_v5_10_visit_busy_cpus_half_as_often() {
    let mut m = two_llcs(V5_3);
    assert_eq!(due(&mut m, CPU_NOT_IDLE, at(15), true), [0u32; 0]);
}

/// Where a cgroup is throttled, here or there, its tasks stay; from elsewhere they are pulled.
#[test]
fn throttled_tasks_are_not_pulled() {
    let pulled_from = |throttled_cpu: u32| {
        let mut m = two_llcs(V6_0);
        m.p.create_task_group(ROOT_TASK_GROUP, 1024);
        m.queue_each(4..8, 3);
        for task in FIRST_TASK..FIRST_TASK + 12 {
            m.task(task).task_group = 1;
        }
        m.p.group_rq[1][throttled_cpu as usize].throttle_count = 1;
        let result = m.balance(0, TOP, CPU_IDLE);
        (result.nr > 0).then_some(u32::from(result.src))
    };
    for throttled_cpu in 4..8 {
        let source = pulled_from(throttled_cpu).expect("the other CPUs have tasks");
        assert_ne!(source, throttled_cpu);
    }
    assert_eq!(pulled_from(0), None, "to where they would be throttled");
}
