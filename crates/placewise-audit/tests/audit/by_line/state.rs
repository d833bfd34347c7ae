//! What the steps of a trace leave in the policy's state.

use placewise_audit::{Action, Repairs, TaskNumber, Timeline};
use placewise_policy::{State, Task};

use super::script::Script;

fn with_task<T>(script: &Script, pid: u32, look: impl Fn(TaskNumber, &Task, &State) -> T) -> T {
    let (reconstruction, timeline) = script.reconstruct("v6.0");
    let task = timeline.tasks().find(pid).unwrap_or_else(|| panic!("no task {pid}"));
    look(task, &reconstruction.state().task[task as usize], reconstruction.state())
}

#[test]
fn a_dead_task_leaves_no_load() {
    let load_after = |state: &str| {
        let mut script = Script::new();
        script
            .runs(4, 200)
            .switch(4, "R", 0)
            .switch(4, "R", 200)
            .after(100_000)
            .switch(4, state, 0);
        script
            .runs(0, 100)
            .after(32_000)
            .switch(5, "R", 201)
            .after(5)
            .sleeps(5)
            .after(1_000)
            .wake(0, 201, 4, 4);
        script.reconstruct("v6.0").0.state().rq[4].cfs.avg.load_avg
    };
    let (asleep, dead) = (load_after("S"), load_after("X"));
    assert!(asleep > 300, "{asleep}");
    assert!(dead < 50, "{dead}");
}

#[test]
fn a_priority_is_a_weight() {
    for (prio, weight) in [(120, 1024), (139, 15), (100, 88761)] {
        let mut script = Script::new();
        script.prio(200, prio).runs(4, 200).sleeps(4).after(10).switch(4, "R", 200);
        assert_eq!(with_task(&script, 200, |_, task, _| task.weight), weight);
    }
}

/// Of a queued task the new weight counts once it has slept.
#[test]
fn a_new_priority_is_a_new_weight() {
    let mut script = Script::new();
    script.runs(4, 200).switch(4, "R", 200).prio(200, 130).after(10).sleeps(4).after(10);
    script.runs(0, 100).wake(0, 200, 4, 4);
    assert_eq!(with_task(&script, 200, |_, task, _| task.weight), 110);
}

/// It is taken for a wakeup that is not sync, which would have looked no further than CPU 4.
#[test]
fn a_sync_wakeup_leaves_behind_what_a_sync_wakeup_does() {
    let mut script = Script::new();
    for cpu in 1..4 {
        script.runs(cpu, 300 + cpu).event(cpu, "sched_process_exec: filename=/x pid=1 old_pid=1");
    }
    script.runs(0, 100).runs(5, 200).switch(5, "R", 0).migrate(0, 200, 5, 4).switch(4, "R", 200);
    script.after(100).sleeps(4).after(1_000);
    let recent = |script: &Script| with_task(script, 200, |_, task, _| task.recent_used_cpu);
    assert_eq!(recent(&script), 5);
    script.waking(0, 200, 4).migrate(0, 200, 4, 0).wakeup(0, 200, 0);
    assert_eq!(script.audit("v6.0").decision(200).predicted, 4);
    assert_eq!(recent(&script), 4);
}

#[test]
fn a_child_has_the_wake_flips_of_its_parent() {
    let mut script = Script::new();
    script.runs(0, 100);
    for round in 0..6 {
        let (wakee, prev) = (200 + round % 2, 4 + round % 2);
        script.runs(prev, wakee).sleeps(prev).after(100).wake(0, wakee, prev, prev);
    }
    script.fork(0, 300).wakeup_new(0, 300, 2);
    let flips = with_task(&script, 100, |_, task, _| task.wakee_flips);
    assert_eq!(flips, 6, "whatever has been tried beside");
    assert_eq!(with_task(&script, 300, |_, task, _| task.wakee_flips), flips);
    assert_eq!(with_task(&script, 200, |_, task, _| task.wakee_flips), 0, "it wakes nobody");
}

/// post_init_entity_util_avg()
#[test]
fn a_child_begins_with_a_part_of_its_cpu() {
    let mut script = Script::new();
    script.runs(0, 100).after(20_000).fork(0, 300).wakeup_new(0, 300, 2);
    assert!(with_task(&script, 300, |_, task, _| task.avg.util_avg) > 100);
}

fn number_of(script: &Script, pid: u32) -> TaskNumber {
    with_task(script, pid, |task, _, _| task)
}

/// Its pid is another task's later, which knows nothing of it.
#[test]
fn the_pid_of_a_dead_task_means_another() {
    let mut script = Script::new();
    script.runs(0, 100).runs(4, 200).switch(4, "R", 200).after(50_000);
    let dead = number_of(script.wake(0, 201, 5, 5), 200);
    script.switch(4, "X", 0).after(10);
    let mut forked = script;
    forked.runs(1, 102).sleeps(1);
    // Its fork may be among the events that are lost.
    forked.wake(0, 200, 6, 6).switch(6, "R", 200);
    assert_ne!(number_of(&forked, 200), dead);
    assert_eq!(with_task(&forked, 200, |_, task, _| (task.sum_exec_runtime, task.cpu)), (0, 6));
}

#[test]
fn a_fork_gives_its_pid_to_a_new_task_whoever_had_it() {
    let mut script = Script::new();
    script.runs(0, 100).runs(4, 200).switch(4, "R", 200).after(50_000).sleeps(4).after(10);
    let old = number_of(&script, 200);
    script.fork(0, 200).wakeup_new(0, 200, 6);
    assert_eq!(script.audit("v6.0").audit.agreement.forks.decisions, 1);
    assert_ne!(number_of(&script, 200), old);
    assert_eq!(with_task(&script, 200, |_, task, _| (task.sum_exec_runtime, task.cpu)), (0, 6));
}

/// CPU 9 is first heard of when it runs a task that another CPU had run before.
#[test]
fn a_task_that_came_from_elsewhere_was_not_there_from_the_start() {
    let mut script = Script::new();
    script.runs(0, 100).sleeps(0).after(20_000).switch(4, "R", 200).after(1_000).switch(4, "R", 0);
    script.after(5_000).runs(9, 200).sleeps(9);
    let run = with_task(&script, 200, |_, task, _| task.sum_exec_runtime);
    assert!(run <= 6_000_000, "{run}");
}

#[test]
fn tasks_from_before_the_trace_run_from_its_start() {
    let mut script = Script::new();
    script.runs(0, 100).runs(4, 200).runs(1, 101).sleeps(1).after(30_000);
    // Nothing but its last event tells of 200.
    script.sleeps(4);
    let run = with_task(&script, 200, |_, task, _| task.sum_exec_runtime);
    assert_eq!(run, 30_000_000);
}

#[test]
fn a_switch_that_is_missing_is_made_up_and_counted() {
    let mut script = Script::new();
    script.runs(4, 200).switch(4, "R", 200).after(100).runs(4, 201).after(100).sleeps(4);
    let (reconstruction, timeline) = script.reconstruct("v6.0");
    assert_eq!(timeline.repairs().missing_switches, 1);
    assert_eq!(reconstruction.state().rq[4].nr_running, 0);
    let mut with_gap = Script::new();
    with_gap.runs(4, 200).switch(4, "R", 200).after(100).raw("CPU:4 [LOST 7 EVENTS]");
    with_gap.runs(4, 201).sleeps(4);
    let (reconstruction, timeline) = with_gap.reconstruct("v6.0");
    assert_eq!(timeline.repairs().missing_switches, 0, "the gap says so");
    assert_eq!(reconstruction.state().rq[4].nr_running, 0);
    assert_eq!(with_gap.audit("v6.0").audit.losses.lost_events, 7);
}

/// An idle CPU 1 whose exits are shown 30 us after the wakeup by an interrupt, and 20 after sched_waking where it polled.
fn exits_of_cpu_1(script: &mut Script) {
    for _ in 0..3 {
        script.waking(0, 300, 1).after(5).with_flags("dNh2.").wakeup(1, 300, 1);
        script.after(30).switch(1, "R", 300).after(10).sleeps(1).after(100);
        script.waking(0, 300, 1).after(15).wakeup(1, 300, 1);
        script.after(5).switch(1, "R", 300).after(10).sleeps(1).after(100);
    }
}

/// When `pid` was switched in for the last time, in us, and what was made up.
fn last_switch_to(script: &Script, pid: u32) -> (u64, Repairs) {
    let mut timeline = Timeline::new(16, 4_000_000, false).live();
    let mut reader = script.reader();
    let (mut last, mut time_ns, mut is_over) = (0, 0, false);
    while !is_over {
        match reader.next_record().unwrap() {
            Some(record) => timeline.push(&record),
            None => is_over = true,
        }
        if is_over {
            timeline.end();
        }
        while let Some(step) = timeline.pop() {
            assert!(step.time_ns >= time_ns, "steps stay in order");
            time_ns = step.time_ns;
            if let Action::Switch { next, .. } = step.action
                && timeline.tasks().get(next).pid == pid
            {
                last = time_ns;
            }
        }
    }
    (last / 1_000, timeline.repairs())
}

/// CPU 2 shows none of its exits. Fails if its task ran from its first event on.
#[test]
fn a_switch_from_idle_that_is_missing_comes_as_late_as_others() {
    for (is_polled, shows, expected) in [(false, 70, 5 + 30), (true, 70, 20), (false, 12, 12)] {
        let mut script = Script::new();
        script.runs(0, 100).event(0, "sched_process_exec: filename=a pid=100 old_pid=100");
        script.runs(2, 200).sleeps(2);
        exits_of_cpu_1(&mut script);
        // The first tells that they are missing, when it is too late for it.
        script.waking(0, 200, 2).after(5).with_flags("dNh2.").wakeup(2, 200, 2);
        script.after(60).runs(2, 200).sleeps(2).after(100);
        script.at(10_000).waking(0, 200, 2);
        if !is_polled {
            script.after(5).with_flags("dNh2.").wakeup(2, 200, 2);
        }
        if shows > 40 {
            script.at(10_040).waking(0, 400, 4).wakeup(0, 400, 4);
        }
        script.at(10_000 + shows).runs(2, 200).sleeps(2);
        let (at, repairs) = last_switch_to(&script, 200);
        assert_eq!(at, 1_010_000 + expected, "{is_polled}");
        assert_eq!((repairs.missing_idle_exits, repairs.missing_switches), (1, 1));
        assert_eq!(repairs.wakeups_without_end, 0, "{is_polled}");
    }
}

/// CPU 2 shows what it runs a second later. Fails if who looks on had to wait for that.
#[test]
fn a_live_trace_does_not_wait_for_what_an_idle_cpu_runs() {
    let mut script = Script::new();
    script.runs(2, 200).sleeps(2);
    for us in [1_000, 5_000] {
        script.at(us).waking(0, 200, 2).wakeup(0, 200, 2).after(60).runs(2, 200).sleeps(2);
    }
    script.at(10_000).waking(0, 200, 2).wakeup(0, 200, 2);
    let events = (0..50).map(|at| 11_000 + 10_000 * at);
    events.for_each(|us| _ = script.at(us).waking(0, 400, 4).wakeup(0, 400, 4));
    let mut timeline = Timeline::new(16, 4_000_000, false).live();
    let mut reader = script.reader();
    while let Some(record) = reader.next_record().unwrap() {
        timeline.push(&record);
    }
    let last = std::iter::from_fn(|| timeline.pop()).last();
    let ms = last.map(|step| step.time_ns / 1_000_000);
    assert!(ms.is_some_and(|ms| ms > 1_350), "{ms:?}");
}
