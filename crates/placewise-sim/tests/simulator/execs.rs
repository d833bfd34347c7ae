//! Where a program goes on that is loaded in the place of what a fork copied.

use placewise_machine::CpuSet;
use placewise_workload::program::{Op, Program, SchedPolicy};

use crate::common::{Setup, counter, main_of, proc_sched, programs};
use crate::trace::{Line, parse};

const MACHINE: &str = "pack:1 l3:2 core:2 pu:1";

/// A child that begins on CPU 0, where it preempts a hog if there is one, execs and computes for 1 ms.
fn beside(hogs: u32) -> Setup {
    let hog = Program {
        cpus: Some(CpuSet::first_n(1)),
        policy: SchedPolicy::Idle,
        ..Program::new("hog", vec![Op::Run { ns: 20_000_000 }, Op::Exit])
    };
    let fork = |program, count| Op::Fork { program, count, base: 0, step: 0 };
    // Idle, its CPU would take the child over.
    let starter = vec![
        Op::Sleep { ns: 1_000_000, random_pct: 0 },
        fork(3, 1),
        Op::Run { ns: 3_000_000 },
        Op::Join,
        Op::Exit,
    ];
    let ops = vec![Op::Exec, Op::Run { ns: 1_000_000 }, Op::Exit];
    let child = Program { begins_on: Some(0), ..Program::new("child", ops).of_processes() };
    let all = vec![main_of(1 + hogs), Program::new("starter", starter), hog, child];
    Setup::new(MACHINE, "v6.0", "baseline", programs(all, 15))
}

/// The event that loads the child's program, and where the child was put before, at its fork.
fn exec_and_fork(text: &str) -> (Line, u32) {
    let mut lines = parse(text);
    let at = lines.iter().position(|line| line.event == "sched_process_exec").expect("it execs");
    let is_fork = |line: &&Line| line.event == "sched_wakeup_new" && line.text("comm") == "child";
    let forked_to = lines.iter().find(is_fork).expect("it is forked").number("target_cpu");
    (lines.swap_remove(at), forked_to)
}

/// Fails if a task that execs stayed where its fork had put it, whoever is there, and if itself were
/// counted as somebody.
#[test]
fn an_exec_leaves_a_cpu_that_is_not_its_own() {
    let (outcome, text) = beside(1).traced();
    let (exec, forked_to) = exec_and_fork(&text);
    assert_eq!(forked_to, 0);
    assert_ne!(exec.cpu, 0, "{exec:?}");
    assert_eq!(counter(&outcome, "migrations_exec"), 1.0);

    let (outcome, text) = beside(0).traced();
    assert_eq!(exec_and_fork(&text).0.cpu, 0);
    assert_eq!(counter(&outcome, "migrations_exec"), 0.0);
}

/// Fails if loading a program took no time, or the CPU's that the task left.
#[test]
fn a_program_is_loaded_where_it_runs() {
    let mut setup = beside(1);
    setup.machine.costs.jitter_pct = 0;
    let (outcome, text) = setup.traced();
    let (exec, _) = exec_and_fork(&text);
    let lines = parse(&text);
    let is_move = |line: &&Line| line.event == "sched_migrate_task" && line.text("comm") == "child";
    let moved = lines.iter().find(is_move).expect("it is moved");
    let exec_us = setup.machine.costs.exec_ns / 1_000;
    assert!((exec_us..exec_us + 100).contains(&(exec.micros - moved.micros)), "{exec:?} {moved:?}");
    let ran = proc_sched(&outcome, "child", "se.sum_exec_runtime") * 1e3;
    assert!(ran > exec_us as f64 + 1_000.0, "{ran} us");
}
