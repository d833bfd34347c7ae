//! Who stays queued when it goes to sleep (delayed dequeue, v6.12 on), and who leaves.

use placewise_run_queue::{Dequeue, Enqueue, Picked, Preemption};

use super::world::{CPU, ONE, OTHER, THIRD, World};

#[test]
fn who_has_had_more_than_its_share_stays_queued() {
    let mut world = World::new("v6.12");
    world.run(3_000_000);
    assert!(world.stays_asleep());
    assert!(world.scheduler.is_delayed(ONE) && world.scheduler.is_queued(ONE));

    let mut behind = World::new("v6.12");
    behind.run(3_000_000);
    behind.switch_to(OTHER);
    behind.run(1_000_000);
    assert!(!behind.stays_asleep());
    assert!(!behind.scheduler.is_queued(OTHER));
}

/// A trace may not tell how long it ran.
#[test]
fn what_it_may_have_run_unseen_counts() {
    assert!(!World::new("v6.12").stays_asleep());
    let mut world = World::new("v6.12");
    assert!(world.scheduler.sleep(CPU, 4_000, world.now));
}

#[test]
fn who_is_alone_leaves() {
    let mut world = World::new("v6.12");
    world.run(3_000_000);
    world.scheduler.dequeue(OTHER, Dequeue::Sleep, world.now);
    assert!(!world.scheduler.sleep(CPU, 4_000, world.now));
}

#[test]
fn who_has_exited_leaves() {
    let mut world = World::new("v6.12");
    world.run(3_000_000);
    world.scheduler.deactivate(CPU, world.now);
    assert!(!world.scheduler.is_queued(ONE));
}

#[test]
fn before_delayed_dequeue_all_leave() {
    for kernel in ["v5.10", "v6.0"] {
        let mut world = World::new(kernel);
        world.run(3_000_000);
        assert!(!world.stays_asleep(), "{kernel}");
    }
}

/// A lag that it has spent asleep does not keep it back when it comes again.
#[test]
fn a_spent_lag_is_none() {
    let next = |spent: bool| {
        let mut world = World::new("v6.12");
        world.run(3_000_000);
        world.scheduler.deactivate(CPU, world.now);
        world.scheduler.take(CPU, OTHER, world.now);
        if spent {
            world.scheduler.spend_lag(ONE);
        }
        world.scheduler.enqueue(ONE, Enqueue::Wakeup, world.now);
        world.scheduler.put_back(CPU, world.now);
        world.scheduler.pick(CPU, world.now)
    };
    assert_eq!(next(false), Some(Picked::Next(OTHER)));
    let ties = "neither is ahead, and it has the earlier deadline";
    assert_eq!(next(true), Some(Picked::Next(ONE)), "{ties}");
}

#[test]
fn a_heavy_task_has_a_larger_share() {
    let stays = |weight: u32| {
        let mut world = World::new("v6.12");
        world.scheduler.deactivate(CPU, world.now);
        world.scheduler.take(CPU, OTHER, world.now);
        world.scheduler.reweight(ONE, weight);
        world.scheduler.enqueue(ONE, Enqueue::Wakeup, world.now);
        world.run(10_000);
        world.switch_to(ONE);
        world.run(100_000);
        world.stays_asleep()
    };
    assert!(stays(1024));
    assert!(!stays(88_761));
}

/// `ONE` has run 100 us ahead and sleeps; `OTHER` has run for so long since.
fn asleep_while_other_runs(kernel: &str, ns: u64) -> World {
    let mut world = World::new(kernel);
    world.run(100_000);
    assert!(world.stays_asleep());
    world.scheduler.take(CPU, OTHER, world.now);
    world.run(ns);
    world
}

/// A sleeper that a pick comes upon has had its rest: it leaves, and the pick goes on.
#[test]
fn a_pick_lets_sleepers_go() {
    let mut world = asleep_while_other_runs("v6.12", 3_000_000);
    world.scheduler.put_back(CPU, world.now);
    assert_eq!(world.scheduler.pick(CPU, world.now), Some(Picked::Left(ONE)));
    assert!(!world.scheduler.is_delayed(ONE) && !world.scheduler.is_queued(ONE));
    assert_eq!(world.scheduler.pick(CPU, world.now), Some(Picked::Next(OTHER)));
}

/// So does a wakeup that picks: who leaves is told.
#[test]
fn a_wakeup_that_picks_lets_sleepers_go() {
    let mut world = asleep_while_other_runs("v6.18.32", 300_000);
    world.wakes(THIRD);
    let woken = |world: &mut World| world.preempts_woken_by(THIRD, Default::default());
    assert_eq!(woken(&mut world), Preemption::Left(ONE));
    assert!(!world.scheduler.is_queued(ONE));
    assert_eq!(woken(&mut world), Preemption::Preempts);
}

/// Woken in time, it is where it was.
#[test]
fn a_sleeper_that_is_woken_is_picked() {
    let mut world = asleep_while_other_runs("v6.12", 3_000_000);
    world.scheduler.wake_delayed(ONE, world.now);
    world.scheduler.put_back(CPU, world.now);
    assert_eq!(world.scheduler.pick(CPU, world.now), Some(Picked::Next(ONE)));
}

/// `OTHER` runs for 300 us and then wakes `ONE`, which had run 100 us ahead of it. Where that counts, `ONE`
/// has won its lag back and starts beside `OTHER`, which goes on; else `ONE` stays where it was, behind.
#[test]
fn what_the_waker_has_run_decides_where_a_sleeper_comes_back() {
    let preempts = |kernel| {
        let mut world = World::new(kernel);
        world.run(100_000);
        assert!(world.stays_asleep());
        world.scheduler.take(CPU, OTHER, world.now);
        world.now += 300_000;
        if world.scheduler.policy.profile.requeue_updates_curr {
            world.run(0);
        }
        world.scheduler.wake_delayed(ONE, world.now);
        world.run(0);
        world.preempts(ONE)
    };
    assert!(preempts("v6.12") && preempts("v6.18"));
    assert!(!preempts("v7.3"));
}

/// It counts once in the averages by which a task is placed that comes before the next one runs.
#[test]
fn what_was_put_back_waits_and_runs_no_more() {
    let mut world = World::new("v6.12");
    world.run(3_000_000);
    world.scheduler.put_back(CPU, world.now);
    assert_eq!(world.scheduler.running_fair(CPU), None);
    world.scheduler.take(CPU, ONE, world.now);
    assert_eq!(world.scheduler.running_fair(CPU), Some(ONE));
}
