//! What the benchmark models do, seen by the reference interpreter.

mod common;

use common::{End, Interpreter, Step};
use placewise_workload::program::*;
use placewise_workload::{build, canonical, default_cases, names, parameters};

const MS: Nanos = 1_000_000;

fn workload(name: &str, case: &str) -> Workload {
    build(name, &case.parse().unwrap()).unwrap()
}

fn is_send(step: &Step) -> bool {
    matches!(step.op, Op::Send { .. })
}

fn is_receive(step: &Step) -> bool {
    matches!(step.op, Op::Receive { .. })
}

#[test]
fn hackbench_has_forty_tasks_per_group_and_main() {
    let workload = workload("hackbench", "groups=2;loops=1");
    let mut run = Interpreter::new(&workload);
    assert_eq!(run.run(Nanos::MAX), End::AllExited);
    assert_eq!(run.tasks.len(), 2 * 40 + 1);
    // Per group first the receivers, each with its own channel, then the senders.
    let first_group: Vec<_> =
        run.tasks[1..41].iter().map(|task| (task.program, task.base)).collect();
    let receivers = (0..20).map(|channel| (1, channel));
    let senders = (0..20).map(|_| (2, 0));
    assert_eq!(first_group, receivers.chain(senders).collect::<Vec<_>>());
}

#[test]
fn hackbench_conserves_messages() {
    let (groups, fds, loops) = (3, 4, 25);
    let workload = workload("hackbench", &format!("groups={groups};fds={fds};loops={loops}"));
    let mut run = Interpreter::new(&workload);
    assert_eq!(run.run(Nanos::MAX), End::AllExited);
    for channel in 0..groups * fds {
        let sends = run.steps_where(|step| is_send(step) && step.index == channel);
        let receives = run.steps_where(|step| is_receive(step) && step.index == channel);
        assert_eq!((sends.len(), receives.len()), (fds * loops, fds * loops));
        assert!(
            receives.iter().all(|step| step.task == receives[0].task),
            "one reader per channel"
        );
        // Each of the group's senders, and no other task, writes `loops` of them.
        let mut senders: Vec<_> = sends.iter().map(|step| step.task).collect();
        senders.sort_unstable();
        assert!(senders.chunk_by(|a, b| a == b).all(|messages| messages.len() == loops));
        assert!(senders.iter().all(|sender| (sender - 1) / (2 * fds) == channel / fds));
    }
    let messages = (groups * fds * fds * loops) as u64;
    assert_eq!(run.count, messages);
    assert_eq!(workload.metrics, [Metric::Time { units: messages }]);
}

#[test]
fn hackbench_starts_the_clock_when_all_are_ready_and_sends_nothing_before() {
    let workload = workload("hackbench", "groups=2;loops=1");
    let ready_pipe = workload.channels.len() - 1;
    let mut run = Interpreter::new(&workload);
    run.run(Nanos::MAX);
    let start = run.steps.iter().position(|step| step.op == Op::Start).unwrap();
    let reports = |steps: &[Step]| {
        steps.iter().filter(|step| is_receive(step) && step.index == ready_pipe).count()
    };
    assert_eq!(reports(&run.steps[..start]), 80);
    assert!(!run.steps[..start].iter().any(|step| is_send(step) && step.index != ready_pipe));
}

#[test]
fn hackbench_transport_and_task_kind_are_chosen_by_the_case() {
    let default = workload("hackbench", "groups=1");
    assert!(default.channels.iter().all(|kind| *kind == ChannelKind::Pipe));
    let sockets = workload("hackbench", "tasks=process;ipc=socket;groups=1");
    let (ready_pipe, messages) = sockets.channels.split_last().unwrap();
    assert_eq!(*ready_pipe, ChannelKind::Pipe);
    assert!(messages.iter().all(|kind| *kind == ChannelKind::UnixSocket));
    assert!(default.programs[1].footprint_kib < sockets.programs[1].footprint_kib);
}

#[test]
fn schedpipe_alternates_strictly_and_counts_round_trips() {
    let workload = workload("schedpipe", "loops=50");
    let mut run = Interpreter::new(&workload);
    assert_eq!(run.run(Nanos::MAX), End::AllExited);
    assert_eq!(run.count, 50);
    let pipes: Vec<_> = run.steps_where(is_send).iter().map(|step| step.index).collect();
    assert_eq!(pipes, [0, 1].repeat(50));
}

#[test]
fn context_switch1_pairs_alternate_strictly_and_count_two_per_round_trip() {
    let workload = workload("context_switch1", "instances=3");
    let mut run = Interpreter::new(&workload);
    assert_eq!(run.run(MS), End::TimeUp);
    assert_eq!(run.tasks.len(), 1 + 3 * 2);
    let mut round_trips = 0;
    for instance in 0..3 {
        let pipes = [2 * instance, 2 * instance + 1];
        let sends = run.steps_where(|step| is_send(step) && pipes.contains(&step.index));
        assert!(sends.len() > 100);
        for (number, send) in sends.iter().enumerate() {
            assert_eq!(send.index, pipes[number % 2]);
            assert_eq!(send.task, sends[number % 2].task);
        }
        round_trips += run.steps_where(|step| is_receive(step) && step.index == pipes[1]).len();
        // The instance creates its own partner.
        assert_eq!(run.tasks[sends[1].task].parent, Some(sends[0].task));
    }
    assert_eq!(run.count, 2 * round_trips as u64);
}

#[test]
fn schbench_messengers_wake_their_own_workers_only_after_these_enlisted() {
    let workload = workload("schbench", "workers=3;messengers=2");
    let mut run = Interpreter::new(&workload);
    assert_eq!(run.run(2_000 * MS), End::TimeUp);
    assert_eq!(run.tasks.len(), 1 + 2 + 2 * 3);
    for worker in (0..run.tasks.len()).filter(|task| run.tasks[*task].program == 2) {
        let messenger = run.tasks[worker].parent.unwrap();
        let list = run.tasks[messenger].base as usize;
        let own = run.steps_where(|step| {
            (step.task == worker
                && matches!(step.op, Op::Enlist { .. } | Op::Wait { sample: true }))
                || (matches!(step.op, Op::WakeListed { .. }) && step.index == list)
        });
        let samples = own.iter().filter(|step| step.op == Op::Wait { sample: true }).count();
        // Spin, wake and wait, spin, sleep: 90 ms; 60 ms when a wake from the last round is pending.
        assert!((21..=34).contains(&samples), "{samples} samples in 2 s");
        let is_wake = |step: &Step| matches!(step.op, Op::WakeListed { .. });
        for (enlist, wait) in own
            .iter()
            .enumerate()
            .filter(|(_, step)| matches!(step.op, Op::Enlist { .. }))
            .filter_map(|(enlist, _)| {
                let wait =
                    own[enlist..].iter().position(|step| step.op == Op::Wait { sample: true });
                wait.map(|wait| (enlist, enlist + wait))
            })
        {
            let wake =
                own[enlist..wait].iter().find(|step| is_wake(step)).expect("a wake in between");
            assert_eq!(wake.task, messenger);
        }
    }
}

#[test]
fn schbench_spins_before_it_asks_and_samples_before_it_spins_again() {
    let worker = &workload("schbench", "cputime_us=7").programs[2].ops;
    let list = Object::own(0);
    assert_eq!(
        worker[..4],
        [Op::Spin { ns: 7_000 }, Op::Enlist { list }, Op::WakeParent, Op::Wait { sample: true }]
    );
}

#[test]
fn windows_follow_the_case() {
    let window = |case: &str| workload("schbench", case).window;
    assert_eq!(window("workers=16").measure, 10_000 * MS);
    assert_eq!(window("workers=16;messengers=2").measure, 40_000 * MS);
    assert_eq!(
        window("workers=512;window_ms=5;warmup_ms=2"),
        Window { warm_up: 2 * MS, measure: 5 * MS }
    );
}

#[test]
fn every_default_case_builds_a_sound_workload_and_is_canonical() {
    for name in names() {
        for nr_cpus in [1, 8, 112, 256, 384, 1024] {
            let cases = default_cases(name, nr_cpus).unwrap();
            assert!(!cases.is_empty());
            for case in cases {
                assert_eq!(build(name, &case).unwrap().check(), Ok(()));
                assert_eq!(canonical(name, &case).unwrap(), case);
            }
        }
    }
}

#[test]
fn default_cases_are_the_published_ladders() {
    let ladder = |name: &str, nr_cpus| -> Vec<String> {
        default_cases(name, nr_cpus).unwrap().iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        ladder("hackbench", 256),
        ["groups=1", "groups=2", "groups=4", "groups=8", "groups=16"]
    );
    assert_eq!(ladder("schedpipe", 224), [""]);
    assert_eq!(ladder("schbench", 256).len(), 10);
    assert_eq!(ladder("schbench", 128).last().unwrap(), "workers=256");
    let switches = ladder("context_switch1", 112);
    assert_eq!(switches.len(), 15);
    assert_eq!(switches[..3], ["instances=1", "instances=8", "instances=16"]);
    assert_eq!(switches[14], "instances=112");
}

#[test]
fn cases_are_put_into_published_order() {
    let case = "groups=08; ipc=pipe ;tasks=process".parse().unwrap();
    assert_eq!(
        canonical("hackbench", &case).unwrap().to_string(),
        "tasks=process;ipc=pipe;groups=8"
    );
}

#[test]
fn bad_cases_are_refused_with_the_remedy() {
    for (name, case, message) in [
        ("hackbench", "group=2", "hackbench: case key `group`: unknown; did you mean `groups`?"),
        ("hackbench", "groups=0", "hackbench: `groups=0`: expected a whole number from 1 to 512"),
        ("hackbench", "groups=-1", "hackbench: `groups=-1`: expected a whole number from 1 to 512"),
        ("hackbench", "ipc=tcp", "hackbench: `ipc=tcp`: expected pipe or socket"),
        (
            "schbench",
            "window_ms=9999999999999999999999",
            "expected a whole number from 1 to 600000 ms",
        ),
        ("schedpipe", "groups=1", "expected one of loops, user_ns, warmup_ms, window_ms"),
        ("hackbnech", "", "workload `hackbnech`: unknown; did you mean `hackbench`?"),
    ] {
        let error = build(name, &case.parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn largest_cases_stay_in_range() {
    for name in names() {
        let mut case = placewise_workload::Case::default();
        for parameter in parameters(name).unwrap() {
            if let placewise_workload::Value::Integer { max, .. } = parameter.value {
                case = case.with(parameter.name, max);
            }
        }
        assert_eq!(build(name, &case).unwrap().check(), Ok(()));
    }
}
