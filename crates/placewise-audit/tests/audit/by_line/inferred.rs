//! What no event shows: sync and wide wakers, delayed wakees, the phase of the tick.

use placewise_audit::{Flips, Hypothesis, NoPlacement};
use placewise_policy::AFFINE_SYNC;

use super::script::{SOFT_INTERRUPT, Script};

/// Hogs on CPUs 1 to 3, a waker on CPU 0, and wakees of one name that slept on CPU 4, which the
/// kernel all puts on CPU 0: only a sync waker does that.
fn sync_wakeups(wakees: u32) -> Script {
    let mut script = Script::new();
    script.named(100, "waker");
    for cpu in 1..4 {
        script.runs(cpu, 300 + cpu).event(cpu, "sched_process_exec: filename=/x pid=1 old_pid=1");
    }
    script.runs(0, 100);
    for wakee in 200..200 + wakees {
        script.named(wakee, "wakee").runs(4, wakee).sleeps(4).after(1_000);
        script.waking(0, wakee, 4).migrate(0, wakee, 4, 0).wakeup(0, wakee, 0);
        script.switch(0, "S", wakee).after(50).switch(0, "S", 100);
    }
    script
}

#[test]
fn sync_is_learned_from_outcomes_and_believed_of_the_next() {
    let seen = sync_wakeups(3).audit("v6.0");
    let first = seen.decision(200);
    assert_eq!(first.believed, Hypothesis::default(), "judged before anything is learned");
    assert_eq!(first.predicted, 4);
    let next = seen.decision(201);
    assert_eq!(next.believed, Hypothesis { sync: true, flips: Flips::Counted });
    assert_eq!((next.predicted, u32::from(next.decision.affine)), (0, AFFINE_SYNC));
    assert_eq!(seen.audit.inferred.believed_sync, 2);
}

#[test]
fn what_one_pair_of_names_does_says_nothing_of_another() {
    let mut script = sync_wakeups(2);
    script.named(250, "other").runs(4, 250).sleeps(4).after(1_000);
    script.waking(0, 250, 4).migrate(0, 250, 4, 0).wakeup(0, 250, 0);
    assert_eq!(script.audit("v6.0").decision(250).believed, Hypothesis::default());
}

/// A pipe wakes with a lock held, and a futex without.
#[test]
fn what_wakeups_without_a_lock_were_says_nothing_of_one_with() {
    let mut script = sync_wakeups(2);
    script.named(250, "wakee").runs(4, 250).sleeps(4).after(1_000);
    script.with_flags("d..3.").waking(0, 250, 4).wakeup(4, 250, 4);
    assert_eq!(script.audit("v6.0").decision(250).believed, Hypothesis::default());
}

/// A hog runs where the wakees slept, so that a waker that is not wide would pull them: but the
/// kernel stays in their LLC.
#[test]
fn wide_is_learned_the_same_way() {
    let mut script = Script::new();
    script.named(100, "waker").prio(100, 139).runs(0, 100);
    for wakee in 200..203 {
        script.named(wakee, "wakee").runs(4, wakee).switch(4, "S", 300).after(100_000);
        script.waking(0, wakee, 4).migrate(0, wakee, 4, 6).wakeup(6, wakee, 6);
        script.switch(6, "R", wakee).after(50).sleeps(6).after(50);
        script.switch(4, "R", 0).after(10);
    }
    let seen = script.audit("v6.0");
    let first = seen.decision(200);
    assert_eq!(first.believed, Hypothesis::default());
    assert!(first.predicted < 4, "pulled to the LLC of the waker");
    let last = seen.decision(202);
    assert_eq!(last.believed, Hypothesis { sync: false, flips: Flips::Wide });
    assert_eq!((last.predicted, last.decision.wide), (6, 1));
    assert_eq!(seen.audit.inferred.believed_wide, 2);
}

/// Who runs on a CPU wakes one of two on CPU 7 after the other, so many times.
fn flips(script: &mut Script, cpu: u32, times: u32) {
    for wakee in (0..times).map(|turn| 400 + turn % 2) {
        script.after(20).waking(cpu, wakee, 7).wakeup(7, wakee, 7);
        script.after(20).switch(7, "R", wakee).after(20).sleeps(7);
    }
}

/// Waker and wakees have flipped as often as makes a wakeup wide, but a sync waker pulls them: all had before the
/// trace, too.
#[test]
fn narrow_is_learned_the_same_way() {
    let mut script = sync_wakeups(2);
    for other in [400, 401] {
        script.named(other, "other").runs(7, other).sleeps(7);
    }
    flips(&mut script, 0, 60);
    for wakee in 220..223 {
        script.named(wakee, "wakee").runs(4, wakee);
        flips(&mut script, 4, 6);
        script.sleeps(4).after(1_000);
        script.waking(0, wakee, 4).migrate(0, wakee, 4, 0).wakeup(0, wakee, 0);
        script.switch(0, "S", wakee).after(50).switch(0, "S", 100);
    }
    script.named(150, "third").switch(0, "S", 150);
    flips(&mut script, 0, 60);
    script.after(1_000).waking(0, 221, 0).wakeup(0, 221, 0);
    let seen = script.audit("v6.0");
    let by_another = seen.decisions.iter().rfind(|one| one.pid == 221).unwrap();
    assert_eq!(by_another.placed.decision.wide, 1, "its flips are those that were counted");
    let first = seen.decision(220);
    assert_eq!(first.believed, Hypothesis { sync: true, flips: Flips::Counted });
    assert_eq!((first.predicted, first.decision.wide), (4, 1));
    let last = seen.decision(222);
    assert_eq!(last.believed, Hypothesis { sync: true, flips: Flips::Narrow });
    assert_eq!((last.predicted, last.decision.wide), (0, 0));
    assert!(seen.audit.inferred.believed_narrow > 0);
}

/// `200` has run for long, beside one that waited, and sleeps ahead of its share.
fn ahead_of_its_share() -> Script {
    ahead_of_its_share_in("")
}

/// Where tasks are, as the header says.
fn ahead_of_its_share_in(groups: &str) -> Script {
    let mut script = Script::new();
    groups.lines().for_each(|line| _ = script.raw(line));
    script.runs(1, 100).runs(0, 101).switch(0, "R", 201).after(100).switch(0, "R", 200);
    script.after(3_000).switch(0, "S", 201).after(500);
    script.waking(1, 200, 0).wakeup(1, 200, 0);
    script
}

#[test]
fn a_sleeper_ahead_of_its_share_stays_queued() {
    let seen = ahead_of_its_share().audit("v6.18");
    assert_eq!(seen.no_placement(NoPlacement::Delayed), 1);
    assert_eq!(seen.audit.inferred.delayed_by_lag, 1);
    assert_eq!(seen.wakeups_of(200), 0);
}

/// Nobody else's share is in its group's queue, and the group's entity is no task.
#[test]
fn a_sleeper_that_is_alone_in_its_task_group_leaves() {
    for group in ["# autogroup: 200 /autogroup-7", "# cgroup: 200 /web"] {
        let seen = ahead_of_its_share_in(group).audit("v6.18");
        assert_eq!((seen.wakeups_of(200), seen.audit.inferred.delayed_by_lag), (1, 0), "{group}");
    }
    let of_one_session = "# autogroup: 200,201 /autogroup-7";
    assert_eq!(ahead_of_its_share_in(of_one_session).audit("v6.18").wakeups_of(200), 0);
}

/// One that begins a session is in a group of its own, if the header says so.
#[test]
fn a_child_is_in_the_group_of_its_parent_unless_the_header_names_it() {
    let own = "# autogroup: 201 /autogroup-7\n# autogroup: 200 /autogroup-8";
    for (groups, delayed) in [("# autogroup: 201 /autogroup-7", 1), (own, 0)] {
        let mut script = Script::new();
        groups.lines().for_each(|line| _ = script.raw(line));
        script.runs(1, 100).runs(0, 201).fork(0, 200).wakeup_new(0, 200, 0);
        script.after(100).switch(0, "R", 200).after(3_000).switch(0, "S", 201).after(500);
        script.waking(1, 200, 0).wakeup(1, 200, 0);
        assert_eq!(script.audit("v6.18").audit.inferred.delayed_by_lag, delayed, "{groups}");
    }
}

/// From v7.3 on the tasks of all groups compete at one level.
#[test]
fn of_a_flat_queue_it_does_not_leave() {
    let seen = ahead_of_its_share_in("# autogroup: 200 /autogroup-7").audit("v7.3");
    assert_eq!((seen.wakeups_of(200), seen.audit.inferred.delayed_by_lag), (0, 1));
}

#[test]
fn before_delayed_dequeue_it_leaves() {
    let seen = ahead_of_its_share().audit("v6.0");
    assert_eq!(seen.wakeups_of(200), 1);
    assert_eq!(seen.no_placement(NoPlacement::Delayed), 0);
}

/// By its lag it left; but another LLC's waker would have used the wake list.
#[test]
fn a_sleeper_that_the_waker_enqueues_across_llcs_had_stayed_queued() {
    let waked_by = |printed_by: u32| {
        let mut script = Script::new();
        script.runs(8, 100).runs(0, 201).switch(0, "R", 200).after(100).switch(0, "R", 201);
        script.after(3_000).switch(0, "R", 200).after(1).switch(0, "S", 201).after(500);
        script.waking(8, 200, 0).wakeup(printed_by, 200, 0).audit("v6.18")
    };
    let enqueued_by_the_waker = waked_by(8);
    assert_eq!(enqueued_by_the_waker.audit.inferred.delayed_by_wake_list, 1);
    assert_eq!(enqueued_by_the_waker.no_placement(NoPlacement::Delayed), 1);
    assert_eq!(waked_by(0).audit.inferred.delayed_by_wake_list, 0);
    assert_eq!(waked_by(0).wakeups_of(200), 1);
}

/// Nobody else was queued, so it left.
#[test]
fn a_sleeper_that_was_alone_had_not() {
    let mut script = Script::new();
    script.runs(8, 100).runs(0, 200).switch(0, "S", 0).after(500);
    let seen = script.waking(8, 200, 0).wakeup(8, 200, 0).audit("v6.18");
    assert_eq!((seen.wakeups_of(200), seen.audit.inferred.delayed_by_wake_list), (1, 0));
}

/// One CPU is idle and no core is, as the first search found; of the next the outcome shows that the
/// kernel did not look at that CPU.
#[test]
fn an_outcome_corrects_the_scan_limit() {
    let goes_to = |cpu: u32| {
        let mut script = Script::new();
        script.runs(1, 200).switch(1, "S", 201).runs(2, 302).switch(2, "R", 302).runs(0, 100);
        script.after(1_000).switch(1, "S", 300).after(1_000).waking(0, 201, 1);
        script.migrate(0, 201, 1, 3).wakeup(3, 201, 3).switch(3, "R", 201).after(50).sleeps(3);
        script.after(1_000).waking(0, 200, 1);
        if cpu != 1 {
            script.migrate(0, 200, 1, cpu);
        }
        script.wakeup(cpu, 200, cpu).audit("v6.0")
    };
    let found = goes_to(3);
    assert_eq!((found.decision(200).predicted, found.audit.inferred.scan_limits), (3, 0));
    let target = u32::from(found.decision(200).decision.target_cpu);
    assert_eq!(goes_to(target).audit.inferred.scan_limits, 1);
}

/// No CPU of the LLC is idle, so the kernel's search failed whatever its limit: the wakeup was sync.
#[test]
fn an_outcome_that_a_sync_wakeup_explains_says_nothing_of_the_scan_limit() {
    let mut script = Script::new();
    for cpu in 2..4 {
        script.runs(cpu, 300 + cpu).event(cpu, "sched_process_exec: filename=/x pid=1 old_pid=1");
    }
    script
        .prio(201, 139)
        .prio(300, 139)
        .runs(0, 100)
        .runs(1, 200)
        .switch(1, "S", 201)
        .switch(1, "S", 300)
        .after(1_000);
    script.waking(0, 201, 1).wakeup(1, 201, 1).switch(1, "S", 201).after(1_000);
    script.waking(0, 200, 1).migrate(0, 200, 1, 0).wakeup(0, 200, 0);
    let seen = script.audit("v6.0");
    assert_eq!((seen.decision(200).predicted, seen.decision(200).decision.has_idle_cores), (1, 0));
    assert_eq!(seen.audit.inferred.scan_limits, 0);
}

/// CPU 3 is idle: a kernel that does not find it has looked at fewer CPUs than it takes.
#[test]
fn a_scan_limit_is_as_low_as_the_outcome_shows() {
    let mut script = Script::new();
    script.runs(1, 202).switch(1, "S", 200).switch(1, "S", 300).runs(2, 302).switch(2, "R", 302);
    script.runs(0, 100).after(1_000).waking(0, 200, 1).wakeup(1, 200, 1);
    script.waking(0, 202, 1).wakeup(1, 202, 1);
    let seen = script.audit_on("numa:2 l3:2 core:4 pu:1", "v6.0");
    let first = seen.decision(200).decision;
    assert_eq!((first.target_cpu, first.scan_limit, first.llc_scanned), (1, 4, 2));
    assert_eq!(seen.decision(202).decision.scan_limit, 1);
}

#[test]
fn a_device_wakes_for_itself() {
    let mut script = sync_wakeups(3);
    script.named(250, "wakee").runs(4, 250).sleeps(4).after(1_000);
    script.with_flags("d.h2.").waking(0, 250, 4).wakeup(4, 250, 4);
    assert!(!script.audit("v6.0").decision(250).believed.sync);
}

#[test]
fn a_waker_that_exits_is_not_sync() {
    let mut script = sync_wakeups(3);
    script.event(0, "sched_process_exit: comm=waker pid=100 prio=120");
    script.named(250, "wakee").runs(4, 250).sleeps(4).after(1_000);
    script.waking(0, 250, 4).wakeup(4, 250, 4);
    let seen = script.audit("v6.0");
    assert!(seen.decision(250).believed.sync);
    assert_ne!(u32::from(seen.decision(250).decision.affine), AFFINE_SYNC);
}

#[test]
fn the_tick_is_where_soft_interrupts_wake() {
    let phase = |times: u32| {
        let mut script = Script::new();
        script.runs(0, 100).runs(4, 200).sleeps(4);
        for wakeup in 1..=times {
            script.at(u64::from(wakeup) * 4_000 + 1_010);
            script.with_flags(SOFT_INTERRUPT).waking(0, 200, 4).wakeup(4, 200, 4);
            script.switch(4, "R", 200).after(100).sleeps(4);
        }
        script.audit("v6.0").audit.inferred.tick_phase_ns
    };
    assert_eq!(phase(3), None, "too few");
    assert_eq!(phase(8), Some(1_000_000));
}

/// Three answers outside of where the task was ever seen hold it to that.
#[test]
fn a_task_that_refuses_other_cpus_is_held_to_its_own() {
    let mut script = Script::new();
    script.runs(0, 100).runs(4, 200).switch(4, "S", 300);
    for _ in 0..6 {
        script.after(2_000).wake(0, 200, 4, 4).switch(4, "R", 200).after(20).switch(4, "S", 300);
    }
    let seen = script.audit("v6.0");
    let agrees: Vec<_> = seen.decisions.iter().map(|seen| seen.placed.predicted == 4).collect();
    assert_eq!(agrees, [false, false, false, true, true, true]);
    assert_eq!(seen.audit.inferred.held_to_seen_cpus, 1);
}

#[test]
fn affinities_of_the_header_need_no_refusal() {
    let mut script = Script::new();
    script.raw("# task 200 comm=task200 policy=SCHED_OTHER cpus=4-5").runs(0, 100).runs(4, 200);
    script.switch(4, "S", 300).runs(5, 301).switch(5, "R", 301);
    script.after(2_000).wake(0, 200, 4, 4);
    let seen = script.audit("v6.0");
    assert!([4, 5].contains(&seen.decision(200).predicted));
    assert_eq!(seen.audit.inferred.held_to_seen_cpus, 0);
}
