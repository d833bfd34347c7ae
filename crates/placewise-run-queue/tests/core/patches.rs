//! Patches of run queues: a state in which each makes a difference, and one in which it must not.

use placewise_policy::{FIRST_TASK, TaskId};
use placewise_run_queue::{EnqueuedBy, Picked, Preemption};

use super::world::{CPU, ONE, OTHER, THIRD, World};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Of so many tasks on a CPU of 16, one preempts the one that runs once it is more than this ahead.
fn granularity(policy: &str, tasks: u32) -> u64 {
    let preempts = |ran: u64| {
        let mut world = World::under("v5.17", policy);
        (2..tasks).for_each(|at| world.wakes(TaskId::new(FIRST_TASK + at)));
        world.run(ran);
        world.preempts(OTHER)
    };
    let first = (1..10).map(|step| step * 4 * MS).find(|&ran| preempts(ran + 1)).unwrap();
    assert!(!preempts(first), "{tasks} tasks: no sooner than {first}");
    first
}

#[test]
fn scale_wakegran_grows_with_the_queue() {
    for (tasks, expected) in [(4, 8), (5, 8), (6, 12), (16, 32), (17, 32), (20, 32)] {
        assert_eq!(granularity("scale-wakegran", tasks), expected * MS, "{tasks} tasks");
        assert_eq!(granularity("baseline", tasks), 4 * MS, "{tasks} tasks");
    }
}

#[test]
fn scale_wakegran_leaves_short_queues_alone() {
    for tasks in [2, 3] {
        assert_eq!(granularity("scale-wakegran", tasks), 4 * MS, "{tasks} tasks");
    }
}

const SYNC: EnqueuedBy = EnqueuedBy { task: true, sync: true };
const TASK: EnqueuedBy = EnqueuedBy { task: true, sync: false };

/// Of two that wait, the one that came later is woken.
fn woken_later(policy: &str, ran: u64, by: EnqueuedBy) -> (World, bool) {
    let mut world = World::under("v6.18", policy);
    world.wakes(THIRD);
    world.run(ran);
    let preempts = world.preempts_woken_by(THIRD, by) == Preemption::Preempts;
    (world, preempts)
}

#[test]
fn next_buddy_lets_an_eligible_wakee_preempt_a_protected_task() {
    let preempts = |policy| woken_later(policy, 0, TASK).1;
    assert!(preempts("next-buddy"));
    assert!(!preempts("baseline"));
}

/// It runs next, though.
#[test]
fn next_buddy_leaves_a_sync_waker_its_time() {
    for (policy, next) in [("next-buddy", THIRD), ("baseline", OTHER)] {
        let (mut world, preempts) = woken_later(policy, 0, SYNC);
        assert!(!preempts, "{policy}");
        world.scheduler.put_back(CPU, world.now);
        assert_eq!(world.scheduler.pick(CPU, world.now), Some(Picked::Next(next)), "{policy}");
    }
}

/// Even if it is about to sleep; to an interrupt it does not matter who runs.
#[test]
fn next_buddy_takes_the_cpu_from_a_waker_that_has_had_its_share() {
    let preempts = |policy, by| woken_later(policy, 100 * US, by).1;
    assert!(preempts("next-buddy", SYNC));
    assert!(!preempts("next-buddy", EnqueuedBy { task: false, sync: true }));
    assert!(!preempts("baseline", SYNC), "the other one was there before");
}

#[test]
fn next_buddy_prefers_nobody_who_has_had_more_than_its_share() {
    for policy in ["next-buddy", "baseline"] {
        let mut world = World::under("v6.18", policy);
        world.run(MS);
        world.switch_to(OTHER);
        assert!(!world.preempts(ONE), "{policy}");
    }
}

/// What is woken later has the later deadline here, for virtual time has gone on.
#[test]
fn next_buddy_keeps_the_one_with_the_earlier_deadline() {
    let mut world = World::under("v6.18", "next-buddy");
    world.preempts_woken_by(OTHER, SYNC);
    world.run(100 * US);
    world.wakes(THIRD);
    assert!(!world.preempts(THIRD));
    world.scheduler.put_back(CPU, world.now);
    assert_eq!(world.scheduler.pick(CPU, world.now), Some(Picked::Next(OTHER)));
}
