//! What the steps of a trace leave in the policy's state.

use placewise_audit::TaskId;
use placewise_policy::{State, Task};

use crate::script::Script;

fn with_task<T>(script: &Script, pid: u32, look: impl Fn(TaskId, &Task, &State) -> T) -> T {
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
    assert!(flips >= 5);
    assert_eq!(with_task(&script, 300, |_, task, _| task.wakee_flips), flips);
}

/// Its pid is another task's later, which knows nothing of it.
#[test]
fn a_pid_that_is_used_again_is_a_new_task() {
    let mut script = Script::new();
    script.runs(0, 100).runs(4, 200).switch(4, "R", 200).after(50_000).switch(4, "X", 0);
    let dead = with_task(script.runs(5, 200).switch(5, "R", 0), 200, |task, _, _| task);
    assert!(dead >= placewise_policy::FIRST_TASK);
    let mut again = Script::new();
    again.runs(0, 100).runs(4, 200).switch(4, "R", 200).after(50_000).switch(4, "X", 0).after(10);
    again.fork(0, 200).wakeup_new(0, 200, 6);
    let seen = again.audit("v6.0");
    assert_eq!(seen.audit.agreement.forks.decisions, 1);
    assert_eq!(with_task(&again, 200, |_, task, _| (task.sum_exec_runtime, task.cpu)), (0, 6));
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
