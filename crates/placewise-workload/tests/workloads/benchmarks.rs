//! What the benchmark models do, seen by the reference interpreter.

use std::collections::BTreeSet;

use super::common::{End, Interpreter, Step};
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
    let are_processes = |workload: &Workload| workload.programs[1..].iter().all(|it| it.process);
    assert!(are_processes(&sockets) && !are_processes(&default));
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
    for by_main in [false, true] {
        let partners = if by_main { "main" } else { "own" };
        pairs_alternate(
            &workload("context_switch1", &format!("instances=3;partners={partners}")),
            by_main,
        );
    }
}

fn pairs_alternate(workload: &Workload, partners_by_main: bool) {
    let mut run = Interpreter::new(workload);
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
        let creator = if partners_by_main { 0 } else { sends[0].task };
        assert_eq!(run.tasks[sends[1].task].parent, Some(creator));
    }
    assert_eq!(run.count, 2 * round_trips as u64);
}

#[test]
fn a_herd_runs_round_by_round_and_its_driver_waits_for_all() {
    let workload = workload("herd", "tasks=3;loops=20");
    let mut run = Interpreter::new(&workload);
    assert_eq!(run.run(Nanos::MAX), End::AllExited);
    assert_eq!((run.count, run.tasks.len()), (60, 1 + 1 + 3));
    let is_arrival = |step: &Step| matches!(step.op, Op::Arrive { .. });
    let arrivals: Vec<_> = run.steps_where(is_arrival).iter().map(|step| step.index).collect();
    // The driver begins a round, then all three are done.
    assert_eq!(arrivals, [0, 1, 1, 1].repeat(20));
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

/// The task that a server's requests come from, and the one that reads its responses.
fn partners(run: &Interpreter, request: usize, response: usize) -> [usize; 4] {
    let one = |wanted: &dyn Fn(&Step) -> bool, channel| {
        let tasks: BTreeSet<usize> = run
            .steps_where(|step| wanted(step) && step.index == channel)
            .iter()
            .map(|step| step.task)
            .collect();
        assert_eq!(tasks.len(), 1, "channel {channel}: {tasks:?}");
        tasks.into_iter().next().unwrap()
    };
    [
        one(&is_send, request),
        one(&is_receive, request),
        one(&is_send, response),
        one(&is_receive, response),
    ]
}

#[test]
fn each_client_of_tbench_and_netperf_talks_to_one_server_that_the_listener_forked() {
    for (name, case) in
        [("tbench", "clients=5"), ("netperf", "threads=5"), ("netperf", "proto=UDP_RR;threads=5")]
    {
        let workload = workload(name, case);
        let mut run = Interpreter::new(&workload);
        assert_eq!(run.run(30 * MS), End::TimeUp);
        assert_eq!(run.tasks.len(), 2 + 2 * 5);
        for pair in 0..5 {
            let [client, server, writer, reader] = partners(&run, 2 * pair, 2 * pair + 1);
            assert_eq!((client, server), (reader, writer));
            assert_eq!(run.tasks[client].parent, Some(0));
            let listener = run.tasks[server].parent.unwrap();
            assert_eq!(run.tasks[listener].program, 1);
        }
    }
}

#[test]
fn tbench_clients_send_nothing_before_all_are_connected_and_all_servers_sleep() {
    let workload = workload("tbench", "clients=4");
    let listen = workload.channels.len() - 1;
    let mut run = Interpreter::new(&workload);
    run.run(20 * MS);
    let is_connect = |step: &Step| is_send(step) && step.index == listen;
    let last_connect = run.steps.iter().rposition(is_connect).unwrap();
    let first_request = run.steps.iter().position(|step| is_send(step) && !is_connect(step));
    assert!(last_connect < first_request.unwrap());
    let starts =
        |step: &Step| matches!(step.op, Op::Run { .. }) && run.tasks[step.task].program == 3;
    let first_work = run.steps.iter().position(starts).unwrap();
    assert!(first_request.unwrap() < first_work, "a server works for a request only");
}

#[test]
fn tbench_reads_the_length_of_a_message_by_itself() {
    let workload = workload("tbench", "");
    for program in [2, 3] {
        let ops = &workload.programs[program].ops;
        let reads: Vec<u32> = ops
            .iter()
            .filter_map(|op| match op {
                Op::Receive { bytes, .. } => Some(*bytes),
                _ => None,
            })
            .collect();
        assert_eq!(reads.len(), 200);
        assert!(reads.chunks(2).all(|two| two[0] == 4 && two[1] > 4));
    }
}

#[test]
fn network_benchmarks_use_the_network() {
    let kinds = |name, case| workload(name, case).channels;
    assert!(kinds("tbench", "").iter().all(|kind| *kind == ChannelKind::LoopbackTcp));
    assert!(kinds("netperf", "").iter().all(|kind| *kind == ChannelKind::LoopbackTcp));
    let udp = kinds("netperf", "proto=UDP_RR");
    assert_eq!(udp[..2], [ChannelKind::LoopbackUdp; 2]);
}

#[test]
fn netperf_counts_one_transaction_per_round_trip() {
    let workload = workload("netperf", "user_ns=1000");
    let mut run = Interpreter::new(&workload);
    run.run(20 * MS);
    let requests = run.steps_where(|step| is_send(step) && step.index == 0).len() as u64;
    assert!(requests > 10 && run.count.abs_diff(requests) <= 1, "{requests} and {}", run.count);
}

#[test]
fn pgbench_sends_the_next_query_to_the_backend_that_has_replied() {
    for (case, threads) in [("clients=6", 1), ("clients=6;threads=3", 3)] {
        let workload = workload("pgbench", case);
        let mut run = Interpreter::new(&workload);
        run.run(60 * MS);
        assert_eq!(run.tasks.len(), 1 + 1 + (threads - 1) + 6);
        let backends: Vec<usize> =
            (0..run.tasks.len()).filter(|&task| run.tasks[task].parent == Some(1)).collect();
        assert_eq!(backends.len(), 6, "the postmaster forks them");
        for thread in 0..threads {
            let channel = 6 + thread;
            let own = |step: &&Step| is_receive(step) && step.index == channel;
            let driver = run.steps.iter().find(own).unwrap().task;
            let mut replies =
                run.steps.iter().filter(|step| is_send(step) && step.index == channel);
            let answers = run
                .steps
                .iter()
                .filter(|step| matches!(step.op, Op::Reply { .. }) && step.task == driver);
            let mut answered = 0;
            for answer in answers {
                let replied = replies.next().unwrap().task;
                assert_eq!(answer.index, run.tasks[replied].base as usize);
                answered += 1;
            }
            assert!(answered > 20);
        }
    }
}

#[test]
fn pgbench_backends_lock_both_relations_at_the_start_and_at_the_end() {
    let section = |relation, ns| {
        let mutex = Object::shared(relation);
        [Op::Lock { mutex }, Op::Run { ns }, Op::Unlock { mutex }]
    };
    let sections = [section(0, 5), section(1, 5)].concat();
    let work = Op::RunAbout { ns: 66_000, spread_pct: 50 };
    let log = Op::Device { ns: 40_000, random_pct: 25 };
    for (case, rest) in [("", vec![work]), (";log_us=40", vec![work, log])] {
        let workload = workload("pgbench", &format!("db=15GB;lock_ns=20{case}"));
        let backend = &workload.programs[2].ops;
        let expected = [sections.clone(), rest, sections.clone()].concat();
        assert_eq!(backend[3..3 + expected.len()], expected);
    }
}

#[test]
fn dbench_flushes_go_through_a_kworker_and_a_device() {
    let workload = workload("dbench", "groups=3;kworkers=2;device_us=70");
    let mut run = Interpreter::new(&workload);
    run.run(20 * MS);
    let queue = 3;
    let flushes = run.steps_where(|step| is_send(step) && step.index == queue);
    assert!(flushes.len() > 10);
    for client in 0..3 {
        let of_client = |step: &Step| run.tasks[step.task].program == 1 && step.task == 3 + client;
        let ops = run.steps_where(|step| of_client(step) && step.op == Op::Count).len();
        let own = run.steps_where(|step| of_client(step) && is_send(step));
        assert_eq!(ops / 83, own.len());
        let done =
            run.steps_where(|step| matches!(step.op, Op::Reply { .. }) && step.index == client);
        assert!(own.len() - done.len() <= 1, "each flush is answered to who asked");
        for (asked, done) in own.iter().zip(done) {
            assert_eq!(run.tasks[done.task].program, 2);
            assert!(done.time >= asked.time + 70_000);
        }
    }
}

#[test]
fn windows_follow_the_case() {
    let window = |case: &str| workload("schbench", case).window;
    assert_eq!(window("workers=16").measure, 10_000 * MS);
    assert_eq!(window("workers=16;messengers=2").measure, 40_000 * MS);
    assert_eq!(
        window("workers=512;window_ms=5;warmup_ms=2"),
        Window { warm_up: 2 * MS, until_steady: false, measure: 5 * MS }
    );
}

/// Fails if a run that is over before the usual window begins is measured in that.
#[test]
fn few_messages_are_all_simulated() {
    let window = |case: &str| workload("hackbench", case).window;
    assert_eq!(
        window("groups=1"),
        Window { warm_up: 400 * MS, until_steady: true, measure: 600 * MS }
    );
    assert_eq!(window("groups=1;loops=10000;warmup_ms=400").warm_up, 400 * MS);
    let whole = window("groups=1;loops=10000");
    assert_eq!((whole.warm_up, whole.until_steady), (0, false));
    assert!(whole.measure > 60_000 * MS);
}

/// Fails if what balancing spreads in the first seconds of a run that takes tens is measured before it has.
#[test]
fn a_million_loops_are_warmed_up_for_longer() {
    let window = |case: &str| workload("hackbench", case).window;
    let long = window("groups=5;loops=1000000");
    assert_eq!((long.warm_up, long.until_steady), (2_000 * MS, false));
    assert_eq!(window("groups=5;loops=1000000;warmup_ms=100").warm_up, 100 * MS);
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
    let threads = [28, 56, 84, 112, 140, 168, 196, 224].map(|count| format!("threads={count}"));
    assert_eq!(ladder("netperf", 112), threads);
    assert_eq!(ladder("tbench", 256).len(), 11);
    assert_eq!(ladder("tbench", 128).last().unwrap(), "clients=512");
    assert_eq!(ladder("pgbench", 12).last().unwrap(), "clients=32");
    assert_eq!(ladder("dbench", 224).len(), 7);
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
        (
            "schedpipe",
            "groups=1",
            "expected one of loops, user_ns, warmup_ms, window_ms, cpus, nodes",
        ),
        ("schedpipe", "cpus=a-b", "expected `all` or a list, such as `0-15,32`"),
        ("hackbnech", "", "workload `hackbnech`: unknown; did you mean `hackbench`?"),
    ] {
        let error = build(name, &case.parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

/// The latency of a request spans its sleep; what the lock of a CPU is held for is the work alone.
#[test]
fn a_request_of_schbench2_works_under_the_lock_of_its_cpu() {
    let worker = &workload("schbench2", "work_us=7;sleep_us=5").programs[2].ops;
    let request = [
        Op::BeginRequest,
        Op::Sleep { ns: 5_000, random_pct: 0 },
        Op::LockCpu,
        Op::Run { ns: 7_000 },
        Op::UnlockCpu,
        Op::EndRequest,
        Op::Count,
    ];
    assert!(worker.windows(request.len()).any(|ops| ops == request), "{worker:?}");
    assert_eq!(worker[..3], [worker[0], Op::WakeParent, Op::Wait { sample: true }]);
}

#[test]
fn a_case_binds_all_programs_and_one_binding_has_one_name() {
    let named = |case: &str| {
        let case = canonical("netperf", &case.parse().unwrap());
        case.unwrap().to_string()
    };
    assert_eq!(named("nodes=0,1;threads=2;cpus=4,3,2"), "threads=2;cpus=2-4;nodes=0-1");
    let bound = workload("netperf", "cpus=2-4;nodes=0-1");
    let sets =
        |program: &Program| [program.cpus, program.nodes].map(|set| set.unwrap().to_string());
    assert!(bound.programs.iter().all(|program| sets(program) == ["2-4", "0-1"]));
    let free = workload("netperf", "cpus=all");
    assert!(free.programs.iter().all(|program| program.cpus.is_none() && program.nodes.is_none()));
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

#[test]
fn stream_meets_before_and_after_every_loop() {
    let (threads, runs) = (5, 4);
    let workload = workload("stream", &format!("threads={threads};runs={runs};elements=1000000"));
    let mut run = Interpreter::new(&workload);
    assert_eq!(run.run(Nanos::MAX), End::AllExited);
    assert_eq!(run.tasks.len(), threads);
    let loops = 2 + 4 * runs;
    let streams = run.steps_where(|step| matches!(step.op, Op::Stream { .. }));
    assert_eq!(streams.len(), threads * loops);
    // Nobody is in a loop that somebody has not come to yet.
    for (number, together) in streams.chunks(threads).enumerate() {
        let mut tasks: Vec<_> = together.iter().map(|step| step.task).collect();
        tasks.sort_unstable();
        assert_eq!(tasks, (0..threads).collect::<Vec<_>>(), "loop {number}");
        assert!(together.iter().all(|step| step.op == together[0].op), "loop {number}");
    }
    // Each new thread wakes main before anything else, and main waits for each.
    for thread in 1..threads {
        let first = run.steps_where(|step| step.task == thread)[0];
        assert_eq!((first.op, first.index), (Op::WakeParent, 0));
    }
    let waits = run.steps_where(|step| matches!(step.op, Op::Wait { .. }));
    assert_eq!(waits.len(), threads - 1);
    let timed = run.steps_where(|step| matches!(step.op, Op::EndSection { .. }));
    assert_eq!(timed.len(), 4 * (runs - 1), "the first run is not timed");
}

#[test]
fn lu_and_each_burner_have_cgroups_of_their_own_or_share_one() {
    for (cgroups, expected) in [("split", vec![1, 1, 76]), ("one", vec![78])] {
        let workload = workload("lu", &format!("cgroups={cgroups}"));
        let mut members = vec![0; workload.cgroups.len()];
        for op in workload.programs.iter().flat_map(|program| &program.ops) {
            if let Op::Fork { program, count, .. } = *op {
                let cgroup = workload.programs[program as usize].cgroup;
                members[cgroup.expect("all but the shell") as usize] += count;
            }
        }
        members.sort();
        assert_eq!(members, expected, "{cgroups}");
    }
}

#[test]
fn lu_passes_every_plane_on_from_thread_to_thread() {
    let threads = 6;
    let workload = workload("lu", &format!("threads={threads};burners=1;plane_us=600"));
    let mut run = Interpreter::new(&workload);
    assert_eq!(run.run(3_000 * MS), End::TimeUp);
    let raises = run.steps_where(|step| matches!(step.op, Op::RaiseFlag { .. }));
    let lowers = run.steps_where(|step| matches!(step.op, Op::LowerFlag { .. }));
    for flag in 0..threads - 1 {
        let of_flag = |steps: &[Step]| -> Vec<Step> {
            steps.iter().copied().filter(|step| step.index == flag).collect()
        };
        let (raises, lowers) = (of_flag(&raises), of_flag(&lowers));
        assert!(lowers.len() > 160 && raises.len() - lowers.len() <= 1, "flag {flag}");
        assert!(raises.iter().all(|step| step.task == raises[0].task));
        assert!(lowers.iter().all(|step| step.task == lowers[0].task));
        // A plane is taken only once it has been worked on to the left.
        assert!(raises.iter().zip(&lowers).all(|(raise, lower)| raise.time <= lower.time));
        // The pipeline is filled stage by stage: 600 us are for 76 threads.
        let start = raises[0].time - run.steps_where(|step| step.op == Op::Start)[0].time;
        assert_eq!(start, (flag as u64 + 1) * 7_600_000);
    }
    assert!(run.count > 160);
}
