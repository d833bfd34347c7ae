//! Load balance before its rework: `balance_legacy.h`, and what `detach.h` does for it.
//!
//! Groups are LLCs of 4 CPUs: an average load is a quarter of the group's load.

use super::common::{Machine, NOW, Shape, moved};
use placewise_policy::kernel::{V3_10, V4_15, V5_3, V5_10, V6_0};
use placewise_policy::*;

/// The level above the LLCs.
const TOP: u32 = 1;

/// As `group.h` counts them.
const GROUP_HAS_SPARE: u32 = 0;
const GROUP_MISFIT_TASK: u32 = 2;
const GROUP_OVERLOADED: u32 = 7;

/// LLCs of CPUs 0 to 3, 4 to 7 and so on; their tasks need not be spread evenly.
fn llcs(number: u32) -> Machine {
    let mut m = spreading_llcs(number);
    (0..4 * number).for_each(|cpu| m.span(cpu, 0).flags &= !SD_PREFER_SIBLING);
    m
}

fn spreading_llcs(number: u32) -> Machine {
    Machine::new(V5_3, Shape { llcs: number, ..Shape::TWO_LLCS })
}

/// Queues `nr` tasks of `load` each on the CPUs of the LLC that begins with `first`, except on its
/// first `idle` CPUs. Busy CPUs are fully utilised.
fn fill(m: &mut Machine, first: u32, idle: u32, nr: u32, load: u64) -> Vec<u32> {
    let mut tasks = Vec::new();
    for at in 0..nr {
        let task = m.queue(first + idle + at % (4 - idle), 1)[0];
        m.task(task).avg.load_avg = load;
        tasks.push(task);
    }
    tasks
}

/// What idle CPU 0 (or busy, or newly idle) makes of the level above its LLC.
struct Pass {
    result: BalanceResult,
    /// The first CPU of the busiest group.
    busiest: Option<u32>,
    busiest_type: u32,
    /// What is to move, if a queue was found that has it.
    load: u64,
    misfit: u64,
}

fn pass(m: &mut Machine, idle: u32) -> Pass {
    pass_of(m, 0, idle)
}

fn pass_of(m: &mut Machine, cpu: u32, idle: u32) -> Pass {
    let idle_cpus = m.p.root.idle.bits[0];
    if idle != CPU_IDLE {
        // So that it is this CPU's turn.
        for cpu in (cpu..cpu + 4).filter(|cpu| idle_cpus >> cpu & 1 != 0) {
            m.newly_idle(cpu);
        }
    }
    m.sd(cpu, TOP).stats.lb_imbalance = Default::default();
    let result = m.balance(cpu, TOP, idle);
    assert_eq!(result.continue_balancing, 1);
    let imbalance = m.sd(cpu, TOP).stats.lb_imbalance[idle as usize];
    assert_eq!(imbalance[MIGRATE_TASK as usize] + imbalance[MIGRATE_UTIL as usize], 0);
    let group = m.p.lb_stats.busiest.group;
    let first_of = |cpu: &u32| m.p.domain[*cpu as usize][TOP as usize].local_group == group;
    Pass {
        result,
        busiest: m.cpus().find(first_of),
        busiest_type: m.p.lb_stats.busiest.group_type,
        load: imbalance[MIGRATE_LOAD as usize],
        misfit: imbalance[MIGRATE_MISFIT as usize],
    }
}

fn acts(m: &mut Machine, idle: u32) -> bool {
    pass(m, idle).result.balanced == 0
}

#[test]
fn the_kernels_before_the_rework_compare_averages() {
    for profile in [V3_10, V4_15, V5_3] {
        assert_eq!(profile.balance, BALANCE_LEGACY);
    }
    assert_eq!(V5_10.balance, BALANCE_REWORK);
}

#[test]
fn only_queued_tasks_count_as_load() {
    let mut m = llcs(3);
    m.queue(4, 2);
    m.queue_each([5, 8], 1);
    m.rq(5).cfs.avg.load_avg = 90_000;
    (8..12).for_each(|cpu| m.rq(cpu).cfs.avg.load_avg = 90_000);
    let pass = pass(&mut m, CPU_IDLE);
    assert_eq!(pass.busiest, Some(4), "3 tasks against 1");
    assert_eq!(pass.result.src, 4, "2 tasks against 1");
    assert_eq!(m.p.lb_stats.busiest.group_load, 3 * 1024);
    assert_eq!(m.p.lb_stats.total_load, 4 * 1024);
}

#[test]
fn a_group_is_overloaded_by_more_tasks_than_cpus_and_used_up_time() {
    let kind = |nr, util| {
        let mut m = llcs(2);
        fill(&mut m, 4, 0, nr, 100);
        (4..8).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = util);
        pass(&mut m, CPU_IDLE).busiest_type
    };
    assert_eq!(kind(5, 1024), GROUP_OVERLOADED);
    assert_eq!(kind(4, 1024), GROUP_HAS_SPARE, "there is no fully_busy");
    assert_eq!(kind(5, 800), GROUP_HAS_SPARE, "800 * 117 < 1024 * 100");
}

#[test]
fn tasks_of_other_classes_overload_no_group() {
    let kind = |profile| {
        let mut m = llcs(2);
        m.p.profile = profile;
        fill(&mut m, 4, 0, 4, 100);
        m.rq(4).nr_running += 1;
        pass(&mut m, CPU_NOT_IDLE);
        m.p.lb_stats.busiest.group_type
    };
    assert_eq!(kind(V5_3), GROUP_HAS_SPARE);
    let rework = Profile { balance: BALANCE_REWORK_V2, ..V5_3 };
    let mut m = llcs(2);
    m.p.profile = rework;
    fill(&mut m, 4, 0, 4, 100);
    m.rq(4).nr_running += 1;
    m.balance(0, TOP, CPU_IDLE);
    assert_eq!(m.p.lb_stats.busiest.group_type, GROUP_OVERLOADED);
}

#[test]
fn the_highest_type_is_busiest_then_the_greatest_average() {
    let busiest = |second: (u32, u64, bool), third: (u32, u64, bool)| {
        let mut m = llcs(3);
        for (first, (nr, load, imbalanced)) in [(4, second), (8, third)] {
            fill(&mut m, first, 0, nr, load);
            m.group(first, TOP).imbalance = imbalanced.into();
        }
        pass(&mut m, CPU_IDLE).busiest
    };
    assert_eq!(busiest((3, 2000, false), (5, 13, false)), Some(8), "overloaded by small tasks");
    assert_eq!(busiest((5, 13, false), (3, 2000, false)), Some(4));
    assert_eq!(busiest((3, 2000, false), (1, 13, true)), Some(8), "imbalanced");
    assert_eq!(busiest((3, 2000, true), (5, 13, false)), Some(8), "overloaded outranks that");
    assert_eq!(busiest((3, 2000, false), (3, 2001, false)), Some(4), "equal averages");
    assert_eq!(busiest((3, 2000, false), (3, 2010, false)), Some(8));
    assert_eq!(busiest((0, 0, false), (0, 0, false)), None, "nothing has load");
}

#[test]
fn two_tasks_more_are_too_many_where_siblings_are_preferred() {
    let kind = |spread: bool, here: u32, there: u32| {
        let mut m = if spread { spreading_llcs(2) } else { llcs(2) };
        fill(&mut m, 0, 1, here, 1000);
        fill(&mut m, 4, 0, there, 1000);
        // Beside the tasks, their traces: no CPU of the local group has spare time.
        (0..4).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = 1024);
        pass(&mut m, CPU_IDLE).busiest_type
    };
    assert_eq!(kind(true, 1, 3), GROUP_OVERLOADED);
    assert_eq!(kind(true, 1, 2), GROUP_HAS_SPARE, "one more");
    assert_eq!(kind(false, 1, 3), GROUP_HAS_SPARE);
    assert_eq!(kind(true, 3, 5), GROUP_OVERLOADED);
    // As many tasks as CPUs here, and no time left. The other group's CPUs have.
    let mut full = spreading_llcs(2);
    fill(&mut full, 0, 1, 4, 1000);
    fill(&mut full, 4, 0, 7, 1000);
    (0..4).for_each(|cpu| full.rq(cpu).cfs.avg.util_avg = 1024);
    (4..8).for_each(|cpu| full.rq(cpu).cfs.avg.util_avg = 512);
    assert_eq!(pass(&mut full, CPU_IDLE).busiest_type, GROUP_HAS_SPARE);
}

#[test]
fn a_local_average_that_is_no_lower_is_balance() {
    let state = |here: u64, there: u64| {
        let mut m = llcs(2);
        fill(&mut m, 0, 0, 2, here);
        fill(&mut m, 4, 0, 4, there);
        acts(&mut m, CPU_NOT_IDLE)
    };
    assert!(!state(2000, 1000), "as much as the busiest");
    assert!(!state(2400, 1000), "more than the busiest");
    assert!(state(1000, 1000));
}

#[test]
fn an_overloaded_group_with_no_more_than_the_local_average_is_balance() {
    let state = |here: u64| {
        let mut m = llcs(3);
        fill(&mut m, 0, 1, 6, here);
        (0..4).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = 1024);
        fill(&mut m, 4, 0, 5, 480);
        // It takes the average of the domain above both, but is not overloaded.
        fill(&mut m, 8, 0, 4, 3000);
        acts(&mut m, CPU_IDLE)
    };
    assert!(!state(400), "600 on both sides");
    assert!(state(398));
}

#[test]
fn a_local_average_above_the_domain_s_is_balance() {
    let state = |third: u64| {
        let mut m = llcs(3);
        fill(&mut m, 0, 0, 4, 1000);
        fill(&mut m, 4, 0, 4, 1500);
        fill(&mut m, 8, 0, 4, third);
        acts(&mut m, CPU_NOT_IDLE)
    };
    assert!(!state(400), "the average is 966");
    assert!(!state(500), "it is 1000");
    assert!(state(600));
}

#[test]
fn an_idle_cpu_leaves_groups_alone_that_have_nearly_as_many_idle_cpus() {
    let state = |there: u32| {
        let mut m = llcs(2);
        fill(&mut m, 0, 3, 1, 100);
        fill(&mut m, 4, 0, there, 1024);
        acts(&mut m, CPU_IDLE)
    };
    assert!(!state(2), "3 idle here, 2 there");
    assert!(state(3));
}

/// A local group with an idle CPU and yet no capacity, with average load 500.
fn local_without_capacity(m: &mut Machine) {
    fill(m, 0, 1, 4, 500);
    (0..4).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = 1024);
}

#[test]
fn an_overloaded_group_is_compared_whatever_cpus_idle() {
    let state = |there| {
        let mut m = llcs(2);
        local_without_capacity(&mut m);
        fill(&mut m, 4, 0, there, 1000);
        acts(&mut m, CPU_IDLE)
    };
    assert!(!state(4), "1 idle here, 0 there");
    assert!(state(5));
}

#[test]
fn cpus_that_are_not_idle_for_long_tolerate_imbalance_pct() {
    let state = |there, idle| {
        let mut m = llcs(2);
        // More idle CPUs than there, so that an idle CPU acts.
        fill(&mut m, 0, 2, 4, 1000);
        fill(&mut m, 4, 0, 4, there);
        acts(&mut m, idle)
    };
    for idle in [CPU_NOT_IDLE, CPU_NEWLY_IDLE] {
        assert!(!state(1170, idle), "117 %");
        assert!(state(1174, idle));
    }
    assert!(state(1170, CPU_IDLE));
}

/// The local group has one heavy task, the other one is overloaded, with a lower average.
fn heavy_task_here(there: u32) -> Machine {
    let mut m = llcs(2);
    fill(&mut m, 0, 3, 1, 8000);
    fill(&mut m, 4, 0, there, 900);
    m
}

#[test]
fn averages_do_not_keep_an_idle_cpu_from_an_overloaded_group() {
    // What is moved is said by the throughput: 2000 here and 1800 there.
    for idle in [CPU_IDLE, CPU_NEWLY_IDLE] {
        let pass = pass(&mut heavy_task_here(8), idle);
        assert_eq!((pass.result.balanced, pass.load, pass.result.nr), (0, 900, 1));
    }
    assert!(!acts(&mut heavy_task_here(8), CPU_NOT_IDLE));
    assert!(!acts(&mut heavy_task_here(4), CPU_IDLE), "not overloaded");

    let mut full = llcs(2);
    local_without_capacity(&mut full);
    fill(&mut full, 4, 0, 8, 200);
    assert!(!acts(&mut full, CPU_IDLE), "no room here");
}

#[test]
fn a_busiest_group_without_tasks_is_balance() {
    let mut m = llcs(2);
    m.span(0, TOP).flags |= SD_ASYM_CPUCAPACITY;
    m.group(4, TOP).max_capacity = 500;
    m.rq(5).misfit_task_load = 700; // of a task that has gone
    let pass = pass(&mut m, CPU_IDLE);
    assert_eq!((pass.busiest, pass.result.balanced), (Some(4), 1));
    assert_eq!(m.sd(0, TOP).stats.lb_nobusyg[CPU_IDLE as usize], 1);
}

#[test]
fn the_groups_meet_at_the_average_of_the_domain() {
    let amount = |third: u64| {
        let mut m = llcs(3);
        fill(&mut m, 0, 0, 2, 512);
        fill(&mut m, 4, 0, 4, 1024);
        fill(&mut m, 8, 0, 4, third);
        pass(&mut m, CPU_NOT_IDLE).load
    };
    // Averages 256 and 1024, and those of the domain: 640 and 427.
    assert_eq!(amount(640), (1024 - 640) * 4, "as far from one as from the other");
    assert_eq!(amount(800), (1024 - 693) * 4, "no less than the average there");
    assert_eq!(amount(400), (560 - 256) * 4, "no more than the average here");
}

#[test]
fn between_overloaded_groups_no_cpu_is_made_idle() {
    let amount = |here: u32, util: u64| {
        let mut m = llcs(2);
        fill(&mut m, 0, 0, here, 1024);
        fill(&mut m, 4, 0, 12, 4096);
        (4..8).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = util);
        pass(&mut m, CPU_NOT_IDLE).load
    };
    // Averages 12288 and 1280 or 1024: half of the difference, for 4 CPUs.
    assert_eq!(amount(5, 1024), (12 - 4) * 1024, "8 tasks too many, as if of nice 0");
    assert_eq!(amount(4, 1024), (12288 - 1024) / 2 * 4, "the local group is not overloaded");
    assert_eq!(amount(5, 512), (12288 - 1280) / 2 * 4, "the busiest is not");
}

#[test]
fn less_than_a_task_becomes_one_if_the_groups_get_no_further_apart() {
    // Average 2000 of tasks of 1000 there; about 1925 here, with a CPU idle.
    let amount = |nr, load| {
        let mut m = llcs(2);
        fill(&mut m, 0, 1, nr, load);
        fill(&mut m, 4, 0, 8, 1000);
        pass(&mut m, CPU_IDLE)
    };
    // The bigger tasks are there: 2000 + 250 >= 1924 + 250.
    let lighter = amount(8, 962);
    assert_eq!((lighter.load, lighter.result.nr), (1000, 1));
    // They are here: 2000 + 250 < 1925 + 2 * 250. Nor is throughput gained.
    let heavier = amount(7, 1100);
    assert_eq!((heavier.load, heavier.result.nr, heavier.result.balanced), (148, 0, 0));
    // 2000 + 250 >= 1750 + 2 * 250.
    assert_eq!(amount(7, 1000).load, 1000);
}

#[test]
fn no_more_load_is_thought_to_arrive_than_the_average_says_there_is() {
    let mut m = llcs(2);
    m.group(0, TOP).capacity = 6 * 1024;
    fill(&mut m, 0, 0, 1, 48_000);
    fill(&mut m, 4, 0, 1, 40_003);
    // Averages 8000 and 10,000, rounded down: of the load there, 3 are lost. With them the
    // throughput would rise by 2.
    pass(&mut m, CPU_NOT_IDLE);
    assert_eq!((m.p.lb_stats.local.avg_load, m.p.lb_stats.busiest.avg_load), (8000, 10_000));
    assert_eq!(m.sd(0, TOP).stats.lb_nobusyq[CPU_NOT_IDLE as usize], 1, "4800, which is no task");
}

#[test]
fn an_imbalanced_group_gives_tasks_up_to_the_domain_s_average() {
    let amount = |imbalanced: bool| {
        let mut m = llcs(3);
        fill(&mut m, 4, 3, 2, 2200);
        fill(&mut m, 8, 0, 4, 1900);
        m.group(4, TOP).imbalance = imbalanced.into();
        let pass = pass(&mut m, CPU_IDLE);
        (pass.busiest, pass.load)
    };
    // 1100 there, 1000 of the domain, so 400; a task counts 1000 at most.
    assert_eq!(amount(true), (Some(4), 1000));
    assert_eq!(amount(false).0, Some(8));
}

#[test]
fn an_imbalanced_group_is_relieved_whatever_the_averages() {
    let act = |imbalance| {
        let mut m = llcs(2);
        fill(&mut m, 0, 1, 3, 1000);
        // 700 there, in small tasks, and 750 here, with a CPU left for one of them.
        fill(&mut m, 4, 0, 8, 350);
        (4..8).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = 512);
        m.group(4, TOP).imbalance = imbalance;
        acts(&mut m, CPU_NOT_IDLE)
    };
    assert!(!act(0));
    assert!(act(1));
}

/// Small CPUs with a misfit task there, of which 500 are left.
fn misfit(local_max: u32) -> Machine {
    let mut m = llcs(2);
    m.span(0, TOP).flags |= SD_ASYM_CPUCAPACITY;
    fill(&mut m, 4, 1, 1, 600);
    (4..8).for_each(|cpu| m.rq(cpu).capacity = 500);
    m.rq(5).misfit_task_load = 700;
    m.group(0, TOP).max_capacity = local_max;
    m.group(4, TOP).max_capacity = 500;
    m
}

#[test]
fn a_misfit_task_is_pulled_by_a_bigger_group_whatever_the_averages() {
    let pass_with = |local_max, here| {
        let mut m = misfit(local_max);
        fill(&mut m, 0, 1, here, 4000);
        let pass = pass(&mut m, CPU_IDLE);
        (pass.busiest_type, pass.misfit, pass.result.active_balance)
    };
    assert_eq!(pass_with(1024, 0), (GROUP_MISFIT_TASK, 700, 1), "it runs, so it is pushed");
    // Averages 1000, 150 and 575 of the domain: 425 too few, times 4, in unsigned arithmetic.
    assert_eq!(pass_with(1024, 1).1, u64::MAX / 1024 + 1 - 425 * 4);
    assert_eq!(pass_with(625, 0), (GROUP_HAS_SPARE, 0, 0), "500 is no less than 80 % of 625");

    let mut reduced = misfit(1024);
    reduced.rq(0).capacity = 400;
    assert_eq!(pass(&mut reduced, CPU_IDLE).misfit, 700, "even by a CPU that is no bigger itself");

    let mut full = misfit(1024);
    local_without_capacity(&mut full);
    assert_eq!(pass(&mut full, CPU_IDLE).misfit, 0, "no room here");
}

#[test]
fn misfit_tasks_are_sought_by_their_load() {
    let mut m = misfit(1024);
    fill(&mut m, 4, 2, 2, 9000); // on CPUs 6 and 7
    m.rq(7).misfit_task_load = 650;
    let pass = pass(&mut m, CPU_IDLE);
    assert_eq!(pass.result.src, 5);
}

#[test]
fn tasks_beside_a_misfit_one_are_detached_by_load() {
    let taken = |profile| {
        let mut m = misfit(1024);
        m.p.profile = profile;
        m.queue(5, 2).iter().for_each(|&task| m.task(task).avg.util_avg = 10);
        m.balance(0, TOP, CPU_IDLE).nr
    };
    assert_eq!(taken(V5_3), 1);
    assert_eq!(taken(V5_10), 0, "they fit where they are");
}

#[test]
fn of_groups_with_misfit_tasks_the_one_with_the_biggest_is_busiest() {
    let busiest = |third_misfit| {
        let mut m = llcs(3);
        m.span(0, TOP).flags |= SD_ASYM_CPUCAPACITY;
        for (first, load, misfit_load) in [(4, 1000, 700), (8, 1200, third_misfit)] {
            fill(&mut m, first, 0, 2, load);
            m.rq(first).misfit_task_load = misfit_load;
            m.group(first, TOP).max_capacity = 500;
        }
        pass(&mut m, CPU_IDLE).busiest
    };
    assert_eq!(busiest(699), Some(4), "although the third has more load");
    assert_eq!(busiest(700), Some(8));
}

#[test]
fn bigger_cpus_keep_their_load_while_each_task_has_one() {
    let busiest = |nr, local_min, level_flags| {
        let mut m = llcs(2);
        m.span(0, TOP).flags |= level_flags;
        m.group(0, TOP).min_capacity = local_min;
        fill(&mut m, 4, 0, nr, 2000);
        (4..8).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = 512);
        pass(&mut m, CPU_IDLE).busiest
    };
    assert_eq!(busiest(4, 500, SD_ASYM_CPUCAPACITY), None);
    assert_eq!(busiest(5, 500, SD_ASYM_CPUCAPACITY), Some(4));
    assert_eq!(busiest(4, 1024, SD_ASYM_CPUCAPACITY), Some(4));
    assert_eq!(busiest(4, 500, 0), Some(4));
}

#[test]
fn a_lone_task_does_not_go_to_a_smaller_cpu() {
    let src = |dst_capacity, level_flags| {
        let mut m = llcs(2);
        m.span(0, TOP).flags |= level_flags;
        m.rq(0).capacity = dst_capacity;
        m.queue_each(4..8, 1);
        pass(&mut m, CPU_IDLE).load != 0
    };
    assert!(src(1024, SD_ASYM_CPUCAPACITY), "it need not be bigger");
    assert!(!src(1023, SD_ASYM_CPUCAPACITY));
    assert!(src(1023, 0));
}

#[test]
fn a_lone_task_bigger_than_the_imbalance_is_not_looked_at() {
    let src = |capacity| {
        let mut m = llcs(2);
        fill(&mut m, 4, 0, 4, 1000);
        let big = m.new_task();
        m.task(big).avg.load_avg = 20_000;
        // CPU 4 has one task, of which 10,000 are too many; the others have two.
        m.p.task[FIRST_TASK as usize].avg.load_avg = 20_000;
        fill(&mut m, 4, 1, 3, 900);
        m.rq(4).capacity = capacity;
        pass(&mut m, CPU_IDLE).result.src
    };
    assert_eq!(src(1024), 5);
    assert_eq!(src(800), 4, "its capacity is reduced");
}

#[test]
fn an_idle_preferred_cpu_takes_all_the_load_of_the_group() {
    let state = |cpu: u32, idle| {
        let mut m = llcs(2);
        m.span(0, TOP).flags |= SD_ASYM_PACKING;
        let (here, there) = if cpu == 0 { (0, 4) } else { (4, 0) };
        // The average here is higher.
        fill(&mut m, here, 3, 1, 9000);
        fill(&mut m, there, 2, 2, 1000);
        pass_of(&mut m, cpu, idle)
    };
    let pulled = state(0, CPU_IDLE);
    assert_eq!((pulled.busiest, pulled.load), (Some(4), 2000));
    assert_eq!(state(0, CPU_NOT_IDLE).load, 0, "a busy CPU attracts nothing");
    assert_eq!(state(4, CPU_IDLE).busiest, None, "the other one is preferred");
    assert_eq!(state(4, CPU_NOT_IDLE).busiest, Some(0), "whatever a busy CPU prefers");
}

#[test]
fn the_least_preferred_group_is_relieved_first() {
    let busiest = |second: u32, third: u32| {
        let mut m = llcs(3);
        m.span(0, TOP).flags |= SD_ASYM_PACKING;
        fill(&mut m, 4, 0, 2, 1000);
        fill(&mut m, 8, 0, 2, 1100);
        m.group(4, TOP).asym_prefer_cpu = second;
        m.group(8, TOP).asym_prefer_cpu = third;
        pass(&mut m, CPU_IDLE).busiest
    };
    // Lower CPUs are preferred.
    assert_eq!(busiest(4, 8), Some(8));
    assert_eq!(busiest(8, 4), Some(4), "although the third has more load");
}

#[test]
fn an_imbalance_is_consumed_by_the_load_of_tasks_and_not_by_less() {
    let taken = |profile| {
        let mut m = llcs(2);
        m.p.profile = profile;
        m.span(0, TOP).flags |= SD_ASYM_PACKING;
        let tasks = m.queue(4, 6);
        tasks.iter().for_each(|&task| m.task(task).avg.load_avg = 0);
        m.task(tasks[0]).avg.load_avg = 4;
        m.balance(0, TOP, CPU_IDLE).nr
    };
    assert_eq!(taken(V5_3), 5, "weightless tasks leave 4 to move");
    let at_least_one = Profile { detach_load_halved: false, ..V5_3 };
    assert_eq!(taken(at_least_one), 4);
}

#[test]
fn a_task_of_up_to_twice_the_imbalance_is_taken_however_often_that_failed() {
    let taken = |profile, load, failed| {
        let mut m = llcs(2);
        m.p.profile = profile;
        fill(&mut m, 0, 1, 7, 1100);
        let tasks = fill(&mut m, 4, 0, 8, 1000);
        // 148 are to move. The second task of CPU 4 gets `load` and the first one the rest.
        m.task(tasks[4]).avg.load_avg = load;
        m.task(tasks[0]).avg.load_avg = 2000 - load;
        m.task(tasks[1]).avg.load_avg -= 1;
        m.task(tasks[0]).avg.load_avg += 1;
        m.sd(0, TOP).nr_balance_failed = failed;
        let pass = pass(&mut m, CPU_IDLE);
        assert_eq!((pass.load, pass.result.src), (148, 4));
        pass.result.nr
    };
    assert_eq!(taken(V5_3, 297, 0), 1);
    assert_eq!(taken(V5_3, 298, 0), 0, "149 > 148");
    assert_eq!(taken(V5_3, 298, 1), 0);
    assert_eq!(taken(V5_3, 1000, 3), 0);
    let relaxed = Profile { detach_load_halved: false, ..V5_3 };
    assert_eq!(taken(relaxed, 297, 0), 0);
    assert_eq!(taken(relaxed, 1000, 3), 1);
}

#[test]
fn a_level_that_fails_to_move_load_asks_for_a_push_and_backs_off() {
    let attempt = |failed| {
        let mut m = llcs(2);
        fill(&mut m, 0, 1, 7, 1100);
        fill(&mut m, 4, 0, 8, 1000);
        m.sd(0, TOP).nr_balance_failed = failed;
        m.sd(0, TOP).balance_interval = 12;
        let active = pass(&mut m, CPU_IDLE).result.active_balance;
        (active, m.sd(0, TOP).nr_balance_failed, m.sd(0, TOP).balance_interval)
    };
    assert_eq!(attempt(2), (0, 3, 8));
    assert_eq!(attempt(3), (1, 2, 24), "more than cache_nice_tries + 2 failures");
}

#[test]
fn a_pass_over_the_machine_says_whether_a_cpu_has_two_tasks() {
    let overload = |nr| {
        let mut m = llcs(2);
        m.queue(5, nr);
        m.p.root.overload = 9;
        pass(&mut m, CPU_NOT_IDLE);
        m.p.root.overload
    };
    assert_eq!((overload(1), overload(2)), (0, 1));
}

#[test]
fn tasks_leave_from_the_tail_of_the_queue_as_ever() {
    let mut m = llcs(2);
    let tasks = m.queue(4, 6);
    m.queue(5, 1);
    let result = pass(&mut m, CPU_IDLE).result;
    // Averages 1792 and 896 of the domain: 3.5 tasks; the first one runs.
    assert_eq!(moved(&result), &tasks[1..5]);
    for task in tasks {
        m.task(task).exec_start = NOW;
    }
    assert_eq!(pass(&mut m, CPU_IDLE).result.nr, 0, "all are hot");
}

#[test]
fn the_rework_pulls_by_other_measures() {
    // The same state that moves load before, moves tasks after.
    let mut m = llcs(2);
    m.p.profile = V6_0;
    m.queue(4, 6);
    m.balance(0, TOP, CPU_IDLE);
    let moved = m.sd(0, TOP).stats.lb_imbalance[CPU_IDLE as usize];
    assert_eq!(moved[MIGRATE_LOAD as usize], 0);
}
