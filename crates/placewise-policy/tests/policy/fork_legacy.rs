//! Where new and exec'ing tasks started before the rework: the legacy search of `fork.h`.
//!
//! Groups are LLCs or nodes of 4 CPUs; imbalance_pct is 117, so that loads within 174 are close and
//! averages have to differ by more than 8 %.

use super::common::{Machine, NOW, Shape};
use placewise_policy::kernel::V5_3;
use placewise_policy::*;

const FOUR_LLCS: Shape = Shape { llcs: 4, ..Shape::TWO_LLCS };

/// A machine whose groups of 4 CPUs have these runnable and average loads per capacity.
fn loaded(shape: Shape, loads: &[(u64, u64)]) -> Machine {
    let mut m = Machine::new(V5_3, shape);
    for (first, &(runnable, average)) in (0..).step_by(4).zip(loads) {
        let task = m.queue(first, 1)[0];
        m.task(task).avg.load_avg = 4 * runnable;
        m.rq(first).cfs.avg.load_avg = 4 * average;
    }
    m
}

/// The group in which a child of a task on CPU 0 starts.
fn group_of_child(shape: Shape, loads: &[(u64, u64)]) -> u32 {
    let mut m = loaded(shape, loads);
    let child = m.new_task();
    m.place_fork(child, 0) / 4
}

const HEAVY: (u64, u64) = (5000, 5000);

#[test]
fn a_clearly_lower_runnable_load_makes_the_idlest_group() {
    let choose = |third| group_of_child(FOUR_LLCS, &[HEAVY, (1000, 1000), (third, 1000), HEAVY]);
    assert_eq!(choose(825), 2);
    assert_eq!(choose(826), 1, "not by more than 174");
}

#[test]
fn among_close_groups_the_average_load_decides() {
    let choose = |runnable, average| {
        group_of_child(FOUR_LLCS, &[HEAVY, (1000, 2000), (runnable, average), HEAVY])
    };
    assert_eq!(choose(1000, 1850), 2);
    assert_eq!(choose(1000, 1852), 1, "108 % of that are more than 2000");
    assert_eq!(choose(1173, 100), 2);
    assert_eq!(choose(1174, 100), 1, "not close");
}

#[test]
fn a_group_chosen_by_its_average_leaves_the_runnable_load_to_beat_as_it_was() {
    // The third group's 1100 do not replace the second's 1000, which the fourth's 920 do not beat.
    assert_eq!(group_of_child(FOUR_LLCS, &[HEAVY, (1000, 2000), (1100, 1000), (920, 1000)]), 2);
    assert_eq!(group_of_child(FOUR_LLCS, &[HEAVY, (1100, 2000), (1100, 1000), (920, 1000)]), 3);
}

#[test]
fn a_node_is_left_for_a_clearly_lower_load_only() {
    let leaves = |shape, remote| group_of_child(shape, &[(1000, 2000), (remote, 1000)]) == 1;
    assert!(leaves(Shape::TWO_NODES, 825));
    assert!(!leaves(Shape::TWO_NODES, 826), "within 174");
    assert!(leaves(Shape::TWO_LLCS, 826));
}

#[test]
fn a_clearly_higher_load_elsewhere_keeps_the_child() {
    let leaves = |remote| group_of_child(Shape::TWO_LLCS, &[(1000, 5000), (remote, 1000)]) == 1;
    assert!(leaves(1174), "close, and the average here is higher");
    assert!(!leaves(1175));
}

#[test]
fn between_close_groups_the_child_leaves_for_a_lower_average() {
    let leaves =
        |here, average| group_of_child(Shape::TWO_LLCS, &[(here, average), (1000, 1000)]) == 1;
    assert!(leaves(1000, 1080));
    assert!(!leaves(1000, 1079));
    assert!(!leaves(1173, 1000));
    assert!(leaves(1174, 1000), "clearly lower there, whatever the averages");
}

/// The group in which a task of utilisation 400 exec's that runs on CPU 1. Some CPU has so much
/// spare capacity here and there.
fn group_of_exec(here: u64, there: u64, loads: [(u64, u64); 2]) -> u32 {
    let mut m = loaded(Shape::TWO_LLCS, &loads);
    let task = m.queue(1, 1)[0];
    m.task(task).avg.util_avg = 400;
    m.task(task).avg.load_avg = 0;
    m.cpus().for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = 1024);
    m.rq(1).cfs.avg.load_avg = 0;
    // Without the task itself.
    m.rq(1).cfs.avg.util_avg = 1024 - here + 400;
    m.rq(6).cfs.avg.util_avg = 1024 - there;
    m.p.select_task_rq(task, 1, 1, WF_EXEC, NOW) / 4
}

#[test]
fn an_exec_goes_where_most_capacity_is_spare() {
    let (heavy_here, heavy_there) = ([HEAVY, (0, 0)], [(0, 0), HEAVY]);
    assert_eq!(group_of_exec(500, 539, heavy_here), 0, "108 % of what is here is more");
    assert_eq!(group_of_exec(500, 540, heavy_there), 1);
    assert_eq!(group_of_exec(100, 201, heavy_there), 1);
    assert_eq!(group_of_exec(200, 200, heavy_here), 1, "half of the task fits nowhere: load");
    assert_eq!(group_of_exec(200, 200, heavy_there), 0);
}

#[test]
fn the_cpu_in_the_group_is_chosen_by_runnable_load() {
    let mut m = loaded(Shape::TWO_LLCS, &[HEAVY, (0, 0)]);
    // The level of single CPUs would go on from one CPU to another.
    m.span(4, 0).flags &= !SD_BALANCE_FORK;
    for (cpu, runnable, blocked) in [(4, 300, 0), (5, 200, 9000), (6, 200, 0), (7, 400, 0)] {
        let task = if cpu == 4 { m.rq(4).curr } else { m.queue(cpu, 1)[0] };
        m.task(task).avg.load_avg = runnable;
        m.rq(cpu).cfs.avg.load_avg = runnable + blocked;
    }
    let child = m.new_task();
    assert_eq!(m.place_fork(child, 0), 5, "the first with the least");
}
