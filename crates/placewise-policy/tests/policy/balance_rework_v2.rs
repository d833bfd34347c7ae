//! The load balancer's rework as posted in August 2019 (`lb-rework`): what it does otherwise than
//! the one that was merged, and what it was posted for.

use super::common::{Machine, Shape};
use placewise_policy::kernel::{V5_3, V5_10};
use placewise_policy::*;

/// The level above the LLCs of `Shape::TWO_LLCS` and `Shape::TWO_NODES`.
const TOP: u32 = 1;
const LLC: u32 = 0;

fn lb_rework() -> Profile {
    Policy::parse("v5.3", "lb-rework").unwrap().profile
}

fn three_llcs(profile: Profile) -> Machine {
    Machine::new(profile, Shape { llcs: 3, ..Shape::TWO_LLCS })
}

fn without_prefer_sibling(m: &mut Machine) {
    m.cpus().for_each(|cpu| m.span(cpu, LLC).flags &= !SD_PREFER_SIBLING);
}

/// What CPU 0 is to move, by kind.
fn imbalance(m: &mut Machine, level: u32, idle: u32) -> [u64; 4] {
    m.sd(0, level).stats.lb_imbalance = Default::default();
    m.balance(0, level, idle);
    m.sd(0, level).stats.lb_imbalance[idle as usize]
}

const NOTHING: [u64; 4] = [0; 4];

fn of(kind: u32, amount: u64) -> [u64; 4] {
    let mut imbalance = NOTHING;
    imbalance[kind as usize] = amount;
    imbalance
}

#[test]
fn the_patch_changes_the_balancer_and_nothing_else() {
    let patched = lb_rework();
    assert_eq!((V5_3.balance, patched.balance), (BALANCE_LEGACY, BALANCE_REWORK_V2));
    assert_eq!(patched.fork, FORK_LEGACY);
    assert_eq!((patched.busy_factor, patched.imbalance_pct), (32, 125));
    assert_eq!(patched.newidle_gate, NEWIDLE_MIGRATION_COST);
    assert!(patched.active_balance_any_type && patched.active_balance_backs_off);
    assert!(!patched.balance_runnable_terms);
}

#[test]
fn a_group_is_overloaded_by_utilisation_and_not_by_waiting() {
    let overloaded = |util, profile| {
        let mut m = Machine::new(profile, Shape::TWO_LLCS);
        m.queue_each(4..8, 2);
        (4..8).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = util);
        imbalance(&mut m, TOP, CPU_IDLE)[MIGRATE_UTIL as usize] != 0
    };
    assert!(overloaded(1024, lb_rework()));
    assert!(!overloaded(800, lb_rework()), "800 * 117 < 1024 * 100");
    assert!(overloaded(800, V5_10), "two wait on each");
}

#[test]
fn what_sleepers_left_behind_counts_as_load() {
    let mut m = three_llcs(lb_rework());
    m.queue_each(4..12, 2);
    (8..12).for_each(|cpu| m.rq(cpu).cfs.avg.load_avg = 2100);
    m.queue_each(0..4, 1);
    m.balance(0, TOP, CPU_NOT_IDLE);
    assert_eq!(m.p.lb_stats.busiest.group_load, 4 * 2100, "the third LLC, for its blocked load");
    assert_eq!(m.p.balance.src, 8);
}

#[test]
fn tasks_beside_cfs_count() {
    let mut m = Machine::new(lb_rework(), Shape::TWO_LLCS);
    m.queue_each(4..8, 1);
    m.rq(5).nr_running += 1;
    assert_eq!(imbalance(&mut m, TOP, CPU_IDLE), NOTHING, "overloaded, but no CPU has two of CFS");
    assert_eq!(m.sd(0, TOP).stats.lb_nobusyq[CPU_IDLE as usize], 1);
}

#[test]
fn a_preferred_cpu_takes_load_instead_of_tasks() {
    let taken = |profile| {
        let mut m = Machine::new(profile, Shape::TWO_LLCS);
        m.span(0, TOP).flags |= SD_ASYM_PACKING;
        m.queue_each(4..7, 1);
        m.rq(7).cfs.avg.load_avg = 50;
        imbalance(&mut m, TOP, CPU_IDLE)
    };
    assert_eq!(taken(lb_rework()), of(MIGRATE_LOAD, 3 * 1024 + 50));
    assert_eq!(taken(V5_10), of(MIGRATE_TASK, 3));
}

#[test]
fn a_misfit_task_is_known_by_its_load() {
    let taken = |profile, load| {
        let mut m = Machine::new(profile, Shape::TWO_LLCS);
        m.span(0, TOP).flags |= SD_ASYM_CPUCAPACITY;
        // The second one waits.
        let task = m.queue(5, 2)[1];
        m.task(task).avg.load_avg = load;
        m.task(task).avg.util_avg = 10;
        m.rq(5).misfit_task_load = 700;
        m.rq(5).capacity = 500;
        m.rq(5).cfs.avg.util_avg = 200;
        m.group(4, TOP).max_capacity = 500;
        let imbalance = imbalance(&mut m, TOP, CPU_IDLE)[MIGRATE_MISFIT as usize];
        (imbalance, m.p.balance.nr)
    };
    assert_eq!(taken(lb_rework(), 700), (700, 1));
    assert_eq!(taken(lb_rework(), 699), (700, 0));
    assert_eq!(taken(V5_10, 700), (1, 0), "it fits where it is");
}

#[test]
fn one_misfit_task_is_enough() {
    let mut m = Machine::new(lb_rework(), Shape::TWO_LLCS);
    m.span(0, TOP).flags |= SD_ASYM_CPUCAPACITY;
    m.queue(5, 4);
    m.rq(5).misfit_task_load = 700;
    m.rq(5).capacity = 500;
    m.group(4, TOP).max_capacity = 500;
    assert_eq!(m.balance(0, TOP, CPU_IDLE).nr, 1);
}

#[test]
fn room_is_filled_by_utilisation_at_every_level() {
    let moved = |profile| {
        let mut m = Machine::new(profile, Shape::TWO_LLCS);
        m.queue(1, 5);
        m.rq(0).cfs.avg.util_avg = 24;
        imbalance(&mut m, LLC, CPU_IDLE)
    };
    assert_eq!(moved(lb_rework()), of(MIGRATE_UTIL, 1000));
    assert_eq!(moved(V5_10), of(MIGRATE_TASK, 2));
}

#[test]
fn an_idle_cpu_whose_capacity_is_used_up_takes_nothing() {
    let moved = |profile| {
        let mut m = Machine::new(profile, Shape::TWO_LLCS);
        m.queue_each(4..8, 2);
        (0..4).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = 1024);
        imbalance(&mut m, TOP, CPU_IDLE)
    };
    assert_eq!(moved(lb_rework()), NOTHING);
    assert_eq!(moved(V5_10), of(MIGRATE_TASK, 1));
}

#[test]
fn of_groups_with_as_many_idle_cpus_the_first_is_busiest() {
    let src = |profile, second: u32, third: u32| {
        let mut m = three_llcs(profile);
        without_prefer_sibling(&mut m);
        m.queue_each(4..4 + second, 1);
        m.queue_each(8..8 + third, 1);
        m.queue(8, 1);
        m.balance(0, TOP, CPU_IDLE).src
    };
    assert_eq!(src(lb_rework(), 2, 2), 4);
    assert_eq!(src(V5_10, 2, 2), 8, "more tasks");
    assert_eq!(src(lb_rework(), 2, 3), 8, "fewer idle CPUs");
}

#[test]
fn numa_nodes_are_evened_out_like_any_groups() {
    let moved = |profile| {
        let mut m = Machine::new(profile, Shape::TWO_NODES);
        m.queue_each(4..6, 1);
        imbalance(&mut m, TOP, CPU_IDLE)
    };
    assert_eq!(moved(lb_rework()), of(MIGRATE_TASK, 1));
    assert_eq!(moved(V5_10), NOTHING, "two tasks are tolerated");
}

#[test]
fn fewer_tasks_there_than_here_are_no_imbalance() {
    let mut m = Machine::new(lb_rework(), Shape::TWO_LLCS);
    // More CPUs idle here, but there are fewer tasks.
    m.queue(1, 4);
    m.queue_each(4..7, 1);
    m.rq(1).cfs.avg.runnable_avg = 1024;
    assert_eq!(imbalance(&mut m, TOP, CPU_IDLE), NOTHING);
    let busiest = m.p.lb_stats.busiest;
    assert_eq!((busiest.sum_nr_running, m.p.lb_stats.local.sum_nr_running), (3, 4));
    assert_eq!(m.sd(0, TOP).stats.lb_nobusyg[CPU_IDLE as usize], 1);
}

/// Loads of a CPU in the local, fully busy LLC, in the overloaded second and in the third one,
/// which is fully busy as well.
fn load_imbalance(profile: Profile, local: u64, overloaded: u64, third: u64) -> [u64; 4] {
    let mut m = three_llcs(profile);
    m.queue_each(0..4, 1);
    m.queue_each(4..8, 2);
    m.queue_each(8..12, 1);
    for cpu in 0..12 {
        m.rq(cpu).cfs.avg.load_avg = [local, overloaded, third][cpu as usize / 4];
        m.rq(cpu).cfs.avg.runnable_avg = 1024;
    }
    imbalance(&mut m, TOP, CPU_NOT_IDLE)
}

#[test]
fn a_fully_busy_group_above_the_average_takes_nothing() {
    assert_eq!(load_imbalance(lb_rework(), 1500, 2400, 100), NOTHING, "the average is 1333");
    assert_eq!(load_imbalance(lb_rework(), 1500, 3000, 300), of(MIGRATE_LOAD, 100 * 4));
}

#[test]
fn a_fully_busy_group_takes_load_from_one_with_less_if_both_are_below_the_average() {
    // Averages 1500, 1400 and 2633 of the domain.
    assert_eq!(load_imbalance(lb_rework(), 1500, 1400, 5000), of(MIGRATE_LOAD, 1133 * 4));
    assert_eq!(load_imbalance(V5_10, 1500, 1400, 5000), NOTHING);
}

#[test]
fn a_task_of_up_to_twice_the_load_is_taken_however_often_that_failed() {
    let taken = |profile, load: u64, failed| {
        let mut m = Machine::new(profile, Shape::TWO_NODES);
        m.queue_each(0..4, 1);
        m.queue_each(4..8, 2);
        for task in FIRST_TASK..FIRST_TASK + 12 {
            m.task(task).avg.load_avg = load;
        }
        m.sd(0, TOP).nr_balance_failed = failed;
        (0..4).for_each(|cpu| m.rq(cpu).cfs.avg.load_avg = 1848);
        assert_eq!(imbalance(&mut m, TOP, CPU_NOT_IDLE), of(MIGRATE_LOAD, 400));
        m.p.balance.nr
    };
    assert_eq!(taken(lb_rework(), 801, 0), 1);
    assert_eq!(taken(lb_rework(), 802, 0), 0, "401 > 400");
    assert_eq!(taken(lb_rework(), 1024, 2), 0);
    assert_eq!(taken(V5_10, 801, 0), 0);
    assert_eq!(taken(V5_10, 1024, 2), 1);
}

#[test]
fn load_that_fails_to_move_is_pushed_with_a_back_off() {
    let attempt = |failed| {
        let mut m = Machine::new(lb_rework(), Shape::TWO_LLCS);
        m.queue_each(4..8, 2);
        (FIRST_TASK..FIRST_TASK + 8).for_each(|task| m.task(task).avg.util_avg = 5000);
        m.sd(0, TOP).nr_balance_failed = failed;
        m.sd(0, TOP).balance_interval = 12;
        let active = m.balance(0, TOP, CPU_IDLE).active_balance;
        (active, m.sd(0, TOP).nr_balance_failed, m.sd(0, TOP).balance_interval)
    };
    assert_eq!(attempt(2), (0, 3, 8));
    assert_eq!(attempt(3), (1, 2, 24));
}

/// Four nodes of 20 CPUs. Two of them (X) run a burner and 5 threads of lu.C, on the other two (Y)
/// 34 threads queue. The burners and lu are in cgroups of their own, so that a burner weighs 512
/// and a thread 13.
fn lu_with_burners(profile: Profile) -> Machine {
    const NODE: u32 = 20;
    let mut m =
        Machine::new(profile, Shape { packages: 4, nodes: 1, llcs: 1, cores: 20, threads: 1 });
    for first in [0, NODE] {
        add(&mut m, first + 1, 512);
        (2..7).for_each(|at| add(&mut m, first + at, 13));
    }
    for first in [2 * NODE, 3 * NODE] {
        (0..34).for_each(|thread| add(&mut m, first + thread % NODE, 13));
    }
    m
}

fn add(m: &mut Machine, cpu: u32, h_load: u64) {
    let task = m.queue(cpu, 1)[0];
    m.task(task).avg.load_avg = h_load;
    let queued = m.rq(cpu).cfs.h_nr_queued;
    let avg = &mut m.rq(cpu).cfs.avg;
    avg.load_avg = if queued == 1 { h_load } else { avg.load_avg - 1024 + h_load };
}

/// CPU 0 is one of the 14 that idle in the first node X.
fn balance_of_x(profile: Profile, idle: u32) -> Machine {
    let mut m = lu_with_burners(profile);
    if idle != CPU_IDLE {
        // So that it is this CPU's turn.
        (0..20).filter(|cpu| !(1..7).contains(cpu)).for_each(|cpu| m.newly_idle(cpu));
    }
    m.balance(0, TOP, idle);
    m
}

#[test]
fn before_the_rework_nodes_with_a_burner_seem_busier_than_overloaded_ones() {
    for idle in [CPU_IDLE, CPU_NEWLY_IDLE, CPU_NOT_IDLE] {
        let mut m = balance_of_x(V5_3, idle);
        assert_eq!((m.p.balance.nr, m.p.balance.balanced), (0, 1));
        assert_eq!(m.p.balance.continue_balancing, 1);
        assert_eq!(m.sd(0, TOP).stats.lb_nobusyg[idle as usize], 1, "no group is called busiest");

        let stats = m.p.lb_stats;
        assert_eq!(stats.local.group_load, 512 + 5 * 13);
        assert_eq!(stats.busiest.group_load, 34 * 13, "the node first looked at is Y");
        assert_eq!(stats.busiest.sum_h_nr_running, 34);
        // Per capacity, of 1024: 28 here, 22 there, 25 on average.
        assert!(stats.busiest.avg_load < stats.avg_load && stats.avg_load < stats.local.avg_load);
    }
}

#[test]
fn the_rework_fills_idle_cpus_from_an_overloaded_node() {
    for idle in [CPU_IDLE, CPU_NEWLY_IDLE, CPU_NOT_IDLE] {
        let mut m = balance_of_x(lb_rework(), idle);
        let stats = m.p.lb_stats;
        assert_eq!((stats.busiest.sum_nr_running, stats.busiest.group_weight), (34, 20));
        assert_eq!(
            (m.p.balance.src, m.p.balance.nr),
            (40, 1),
            "the first CPU of Y has two threads"
        );
        let room = u64::from(stats.local.group_capacity) - stats.local.group_util;
        assert_eq!(room, 14 * 1024);
        assert_eq!(m.sd(0, TOP).stats.lb_imbalance[idle as usize], of(MIGRATE_UTIL, room));
    }
}

#[test]
fn without_cgroups_both_even_out_the_nodes() {
    for profile in [V5_3, lb_rework()] {
        let mut m = lu_with_burners(profile);
        for task in FIRST_TASK..FIRST_TASK + 80 {
            m.task(task).avg.load_avg = 1024;
        }
        m.cpus().for_each(|cpu| {
            let nr = u64::from(m.rq(cpu).cfs.h_nr_queued);
            m.rq(cpu).cfs.avg.load_avg = 1024 * nr;
        });
        assert_eq!(m.balance(0, TOP, CPU_IDLE).nr, 1);
        assert_eq!(m.p.balance.src, 40);
    }
}
