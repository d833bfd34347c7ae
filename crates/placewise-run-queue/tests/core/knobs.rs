//! Knobs of run queues: a state in which each makes a difference, and one in which it must not. On 16
//! CPUs a slice is 2.8 ms under v6.18; under v6.0 two tasks share 24 ms.

use placewise_run_queue::{Enqueue, Picked};

use super::world::{CPU, ONE, OTHER, World};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Does the other task preempt the one that has run for so long?
fn preempts(kernel: &str, knobs: &str, ran: u64) -> bool {
    let mut world = World::under(kernel, knobs);
    world.run(ran);
    world.preempts(OTHER)
}

/// Has the task had its share at a tick?
fn ends_at_a_tick(knobs: &str, ran: u64) -> bool {
    let mut world = World::under("v6.0", knobs);
    world.run(ran);
    world.scheduler.tick(CPU, world.now)
}

#[test]
fn wakeup_preemption() {
    for kernel in ["v6.0", "v6.12", "v6.18"] {
        assert!(preempts(kernel, "baseline", 5 * MS), "{kernel}");
        assert!(!preempts(kernel, "set:WAKEUP_PREEMPTION=0", 5 * MS), "{kernel}");
    }
}

/// Before v6.12 a SCHED_IDLE task gives way even so.
#[test]
fn wakeup_preemption_of_idle_policy() {
    for (kernel, expected) in [("v6.0", true), ("v6.12", false), ("v7.3", false)] {
        let mut world = World::under(kernel, "set:WAKEUP_PREEMPTION=0");
        world.scheduler.policy.task[ONE].idle_policy = 1;
        world.scheduler.add(ONE);
        assert_eq!(world.preempts(OTHER), expected, "{kernel}");
    }
}

/// Both tasks are eligible, and neither deadline is the earlier one.
#[test]
fn run_to_parity() {
    for kernel in ["v6.12", "v6.18", "v7.3"] {
        assert!(!preempts(kernel, "baseline", 0), "{kernel}");
    }
    assert!(preempts("v6.12", "set:RUN_TO_PARITY=0", 0));
    assert!(!preempts("v6.18", "set:RUN_TO_PARITY=0", 0), "protected for 0.7 ms all the same");
    assert!(preempts("v7.3", "set:RUN_TO_PARITY=0", 0), "it was alone when it was picked");
}

#[test]
fn without_run_to_parity_a_task_is_protected_for_the_base_slice_of_one_cpu() {
    for (knobs, protected) in [("baseline", 2800 * US), ("set:RUN_TO_PARITY=0", 700 * US)] {
        assert!(!World::under("v6.18", knobs).run(protected - 1), "{knobs}");
        assert!(World::under("v6.18", knobs).run(protected), "{knobs}");
    }
}

#[test]
fn delay_dequeue() {
    for (knobs, stays) in [("baseline", true), ("set:DELAY_DEQUEUE=0", false)] {
        let mut world = World::under("v6.18", knobs);
        world.run(MS);
        assert_eq!(world.stays_asleep(), stays, "{knobs}");
        assert!(!World::under("v6.18", knobs).stays_asleep(), "{knobs}: no more than its share");
    }
}

/// Who ran ahead of its share waits for that when it comes back.
#[test]
fn place_lag() {
    let next = |knobs, ran| {
        let mut world = World::under("v6.18", knobs);
        world.run(ran);
        world.scheduler.deactivate(CPU, world.now);
        world.scheduler.take(CPU, OTHER, world.now);
        world.scheduler.enqueue(ONE, Enqueue::Wakeup, world.now);
        world.scheduler.put_back(CPU, world.now);
        world.scheduler.pick(CPU, world.now)
    };
    let first = |task| Some(Picked::Next(task));
    assert_eq!(["baseline", "set:PLACE_LAG=0"].map(|it| next(it, MS)), [first(OTHER), first(ONE)]);
    assert_eq!(["baseline", "set:PLACE_LAG=0"].map(|it| next(it, 0)), [first(ONE); 2]);
}

#[test]
fn base_slice_ns_does_not_grow_with_the_machine() {
    for (knobs, slice) in [("baseline", 2800 * US), ("set:base_slice_ns=1400000", 1400 * US)] {
        assert!(!World::under("v6.18", knobs).run(slice - 1), "{knobs}");
        assert!(World::under("v6.18", knobs).run(slice), "{knobs}");
    }
}

#[test]
fn latency_ns_is_shared_and_min_granularity_ns_is_the_least_share() {
    for (knobs, slice) in [
        ("baseline", 12 * MS),
        ("set:latency_ns=8000000", 4 * MS),
        ("set:min_granularity_ns=5000000", 12 * MS),
        ("set:latency_ns=8000000,set:min_granularity_ns=5000000", 5 * MS),
    ] {
        assert!(!ends_at_a_tick(knobs, slice), "{knobs}");
        assert!(ends_at_a_tick(knobs, slice + 1), "{knobs}");
    }
}

#[test]
fn wakeup_granularity_ns() {
    for (knobs, lead) in [("baseline", 4 * MS), ("set:wakeup_granularity_ns=1000000", MS)] {
        assert!(!preempts("v6.0", knobs, lead), "{knobs}");
        assert!(preempts("v6.0", knobs, lead + 1), "{knobs}");
    }
}
