//! Lists of waiting tasks that a CPU takes from before it balances: `shared_runq.h`.

use placewise_policy::*;

use super::common::{Machine, NOW, Shape};

fn machine(patch: &str, shape: Shape) -> Machine {
    let mut m = Machine::new(Policy::parse("v6.5", patch).unwrap().profile, shape);
    m.p.root.overload = 1;
    m
}

/// A new task that may run on `allowed` waits on `cpu`.
fn wait(m: &mut Machine, cpu: u32, allowed: &[u32]) -> u32 {
    let task = m.new_task();
    m.allow(task, allowed);
    m.p.set_task_cpu(task, cpu);
    m.p.enqueue_task(task, ENQUEUE_WAKEUP, NOW);
    task
}

/// The task that `cpu`, which runs out, has off a list.
fn taken(m: &mut Machine, cpu: u32) -> u32 {
    if m.p.newidle_looks_at_lists(cpu) { m.p.newidle_shared_task(cpu) } else { NO_TASK }
}

const ALL: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

#[test]
fn a_cpu_takes_over_what_waits_in_its_llc() {
    let mut m = machine("shared-runq", Shape::TWO_NODES);
    let task = wait(&mut m, 1, &ALL);
    assert_eq!(taken(&mut m, 4), NO_TASK, "another LLC");
    m.p.set_ttwu_pending(0, true);
    assert_eq!(taken(&mut m, 0), NO_TASK, "work is on its way");
    m.p.set_ttwu_pending(0, false);
    assert_eq!(taken(&mut m, 0), task);
    assert_eq!(taken(&mut m, 2), NO_TASK, "another CPU has it");
    m.p.set_next_task(1, task, NOW);
    m.p.put_prev_task(1, NOW);
    assert_eq!(taken(&mut m, 0), task, "it waits again");

    let task = wait(&mut m, 1, &ALL);
    m.p.set_next_task(1, task, NOW);
    assert_eq!(taken(&mut m, 0), NO_TASK, "it runs");
    m.p.put_prev_task(1, NOW);
    m.p.dequeue_task(task, DEQUEUE_MIGRATE, NOW);
    assert_eq!(taken(&mut m, 0), NO_TASK, "it has left");

    let mut baseline = machine("baseline", Shape::TWO_NODES);
    wait(&mut baseline, 1, &ALL);
    assert_eq!(taken(&mut baseline, 0), NO_TASK);
}

#[test]
fn who_waits_longest_goes_first_and_whoever_leaves_is_passed_over() {
    let mut m = machine("shared-runq", Shape::TWO_NODES);
    let tasks = [1, 2, 1, 3, 2, 1].map(|cpu| wait(&mut m, cpu, &ALL));
    for leaves in [0, 3, 5] {
        m.p.dequeue_task(tasks[leaves], DEQUEUE_MIGRATE, NOW);
    }
    assert_eq!([(); 4].map(|()| taken(&mut m, 0)), [tasks[1], tasks[2], tasks[4], NO_TASK]);
}

#[test]
fn a_task_that_may_not_come_holds_up_those_behind_it() {
    let mut m = machine("shared-runq", Shape::TWO_NODES);
    wait(&mut m, 1, &[1]);
    assert_eq!(taken(&mut m, 1), NO_TASK, "bound tasks are in no list");
    let first = wait(&mut m, 1, &[1, 2]);
    wait(&mut m, 1, &ALL);
    assert_eq!(taken(&mut m, 0), NO_TASK);
    assert_eq!(taken(&mut m, 2), first);
}

#[test]
fn a_cpu_looks_at_its_own_list_first() {
    // An LLC of 16 CPUs has two lists: of 0, 1, 4, 5 and so on, and of 2, 3, 6, 7.
    let mut m = machine("shared-runq", Shape::ZEN3);
    let all: Vec<u32> = m.cpus().collect();
    for (near, cpus) in [(1, [0, 5, 128]), (2, [3, 6, 130])] {
        for cpu in cpus {
            let [far, own] = [3 - near, near].map(|waits_on| wait(&mut m, waits_on, &all));
            assert_eq!(taken(&mut m, cpu), own);
            assert_eq!(taken(&mut m, cpu), far, "then at the other");
        }
    }
}

#[test]
fn idle_check_asks_first_whether_balancing_would_be_worth_it() {
    let take = |patch: &str, avg_idle: u64, overload: u32| {
        let mut m = machine(patch, Shape::TWO_LLCS);
        wait(&mut m, 1, &ALL);
        m.p.root.overload = overload;
        m.rq(0).avg_idle = avg_idle;
        m.sd(0, 1).max_newidle_lb_cost = 1000;
        taken(&mut m, 0) != NO_TASK
    };
    for (avg_idle, overload, expected) in [(1000, 1, true), (999, 1, false), (1000, 0, false)] {
        assert_eq!(take("shared-runq-idle-check", avg_idle, overload), expected);
        assert!(take("shared-runq", avg_idle, overload));
    }
}

#[test]
fn the_level_above_the_llc_says_whether_balancing_is_worth_it() {
    let goes = |patch: &str, llc_cost, above_cost| {
        let mut m = machine(patch, Shape::TWO_LLCS);
        m.rq(0).avg_idle = 500;
        m.sd(0, 0).max_newidle_lb_cost = llc_cost;
        m.sd(0, 1).max_newidle_lb_cost = above_cost;
        m.p.newidle_balance_start(&mut BalanceWalk::default(), 0, NOW)
    };
    assert_eq!((goes("baseline", 501, 0), goes("baseline", 0, 501)), (false, true));
    assert_eq!((goes("shared-runq", 501, 0), goes("shared-runq", 0, 501)), (true, false));
}
