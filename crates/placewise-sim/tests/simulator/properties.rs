//! Whatever the machine, kernel, policy and workload: no panic, no deadlock,
//! a state that does not contradict itself, and the same run twice.

use placewise_machine::CpuSet;
use placewise_policy::{Policy, kernel_names, patch_names};
use placewise_workload::program::{
    ChannelKind, FOREVER, Object, Op, Program, SchedPolicy, Workload,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::common::{MS, Setup, benchmark, programs};

/// One LLC, several, threads of cores, NUMA nodes, a single CPU.
pub const MACHINES: [&str; 9] = [
    "pack:1 l3:1 core:1 pu:1",
    "pack:1 l3:1 core:2 pu:1",
    "pack:1 l3:1 core:4 pu:2",
    "pack:1 l3:2 core:2 pu:1",
    "pack:2 l3:2 core:3 pu:2",
    "pack:1 l3:1 core:2 pu:4",
    "pack:2 l3:1 core:2 pu:2",
    "pack:2 node:2 l3:1 core:2 pu:1",
    "pack:4 l3:1 core:2 pu:1",
];

/// CPUs that all machines have.
const COMMON_CPUS: usize = 1;

/// What the tasks of one part of a random workload do with each other.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// Two tasks pass a message to and fro.
    PingPong { bytes: u32, kind: ChannelKind },
    /// Some write to one channel, one reads.
    ManyToOne { writers: u32, bytes: u32, kind: ChannelKind },
    /// All compute under one mutex.
    Mutex { tasks: u32 },
    /// All meet at a barrier.
    Barrier { tasks: u32 },
    /// All wait for a condition that one of them broadcasts now and then.
    Condition { tasks: u32, holds_mutex: bool },
    /// A parent wakes its listed children, as schbench does.
    Herd { tasks: u32 },
    /// Timers.
    Periodic { tasks: u32, absolute: bool },
    /// Sleeps of random length.
    Sleeper { tasks: u32 },
    /// Computes without end.
    Hog { tasks: u32 },
    /// Computes and yields.
    Yielder { tasks: u32 },
    /// Creates children that end soon, again and again.
    Forker { children: u32 },
}

#[derive(Clone, Debug)]
pub struct Part {
    pattern: Pattern,
    work_ns: u64,
    nice: i8,
    idle_policy: bool,
    pinned: bool,
    footprint_kib: u32,
}

impl Part {
    /// Its tasks only wait for each other.
    pub fn idling(pattern: Pattern) -> Self {
        let (work_ns, nice, footprint_kib) = (0, 0, 0);
        Part { pattern, work_ns, nice, idle_policy: false, pinned: false, footprint_kib }
    }

    pub fn unpinned(self) -> Self {
        Part { pinned: false, ..self }
    }
}

fn pattern() -> impl Strategy<Value = Pattern> {
    let kind = || prop_oneof![Just(ChannelKind::Pipe), Just(ChannelKind::UnixSocket)];
    let tasks = || 1..6_u32;
    prop_oneof![
        (1..5000_u32, kind()).prop_map(|(bytes, kind)| Pattern::PingPong { bytes, kind }),
        (tasks(), 1..4096_u32, kind()).prop_map(|(writers, bytes, kind)| Pattern::ManyToOne {
            writers,
            bytes,
            kind
        }),
        tasks().prop_map(|tasks| Pattern::Mutex { tasks }),
        tasks().prop_map(|tasks| Pattern::Barrier { tasks }),
        (tasks(), any::<bool>())
            .prop_map(|(tasks, holds_mutex)| Pattern::Condition { tasks, holds_mutex }),
        tasks().prop_map(|tasks| Pattern::Herd { tasks }),
        (tasks(), any::<bool>())
            .prop_map(|(tasks, absolute)| Pattern::Periodic { tasks, absolute }),
        tasks().prop_map(|tasks| Pattern::Sleeper { tasks }),
        tasks().prop_map(|tasks| Pattern::Hog { tasks }),
        tasks().prop_map(|tasks| Pattern::Yielder { tasks }),
        tasks().prop_map(|children| Pattern::Forker { children }),
    ]
}

/// Messages over what the network and the kernel carry; not UDP, which may lose what the other side
/// waits for.
fn messages() -> impl Strategy<Value = Pattern> {
    let kinds =
        vec![ChannelKind::LoopbackTcp, ChannelKind::PolledSockets, ChannelKind::KernelQueue];
    let kind = move || prop::sample::select(kinds.clone());
    prop_oneof![
        (1..70_000_u32, kind()).prop_map(|(bytes, kind)| Pattern::PingPong { bytes, kind }),
        (1..6_u32, 1..70_000_u32, kind()).prop_map(|(writers, bytes, kind)| Pattern::ManyToOne {
            writers,
            bytes,
            kind
        }),
    ]
}

pub fn part() -> impl Strategy<Value = Part> {
    part_of(pattern())
}

fn part_of(pattern: impl Strategy<Value = Pattern>) -> impl Strategy<Value = Part> {
    let work = prop_oneof![Just(0_u64), 1..5_000_u64, 5_000..3_000_000_u64];
    let nice = prop_oneof![3 => Just(0_i8), 1 => -20..=19_i8];
    (pattern, work, nice, prop::bool::weighted(0.1), prop::bool::weighted(0.15), 0..512_u32)
        .prop_map(|(pattern, work_ns, nice, idle_policy, pinned, footprint_kib)| Part {
            pattern,
            work_ns,
            nice,
            idle_policy,
            pinned,
            footprint_kib,
        })
}

/// Compiles parts to one workload; no part can keep another from going on.
pub fn workload(parts: &[Part], ms: u64) -> Workload {
    let mut result = programs(vec![Program::new("main", Vec::new())], ms);
    let mut main = vec![Op::Start];
    for part in parts {
        add(&mut result, &mut main, part);
    }
    main.extend([Op::Join, Op::Exit]);
    result.programs[0].ops = main;
    result
}

fn add(result: &mut Workload, main: &mut Vec<Op>, part: &Part) {
    let first = result.programs.len() as u32;
    for (program, (ops, count)) in (first..).zip(tasks(result, part)) {
        if count > 0 {
            main.push(Op::Fork { program, count, base: 0, step: 0 });
        }
        result.programs.push(Program {
            nice: part.nice,
            policy: if part.idle_policy { SchedPolicy::Idle } else { SchedPolicy::Other },
            cpus: part.pinned.then(|| CpuSet::first_n(COMMON_CPUS)),
            ..Program::new(format!("part{program}"), ops).with_footprint(part.footprint_kib)
        });
    }
}

fn for_ever(mut ops: Vec<Op>) -> Vec<Op> {
    ops.push(Op::Repeat { counter: 0, times: FOREVER, to: 0 });
    ops.push(Op::Exit);
    ops
}

/// The programs of a part, and how many tasks main forks of each.
fn tasks(result: &mut Workload, part: &Part) -> Vec<(Vec<Op>, u32)> {
    let run = Op::Run { ns: part.work_ns };
    let channel = Object::shared(result.channels.len() as u32);
    let mutex = Object::shared(result.mutexes);
    let child = result.programs.len() as u32 + 1;
    match part.pattern {
        Pattern::PingPong { bytes, kind } => {
            let back = Object::shared(result.channels.len() as u32 + 1);
            result.channels.extend([kind, kind]);
            let send = |channel| Op::Send { channel, bytes };
            let receive = |channel| Op::Receive { channel, bytes };
            vec![
                (for_ever(vec![run, send(channel), receive(back), Op::Count]), 1),
                (for_ever(vec![receive(channel), run, send(back)]), 1),
            ]
        }
        Pattern::ManyToOne { writers, bytes, kind } => {
            result.channels.push(kind);
            vec![
                (for_ever(vec![Op::Receive { channel, bytes }, run]), 1),
                (for_ever(vec![run, Op::Send { channel, bytes }]), writers),
            ]
        }
        Pattern::Mutex { tasks } => {
            result.mutexes += 1;
            let ops = vec![Op::Lock { mutex }, run, Op::Unlock { mutex }, Op::Run { ns: 700 }];
            vec![(for_ever(ops), tasks)]
        }
        Pattern::Barrier { tasks } => {
            let barrier = Object::shared(result.barriers.len() as u32);
            result.barriers.push(tasks);
            vec![(for_ever(vec![run, Op::Barrier { barrier, spin_ns: 0 }]), tasks)]
        }
        Pattern::Condition { tasks, holds_mutex } => condition(result, run, tasks, holds_mutex),
        Pattern::Herd { tasks } => herd(result, run, tasks),
        Pattern::Periodic { tasks, absolute } => {
            let timer = Object::shared(result.timers);
            result.timers += 1;
            let period = 2 * part.work_ns.max(10_000);
            let ops = vec![Op::StartTimer { timer }, run, Op::Timer { timer, period, absolute }];
            vec![(for_ever(ops), tasks)]
        }
        Pattern::Sleeper { tasks } => {
            vec![(for_ever(vec![run, Op::Sleep { ns: 100_000, random_pct: 100 }]), tasks)]
        }
        Pattern::Hog { tasks } => {
            vec![(for_ever(vec![Op::Run { ns: 10_000 + part.work_ns }]), tasks)]
        }
        Pattern::Yielder { tasks } => vec![(for_ever(vec![run, Op::Yield]), tasks)],
        Pattern::Forker { children } => {
            let fork = Op::Fork { program: child, count: children, base: 0, step: 0 };
            let pause = Op::Sleep { ns: 200_000, random_pct: 10 };
            vec![(for_ever(vec![fork, Op::Join, pause]), 1), (vec![run, Op::Exit], 0)]
        }
    }
}

/// Tasks that wait for a condition, with its mutex or without, and one that signals it.
fn condition(result: &mut Workload, run: Op, tasks: u32, holds_mutex: bool) -> Vec<(Vec<Op>, u32)> {
    let mutex = Object::shared(result.mutexes);
    let condition = Object::shared(result.conditions);
    result.conditions += 1;
    result.mutexes += 1;
    let held = holds_mutex.then_some(mutex);
    let mut waiter = vec![Op::CondWait { condition, mutex: held }, run];
    if holds_mutex {
        waiter.insert(0, Op::Lock { mutex });
        waiter.push(Op::Unlock { mutex });
    }
    let wake = [Op::Broadcast { condition }, Op::Signal { condition }];
    let pause = Op::Sleep { ns: 300_000, random_pct: 50 };
    vec![(for_ever(waiter), tasks), (for_ever(vec![pause, wake[0], pause, wake[1]]), 1)]
}

/// Workers that a parent forks and wakes, all that have enlisted at once.
fn herd(result: &mut Workload, run: Op, workers: u32) -> Vec<(Vec<Op>, u32)> {
    let list = Object::shared(result.lists);
    result.lists += 1;
    let child = result.programs.len() as u32 + 1;
    let parent = vec![
        Op::Fork { program: child, count: workers, base: 0, step: 0 },
        Op::WakeListed { list },
        Op::Wait { sample: false },
        Op::Spin { ns: 20_000 },
        Op::Sleep { ns: 50_000, random_pct: 25 },
        Op::Repeat { counter: 0, times: FOREVER, to: 1 },
        Op::Exit,
    ];
    let worker = vec![run, Op::Enlist { list }, Op::WakeParent, Op::Wait { sample: true }];
    vec![(parent, 1), (for_ever(worker), 0)]
}

pub fn kernel() -> impl Strategy<Value = String> {
    prop::sample::select(kernel_names().into_iter().map(String::from).collect::<Vec<_>>())
}

/// A kernel, and a policy that fits it.
pub fn kernel_and_policy() -> impl Strategy<Value = (String, String)> {
    let patches = patch_names().into_iter().map(|(name, _)| name);
    let policies: Vec<String> = std::iter::once("baseline".to_string()).chain(patches).collect();
    let of_kernel = |kernel: &'static str| {
        let fits = |policy: &&String| Policy::parse(kernel, policy).is_ok();
        let fitting: Vec<String> = policies.iter().filter(fits).cloned().collect();
        fitting.into_iter().map(move |policy| (kernel.to_string(), policy))
    };
    prop::sample::select(kernel_names().into_iter().flat_map(of_kernel).collect::<Vec<_>>())
}

pub fn config(cases: u32, seed: u64) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 1000,
        max_shrink_time: 20_000,
        ..ProptestConfig::default()
    }
}

/// Twice the same, and without a contradiction on the way.
fn check(setup: &Setup) {
    let (outcome, audit) = setup.checked(7);
    assert!(audit.checks > 0);
    let (first, second) = (setup.traced(), setup.traced());
    assert_eq!(first.1, second.1, "two traces of one scenario");
    for other in [&first.0, &second.0] {
        assert_eq!(outcome.figures, other.figures, "figures of one scenario");
        assert_eq!(outcome.statistics.figures, other.statistics.figures);
        assert_eq!(outcome.statistics.schedstat, other.statistics.schedstat);
        assert_eq!(outcome.statistics.proc_sched, other.statistics.proc_sched);
    }
}

proptest! {
    #![proptest_config(config(100, 1))]

    #[test]
    fn random_programs_run_without_contradiction(
        machine in prop::sample::select(MACHINES.to_vec()),
        (kernel, policy) in kernel_and_policy(),
        parts in prop::collection::vec(part(), 1..5),
        seed in any::<u64>(),
    ) {
        let workload = workload(&parts, 25);
        check(&Setup { seed, ..Setup::new(machine, &kernel, &policy, workload) });
    }

    #[test]
    fn random_messages_arrive_without_contradiction(
        machine in prop::sample::select(MACHINES.to_vec()),
        (kernel, policy) in kernel_and_policy(),
        parts in prop::collection::vec(part_of(messages()), 1..5),
        seed in any::<u64>(),
    ) {
        let workload = workload(&parts, 15);
        check(&Setup { seed, ..Setup::new(machine, &kernel, &policy, workload) });
    }

    #[test]
    fn benchmarks_run_without_contradiction(
        machine in prop::sample::select(MACHINES.to_vec()),
        (kernel, policy) in kernel_and_policy(),
        benchmark_case in prop::sample::select(BENCHMARKS.to_vec()),
        seed in any::<u64>(),
    ) {
        let (name, case) = benchmark_case;
        let workload = benchmark(name, case);
        check(&Setup { seed, ..Setup::new(machine, &kernel, &policy, workload) });
    }
}

/// Small, and short.
pub const BENCHMARKS: [(&str, &str); 14] = [
    ("hackbench", "groups=1,fds=2,warmup_ms=1,window_ms=4"),
    ("hackbench", "groups=3,fds=2,warmup_ms=0,window_ms=3"),
    ("hackbench", "groups=1,fds=3,loops=20,ipc=socket,tasks=process,warmup_ms=0,window_ms=20"),
    (
        "schbench",
        "workers=2,cputime_us=300,message_cputime_us=200,sleeptime_us=100,warmup_ms=1,window_ms=20",
    ),
    (
        "schbench",
        "workers=9,messengers=2,cputime_us=900,message_cputime_us=300,sleeptime_us=500,warmup_ms=1,window_ms=20",
    ),
    ("schedpipe", "loops=2000,warmup_ms=0,window_ms=8"),
    ("context_switch1", "instances=3,warmup_ms=1,window_ms=4"),
    ("context_switch1", "instances=9,warmup_ms=1,window_ms=3"),
    ("herd", "tasks=9,loops=30,warmup_ms=0,window_ms=8"),
    ("netperf", "threads=5,warmup_ms=1,window_ms=3"),
    ("netperf", "proto=UDP_RR,threads=3,warmup_ms=1,window_ms=3"),
    ("tbench", "clients=5,warmup_ms=1,window_ms=3"),
    ("pgbench", "clients=5,threads=2,warmup_ms=1,window_ms=8"),
    ("dbench", "groups=5,warmup_ms=1,window_ms=8"),
];

/// The first milliseconds of the rt-app examples, on all machines.
#[test]
fn rt_app_examples_run_without_contradiction() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/rt-app");
    let mut files: Vec<_> = std::fs::read_dir(examples)
        .expect("the examples are there")
        .map(|entry| entry.expect("a directory can be read").path())
        .collect();
    files.sort();
    assert!(files.len() >= 8);
    for (at, file) in files.iter().enumerate() {
        let mut workload = placewise_workload::from_rt_app(file).expect("an example is valid");
        workload.window.warm_up = 0;
        workload.window.measure = 100 * MS;
        let kernels = kernel_names();
        for (machine, kernel) in [(4, at), (2, at + 3)] {
            let kernel = kernels[kernel % kernels.len()];
            check(&Setup::new(MACHINES[machine], kernel, "baseline", workload.clone()));
        }
    }
}
