//! What is read of traces of a few lines: one mechanism each.

use std::fs;

use placewise_machine::{Machine, load};
use placewise_policy::Policy;
use placewise_replay::{
    AtEnd, Begins, Both, RecordedTask, Recording, ReplayError, Source, Step, read_both,
};
use placewise_workload::program::{Call, Object, Op, Wake};
use proptest::prelude::*;

/// Charges nothing, so that times are those of the trace.
fn free(machine: &str) -> Machine {
    let mut machine = load(machine).expect("the machine is known");
    let costs = &mut machine.costs;
    for figure in [
        &mut costs.context_switch_ns,
        &mut costs.idle_switch_ns,
        &mut costs.sleep_ns,
        &mut costs.rq_lock_hold_ns,
        &mut costs.wakeup_ns,
        &mut costs.scan_cpu_ns,
        &mut costs.timer_ns,
        &mut costs.syscall_ns,
        &mut costs.thread_create_ns,
        &mut costs.exit_ns,
        &mut costs.tick_ns,
    ] {
        *figure = 0;
    }
    (costs.wakeup_lines, costs.rq_lock_lines, costs.channel_lines) = (0, 0, 0);
    costs.smt_throughput_pct = 50;
    machine
}

pub fn try_read(name: &str, text: &str, machine: &Machine) -> Result<Both, ReplayError> {
    let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("read-{name}"));
    fs::write(&path, text).expect("it has room");
    let kernel = Policy::parse("v6.12", "baseline").expect("the kernel is known");
    read_both(&Source { trace: &path, machine, kernel: &kernel })
}

pub fn read_on(name: &str, machine: &str, lines: &[&str]) -> Recording {
    let text = lines.join("\n") + "\n";
    try_read(name, &text, &free(machine)).expect("it can be read").plain
}

pub fn task<'a>(recording: &'a Recording, name: &str) -> (u32, &'a RecordedTask) {
    let at = recording.tasks.iter().position(|task| task.name == name);
    let at = at.unwrap_or_else(|| panic!("no {name}"));
    (at as u32, &recording.tasks[at])
}

pub const US: u64 = 1_000;

/// Runs on CPU 0 from 1.000100 on, wakes b onto CPU 1 after 10 us, sleeps after 5 more.
const A_WAKES_B: [&str; 5] = [
    "<idle>-0 [000] d..2. 1.000100: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120",
    "a-10 [000] d..2. 1.000110: sched_waking: comm=b pid=11 prio=120 target_cpu=001",
    "a-10 [000] d..2. 1.000110: sched_wakeup: comm=b pid=11 prio=120 target_cpu=001",
    "<idle>-0 [001] d..2. 1.000112: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120",
    "a-10 [000] d..2. 1.000115: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120",
];

const A_FORKS_C: [&str; 2] = [
    "a-10 [000] ..... 1.000105: sched_process_fork: comm=a pid=10 child_comm=c child_pid=12",
    "a-10 [000] d..2. 1.000105: sched_wakeup_new: comm=c pid=12 prio=120 target_cpu=002",
];

const B_SLEEPS: &str = "b-11 [001] d..2. 1.000132: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120";

#[test]
fn a_sleep_ends_with_the_post_of_who_ended_it() {
    let recording = read_on("post", "uma-8", &[&A_WAKES_B[..], &[B_SLEEPS]].concat());
    let (a, waker) = task(&recording, "a");
    let (b, wakee) = task(&recording, "b");
    let posts = [Step::Run(10 * US), Step::Post(b, Wake::Plain), Step::Run(5 * US)];
    assert_eq!(waker.steps, posts);
    assert_eq!(wakee.steps, [Step::Await(a), Step::Run(20 * US)]);
    assert!(!wakee.runs_at_once && wakee.begins_on == 1);
}

/// Who is busy to the end is not done as its last turn begins.
#[test]
fn tasks_are_done_when_the_last_has_computed() {
    let text = A_WAKES_B.join("\n") + "\n" + B_SLEEPS + "\n";
    let measured = try_read("done", &text, &free("uma-8")).expect("it can be read").measured;
    let until = ["a", "b"].map(|name| measured.by_name[name].until_ns);
    assert_eq!(until, [15 * US, 32 * US]);
    let still_runs = A_WAKES_B.join("\n") + "\n";
    let measured = try_read("runs", &still_runs, &free("uma-8")).expect("it can be read").measured;
    assert_eq!(measured.by_name["b"].until_ns, 15 * US, "that is the end of the trace");
}

/// A message each 100 us, which b reads in 20 us, and once more in 40.
fn messages_to_b(turns: u64) -> Vec<String> {
    let mut lines = vec![A_WAKES_B[0].to_owned()];
    for turn in 0..=turns {
        let (at, takes) = (1_000_200 + turn * 100, if turn == 50 { 40 } else { 20 });
        let time = |us: u64| format!("{}.{:06}", (at + us) / 1_000_000, (at + us) % 1_000_000);
        let at = [0, 0, 1, 1 + takes].map(time);
        let of_turn = [A_WAKES_B[1], A_WAKES_B[2], A_WAKES_B[3], B_SLEEPS];
        let line = |(line, at): (&str, String)| {
            let (place, event) = line.split_once(" 1.").expect("it has a time");
            let (_, event) = event.split_once(':').expect("it has a time");
            format!("{place} {at}:{event}")
        };
        lines.extend(of_turn.into_iter().zip(at).map(line));
    }
    lines
}

#[test]
fn a_reader_that_computes_for_two_messages_has_found_the_second_there() {
    let lines = messages_to_b(100);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let text = lines.join("\n") + "\n";
    let both = try_read("messages", &text, &free("uma-8")).expect("it can be read");
    assert_eq!(task(&both.plain, "b").1.steps.len(), 202, "that is one reading of it");
    let recording = both.with_messages.expect("b reads messages");
    let ((a, writer), (_, reader)) = (task(&recording, "a"), task(&recording, "b"));
    let posts = writer.steps.iter().filter(|step| matches!(step, Step::Post(..)));
    assert_eq!(posts.count(), 102);
    let message = [Step::Await(a), Step::Run(20 * US)];
    assert_eq!(reader.steps, message.repeat(102));
}

/// Another task of that name wakes b so often, for locks that it hands on, and computes to the end. Fails if b had one of its
/// messages from one that has woken it once in a hundred times or less.
#[test]
fn who_has_woken_a_reader_once_in_many_times_writes_it_nothing() {
    let messages_of_other = |wakeups: usize| {
        let by_other = |line: &str| line.replace("a-10 [000]", "a-12 [002]");
        let begins = A_WAKES_B[0].replace("000]", "002]").replace("pid=10", "pid=12");
        let wakes = A_WAKES_B[1..4].iter().map(|line| by_other(line)).chain([B_SLEEPS.into()]);
        let wakes: Vec<String> = wakes.collect();
        let at = |at: usize| move |line: &String| line.replace(" 1.000", &format!(" 0.90{at}"));
        let mut lines = [begins, A_WAKES_B[0].to_owned()].iter().map(at(0)).collect::<Vec<_>>();
        lines.extend((0..wakeups).flat_map(|round| wakes.iter().map(at(round))));
        lines.extend(messages_to_b(150).into_iter().skip(1));
        let name = format!("handed-on-{wakeups}");
        let both = try_read(&name, &(lines.join("\n") + "\n"), &free("uma-8"));
        let recording = both.expect("it can be read").with_messages.expect("b reads messages");
        let is_other = |task: &&RecordedTask| task.pid == 12;
        let other = recording.tasks.iter().find(is_other).expect("it is there");
        other.steps.iter().filter(|step| matches!(step, Step::Post(..))).count() - wakeups
    };
    assert_eq!([1, 2].map(messages_of_other), [0, 1]);
}

/// A session shares the CPUs as a cgroup does; what is forked is where its parent is.
#[test]
fn tasks_are_in_the_cgroups_and_autogroups_that_the_header_names() {
    let header = [
        "# cgroup: 10 /web/a",
        "# autogroup: 11,99 /autogroup-3",
        "# cgroup: 99 /none",
        "# shares: 512 /web/a",
    ];
    let (start, rest) = A_WAKES_B.split_at(1);
    let lines = [&header[..], start, &A_FORKS_C, rest, &[B_SLEEPS]].concat();
    let recording = read_on("cgroups", "uma-8", &lines);
    let paths: Vec<&str> = recording.cgroups.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["/autogroup-3", "/web", "/web/a"], "those of tasks of the trace");
    let of = |name| task(&recording, name).1.cgroup;
    assert_eq!([of("a"), of("b"), of("c")], [Some(2), Some(0), Some(2)]);
    let workload = recording.workload("w", &free("uma-8"), Begins::Anywhere);
    assert!(workload.has_waits_for_load);
    let parents: Vec<Option<u32>> = workload.cgroups.iter().map(|it| it.parent).collect();
    assert_eq!(parents, [None, None, Some(1)]);
    let shares: Vec<u32> = workload.cgroups.iter().map(|it| it.shares).collect();
    assert_eq!(shares, [1024, 1024, 512]);
    let program = workload.programs.iter().find(|program| program.name == "c");
    assert_eq!(program.expect("c has one").cgroup, Some(2));
}

/// c, which a forks, and which runs on CPU 2.
#[test]
fn who_is_forked_has_an_affinity_and_a_group_of_its_own_if_the_header_names_it() {
    let a = "# task 10 comm=a policy=SCHED_OTHER cpus=0-3";
    let a_elsewhere = "# task 10 comm=a policy=SCHED_OTHER cpus=0-1";
    let c_runs = [
        "<idle>-0 [002] d..2. 1.000106: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=c next_pid=12 next_prio=120",
        "c-12 [002] d..2. 1.000109: sched_switch: prev_comm=c prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=swapper/2 next_pid=0 next_prio=120",
    ];
    let c = ["# task 12 comm=c policy=SCHED_OTHER cpus=2", "# autogroup: 12 /autogroup-4"];
    let (start, rest) = A_WAKES_B.split_at(1);
    let read = |name: &str, header: &[&str]| {
        let group = ["# autogroup: 10 /autogroup-3"];
        let lines = [header, &group, start, &A_FORKS_C, &c_runs, rest, &[B_SLEEPS]].concat();
        let recording = read_on(name, "uma-8", &lines);
        let (_, c) = task(&recording, "c");
        let path = c.cgroup.map(|at| recording.cgroups[at as usize].path.clone());
        (c.cpus.map(|cpus| cpus.to_string()), path.expect("it is in a group"))
    };
    let of_a = |cpus: Option<&str>| (cpus.map(str::to_owned), "/autogroup-3".to_owned());
    assert_eq!(read("inherits", &[a]), of_a(Some("0-3")));
    assert_eq!(read("elsewhere", &[a_elsewhere]), of_a(None), "it ran on CPU 2");
    let own = (Some("2".to_owned()), "/autogroup-4".to_owned());
    assert_eq!(read("own", &[a, c[0], c[1]]), own);
}

/// Two tasks of a name that wake b are as good as each other; one of another name is not.
#[test]
fn any_task_of_the_name_that_ended_a_sleep_ends_it() {
    let mut recording = read_on("names", "uma-8", &[&A_WAKES_B[..], &[B_SLEEPS]].concat());
    let ((a, waker), (b, _)) = (task(&recording, "a"), task(&recording, "b"));
    let waker = RecordedTask { steps: vec![Step::Post(b, Wake::Plain)], ..waker.clone() };
    let stranger = RecordedTask { name: "z".into(), ..waker.clone() };
    recording.tasks.extend([waker, stranger]);
    recording.tasks[b as usize].steps = vec![Step::Await(a), Step::Await(2), Step::Await(3)];
    let workload = recording.workload("w", &free("uma-8"), Begins::Anywhere);
    let waits: Vec<Object> =
        workload.programs.iter().flat_map(|it| &it.ops).filter_map(awaited).collect();
    assert!(waits[0] == waits[1] && waits[1] != waits[2], "{waits:?}");
}

fn awaited(op: &Op) -> Option<Object> {
    match op {
        Op::Await { semaphore, .. } => Some(*semaphore),
        _ => None,
    }
}

/// CPUs 0 and 6 are the threads of a core: beside a, b computes half as fast, and a beside b.
#[test]
fn a_busy_sibling_takes_its_share_of_the_computing() {
    let machine = load("x86-12").expect("the machine is known");
    let sibling = (1..12).find(|&cpu| machine.cpus[cpu].core == machine.cpus[0].core).unwrap();
    let on_sibling = |line: &str| {
        let (from, to) = (format!("[{sibling:03}]"), format!("swapper/{sibling}"));
        line.replace("[001]", &from)
            .replace("swapper/1", &to)
            .replace("target_cpu=001", &format!("target_cpu={sibling:03}"))
    };
    let lines: Vec<String> =
        A_WAKES_B.iter().chain([&B_SLEEPS]).map(|line| on_sibling(line)).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let recording = read_on("smt", "x86-12", &lines);
    let (a, waker) = task(&recording, "a");
    let (b, wakee) = task(&recording, "b");
    // 2 us alone and 3 beside b; 3 beside a and 17 alone.
    let posts = [Step::Run(10 * US), Step::Post(b, Wake::Plain), Step::Run(3_500)];
    assert_eq!(waker.steps, posts);
    assert_eq!(wakee.steps, [Step::Await(a), Step::Run(18_500)]);
}

/// What a computes between its wakeup and its sleep, 5 us later, where it takes 3 to interrupt another CPU.
fn after_the_wakeup(name: &str, polling: bool, lines: &[&str]) -> Option<Step> {
    let mut machine = free("uma-8");
    machine.costs.ipi_send_ns = 3 * US;
    machine.costs.idle_states.iter_mut().for_each(|state| state.polling = polling);
    last_step(name, &machine, lines, "a")
}

/// Of a task of a trace on this machine.
fn last_step(name: &str, machine: &Machine, lines: &[&str], of: &str) -> Option<Step> {
    let text = lines.join("\n") + "\n";
    let recording = try_read(name, &text, machine).expect("it can be read").plain;
    task(&recording, of).1.steps.last().copied()
}

/// Fails if the waker's interrupt were left in what it computed: a replay is charged for it anew.
#[test]
fn the_interrupt_to_the_wakees_cpu_is_no_computing() {
    let to_idle = [&A_WAKES_B[..], &[B_SLEEPS]].concat();
    assert_eq!(after_the_wakeup("halted", false, &to_idle), Some(Step::Run(2 * US)));
    assert_eq!(after_the_wakeup("polling", true, &to_idle), Some(Step::Run(5 * US)));

    let c_runs = "<idle>-0 [001] d..2. 1.000100: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=c next_pid=12 next_prio=120";
    let c_goes = |state: &str| {
        format!(
            "c-12 [001] d..2. 1.000112: sched_switch: prev_comm=c prev_pid=12 prev_prio=120 prev_state={state} ==> next_comm=b next_pid=11 next_prio=120"
        )
    };
    for (state, computes) in [("R", 2 * US), ("S", 5 * US)] {
        let goes = c_goes(state);
        let [begins, wakes, woken, _, sleeps] = A_WAKES_B;
        let lines = [begins, c_runs, wakes, woken, &goes, sleeps, B_SLEEPS];
        assert_eq!(after_the_wakeup(state, true, &lines), Some(Step::Run(computes)), "{state}");
    }

    // The CPU of c takes b from its wake list, where b waits until c sleeps.
    let listed = "c-12 [001] d.h2. 1.000111: sched_wakeup: comm=b pid=11 prio=120 target_cpu=001";
    let goes = c_goes("S");
    let [begins, wakes, _, _, sleeps] = A_WAKES_B;
    let lines = [begins, c_runs, wakes, listed, &goes, sleeps, B_SLEEPS];
    assert_eq!(after_the_wakeup("listed", true, &lines), Some(Step::Run(2 * US)));
}

/// Fails if what a task takes to go to sleep were left in what the next one computes.
#[test]
fn the_sleep_of_the_task_before_is_no_computing() {
    let mut machine = free("uma-8");
    // Of the 6.18 whose costs these are; 6 us under 6.12, half of which comes later.
    machine.costs.sleep_ns = 4_193;
    let c_runs = "<idle>-0 [001] d..2. 1.000100: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=c next_pid=12 next_prio=120";
    for (state, computes) in [("R", 20 * US), ("S", 17 * US)] {
        let goes = format!(
            "c-12 [001] d..2. 1.000112: sched_switch: prev_comm=c prev_pid=12 prev_prio=120 prev_state={state} ==> next_comm=b next_pid=11 next_prio=120"
        );
        let [begins, wakes, woken, _, sleeps] = A_WAKES_B;
        let lines = [begins, c_runs, wakes, woken, &goes, sleeps, B_SLEEPS];
        let computed = last_step(&format!("sleeper-{state}"), &machine, &lines, "b");
        assert_eq!(computed, Some(Step::Run(computes)), "{state}");
    }
}

/// Fails if what it takes to move a wakee were left in what its waker computes, or taken off where it stays.
#[test]
fn moving_a_wakee_is_no_computing() {
    let mut machine = free("uma-8");
    machine.costs.wake_elsewhere_ns = 1_524; // 1,407 under 6.12
    for (cpu, computes) in [(1, 5_000), (2, 3_593)] {
        let there = |line: &str| {
            let line = line.replace("[001]", &format!("[00{cpu}]"));
            line.replace("swapper/1", &format!("swapper/{cpu}"))
        };
        let woken = A_WAKES_B[2].replace("target_cpu=001", &format!("target_cpu=00{cpu}"));
        let [begins, wakes, _, runs, sleeps] = A_WAKES_B;
        let lines = [begins, wakes, &woken, &there(runs), sleeps, &there(B_SLEEPS)];
        let computed = last_step(&format!("moved-{cpu}"), &machine, &lines, "a");
        assert_eq!(computed, Some(Step::Run(computes)), "to CPU {cpu}");
    }
}

/// Fails if the end of a call that has slept were left in what comes after it.
#[test]
fn the_end_of_a_call_that_has_slept_is_no_computing() {
    let mut machine = free("uma-8");
    machine.costs.sleep_ns = 4_193; // as above
    let both = try_read("woken-up", &(messages_to_b(2).join("\n") + "\n"), &machine);
    let steps = task(&both.expect("it can be read").plain, "b").1.steps.clone();
    let computes = steps.iter().filter(|step| matches!(step, Step::Run(_)));
    assert_eq!(
        Vec::from_iter(computes),
        [&Step::Run(20 * US), &Step::Run(17 * US), &Step::Run(17 * US)]
    );
}

/// For how long, in us, each of two computes on cores of that speed, of 1,024. a wakes b on another CPU three times, where
/// it has the lock of the run queue after whoever has slept there last.
fn computes_beside_lines(speed: u32) -> [Vec<u64>; 2] {
    let mut machine = free("uma-8");
    machine.costs.cache_line_ns.llc = US;
    (machine.costs.rq_lock_lines, machine.costs.wakeup_lines) = (1, 2);
    machine.cpus.iter_mut().for_each(|cpu| cpu.speed = speed);
    let c_sleeps = "c-12 [001] d..2. 1.000090: sched_switch: prev_comm=c prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120";
    let text = format!("{c_sleeps}\n{}\n", messages_to_b(2).join("\n"));
    let both = try_read(&format!("lines-{speed}"), &text, &machine);
    let recording = both.expect("it can be read").plain;
    ["a", "b"].map(|name| {
        let steps = task(&recording, name).1.steps.iter();
        let us = |ns: u64| ns * 1024 / u64::from(speed) / US;
        let computed = |step: &Step| if let Step::Run(ns) = step { Some(us(*ns)) } else { None };
        steps.filter_map(computed).collect()
    })
}

/// Fails if what one computes had the lines in it that the other had, for which a replay is charged anew; or if they took
/// slower cores longer.
#[test]
fn lines_of_a_run_queue_and_of_a_wakee_are_no_computing() {
    for speed in [1024, 512] {
        let [a, b] = computes_beside_lines(speed);
        assert_eq!(b, [17; 3], "the lock's line and its own two, at {speed}");
        assert_eq!(a, [100, 97, 97, 18], "two for where b was, and one for the lock, at {speed}");
    }
}

/// a computes for 10 us and wakes b, or what runs then does, as the flags have it; b is on the run queue 2 us later,
/// preempts a after 4 more and computes for 5; a goes on for 9, and sleeps.
fn preempting(rounds: u32, [waking, woken]: [&str; 2]) -> Recording {
    let round = |round: u32| {
        let at = |us: u32| format!("1.{:06}", round * 100 + us);
        let switch = |task: &str, us, prev: &str, state: &str, next: &str| {
            let named = |which: &str, task: &str| {
                let (comm, pid) = task.rsplit_once('-').unwrap();
                format!("{which}_comm={comm} {which}_pid={pid} {which}_prio=120")
            };
            let (prev, next) = (named("prev", prev), named("next", next));
            format!(
                "{task} [000] d..2. {}: sched_switch: {prev} prev_state={state} ==> {next}",
                at(us)
            )
        };
        let wake = |flags: &str, event: &str, us| {
            format!("a-10 [000] {flags} {}: {event}: comm=b pid=11 prio=120 target_cpu=000", at(us))
        };
        [
            switch("<idle>-0", 0, "swapper/0-0", "R", "a-10"),
            wake(waking, "sched_waking", 10),
            wake(woken, "sched_wakeup", 12),
            switch("a-10", 16, "a-10", "R+", "b-11"),
            switch("b-11", 21, "b-11", "S", "a-10"),
            switch("a-10", 30, "a-10", "S", "swapper/0-0"),
            format!(
                "<idle>-0 [000] d.h4. {}: sched_waking: comm=a pid=10 prio=120 target_cpu=000",
                at(90)
            ),
            format!(
                "<idle>-0 [000] dNh5. {}: sched_wakeup: comm=a pid=10 prio=120 target_cpu=000",
                at(90)
            ),
        ]
    };
    let lines: Vec<String> = (1..=rounds).flat_map(round).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    read_on(&format!("preempting-{rounds}-{waking}"), "uma-8", &lines)
}

/// Of the 15 us that a computes after its wakeup 6 are no computing, where there are enough to tell: 2 until b is on the
/// run queue, and 4 until it runs.
#[test]
fn what_a_wakeup_takes_comes_before_the_wakee() {
    let told = Call { queue_ns: 2_000, rest_ns: 4_000 };
    for (rounds, call) in [(40, told), (20, Call::default())] {
        let takes = u64::from(call.queue_ns + call.rest_ns);
        let recording = preempting(rounds, ["d..5.", "dN.6."]);
        let ((_, a), (b, _)) = (task(&recording, "a"), task(&recording, "b"));
        assert_eq!(a.calls.of(7), call, "{rounds}");
        let post = a.steps.iter().position(|step| *step == Step::Post(b, Wake::Plain)).unwrap();
        assert_eq!(a.steps[post + 1], Step::Run(15 * US - takes), "{rounds}");
        let workload = recording.workload("w", &free("uma-8"), Begins::Anywhere);
        let posts = workload.programs.iter().flat_map(|it| &it.ops);
        let calls =
            posts.filter_map(|op| if let Op::Post { call, .. } = op { Some(*call) } else { None });
        assert_eq!(calls.collect::<Vec<_>>(), vec![call; rounds as usize]);
    }
}

/// a puts b on the run queue of CPU 1, which idles or where c runs, in 8 us: 5 of these are the interrupt that it sends while
/// it has that queue's lock. Fails if they were counted twice, and before wakees of its own CPU, too.
#[test]
fn the_interrupt_is_no_part_of_what_a_wakeup_takes_beyond_the_figures() {
    let mut machine = free("uma-8");
    machine.costs.ipi_send_ns = 5 * US;
    machine.costs.idle_states[0].polling = false;
    for idles in [true, false] {
        let round = |round: u32| {
            let line = |task: &str, us: u32, event: &str| {
                let (task, cpu) = task.split_once(' ').expect("a task and its CPU");
                format!("{task} [00{cpu}] d..2. 1.{:06}: {event}", round * 100 + us)
            };
            let switch = |cpu: u32, us, [prev, state, next]: [&str; 3]| {
                let name = |task: &str| task.trim_end_matches(char::is_numeric).to_owned();
                let number = |task: &str| task.trim_start_matches(char::is_alphabetic).to_owned();
                let of = |which: &str, it: &str| {
                    format!(
                        "{which}_comm={0} {which}_pid={1} {which}_prio=120",
                        name(it),
                        number(it)
                    )
                };
                let by = format!("{}-{} {cpu}", name(prev), number(prev));
                let (prev, next) = (of("prev", prev), of("next", next));
                line(&by, us, &format!("sched_switch: {prev} prev_state={state} ==> {next}"))
            };
            let b = "comm=b pid=11 prio=120 target_cpu=001";
            let mut lines = vec![switch(0, 0, ["s0", "R", "a10"])];
            lines.extend((!idles).then(|| switch(1, 1, ["s0", "R", "c12"])));
            lines.push(line("a-10 0", 10, &format!("sched_waking: {b}")));
            lines.push(line("a-10 0", 18, &format!("sched_wakeup: {b}")));
            lines.push(switch(1, 22, [if idles { "s0" } else { "c12" }, "R", "b11"]));
            lines.push(switch(0, 30, ["a10", "S", "s0"]));
            lines.push(switch(1, 40, ["b11", "S", if idles { "s0" } else { "c12" }]));
            lines.extend((!idles).then(|| switch(1, 50, ["c12", "S", "s0"])));
            for (name, task) in [("a", 10), ("c", 12)] {
                let woken = format!("comm={name} pid={task} prio=120 target_cpu=000");
                lines.push(line("s-0 2", 90, &format!("sched_waking: {woken}")));
            }
            lines
        };
        let lines: Vec<String> = (1..=40).flat_map(round).collect();
        let text = lines.join("\n").replace("s-0", "<idle>-0") + "\n";
        let both = try_read(&format!("interrupting-{idles}"), &text, &machine);
        let recording = both.expect("it can be read").plain;
        assert_eq!(task(&recording, "a").1.calls.of(7).queue_ns, 3_000, "{idles}");
        let preempt_ns = if idles { 0 } else { 4_000 };
        assert_eq!(task(&recording, "b").1.preempt_ns, preempt_ns, "{idles}");
        let workload = recording.workload("w", &machine, Begins::Anywhere);
        let b = workload.programs.iter().find(|program| program.name == "b");
        assert_eq!(b.expect("b runs").preempt_ns, preempt_ns);
    }
}

/// The same of interrupts, also of those that a softirq ends in: they are on the time of a, which computes for 19 us.
#[test]
fn what_an_interrupt_takes_comes_before_whom_it_wakes() {
    let told = Call { queue_ns: 2_000, rest_ns: 4_000 };
    for (rounds, arrival) in [(40, told), (20, Call::default())] {
        for flags in [["d.h4.", "dNh5."], ["d.s4.", "dNs5."]] {
            let recording = preempting(rounds, flags);
            let ((_, a), (_, b)) = (task(&recording, "a"), task(&recording, "b"));
            assert_eq!(b.arrival, arrival, "{rounds}, {flags:?}");
            let taken = if flags[0] == "d.h4." { told } else { arrival };
            let computes = 25 * US - u64::from(taken.queue_ns + taken.rest_ns);
            assert!(
                a.steps.contains(&Step::Run(computes)),
                "{rounds}, {flags:?}: {:?}",
                &a.steps[..4]
            );
            let workload = recording.workload("w", &free("uma-8"), Begins::Anywhere);
            let program = workload.programs.iter().find(|program| program.name == "b");
            assert_eq!(program.expect("b runs").arrival, arrival);
        }
    }
}

/// An interrupt on CPU 0 wakes b, which CPU 1 takes from its wake list 9 us later; and one that comes while b runs, 50 us
/// after it was woken, wakes nobody. Fails if what lies between were taken for what interrupts take.
#[test]
fn what_an_interrupt_takes_is_not_told_by_others() {
    let round = |round: u32| {
        let wake = |task: &str, cpu: u32, flags: &str, us: u32, event: &str| {
            let at = format!("1.{:06}", round * 100 + us);
            format!("{task} [00{cpu}] {flags} {at}: {event}: comm=b pid=11 prio=120 target_cpu=001")
        };
        let switch = |task: &str, us: u32, rest: &str| {
            format!("{task} [001] d..2. 1.{:06}: sched_switch: {rest}", round * 100 + us)
        };
        let runs = "prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120";
        let sleeps = "prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120";
        [
            wake("<idle>-0", 0, "d.h4.", 0, "sched_waking"),
            wake("<idle>-0", 1, "dN.3.", 9, "sched_wakeup"),
            switch("<idle>-0", 10, runs),
            wake("b-11", 1, "d.h4.", 50, "sched_waking"),
            wake("b-11", 1, "d.h5.", 51, "sched_wakeup"),
            switch("b-11", 80, sleeps),
        ]
    };
    let lines: Vec<String> = (1..=40).flat_map(round).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let recording = read_on("told-by-others", "uma-8", &lines);
    let (_, b) = task(&recording, "b");
    // The first switch is that of CPU 1, 1 us after it has queued b.
    assert_eq!(b.arrival, Call { queue_ns: 0, rest_ns: 1_000 });
    assert!(
        b.steps.iter().all(|it| !matches!(it, Step::Run(ns) if *ns != 70 * US)),
        "{:?}",
        b.steps
    );
}

/// a wakes b, which its CPU, that idles, runs 30 us later, and c on its own CPU, which is queued 2 us later.
fn wakes_idle(round: u32) -> Vec<String> {
    let line = |task: &str, us: u32, event: &str| {
        let (task, cpu) = task.split_once(' ').expect("a task and its CPU");
        format!("{task} [00{cpu}] d..2. 1.{:06}: {event}", round * 200 + us)
    };
    let wake =
        |task: &str, us, event: &str, woken: &str| line(task, us, &format!("{event}: {woken}"));
    let switch = |task: &str, us, prev: &str, state: &str, next: &str| {
        let prev = format!("prev_comm={} prev_pid={} prev_prio=120", &prev[..1], &prev[1..]);
        let next = format!("next_comm={} next_pid={} next_prio=120", &next[..1], &next[1..]);
        line(task, us, &format!("sched_switch: {prev} prev_state={state} ==> {next}"))
    };
    let (b, c) = ("comm=b pid=11 prio=120 target_cpu=001", "comm=c pid=12 prio=120 target_cpu=000");
    let a = "comm=a pid=10 prio=120 target_cpu=000";
    vec![
        switch("<idle>-0 0", 0, "s0", "R", "a10"),
        wake("a-10 0", 10, "sched_waking", b),
        wake("a-10 0", 11, "sched_waking", c),
        wake("a-10 0", 13, "sched_wakeup", c),
        switch("a-10 0", 15, "a10", "S", "c12"),
        switch("c-12 0", 20, "c12", "S", "s0"),
        wake("<idle>-0 1", 30, "sched_wakeup", b),
        switch("<idle>-0 1", 40, "s0", "R", "b11"),
        switch("b-11 1", 60, "b11", "S", "s0"),
        wake("<idle>-0 0", 190, "sched_waking", a),
        wake("<idle>-0 0", 190, "sched_wakeup", a),
    ]
}

/// What b takes beyond the figures, and beyond what calls of a take, is told if it came often enough.
#[test]
fn what_leaving_idle_takes_is_that_of_the_wakee() {
    let mut machine = free("uma-8");
    machine.costs.idle_states.iter_mut().for_each(|state| state.polling = false);
    (machine.costs.idle_states[0].exit_ns, machine.costs.ipi_delivery_ns.llc) = (7_000, 11_000);
    machine.costs.ipi_send_ns = 1_000;
    for (rounds, beyond) in [(40, 10_000), (20, 0)] {
        let lines: Vec<String> = (1..=rounds).flat_map(wakes_idle).collect();
        let text = lines.join("\n") + "\n";
        let both = try_read(&format!("idle-{rounds}"), &text, &machine).expect("it can be read");
        assert_eq!(task(&both.plain, "b").1.idle_exit_ns, beyond, "{rounds}");
        assert_eq!(task(&both.plain, "a").1.idle_exit_ns, 0, "an interrupt wakes it");
    }
}

/// b is woken while it is still on its CPU: if it then sleeps, that wakeup ended the sleep; if it is
/// woken once more, it did not.
#[test]
fn a_wakeup_before_the_sleep_ends_it_unless_another_does() {
    let start = [
        "<idle>-0 [001] d..2. 1.000100: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120",
        "<idle>-0 [000] d..2. 1.000100: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120",
        "a-10 [000] d..2. 1.000110: sched_waking: comm=b pid=11 prio=120 target_cpu=001",
        "b-11 [001] d..2. 1.000111: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120",
    ];
    let again = "a-10 [000] d..2. 1.000120: sched_waking: comm=b pid=11 prio=120 target_cpu=001";
    let end = [
        "a-10 [000] d..2. 1.000121: sched_wakeup: comm=b pid=11 prio=120 target_cpu=001",
        "<idle>-0 [001] d..2. 1.000122: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120",
        "b-11 [001] d..2. 1.000132: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120",
    ];
    let once = read_on("early", "uma-8", &[&start[..], &end].concat());
    let twice = read_on("again", "uma-8", &[&start[..], &[again], &end].concat());
    for (recording, at) in [(once, 10 * US), (twice, 20 * US)] {
        let (a, waker) = task(&recording, "a");
        let (b, wakee) = task(&recording, "b");
        assert_eq!(waker.steps[..2], [Step::Run(at), Step::Post(b, Wake::Plain)]);
        assert_eq!(wakee.steps, [Step::Run(11 * US), Step::Await(a), Step::Run(10 * US)]);
    }
}

/// What interrupts wake at intervals that do not depend on the computing keeps the times; what sleeps
/// for a while, the while.
#[test]
fn arrivals_keep_their_times_and_sleeps_their_length() {
    let lines = |wakes: &[(u64, u64)]| -> Vec<String> {
        let turn = |&(wake, sleep): &(u64, u64)| {
            [
                format!(
                    "<idle>-0 [001] dNh2. 1.{wake:06}: sched_waking: comm=t pid=11 prio=120 target_cpu=001"
                ),
                format!(
                    "<idle>-0 [001] dNh2. 1.{wake:06}: sched_wakeup: comm=t pid=11 prio=120 target_cpu=001"
                ),
                format!(
                    "<idle>-0 [001] d..2. 1.{wake:06}: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=t next_pid=11 next_prio=120"
                ),
                format!(
                    "t-11 [001] d..2. 1.{sleep:06}: sched_switch: prev_comm=t prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120"
                ),
            ]
        };
        wakes.iter().flat_map(turn).collect()
    };
    let steps = |name: &str, wakes: &[(u64, u64)]| {
        let lines = lines(wakes);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        task(&read_on(name, "uma-8", &lines), "t").1.steps.clone()
    };
    let sleeps_of = |steps: &[Step]| -> Vec<Step> {
        steps.iter().copied().filter(|step| step.sleeps()).collect()
    };
    let periodic = [(100, 110), (200, 250), (300, 305), (400, 480), (500, 510)];
    let times = [0, 100, 200, 300, 400].map(|us| Step::Until(us * US));
    assert_eq!(sleeps_of(&steps("periodic", &periodic)), times);
    let pauses = [(100, 110), (160, 210), (260, 265), (315, 395), (445, 455)];
    let whiles = [50; 4].map(|us| Step::Sleep(us * US));
    assert_eq!(sleeps_of(&steps("pauses", &pauses))[1..], whiles);
}

/// Interrupts on CPU 1 wake t, which computes on CPUs 0 and 1 in turn.
fn interrupted(rounds: u32, on: [u32; 2]) -> Recording {
    let round = |round: u32| {
        let (cpu, irq, at) = (round % 2, on[round as usize % 2], round * 100);
        let of_t = |event: &str, us: u32| {
            format!(
                "<idle>-0 [{irq:03}] d.h2. 1.{:06}: {event}: comm=t pid=11 prio=120 target_cpu={cpu:03}",
                at + us
            )
        };
        let idle = format!("swapper/{cpu} prev_pid=0 prev_prio=120 prev_state=R");
        let switch = |who: &str, prev: &str, next: &str, us: u32| {
            let (at, next) = (at + us, format!("next_comm={next} next_prio=120"));
            format!("{who} [{cpu:03}] d..2. 1.{at:06}: sched_switch: prev_comm={prev} ==> {next}")
        };
        let t = "t prev_pid=11 prev_prio=120 prev_state=S";
        [
            of_t("sched_waking", 0),
            of_t("sched_wakeup", 2),
            switch("<idle>-0", &idle, "t next_pid=11", 5),
            switch("t-11", t, &format!("swapper/{cpu} next_pid=0"), 30),
        ]
    };
    let lines: Vec<String> = (1..=rounds).flat_map(round).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    read_on(&format!("interrupted-{rounds}-{on:?}"), "uma-8", &lines)
}

/// Fails if a timer, which interrupts where its task is, were taken for a device.
#[test]
fn a_device_interrupts_one_cpu_wherever_its_task_is() {
    for (rounds, on, expected) in
        [(80, [1, 1], Some(1)), (20, [1, 1], None), (80, [0, 1], None), (80, [3, 2], None)]
    {
        let recording = interrupted(rounds, on);
        assert_eq!(task(&recording, "t").1.interrupted_on, expected, "{rounds}, {on:?}");
        let workload = recording.workload("w", &free("uma-8"), Begins::Anywhere);
        let program = workload.programs.iter().find(|program| program.name == "t");
        assert_eq!(program.expect("t runs").interrupted_on, expected);
    }
}

/// It waits for a disk after it was called.
#[test]
fn the_few_sleeps_of_who_mostly_waits_for_others_keep_their_length() {
    let mut lines = messages_to_b(100);
    let at = |us: u64| format!("1.{:06}", 20_000 + us);
    lines.push(format!(
        "<idle>-0 [001] dNh2. {}: sched_waking: comm=b pid=11 prio=120 target_cpu=001",
        at(0)
    ));
    lines.push(A_WAKES_B[3].replace("1.000112", &at(0)));
    lines.push(B_SLEEPS.replace("1.000132", &at(10)));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let recording = read_on("called", "uma-8", &lines);
    let (_, called) = task(&recording, "b");
    let kept: Vec<&Step> = called
        .steps
        .iter()
        .filter(|step| matches!(step, Step::Sleep(_) | Step::Until(_)))
        .collect();
    assert!(matches!(kept[..], [Step::Sleep(_)]), "{kept:?}");
    // Of one that nobody calls when it was woken is kept.
    let alone = [
        A_WAKES_B[0],
        A_WAKES_B[4],
        &lines[lines.len() - 3].replace("comm=b pid=11", "comm=a pid=10"),
    ];
    let runs = A_WAKES_B[0].replace("1.000100", &at(0));
    let recording = read_on("alone", "uma-8", &[&alone[..], &[&runs]].concat());
    assert_eq!(task(&recording, "a").1.steps[1], Step::Until(19_900 * US));
}

#[test]
fn when_a_task_was_forked_is_known() {
    let (start, rest) = A_WAKES_B.split_at(1);
    let lines = [start, &A_FORKS_C, rest, &[B_SLEEPS]].concat();
    let recording = read_on("forked", "uma-8", &lines);
    assert_eq!(["a", "c"].map(|name| task(&recording, name).1.forked_ns), [0, 5 * US]);
    let at_end = ["a", "c"].map(|name| task(&recording, name).1.at_end);
    assert_eq!(at_end, [AtEnd::Sleeps(17 * US), AtEnd::Runs]);
}

/// Two tasks of a name wake each other in softirqs: a hundred times, and, if `by_idle`, CPUs that idle wake them
/// as often.
fn wakes_in_softirqs(by_idle: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut at = 1_000_000;
    let mut line = |place: String, at: u64, event: String| {
        let time = format!("{}.{:06}", at / 1_000_000, at % 1_000_000);
        lines.push(format!("{place} {time}: {event}"));
    };
    let wakes =
        |pid: u64| format!("sched_waking: comm=p pid={pid} prio=120 target_cpu=00{}", pid - 10);
    let runs = |pid: u64| {
        format!(
            "sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=p next_pid={pid} next_prio=120"
        )
    };
    let sleeps = |pid: u64| {
        format!(
            "sched_switch: prev_comm=p prev_pid={pid} prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120"
        )
    };
    for _ in 0..100 {
        // 10 runs, and 11 is woken; then the other way round.
        line("<idle>-0 [000] d..2.".into(), at, runs(10));
        line("p-10 [000] d.s3.".into(), at + 5, wakes(11));
        line("<idle>-0 [001] d..2.".into(), at + 6, runs(11));
        line("p-10 [000] d..2.".into(), at + 10, sleeps(10));
        line("p-11 [001] d.s3.".into(), at + 15, wakes(10));
        line("<idle>-0 [000] d..2.".into(), at + 16, runs(10));
        line("p-11 [001] d..2.".into(), at + 20, sleeps(11));
        line("p-10 [000] d..2.".into(), at + 30, sleeps(10));
        let by = if by_idle { "d.s3." } else { "d.h3." };
        line(format!("<idle>-0 [002] {by}"), at + 40, wakes(11));
        line("<idle>-0 [001] d..2.".into(), at + 41, runs(11));
        line("p-11 [001] d..2.".into(), at + 50, sleeps(11));
        line(format!("<idle>-0 [002] {by}"), at + 99, wakes(10));
        at += 100;
    }
    lines
}

#[test]
fn a_softirq_that_wakes_as_often_while_others_run_is_no_post_of_who_happens_to() {
    let posts = |name: &str, by_idle: bool| {
        let lines = wakes_in_softirqs(by_idle);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let recording = read_on(name, "uma-8", &lines);
        let steps = recording.tasks.iter().flat_map(|task| &task.steps);
        steps.filter(|step| matches!(step, Step::Post(..))).count()
    };
    assert_eq!(posts("loopback", false), 200);
    assert_eq!(posts("disk", true), 0);
}

/// b runs on CPU 1, and then c does: the switch between is missing. b is woken once more, or CPU 1 idles, or neither.
#[test]
fn who_is_woken_again_or_whose_cpu_idles_has_slept_unseen() {
    let c = "c-12 [001] d..2. 1.000150: sched_waking: comm=c pid=12 prio=120 target_cpu=001";
    let idles = B_SLEEPS.replace("b-11", "c-12").replace("=b", "=c").replace("=11", "=12");
    let idles = idles.replace("1.000132", "1.000160");
    let later = |line: &str| line.replace("1.0001", "1.0002");
    let again = [A_WAKES_B[0], A_WAKES_B[1], A_WAKES_B[2]].map(later);
    let waits = |name: &str, more: &[String]| {
        let lines = A_WAKES_B.iter().copied().chain([c]).chain(more.iter().map(String::as_str));
        let recording = read_on(name, "uma-8", &lines.collect::<Vec<_>>());
        let (_, b) = task(&recording, "b");
        (b.steps.iter().filter(|step| step.sleeps()).count(), b.at_end)
    };
    assert_eq!(waits("lost", &[]), (1, AtEnd::Runs));
    assert_eq!(waits("lost-idle", &[idles]), (1, AtEnd::Sleeps(10 * US)));
    assert_eq!(waits("lost-again", &again), (2, AtEnd::Runs));
}

/// Its number is free, and the next task that is seen takes it.
#[test]
fn who_has_exited_keeps_its_name() {
    let dies = B_SLEEPS.replace("prev_state=S", "prev_state=X");
    let fill = messages_to_b(100);
    let fill: Vec<String> = fill[1..]
        .iter()
        .map(|line| {
            line.replace("=b pid=11", "=f pid=14")
                .replace("next_comm=b next_pid=11", "next_comm=f next_pid=14")
                .replace("prev_comm=b prev_pid=11", "prev_comm=f prev_pid=14")
                .replace("b-11", "f-14")
        })
        .collect();
    let later = |by: u64| {
        fill.iter().map(move |line| {
            let (place, event) = line.split_once(" 1.").expect("it has a time");
            format!("{place} {by}.{event}")
        })
    };
    let last = "<idle>-0 [002] d..2. 30.000000: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=n next_pid=15 next_prio=120";
    let mut lines: Vec<String> = A_WAKES_B.iter().map(|line| (*line).to_owned()).collect();
    lines.push(dies);
    // More than what is read before the first step is handed out.
    lines.extend((2..30).flat_map(later));
    lines.push(last.into());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let recording = read_on("number", "uma-8", &lines);
    let names: Vec<&str> = recording.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "f", "n"]);
}

/// On one CPU b preempts a at each of its wakeups and finds it awake when it answers; elsewhere it
/// has woken it.
#[test]
fn an_answer_to_a_preempted_waker_is_waited_for_if_such_tasks_answer() {
    let mut lines: Vec<String> = A_WAKES_B.iter().map(|line| (*line).to_owned()).collect();
    let wake = |at: u64, cpu: u32, from: &str, to: &str| {
        ["sched_waking", "sched_wakeup"].map(|event| {
            let pid = if to == "a" { 10 } else { 11 };
            let by = if from == "a" { 10 } else { 11 };
            format!("{from}-{by} [{cpu:03}] d..2. 1.{at:06}: {event}: comm={to} pid={pid} prio=120 target_cpu=000")
        })
    };
    lines.extend(wake(120, 1, "b", "a"));
    lines.push("<idle>-0 [000] d..2. 1.000121: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120".into());
    lines.push(B_SLEEPS.replace("1.000132", "1.000122"));
    lines.extend(wake(130, 0, "a", "b"));
    lines.push("a-10 [000] d..2. 1.000130: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120".into());
    lines.push("b-11 [000] d..2. 1.000150: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=a next_pid=10 next_prio=120".into());
    lines.push("a-10 [000] d..2. 1.000160: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120".into());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let recording = read_on("answer", "uma-8", &lines);
    let (a, caller) = task(&recording, "a");
    let (b, answerer) = task(&recording, "b");
    let waits = |task: &RecordedTask| {
        task.steps.iter().filter(|step| matches!(step, Step::Await(_))).count()
    };
    assert_eq!((waits(caller), waits(answerer)), (2, 2), "{caller:?} {answerer:?}");
    let posted = caller.steps.iter().rposition(|step| matches!(step, Step::Post(..))).unwrap();
    assert_eq!(caller.steps[posted + 1..], [Step::Await(b), Step::Run(10 * US)]);
    assert_eq!(answerer.steps.last(), Some(&Step::Post(a, Wake::Sync)));
}

/// Of one name, b preempts its wakers, and wakes none: elsewhere a wakes it, and it lets that go on. Fails if tasks of a name
/// were taken to answer each other for waking each other.
#[test]
fn a_helper_of_the_same_name_that_wakes_nobody_has_not_answered() {
    let preempts = [
        "a-10 [000] d..2. 1.000220: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120",
        "a-10 [000] d..2. 1.000240: sched_waking: comm=b pid=11 prio=120 target_cpu=000",
        "a-10 [000] d..2. 1.000240: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000",
        "a-10 [000] d..2. 1.000241: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120",
        "b-11 [000] d..2. 1.000250: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=a next_pid=10 next_prio=120",
        "a-10 [000] d..2. 1.000260: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120",
    ];
    let lines = [&A_WAKES_B[..], &[B_SLEEPS], &preempts].concat();
    let of_one_name: Vec<String> =
        lines.iter().map(|line| line.replace("comm=b", "comm=a").replace("b-11", "a-11")).collect();
    let lines: Vec<&str> = of_one_name.iter().map(String::as_str).collect();
    let recording = read_on("helper", "uma-8", &lines);
    let helper = recording.tasks.iter().find(|task| task.pid == 11).expect("it is there");
    assert!(!helper.steps.iter().any(|step| matches!(step, Step::Post(..))), "{:?}", helper.steps);
}

#[test]
fn a_trace_in_which_nobody_sleeps_is_refused_in_one_line() {
    let error = try_read("nobody", &format!("{}\n", A_WAKES_B[0]), &free("uma-8"))
        .err()
        .expect("it is refused")
        .to_string();
    assert!(error.contains("no task of it sleeps") && !error.contains('\n'), "{error}");
}

#[test]
fn a_trace_of_hours_is_refused_in_one_line() {
    let sleep = |second: u32| {
        format!(
            "a-10 [000] d..2. {second}.000000: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n"
        )
    };
    let text: String = (0..500).map(|turn| sleep(turn * 9)).collect();
    let error = try_read("hours", &text, &free("uma-8")).err().expect("it is refused").to_string();
    assert!(error.contains("longer than an hour") && !error.contains('\n'), "{error}");
}

/// A line of a trace, likely or not.
fn line() -> impl Strategy<Value = String> {
    let comm = prop::sample::select(vec!["a", "b", "[replay]", "swapper/0", "x y"]);
    let time = prop_oneof![0..1_000_000u64, Just(u64::MAX / 2_000)];
    let pid = 0..6u32;
    let state = prop::sample::select(vec!["S", "R", "R+", "X", "D", "I"]);
    let flags = prop::sample::select(vec!["d..2.", "d.h2.", "d.s4."]);
    (comm.clone(), pid.clone(), 0..9u32, time, comm, pid, 0..9u32, state, flags, 0..6u32).prop_map(
        |(comm, pid, cpu, time, other, to, target, state, flags, event)| {
            let head = format!("{comm}-{pid} [{cpu:03}] {flags} {}.{:06}: ", time / 1_000_000, time % 1_000_000);
            head + &match event {
                0 | 1 => format!("sched_switch: prev_comm={comm} prev_pid={pid} prev_prio=120 prev_state={state} ==> next_comm={other} next_pid={to} next_prio=120"),
                2 => format!("sched_waking: comm={other} pid={to} prio=120 target_cpu={target:03}"),
                3 => format!("sched_wakeup: comm={other} pid={to} prio=-1 target_cpu={target:03}"),
                4 => format!("sched_process_fork: comm={comm} pid={pid} child_comm={other} child_pid={to}"),
                _ => format!("sched_wakeup_new: comm={other} pid={to} prio=139 target_cpu={target:03}"),
            }
        },
    )
}

fn check_any(lines: &[String]) {
    let machine = load("uma-8").expect("the machine is known");
    match try_read("any", &(lines.join("\n") + "\n"), &machine) {
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        Ok(both) => {
            let workload = both.plain.workload("any", &machine, Begins::AsRecorded);
            assert_eq!(workload.check(), Ok(()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_trace_says_gives_a_sound_workload_or_one_line(lines in prop::collection::vec(line(), 1..60)) {
        check_any(&lines);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[ignore = "make fuzz"]
    fn fuzz_traces(lines in prop::collection::vec(line(), 1..200)) {
        check_any(&lines);
    }
}

/// What each of so many tasks is read to have computed, that ran on a CPU each for 100 ms.
fn computed_beside_others(tasks: u32) -> u64 {
    let mut machine = free("pack:1 l3:1 core:8 pu:1");
    machine.costs.all_busy_clock_pct = 50;
    let switch = |cpu, time, (prev, prev_pid): (String, u32), (next, next_pid): (String, u32)| {
        let before = format!("prev_comm={prev} prev_pid={prev_pid} prev_prio=120 prev_state=S");
        let after = format!("next_comm={next} next_pid={next_pid} next_prio=120");
        format!("{prev}-{prev_pid} [{cpu:03}] d..2. {time}: sched_switch: {before} ==> {after}\n")
    };
    let idle = |cpu| (format!("swapper/{cpu}"), 0);
    let task = |cpu| (format!("t{cpu}"), 10 + cpu);
    let begins = (0..tasks).map(|cpu| switch(cpu, "1.000000", idle(cpu), task(cpu)));
    let ends = (0..tasks).map(|cpu| switch(cpu, "1.100000", task(cpu), idle(cpu)));
    // One is seen to sleep.
    let again = [
        "<idle>-0 [000] d..2. 1.200000: sched_waking: comm=t0 pid=10 prio=120 target_cpu=000\n"
            .to_owned(),
        switch(0, "1.200001", idle(0), task(0)),
        switch(0, "1.200002", task(0), idle(0)),
    ];
    let text: String = begins.chain(ends).chain(again).collect();
    let recording = try_read("busy", &text, &machine).expect("it can be read").plain;
    let runs = recording.tasks.iter().flat_map(|task| &task.steps).map(|step| match step {
        Step::Run(ns) => *ns,
        _ => 0,
    });
    runs.sum::<u64>() / u64::from(tasks)
}

/// Fails if time on a package that was busy enough to slow down counted for as much as elsewhere, or that before it did so
/// for less.
#[test]
fn cores_of_a_busy_package_compute_less() {
    assert!(computed_beside_others(1) >= 100_000 * US);
    let busy = computed_beside_others(8);
    assert!((51_000 * US..52_000 * US).contains(&busy), "{busy}");
}
