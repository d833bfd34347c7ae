//! Tasks that change LLC and wakeups across LLCs.

use placewise_audit::cost::causes::CauseKind;
use placewise_audit::{Action, NoPlacement, PrevState, TaskNumber, Verdict};
use placewise_trace::Context;

use super::world::World;

/// Runs a sleeping task on each of the CPUs for 1 ms, woken by CPU 15.
fn tour(world: &mut World, task: TaskNumber, cpus: &[u32]) {
    let mut prev_cpu = cpus[0];
    for &cpu in cpus {
        world.wake(15, task, prev_cpu, cpu);
        world.switch(cpu, PrevState::Runnable, task);
        world.now += 1_000_000;
        world.idles(cpu);
        prev_cpu = cpu;
    }
}

#[test]
fn only_a_change_of_the_llc_is_one() {
    let mut world = World::new();
    world.running(1, "waker", 15);
    let (stays, bounces) = (world.task(2, "stays"), world.task(3, "bounces"));
    tour(&mut world, stays, &[0, 1, 2, 3, 0]);
    tour(&mut world, bounces, &[0, 4, 5, 8, 0]);
    let report = world.report().bouncing;
    assert_eq!(report.llc_changes, 3);
    assert_eq!(report.tasks.len(), 1);
    let task = &report.tasks[0];
    assert_eq!((task.pid, task.name.as_str(), task.llc_changes), (3, "bounces", 3));
    assert_eq!(task.lifetime_ns, 5_000_000);
    assert_eq!(task.llc_changes_per_second, 600.0);
    assert_eq!(report.names[0].llc_changes_per_second, 300.0, "of 10 ms");
}

#[test]
fn tasks_with_the_most_changes_are_listed_dead_or_alive() {
    let mut world = World::new();
    world.running(1, "waker", 15);
    let mut changes = Vec::new();
    for pid in 100..140 {
        let task = world.task(pid, "worker");
        let visits = 2 + (pid * 7 % 40) as usize;
        let cpus: Vec<u32> = (0..visits).map(|visit| (visit as u32 % 2) * 4).collect();
        tour(&mut world, task, &cpus);
        changes.push((visits as u64 - 1, pid));
        if pid % 2 == 0 {
            world.wake(15, task, 0, 0);
            world.switch(0, PrevState::Runnable, task);
            world.switch(0, PrevState::Dead, 0);
        }
    }
    let report = world.report().bouncing;
    // One that ended on CPU 4 changed once more to die on CPU 0.
    let ended_there = |&(changes, pid): &(u64, u32)| pid % 2 == 0 && changes % 2 == 1;
    let mut expected: Vec<_> =
        changes.iter().map(|task| (task.0 + u64::from(ended_there(task)), task.1)).collect();
    expected.sort_by_key(|&(changes, pid)| (std::cmp::Reverse(changes), pid));
    expected.truncate(32);
    let listed: Vec<_> = report.tasks.iter().map(|task| (task.llc_changes, task.pid)).collect();
    assert_eq!(listed, expected);
}

#[test]
fn a_number_that_is_used_again_is_another_task() {
    let mut world = World::new();
    world.running(1, "waker", 15);
    let task = world.task(2, "first");
    tour(&mut world, task, &[0, 4]);
    world.step(15, Action::Forgotten { task });
    tour(&mut world, task, &[8]);
    assert_eq!(world.report().bouncing.llc_changes, 1, "the second never ran on LLC 1");
}

#[test]
fn pairs_tell_which_part_of_their_wakeups_reaches_across_llcs() {
    let mut world = World::new();
    world.running(1, "producer", 0);
    let consumer = world.task(2, "consumer");
    for target in [1, 4, 2, 8] {
        world.wake(0, consumer, 1, target);
        world.switch(target, PrevState::Runnable, consumer);
        world.idles(target);
    }
    let report = world.report().bouncing;
    assert_eq!((report.wakeups_by_tasks, report.across_llcs), (4, 2));
    let pair = &report.pairs[0];
    assert_eq!((pair.waker.as_str(), pair.wakee.as_str()), ("producer", "consumer"));
    assert_eq!((pair.wakeups, pair.across_llcs, pair.share_across_llcs), (4, 2, 0.5));
}

/// `ping` on CPU 0 wakes a task that is bound to `cpu`, which idles.
fn wakes_bound(world: &mut World, task: TaskNumber, cpu: u32, latency_ns: u64) {
    let verdict = world.waking(0, task, cpu, cpu);
    assert!(matches!(verdict, Verdict::NoPlacement(NoPlacement::Bound)));
    world.wakeup(0, task, cpu);
    world.now += latency_ns;
    world.switch(cpu, PrevState::Runnable, task);
    world.idles(cpu);
}

/// They have no choice of a CPU, but their wakeups have as far to go.
#[test]
fn bound_tasks_are_woken_across_llcs_as_well() {
    let mut world = World::with_affinities(&[(2, vec![4]), (3, vec![1])]);
    world.running(1, "ping", 0);
    let (pong, near) = (world.task(2, "pong"), world.task(3, "near"));
    wakes_bound(&mut world, pong, 4, 9_000);
    for (mean_ns, cost_ns) in [(0, 9_000), (2_000, 7_000)] {
        // 29 are too few for a mean, and 58 are not.
        (0..29).for_each(|_| wakes_bound(&mut world, near, 1, 2_000));
        let report = world.report();
        let [pair] = &report.bouncing.pairs[..] else { panic!("{:?}", report.bouncing.pairs) };
        assert_eq!((pair.waker.as_str(), pair.wakee.as_str()), ("ping", "pong"));
        assert_eq!((pair.wakeups, pair.onto_idle, pair.onto_idle_ns), (1, 1, 9_000));
        assert_eq!(report.bouncing.within_llc_mean_ns, mean_ns);
        let cause = report.causes.iter().find(|of| of.cause == CauseKind::AcrossLlcs);
        assert_eq!(cause.unwrap().cost_ns, cost_ns, "longer than within one");
    }
}

#[test]
fn interrupts_and_idle_cpus_have_no_waker() {
    let mut world = World::new();
    world.running(1, "interrupted", 0);
    let wakee = world.task(2, "wakee");
    world.waking_in(Context::HardInterrupt, 0, wakee, 4, 4);
    world.wakeup(0, wakee, 4);
    world.switch(4, PrevState::Runnable, wakee);
    world.idles(4);
    world.wake(8, wakee, 4, 4);
    let report = world.report().bouncing;
    assert_eq!((report.wakeups_by_tasks, report.pairs.len()), (0, 0));
}
