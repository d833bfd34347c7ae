//! Why tasks waited, by hand.

use placewise_audit::cost::causes::{Cause, CauseKind};
use placewise_audit::{Action, PrevState};

use super::world::World;

fn causes(world: &mut World) -> Vec<(CauseKind, String, u64)> {
    let of = |cause: Cause| (cause.cause, cause.task, cause.cost_ns);
    world.report().causes.into_iter().map(of).collect()
}

#[test]
fn each_moment_has_the_first_cause_that_holds() {
    let mut world = World::with_affinities(&[(9, vec![1, 2])]);
    world.running(1, "waker", 0);
    world.running(2, "other", 1);
    let wakee = world.task(9, "wakee");
    world.at(1_000).wake(0, wakee, 1, 1);
    world.at(3_000).running(3, "third", 2);
    // Only CPUs that it may not use are idle now.
    world.at(8_000).switch(1, PrevState::Asleep, wakee);
    let wakee = || "wakee".to_owned();
    let expected = [(CauseKind::Bound, wakee(), 5_000), (CauseKind::IdleInLlc, wakee(), 2_000)];
    assert_eq!(causes(&mut world), expected);
}

#[test]
fn new_tasks_wait_for_their_first_run_only() {
    let mut world = World::new();
    let parent = world.running(1, "parent", 0);
    let child = world.task(2, "child");
    world.at(1_000).step(0, Action::Fork { parent, child });
    world.step(0, Action::WakeupNew { task: child, target_cpu: 0 });
    world.at(4_000).switch(0, PrevState::Runnable, child);
    world.at(5_000).switch(0, PrevState::Runnable, parent);
    world.at(7_000).switch(0, PrevState::Asleep, child);
    let child = || "child".to_owned();
    let expected = [
        (CauseKind::NewTasks, child(), 3_000),
        (CauseKind::IdleInLlc, child(), 2_000),
        (CauseKind::IdleInLlc, "parent".to_owned(), 1_000),
    ];
    assert_eq!(causes(&mut world), expected);
}

#[test]
fn a_real_time_task_is_a_cause_of_its_own() {
    let mut world = World::new();
    let audio = world.tasks.mention(1, "audio", Some(49), &mut Vec::new()).unwrap();
    world.step(1, Action::Running { task: audio });
    world.running(2, "waker", 0);
    let wakee = world.task(3, "wakee");
    world.at(1_000).wake(0, wakee, 1, 1);
    world.at(4_000).switch(1, PrevState::Asleep, wakee);
    let report = world.report();
    assert_eq!(report.causes[0].cause, CauseKind::RealTime);
    assert_eq!(
        (report.causes[0].others[0].name.as_str(), report.causes[0].cost_ns),
        ("audio", 3_000)
    );
}

/// A kernel does not idle while a task of the queue may run.
#[test]
fn a_task_that_the_idle_task_takes_over_from_is_throttled() {
    let mut world = World::new();
    let task = world.running(1, "worker", 0);
    let queued = world.task(2, "queued");
    world.at(1_000).wake(0, queued, 0, 0);
    world.at(2_000).switch(0, PrevState::Runnable, 0);
    world.at(10_000).switch(0, PrevState::Runnable, task);
    world.at(11_000).switch(0, PrevState::Asleep, queued);
    let throttled = |cause: &(CauseKind, String, u64)| cause.0 == CauseKind::Throttled;
    let causes: Vec<_> = causes(&mut world).into_iter().filter(throttled).collect();
    let names = ["queued", "worker"].map(|name| (CauseKind::Throttled, name.to_owned(), 8_000));
    assert_eq!(causes, names);
}

/// Who ran there turns up elsewhere, so that a switch is missing: the CPU may have run anybody since.
#[test]
fn nobody_is_throttled_by_a_switch_that_was_not_seen() {
    let mut world = World::new();
    let agent = world.running(1, "agent", 0);
    world.running(2, "other", 1);
    let queued = world.task(3, "queued");
    world.at(1_000).wake(0, queued, 0, 0);
    world.at(2_000).switch(1, PrevState::Asleep, agent);
    world.at(10_000).step(0, Action::Running { task: queued });
    let throttled = |cause: &&(CauseKind, String, u64)| cause.0 == CauseKind::Throttled;
    assert_eq!(causes(&mut world).iter().filter(throttled).count(), 0);
}

#[test]
fn a_task_that_was_woken_onto_an_idle_cpu_is_not_throttled() {
    let mut world = World::new();
    world.running(1, "waker", 0);
    let wakee = world.task(2, "wakee");
    world.at(1_000).wake(0, wakee, 1, 1);
    world.at(5_000).switch(1, PrevState::Runnable, wakee);
    assert_eq!(causes(&mut world), [(CauseKind::IdleExit, "wakee".to_owned(), 4_000)]);
    assert_eq!(world.report().idle_exit_ns, 4_000);
}

#[test]
fn the_worst_wait_of_a_name_is_told_with_its_time() {
    let mut world = World::new();
    let (one, two) = (world.running(1, "worker", 0), world.task(2, "worker"));
    world.at(1_000).wake(0, two, 0, 0);
    world.at(3_000).switch(0, PrevState::Runnable, two);
    world.at(9_000).switch(0, PrevState::Asleep, one);
    world.at(10_000).switch(0, PrevState::Asleep, 0);
    let report = world.report();
    let turns = &report.turns[0];
    assert_eq!((turns.name.as_str(), turns.run_ns, turns.switched_in), ("worker", 10_000, 3));
    assert_eq!((turns.waits, turns.waited_ns), (2, 2_000 + 6_000));
    let worst = turns.worst_wait.unwrap();
    assert_eq!((worst.pid, worst.time_ns, worst.wait_ns, worst.cpu), (1, 3_000, 6_000, 0));
}
