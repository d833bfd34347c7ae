//! Task groups whose last task has gone to sleep.

use placewise_run_queue::Enqueue;

use super::world::{CPU, ONE, OTHER, THIRD, World};

/// `ONE` has run 100 us ahead and sleeps; `OTHER` has run for 300 us since, which nobody has accounted yet.
fn ran_ahead(kernel: &str) -> World {
    let mut world = World::in_groups(kernel);
    world.run(100_000);
    assert!(!world.stays_asleep(), "a task that is alone in its group is not ahead there");
    world.scheduler.take(CPU, OTHER, world.now);
    world.now += 300_000;
    world
}

/// The entity is still queued, ahead of what was accounted, and so keeps its place and its deadline. Without delays it
/// comes back as far behind as it left.
#[test]
fn a_group_that_ran_ahead_is_woken_where_it_stayed() {
    let preempts = |kernel: &str| {
        let mut world = ran_ahead(kernel);
        world.scheduler.wake_delayed_group(ONE);
        world.run(0);
        world.scheduler.enqueue(ONE, Enqueue::Wakeup, world.now);
        world.preempts(ONE)
    };
    assert!(preempts("v6.18"));
    assert!(!preempts("v6.6"));
}

/// Accounted before, `OTHER` is the one ahead: the entity has won its lag back and begins anew beside it.
#[test]
fn a_group_that_has_won_its_lag_back_begins_anew() {
    let mut world = ran_ahead("v6.18");
    world.run(0);
    world.scheduler.enqueue(ONE, Enqueue::Wakeup, world.now);
    assert!(!world.preempts(ONE));
}

/// The entity without tasks is to run before `THIRD`. Where wakeups pick, it leaves.
#[test]
fn a_wakeup_that_picks_lets_groups_without_tasks_go() {
    let preempts = |kernel: &str| {
        let mut world = ran_ahead(kernel);
        world.run(0);
        world.wakes(THIRD);
        world.preempts(THIRD)
    };
    assert!(!preempts("v6.18"));
    assert!(preempts("v6.18.32"));
}
