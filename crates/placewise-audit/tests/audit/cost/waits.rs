//! Latencies and missed idle CPUs.

use placewise_audit::cost::latency::Latency;
use placewise_audit::{Action, Distance, PrevState, Verdict};

use super::world::World;

fn wakeup(world: &mut World, distance: Distance) -> Latency {
    let waits = world.report().latency.wakeups;
    waits.into_iter().find(|latency| latency.distance == distance).unwrap()
}

#[test]
fn a_wait_goes_from_waking_to_the_switch_in() {
    let mut world = World::new();
    world.running(1, "waker", 0);
    let wakee = world.task(2, "wakee");
    world.at(1_000).waking(0, wakee, 1, 1);
    world.at(1_500).wakeup(0, wakee, 1);
    assert_eq!(wakeup(&mut world, Distance::Smt).wakeup_to_run.count, 0);
    world.at(3_000).switch(1, PrevState::Runnable, wakee);
    let latency = wakeup(&mut world, Distance::SameCpu);
    assert_eq!((latency.wakeup_to_run.count, latency.wakeup_to_run.max_ns), (1, 2_000));
    assert_eq!(latency.behind_another.count, 0, "CPU 1 was idle");
}

#[test]
fn waits_are_told_by_the_distance_of_the_placement() {
    for (target, distance) in [0, 1, 2, 4, 8].into_iter().zip(Distance::ALL) {
        let mut world = World::new();
        world.running(1, "waker", 15);
        let wakee = world.task(2, "wakee");
        world.at(1_000).wake(15, wakee, 0, target);
        world.at(5_000).switch(target, PrevState::Runnable, wakee);
        assert_eq!(wakeup(&mut world, distance).wakeup_to_run.total_ns, 4_000, "{distance:?}");
    }
}

#[test]
fn quantiles_are_those_of_all_waits() {
    let mut world = World::new();
    world.running(1, "waker", 0);
    let wakee = world.task(2, "wakee");
    for turn in 1..=100 {
        let start = turn * 1_000_000;
        world.at(start).wake(0, wakee, 1, 1);
        world.at(start + turn * 1_000).switch(1, PrevState::Runnable, wakee);
        world.idles(1);
    }
    let waits = wakeup(&mut world, Distance::SameCpu).wakeup_to_run;
    assert_eq!((waits.count, waits.max_ns, waits.total_ns), (100, 100_000, 5_050_000));
    assert!(waits.p50_ns.abs_diff(50_000) <= 50, "{waits:?}");
    assert!(waits.p99_ns.abs_diff(99_000) <= 99, "{waits:?}");
}

#[test]
fn time_behind_another_ends_when_a_waiting_task_moves_to_an_idle_cpu() {
    let mut world = World::new();
    world.running(1, "waker", 0);
    world.running(2, "other", 1);
    let wakee = world.task(3, "wakee");
    world.at(1_000).wake(0, wakee, 1, 1);
    world.at(3_000).step(4, Action::Migrate { task: wakee, from: 1, to: 4, placement: false });
    world.at(7_000).switch(4, PrevState::Runnable, wakee);
    // Wherever it runs in the end, the wait is that of the placement on CPU 1.
    let latency = wakeup(&mut world, Distance::SameCpu);
    assert_eq!(latency.wakeup_to_run.total_ns, 6_000);
    assert_eq!(latency.behind_another.total_ns, 2_000);
}

#[test]
fn a_task_that_moves_from_behind_one_to_behind_another_waits_on() {
    let mut world = World::new();
    world.running(1, "waker", 0);
    world.running(2, "other", 1);
    world.running(3, "third", 4);
    let wakee = world.task(4, "wakee");
    world.at(1_000).wake(0, wakee, 1, 1);
    world.at(3_000).step(4, Action::Migrate { task: wakee, from: 1, to: 4, placement: false });
    world.at(7_000).switch(4, PrevState::Runnable, wakee);
    assert_eq!(wakeup(&mut world, Distance::SameCpu).behind_another.total_ns, 6_000);
}

#[test]
fn a_second_wakeup_of_an_idle_cpu_waits_behind_the_first_once_that_runs() {
    let mut world = World::new();
    world.running(1, "waker", 0);
    let (first, second) = (world.task(2, "first"), world.task(3, "second"));
    world.at(1_000).wake(0, first, 1, 1);
    world.at(2_000).wake(0, second, 1, 1);
    world.at(4_000).switch(1, PrevState::Runnable, first);
    world.at(9_000).switch(1, PrevState::Asleep, second);
    let latency = wakeup(&mut world, Distance::SameCpu);
    assert_eq!(latency.behind_another.count, 1);
    assert_eq!(latency.behind_another.total_ns, 5_000);
}

/// Its waker waits for it to be switched out, and only then the kernel decides.
#[test]
fn a_wakee_that_was_still_on_its_cpu_waits_from_waking_on() {
    let mut world = World::with_affinities(&[(2, vec![1, 2])]);
    world.running(1, "waker", 0);
    let wakee = world.running(2, "wakee", 1);
    let other = world.task(3, "other");
    world.at(1_000).wake(0, other, 1, 1);
    assert!(matches!(world.at(2_000).waking(0, wakee, 1, 1), Verdict::Nothing));
    world.at(3_000).switch(1, PrevState::Asleep, other);
    world.at(4_000).wakeup(0, wakee, 1);
    world.at(9_000).switch(1, PrevState::Asleep, wakee);
    let latency = wakeup(&mut world, Distance::SameCpu);
    assert_eq!(latency.wakeup_to_run.count, 2);
    assert_eq!(latency.wakeup_to_run.total_ns, 2_000 + 7_000);
    assert_eq!(latency.behind_another.total_ns, 2_000 + 5_000);
    let count = world.report().missed_idle.by_name;
    let wakee = count.iter().find(|count| count.name == "wakee").unwrap();
    assert_eq!((wakee.missed_idle.on_busy_cpu, wakee.missed_idle.missed.same_llc), (1, 1));
    assert_eq!(wakee.missed_idle.waited_ns.same_llc, 7_000);
}

#[test]
fn a_preempted_task_begins_no_wakeup() {
    let mut world = World::new();
    let preempted = world.running(1, "preempted", 0);
    let other = world.task(2, "other");
    world.at(1_000).switch(0, PrevState::Runnable, other);
    world.at(5_000).switch(0, PrevState::Asleep, preempted);
    assert_eq!(wakeup(&mut world, Distance::SameCpu).wakeup_to_run.count, 0);
    // Nor does its wait stick to its next wakeup.
    world.at(6_000).idles(0);
    world.running(3, "waker", 1);
    world.at(7_000).wake(1, preempted, 0, 0);
    world.at(8_000).switch(0, PrevState::Runnable, preempted);
    let latency = wakeup(&mut world, Distance::SameCpu);
    assert_eq!((latency.wakeup_to_run.total_ns, latency.behind_another.count), (1_000, 0));
}

#[test]
fn a_wait_that_ends_in_a_gap_is_left_out() {
    let mut world = World::new();
    world.running(1, "waker", 0);
    world.running(2, "other", 1);
    let wakee = world.task(3, "wakee");
    world.at(1_000).wake(0, wakee, 1, 1);
    world.at(9_000).step(1, Action::Lost { count: 10 });
    world.step(1, Action::Running { task: wakee });
    let report = world.report();
    assert_eq!(wakeup(&mut world, Distance::SameCpu).wakeup_to_run.count, 0);
    assert_eq!(report.missed_idle.wakeups.missed.same_llc, 1);
    assert_eq!(report.missed_idle.wakeups.waited_ns.same_llc, 0);
}

#[test]
fn a_fork_waits_and_misses_like_a_wakeup() {
    let mut world = World::new();
    let parent = world.running(1, "parent", 0);
    let child = world.task(2, "child");
    world.at(1_000).step(0, Action::Fork { parent, child });
    world.at(2_000).step(0, Action::WakeupNew { task: child, target_cpu: 0 });
    world.at(8_000).switch(0, PrevState::Asleep, child);
    let report = world.report();
    let same_cpu = report.latency.forks[Distance::SameCpu as usize];
    assert_eq!(same_cpu.wakeup_to_run.total_ns, 6_000);
    assert_eq!(same_cpu.behind_another.total_ns, 6_000);
    assert_eq!(report.missed_idle.forks.missed.same_llc, 1);
    assert_eq!(report.missed_idle.forks.waited_ns.same_llc, 6_000);
    assert_eq!(report.missed_idle.wakeups.placements, 0);
}

/// Wakes pid 9, which may use the CPUs `allowed`, onto CPU 1, where another task runs until 9 us.
fn wake_behind_another(allowed: &[usize]) -> World {
    let mut world = World::with_affinities(&[(9, allowed.to_vec())]);
    world.running(1, "waker", 0);
    world.running(2, "other", 1);
    let wakee = world.task(9, "wakee");
    world.at(1_000).wake(0, wakee, 1, 1);
    world.at(9_000).switch(1, PrevState::Asleep, wakee);
    world
}

#[test]
fn an_idle_cpu_of_the_affinity_is_missed_where_it_is_nearest() {
    let missed = |allowed: &[usize]| {
        let count = wake_behind_another(allowed).report().missed_idle.wakeups;
        assert_eq!((count.placements, count.on_busy_cpu), (1, 1), "{allowed:?}");
        assert_eq!(count.waited_ns.total(), 8_000 * count.missed.total(), "{allowed:?}");
        (count.missed.same_llc, count.missed.same_node, count.missed.other_node)
    };
    assert_eq!(missed(&(0..16).collect::<Vec<_>>()), (1, 0, 0));
    assert_eq!(missed(&[1, 2, 5, 9]), (1, 0, 0));
    assert_eq!(missed(&[1, 5, 9]), (0, 1, 0));
    assert_eq!(missed(&[1, 9]), (0, 0, 1));
    assert_eq!(missed(&[0, 1]), (0, 0, 0), "both are busy");
}

#[test]
fn a_miss_is_told_by_the_name_of_the_wakee() {
    let report = wake_behind_another(&[1, 2]).report();
    let by_name = report.missed_idle.by_name;
    assert_eq!(by_name.len(), 1);
    assert_eq!(by_name[0].name, "wakee");
    assert_eq!(by_name[0].missed_idle.waited_ns.same_llc, 8_000);
}

#[test]
fn a_wakeup_on_an_idle_cpu_misses_nothing() {
    let mut world = World::new();
    world.running(1, "waker", 0);
    let wakee = world.task(2, "wakee");
    world.at(1_000).wake(0, wakee, 1, 1);
    let count = world.report().missed_idle.wakeups;
    assert_eq!((count.placements, count.on_busy_cpu, count.missed.total()), (1, 0, 0));
}

#[test]
fn a_cpu_with_a_wakeup_on_its_way_is_not_idle() {
    let mut world = World::with_affinities(&[(3, vec![1, 2])]);
    world.running(1, "waker", 0);
    let (first, second) = (world.task(2, "first"), world.task(3, "second"));
    world.running(4, "other", 1);
    // To CPU 2 over its wake list: it has not arrived when the second is placed.
    world.at(1_000).waking(0, first, 3, 2);
    assert!(matches!(world.at(1_500).waking(0, second, 1, 1), Verdict::Placed(_)));
    let count = world.report().missed_idle.wakeups;
    assert_eq!((count.placements, count.on_busy_cpu, count.missed.total()), (2, 1, 0));
}

#[test]
fn a_number_that_is_used_again_inherits_no_wait() {
    let mut world = World::new();
    world.running(1, "waker", 0);
    world.running(2, "other", 1);
    let wakee = world.task(3, "wakee");
    world.at(1_000).wake(0, wakee, 1, 1);
    world.at(2_000).step(0, Action::Forgotten { task: wakee });
    world.at(5_000).switch(1, PrevState::Runnable, wakee);
    let report = world.report();
    assert_eq!(wakeup(&mut world, Distance::SameCpu).wakeup_to_run.count, 0);
    assert_eq!(report.idle_beside.waited_ns, 1_000);
}
