//! What rt-app files compile to, and what is refused, with which words.

use std::path::PathBuf;

use super::common::{End, Interpreter};
use placewise_workload::program::*;
use placewise_workload::{from_rt_app, from_rt_app_text};

const MS: Nanos = 1_000_000;

fn read(tasks: &str) -> Workload {
    let text = format!("{{ \"tasks\": {{ {tasks} }}, \"global\": {{ \"duration\": 1 }} }}");
    from_rt_app_text("test", &text).unwrap()
}

fn ops(workload: &Workload, program: usize) -> &[Op] {
    &workload.programs[program].ops
}

/// When the last task to exit did so.
fn end_of(workload: &Workload) -> Nanos {
    let mut run = Interpreter::new(workload);
    assert_eq!(run.run(Nanos::MAX), End::AllExited);
    run.steps.last().unwrap().time
}

fn examples() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/rt-app");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 6);
    files
}

#[test]
fn every_example_runs_to_its_duration_and_has_wakeups_to_sample() {
    for file in examples() {
        let workload = from_rt_app(&file).unwrap();
        assert_eq!(workload.check(), Ok(()));
        let mut run = Interpreter::new(&workload);
        assert_eq!(run.run(workload.window.measure), End::TimeUp, "{}", file.display());
        let late = workload.window.measure / 2;
        let wakeups = run.steps_where(|step| {
            step.time > late && matches!(step.op, Op::Timer { .. } | Op::Sleep { .. })
        });
        assert!(wakeups.len() > 50, "{}: {} wakeups", file.display(), wakeups.len());
        for (number, task) in run.tasks.iter().enumerate().skip(1).filter(|(_, task)| !task.exited)
        {
            let name = &workload.programs[task.program].name;
            let active = run.steps.iter().any(|step| step.task == number && step.time > late);
            assert!(active, "{}: {name} stands still", file.display());
        }
    }
}

#[test]
fn events_keep_their_order_with_equal_keys_and_suffixes() {
    let workload =
        read(r#""a": { "run": 1, "sleep": 2, "run": 3, "runtime0": 4, "run_x": 5, "yield": "" }"#);
    let expected = [
        Op::Run { ns: 1_000 },
        Op::Sleep { ns: 2_000, random_pct: 0 },
        Op::Run { ns: 3_000 },
        Op::Spin { ns: 4_000 },
        Op::Run { ns: 5_000 },
        Op::Yield,
    ];
    assert_eq!(ops(&workload, 1)[1..7], expected);
}

#[test]
fn comments_and_trailing_commas_are_read() {
    read("\"a\": { /* one */ \"run\": 1, // two\n },");
}

#[test]
fn loops_nest() {
    let text = r#"{ "tasks": { "a": { "loop": 3, "phases": {
        "p": { "loop": 4, "run": 1000 }, "q": { "sleep": 2000 } } } } }"#;
    let workload = from_rt_app_text("test", text).unwrap();
    assert_eq!(end_of(&workload), 3 * (4 + 2) * MS);
}

#[test]
fn a_relative_timer_forgives_a_missed_expiry_and_an_absolute_one_does_not() {
    let end = |mode: &str| {
        let timer = format!(r#""timer": {{ "ref": "t", "period": 20000, "mode": "{mode}" }}"#);
        let text = format!(
            r#"{{ "tasks": {{ "a": {{ "loop": 1, "phases": {{
                "long": {{ "run": 45000, {timer} }},
                "short": {{ "loop": 2, "run": 10000, {timer} }} }} }} }} }}"#
        );
        end_of(&from_rt_app_text("test", &text).unwrap())
    };
    // Late at 45 ms: then 65 and 85, or 40 (missed), 60 and so on.
    assert_eq!(end("relative"), 85 * MS);
    assert_eq!(end("absolute"), 65 * MS);
}

#[test]
fn timers_count_from_the_end_of_the_delay() {
    let text = r#"{ "tasks": { "a": { "loop": 2, "delay": 5000, "run": 1000,
        "timer": { "ref": "t", "period": 20000 } } } }"#;
    assert_eq!(end_of(&from_rt_app_text("test", text).unwrap()), 45 * MS);
}

#[test]
fn instances_have_unique_timers_and_share_the_others() {
    for (name, timers) in [("unique_tick", 3), ("tick", 1)] {
        let timer = format!(r#"{{ "ref": "{name}", "period": 1000 }}"#);
        let workload = read(&format!(r#""a": {{ "instance": 3, "run": 1, "timer": {timer} }}"#));
        let mut run = Interpreter::new(&workload);
        run.run(10 * MS);
        let mut used: Vec<usize> = run
            .steps_where(|step| matches!(step.op, Op::StartTimer { .. }))
            .iter()
            .map(|step| step.index)
            .collect();
        used.dedup();
        assert_eq!(used.len(), timers);
        assert_eq!(workload.timers as usize, timers);
    }
}

#[test]
fn all_tasks_begin_together() {
    let workload = read(r#""a": { "instance": 3, "run": 1 }, "b": { "instance": 2, "run": 1 }"#);
    assert_eq!(workload.barriers[0], 5);
    assert_eq!(ops(&workload, 1)[0], ops(&workload, 2)[0]);
    assert!(matches!(ops(&workload, 1)[0], Op::Barrier { .. }));
}

#[test]
fn barriers_have_as_many_parties_as_instances_reach_them() {
    let workload = read(
        r#""a": { "instance": 3, "run": 1, "barrier": "x" },
           "b": { "instance": 2, "barrier0": "x", "run": 1, "barrier1": "y" }"#,
    );
    assert_eq!(workload.barriers[1..], [5, 2]);
}

#[test]
fn suspend_and_resume_are_a_condition_with_the_name_of_the_task() {
    let workload = read(r#""a": { "suspend": "", "run": 1 }, "b": { "sleep": 1, "resume": "a" }"#);
    let (mutex, condition) = (Object::shared(0), Object::shared(0));
    let wait = Op::CondWait { condition, mutex: Some(mutex) };
    assert_eq!(ops(&workload, 1)[1..4], [Op::Lock { mutex }, wait, Op::Unlock { mutex }]);
    let wake = Op::Broadcast { condition };
    assert_eq!(ops(&workload, 2)[2..5], [Op::Lock { mutex }, wake, Op::Unlock { mutex }]);
}

#[test]
fn sync_takes_the_mutex_unless_the_task_has_it() {
    let sync = r#""sync": { "ref": "c", "mutex": "m" }, "run": 1"#;
    let alone = read(&format!(r#""a": {{ {sync} }}"#));
    let inside = read(&format!(r#""a": {{ "lock": "m", {sync}, "unlock": "m" }}"#));
    let locks = |workload: &Workload| {
        ops(workload, 1).iter().filter(|op| matches!(op, Op::Lock { .. })).count()
    };
    assert_eq!((locks(&alone), locks(&inside)), (1, 1));
}

#[test]
fn forked_tasks_run_beside_the_started_ones_without_waiting_for_them() {
    let text = r#"{ "tasks": {
        "server": { "loop": 3, "run": 1000, "fork": "child" },
        "child": { "instance": 0, "loop": 1, "run": 500 } } }"#;
    let workload = from_rt_app_text("test", text).unwrap();
    let mut run = Interpreter::new(&workload);
    assert_eq!(run.run(Nanos::MAX), End::AllExited);
    assert_eq!(run.tasks.len(), 1 + 1 + 3);
    assert!(run.tasks[2..].iter().all(|task| task.parent == Some(1)));
    assert_eq!(run.steps.last().unwrap().time, 3 * MS + MS / 2);
}

#[test]
fn properties_reach_the_program() {
    let text = r#"{ "global": { "duration": 7, "default_policy": "SCHED_IDLE", "calibration": "CPU0" },
        "tasks": { "a": { "policy": "SCHED_OTHER", "priority": -7, "cpus": [3, 1], "run": 1 }, "b": { "run": 1 } } }"#;
    let workload = from_rt_app_text("test", text).unwrap();
    let (a, b) = (&workload.programs[1], &workload.programs[2]);
    assert_eq!((a.nice, a.policy, b.policy), (-7, SchedPolicy::Other, SchedPolicy::Idle));
    assert_eq!(a.cpus.unwrap().to_string(), "1,3");
    assert_eq!(b.cpus, None);
    assert_eq!(workload.window, Window { measure: 7_000 * MS, ..Window::default() });
}

#[test]
fn what_cannot_be_modelled_or_is_wrong_is_refused_by_name_line_and_remedy() {
    for (tasks, message) in [
        (r#""a": { "mem": 1 }"#, "line 2, tasks.a.mem: memory load is not modelled"),
        (r#""a": { "iorun": 1 }"#, "tasks.a.iorun: I/O is not modelled"),
        (
            r#""a": { "run": 1, "util_min": 5 }"#,
            "tasks.a.util_min: utilisation clamps are not modelled",
        ),
        (
            r#""a": { "policy": "SCHED_DEADLINE", "run": 1 }"#,
            "expected SCHED_OTHER, SCHED_IDLE, SCHED_FIFO or SCHED_RR",
        ),
        (r#""a": { "policy": "SCHED_FIFO", "priority": 0, "run": 1 }"#, "(the real-time priority)"),
        (
            r#""a": { "run": -1 }"#,
            "tasks.a.run: expected a whole number from 1 to 3600000000 microseconds, found `-1`",
        ),
        (r#""a": { "run": "1" }"#, "microseconds, found the string `1`"),
        (r#""a": { "rum": 1 }"#, "tasks.a.rum: unknown key; did you mean `run`?"),
        (r#""a": { }"#, "expected at least one event"),
        (r#""a": { "run": 1, "phases": { "p": { "run": 1 } } }"#, "put them into a phase"),
        (
            r#""a": { "phases": { "p": { "run": 1, "cpus": [0] } } }"#,
            "tasks.a.phases.p.cpus: a task keeps",
        ),
        (r#""a": { "cpus": [], "run": 1 }"#, "expected at least one CPU number"),
        (
            r#""a": { "cpus": [1024], "run": 1 }"#,
            "tasks.a.cpus[0]: expected a whole number from 0 to 1023",
        ),
        (r#""a": { "priority": 20, "run": 1 }"#, "from -20 to 19"),
        (r#""a": { "loop": 1, "run": 1, "loop": 2 }"#, "this key stands on line 2 already"),
        (r#""a": { "run": 1 }, "a": { "run": 1 }"#, "tasks.a: this key stands on line 2 already"),
        (r#""a": { "loop": 0, "run": 1 }"#, "expected at least 1, or -1 for ever"),
        (r#""a": { "signal": "x" }"#, "an endless loop needs an event that takes time"),
        (r#""a": { "run": 1, "fork": "b" }"#, "tasks.a.fork: no task has this name"),
        (r#""a": { "run": 1, "fork": "b" }, "b": { "run": 1, "fork": "a" }"#, "break the circle"),
        (
            r#""a": { "run": 1, "fork": "b" }, "b": { "timer": { "ref": "unique", "period": 1 } }"#,
            "a forked task cannot have a `unique` timer",
        ),
        (
            r#""a": { "run": 1, "fork": "b" }, "b": { "run": 1, "barrier": "x" }"#,
            "cannot use a barrier",
        ),
        (r#""a": { "run": 1, "lock": "m", "lock": "m" }"#, "holds mutex `m` here already"),
        (r#""a": { "run": 1, "unlock": "m" }"#, "does not hold mutex `m` here; lock it before"),
        (r#""a": { "run": 1, "lock": "m" }"#, "balance lock and unlock"),
        (r#""a": { "run": 1, "wait": { "ref": "c", "mutex": "m" } }"#, "does not hold mutex `m`"),
        (
            r#""a": { "run": 1, "wait": { "ref": "c" } }"#,
            "expected { \"ref\": condition, \"mutex\": mutex }",
        ),
        (
            r#""a": { "timer": { "ref": "t", "period": 1, "mode": "x" } }"#,
            "expected relative or absolute",
        ),
        (
            r#""a": { "instance": 0, "run": 1 }"#,
            "tasks: expected at least one task with an instance",
        ),
    ] {
        let text = format!("{{\n\"tasks\": {{ {tasks} }}, \"global\": {{ \"duration\": 1 }} }}");
        let error = from_rt_app_text("test", &text).unwrap_err().to_string();
        assert!(error.contains(message), "{tasks}\n  {error}");
    }
}

#[test]
fn wrong_sections_are_refused() {
    for (text, message) in [
        ("", "line 1: expected a JSON object"),
        ("[]", "line 1: expected an object"),
        ("{}", "line 1: expected a `tasks` object"),
        ("{\n\"tasks\": { \"a\" } }", "line 2, column "),
        ("{ \"tasks\": { \"a\": { \"run\": 1 } } }", "set `duration` in `global`"),
        ("{ \"resources\": {} }", "resources: rt-app makes resources where events name them"),
        ("{ \"taks\": {} }", "taks: unknown key; did you mean `tasks`?"),
        ("{ \"global\": { \"duration\": 0 }, \"tasks\": {} }", "expected at least 1 second"),
        (
            "{ \"global\": { \"pi_enabled\": true }, \"tasks\": {} }",
            "priority inheritance is not modelled",
        ),
        ("{ \"global\": { \"durations\": 1 }, \"tasks\": {} }", "did you mean `duration`?"),
    ] {
        let error = from_rt_app_text("test", text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}\n  {error}");
    }
    let error = from_rt_app("no/such.json".as_ref()).unwrap_err().to_string();
    assert!(error.starts_with("no/such.json: cannot be read"), "{error}");
}

#[test]
fn real_time_tasks_have_a_priority() {
    let text = r#"{ "global": { "default_policy": "SCHED_RR", "duration": 1 }, "tasks": {
        "a": { "priority": 42, "policy": "SCHED_FIFO", "run": 1 }, "b": { "run": 1 },
        "c": { "policy": "SCHED_OTHER", "run": 1 } } }"#;
    let workload = from_rt_app_text("a", text).expect("a valid file");
    let policy = |name: &str| {
        let program = workload.programs.iter().find(|program| program.name == name);
        program.expect("a task").policy
    };
    assert_eq!(policy("a"), SchedPolicy::Fifo(42));
    assert_eq!(policy("b"), SchedPolicy::RoundRobin(10), "rt-app's default");
    assert_eq!(policy("c"), SchedPolicy::Other);
}

fn part_names(workload: &Workload) -> Vec<&str> {
    workload.parts.iter().map(|part| part.name.as_str()).collect()
}

#[test]
fn tasks_and_their_instances_are_parts() {
    let workload = read(
        r#""a": { "instance": 2, "sleep": 1, "fork": "b" }, "b": { "instance": 0, "loop": 1, "run": 1 }"#,
    );
    assert_eq!(part_names(&workload), ["a", "a#1", "a#2", "b"]);
    assert_eq!(workload.parts[1].within, Some(0));
    assert_eq!((workload.parts[0].within, workload.parts[3].within), (None, None));
    let parts = workload.programs.iter().map(|program| (program.part, program.part_step));
    // Main, the instances of either, and those of `b` that are forked.
    assert_eq!(parts.collect::<Vec<_>>(), [(None, 0), (Some(1), 1), (Some(3), 0), (Some(3), 0)]);
}

#[test]
fn parts_are_no_more_than_one_can_read() {
    let names = |tasks: &str| part_names(&read(tasks)).len();
    assert_eq!(names(r#""a": { "instance": 63, "sleep": 1 }"#), 64);
    assert_eq!(names(r#""a": { "instance": 64, "sleep": 1 }"#), 1);
    let tasks: Vec<String> = (0..65).map(|n| format!("\"t{n}\": {{ \"sleep\": 1 }}")).collect();
    assert_eq!(names(&tasks.join(",")), 0);
}
