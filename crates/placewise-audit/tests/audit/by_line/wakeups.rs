//! Which wakeups are placements, and where they went.

use placewise_audit::{Distance, Kind, NoPlacement};

use super::script::Script;

/// `waker` runs on CPU 0, `wakee` has slept on `prev` since 1 ms.
fn asleep(prev: u32) -> Script {
    let mut script = Script::new();
    script.runs(0, 100).runs(prev, 200).sleeps(prev).after(1_000);
    script
}

#[test]
fn a_migration_that_the_waking_cpu_prints_is_the_placement() {
    let mut script = asleep(4);
    let seen = script.waking(0, 200, 4).migrate(0, 200, 4, 9).wakeup(9, 200, 9).audit("v6.0");
    let placed = seen.decision(200);
    assert_eq!((placed.waking_cpu, placed.prev_cpu, placed.actual), (0, 4, 9));
    assert_eq!(seen.audit.moves.balance.total(), 0);
    assert_eq!(seen.audit.moves.wakeups.at(Distance::OtherNode), 1);
}

#[test]
fn a_migration_that_another_cpu_prints_is_not() {
    let mut script = asleep(4);
    let seen = script.waking(0, 200, 4).migrate(9, 200, 4, 5).wakeup(5, 200, 5).audit("v6.0");
    assert_eq!(seen.audit.moves.balance.at(Distance::Smt), 1);
}

#[test]
fn what_other_cpus_print_in_between_does_not_matter() {
    let mut script = asleep(4);
    script.runs(8, 300).runs(9, 301).waking(0, 200, 4);
    script.sleeps(8).after(10).waking(9, 300, 8).after(1).migrate(0, 200, 4, 5).wakeup(8, 300, 8);
    script.sleeps(9).after(5).wakeup(5, 200, 5);
    let seen = script.audit("v6.0");
    assert_eq!(seen.decision(200).actual, 5);
    assert_eq!(seen.decision(300).actual, 8);
    assert_eq!(seen.audit.repairs.wakeups_without_end, 0);
}

/// The audit reads ahead before it begins.
#[test]
fn a_wakeup_ends_however_far_behind_its_begin() {
    let mut script = asleep(4);
    script.runs(9, 300);
    for event in 0..20_000 {
        match event {
            8_000 => script.waking(0, 200, 4),
            19_000 => script.migrate(0, 200, 4, 5).wakeup(5, 200, 5),
            _ => script.event(9, "sched_process_exec: filename=/x pid=300 old_pid=300"),
        };
    }
    let seen = script.audit("v6.0");
    assert_eq!((seen.decision(200).actual, seen.no_placement(NoPlacement::NoEnd)), (5, 0));
}

#[test]
fn a_wakeup_without_end_is_none() {
    let mut script = asleep(4);
    let seen = script.waking(0, 200, 4).audit("v6.0");
    assert_eq!((seen.no_placement(NoPlacement::NoEnd), seen.decisions.len()), (1, 0));
    assert_eq!(seen.audit.repairs.wakeups_without_end, 1);
}

/// Eight CPUs of each half share an LLC; siblings are 128 apart.
#[test]
fn zen3_has_its_llcs_where_its_cpus_are() {
    let distances = |from: u32, to: u32| {
        let mut script = Script::new();
        script.runs(from, 200).sleeps(from).runs(3, 100).migrate(3, 200, from, to);
        let balance = script.audit_on("zen3-2s-nps1", "v6.0").audit.moves.balance;
        Distance::ALL.into_iter().find(|&distance| balance.at(distance) == 1)
    };
    for from in [0_u32, 7, 8, 60, 63, 64, 127, 128, 135, 136, 191, 255] {
        for to in [1_u32, 6, 9, 62, 70, 120, 129, 134, 137, 190, 192, 254] {
            let llc = |cpu: u32| cpu % 128 / 8;
            let expected = match (from % 128 == to % 128, llc(from) == llc(to)) {
                (true, _) => Distance::Smt,
                (_, true) => Distance::Llc,
                _ if from % 128 / 64 == to % 128 / 64 => Distance::OtherLlc,
                _ => Distance::OtherNode,
            };
            assert_eq!(distances(from, to), Some(expected), "{from} to {to}");
        }
    }
}

#[test]
fn a_wakee_that_was_preempted_is_queued_still() {
    let mut script = Script::new();
    script.runs(0, 100).runs(4, 200).switch(4, "R", 201).after(100);
    let seen = script.waking(0, 200, 4).wakeup(0, 200, 4).audit("v6.0");
    assert_eq!((seen.no_placement(NoPlacement::StillQueued), seen.decisions.len()), (1, 0));
}

/// Woken before its switch-out, over the wake list of its CPU.
#[test]
fn a_wakee_on_its_cpu_takes_the_wake_list_there() {
    let mut script = Script::new();
    script
        .runs(0, 100)
        .runs(4, 200)
        .event(4, "sched_process_exec: filename=/x pid=200 old_pid=200");
    script.waking(0, 200, 4).after(2).sleeps(4).wakeup(4, 200, 4);
    let seen = script.audit("v6.0");
    assert_eq!((seen.no_placement(NoPlacement::StillOnCpu), seen.decisions.len()), (1, 0));
}

/// The waker waits until the wakee is off its CPU, which is idle then.
#[test]
fn the_decision_about_a_wakee_that_switches_out_comes_after_that() {
    let mut script = Script::new();
    script.runs(0, 100).runs(1, 201).sleeps(1).after(50).waking(0, 201, 1).wakeup(0, 201, 1);
    script.switch(1, "R", 201).after(50).waking(0, 201, 1).after(2).sleeps(1);
    let seen = script.wakeup(0, 201, 1).audit("v5.3");
    let last = &seen.decisions.last().unwrap();
    assert_eq!(seen.decisions.len(), 2);
    assert_eq!((last.us, last.placed.predicted), (1_000_102, 1), "of all CPUs its own is idle");
}

#[test]
fn a_wakeup_right_behind_the_switch_found_the_wakee_on_its_cpu() {
    let wakeup_after = |us: u64| {
        let mut script = Script::new();
        script.runs(0, 100).runs(4, 200).sleeps(4).after(us);
        script.waking(0, 200, 4).wakeup(4, 200, 4).audit("v6.0")
    };
    let right_behind = wakeup_after(1);
    assert_eq!(right_behind.no_placement(NoPlacement::StillOnCpu), 1);
    assert_eq!(right_behind.audit.inferred.still_switching_out, 1);
    assert_eq!(wakeup_after(10).wakeups_of(200), 1);
}

/// A CPU with a wakeup on its way is not idle, though its idle task runs.
#[test]
fn a_pending_wakeup_makes_its_cpu_busy_until_it_arrives() {
    let second_wakeup = |arrives_first: bool| {
        let mut script = Script::new();
        script.runs(0, 100).runs(4, 101).runs(5, 200).sleeps(5).runs(5, 201).switch(5, "R", 201);
        script.sleeps(5).after(1_000).waking(0, 200, 5);
        if arrives_first {
            script.wakeup(5, 200, 5).after(1).switch(5, "R", 200).after(10).sleeps(5).after(10);
        }
        script.waking(4, 201, 5).wakeup(5, 201, 5);
        if !arrives_first {
            script.wakeup(5, 200, 5);
        }
        script.audit("v6.0").decision(201).predicted
    };
    assert_eq!(second_wakeup(true), 5);
    assert_ne!(second_wakeup(false), 5);
}

#[test]
fn a_wakee_that_moves_is_pending_from_its_migration() {
    let second_wakeup = |to: u32| {
        let mut script = Script::new();
        script.runs(0, 100).runs(4, 101).runs(6, 200).sleeps(6).runs(5, 201).sleeps(5);
        script.after(1_000).waking(0, 200, 6).migrate(0, 200, 6, to);
        script.waking(4, 201, 5).wakeup(5, 201, 5).wakeup(to, 200, to);
        script.audit("v6.0").decision(201).predicted
    };
    assert_eq!(second_wakeup(7), 5);
    assert_ne!(second_wakeup(5), 5);
}

#[test]
fn without_sched_wakeup_the_wakee_arrives_where_it_runs_next() {
    let mut script = asleep(4);
    script.waking(0, 200, 4).migrate(0, 200, 4, 5).after(20).switch(5, "R", 200).after(10);
    script.sleeps(5).after(500).waking(0, 200, 5).after(20).switch(5, "R", 200);
    let seen = script.audit("v6.0");
    let actual: Vec<_> = seen.decisions.iter().map(|seen| seen.placed.actual).collect();
    assert_eq!(actual, [5, 5]);
}

#[test]
fn a_fork_is_placed_from_the_cpu_of_its_parent() {
    let mut script = Script::new();
    let seen = script.runs(6, 100).fork(6, 300).wakeup_new(6, 300, 9).audit("v6.0");
    let placed = seen.decision(300);
    assert_eq!((placed.kind, placed.prev_cpu, placed.actual), (Kind::Fork, 6, 9));
    assert_eq!(seen.audit.moves.forks.at(Distance::OtherNode), 1);
}

#[test]
fn real_time_tasks_and_bound_threads_are_not_placed() {
    let mut script = Script::new();
    script.prio(200, 49).named(201, "ksoftirqd/5").runs(0, 100).runs(4, 200).sleeps(4);
    script.runs(5, 201).sleeps(5).after(1_000).wake(0, 200, 4, 4).wake(0, 201, 5, 5);
    let seen = script.audit("v6.0");
    assert_eq!(seen.no_placement(NoPlacement::OtherClass), 1);
    assert_eq!(seen.no_placement(NoPlacement::Bound), 1);
    assert_eq!(seen.decisions.len(), 0);
}

/// Before the last CPU has begun, the events of some are missing.
#[test]
fn what_was_overwritten_judges_nothing() {
    let script = |overrun: &str| {
        let mut script = Script::new();
        script.raw(overrun).runs(0, 100).runs(4, 200).sleeps(4).after(500).wake(0, 200, 4, 4);
        script.switch(4, "R", 200).after(10).sleeps(4).after(500);
        script.runs(9, 300).sleeps(9).after(500).wake(0, 200, 4, 4);
        script.audit("v6.0")
    };
    let overwritten = script("# overrun: 3");
    assert_eq!(overwritten.no_placement(NoPlacement::BeforeComplete), 1);
    assert_eq!(overwritten.decisions.len(), 1);
    let whole = script("# overrun: 0");
    assert_eq!(whole.no_placement(NoPlacement::BeforeComplete), 0);
    assert_eq!(whole.decisions.len(), 2);
}
