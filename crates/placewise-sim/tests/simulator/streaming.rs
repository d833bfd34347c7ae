//! Streams through memory, busy waiting, and the programs of OpenMP that are made of them.

use std::collections::BTreeSet;

use placewise_machine::CpuSet;
use placewise_workload::program::{
    Access, ChannelKind, FOREVER, Metric, Object, Op, Program, Workload,
};

use crate::common::{MS, Setup, benchmark, counter, figure, main_of, programs};
use crate::trace::{Line, parse};

/// 28 MB: a millisecond for one stream on icx-2s, more or less.
const BYTES: u64 = 28_000_000;

fn on(cpu: usize, program: Program) -> Program {
    Program { cpus: Some(CpuSet::single(cpu)), ..program }
}

/// Streams `bytes` after `delay`; its rate is that of the section.
fn streamer(cpu: usize, section: u8, delay: u64, bytes: u64) -> Program {
    let ops = vec![
        Op::Sleep { ns: delay, random_pct: 0 },
        Op::BeginSection { section },
        Op::Stream { access: Access::Copy, bytes },
        Op::EndSection { section },
        Op::Exit,
    ];
    on(cpu, Program::new("streamer", ops))
}

/// Times of the streams in nanoseconds: one for each CPU, delay and size.
fn times<const N: usize>(machine: &str, streams: [(usize, u64, u64); N]) -> [f64; N] {
    let mut all = vec![main_of(N as u32)];
    let names = ["first", "second", "third", "fourth"];
    let mut metrics = Vec::new();
    for (section, (cpu, delay, bytes)) in streams.into_iter().enumerate() {
        all.push(streamer(cpu, section as u8, delay, bytes));
        let rate = Metric::BestRate { name: names[section], section: section as u8, bytes };
        metrics.push(rate);
    }
    let workload = Workload { metrics, ..programs(all, 1000) };
    let outcome = Setup::new(machine, "v6.0", "baseline", workload).run();
    let mut times = [0.0; N];
    for (section, (_, _, bytes)) in streams.into_iter().enumerate() {
        times[section] = bytes as f64 * 1e3 / figure(&outcome, names[section]);
    }
    times
}

/// MB/s of all of `streams` streams of a node together.
fn together(machine: &str, streams: i32) -> f64 {
    let machine = placewise_machine::load(machine).expect("a preset");
    let curve = machine.costs.node_bandwidth_mbps.copy;
    let (one, peak) = (curve.one as f64, curve.peak as f64);
    peak * (1.0 - (1.0 - one / peak).powi(streams))
}

fn assert_near(value: f64, expected: f64, what: &str) {
    assert!((value / expected - 1.0).abs() < 0.01, "{what}: {value}, expected {expected}");
}

/// Fails if streams do not share, or if sharing is by machine instead of by node.
#[test]
fn streams_of_a_node_share_its_bandwidth_and_those_of_others_do_not() {
    let alone = BYTES as f64 * 1e3 / together("icx-2s", 1);
    let both = 2.0 * BYTES as f64 * 1e3 / together("icx-2s", 2);
    let [first, second] = times("icx-2s", [(1, MS, BYTES), (2, MS, BYTES)]);
    assert_near(first, both, "same node");
    assert_near(second, both, "same node");
    let [first, second] = times("icx-2s", [(1, MS, BYTES), (33, MS, BYTES)]);
    assert_near(first, alone, "other node");
    assert_near(second, alone, "other node");
}

/// Fails if a stream keeps the rate that it began with.
#[test]
fn a_stream_that_begins_or_ends_retimes_the_one_under_way() {
    let (alone, shared) = (together("icx-2s", 1), together("icx-2s", 2) / 2.0);
    // The second streams for all of the middle part of the first's.
    let short = BYTES / 4;
    let [first, second] = times("icx-2s", [(1, MS, 4 * BYTES), (2, 2 * MS, short)]);
    assert_near(second, short as f64 * 1e3 / shared, "inside the other");
    let rest = (4 * BYTES - short) as f64 * 1e3 / alone;
    assert_near(first, second + rest, "with another inside");
}

/// Fails if a preempted stream loses or repeats bytes, or holds its share while it waits.
#[test]
fn streams_that_take_turns_on_a_cpu_do_not_share() {
    let bytes = 40 * BYTES;
    let alone = bytes as f64 * 1e3 / together("icx-2s", 1);
    let streams = vec![main_of(2), streamer(1, 0, MS, bytes), streamer(1, 1, MS, bytes)];
    let setup = Setup::new("icx-2s", "v6.0", "baseline", programs(streams, 1000));
    let took = setup.run().statistics.simulated_ns - MS;
    assert_near(took as f64, 2.0 * alone, "one CPU");
}

/// Fails if memory is where the CPU is, or if distance costs nothing.
#[test]
fn memory_stays_on_the_node_where_it_was_touched_first() {
    let remote = placewise_machine::load("icx-2s").expect("a preset").costs.remote_bandwidth_pct;
    let stream = |section| {
        let stream = Op::Stream { access: Access::Copy, bytes: BYTES };
        [Op::BeginSection { section }, stream, Op::EndSection { section }]
    };
    let channel = Object::shared(0);
    let mut ops = stream(0).to_vec();
    ops.push(Op::Receive { channel, bytes: 1 });
    ops.extend(stream(1));
    ops.push(Op::Exit);
    // It is forked on node 0, and then woken sync by a task on node 1, which it follows there.
    let cpus = (1..9).chain(33..35).collect();
    let streamer = Program { cpus: Some(cpus), ..Program::new("streamer", ops) };
    let sleep = Op::Sleep { ns: 10 * MS, random_pct: 0 };
    let waker = vec![sleep, Op::Send { channel, bytes: 1 }, Op::Run { ns: 50 * MS }, Op::Exit];
    let all = vec![main_of(2), streamer, on(33, Program::new("waker", waker))];
    let rate = |name, section| Metric::BestRate { name, section, bytes: BYTES };
    let workload = Workload {
        channels: vec![ChannelKind::Pipe],
        metrics: vec![rate("before", 0), rate("after", 1)],
        ..programs(all, 1000)
    };
    let outcome = Setup::new("icx-2s", "v6.0", "baseline", workload).run();
    assert_eq!(counter(&outcome, "migrations_wakeup"), 1.0, "the streamer follows its waker");
    let change = figure(&outcome, "after") / figure(&outcome, "before");
    assert_near(change, f64::from(remote.remote) / 100.0, "from the other node");
}

/// Two tasks that meet 100 times; one of them arrives 200 us later.
fn meeting(spin_ns: u64) -> Workload {
    let barrier = Object::shared(0);
    let task = |cpu, ns| {
        let ops = vec![
            Op::Run { ns },
            Op::Barrier { barrier, spin_ns },
            Op::Repeat { counter: 0, times: 100, to: 0 },
            Op::Exit,
        ];
        on(cpu, Program::new("task", ops))
    };
    let all = vec![main_of(2), task(1, 100_000), task(2, 300_000)];
    Workload { barriers: vec![2], ..programs(all, 1000) }
}

/// Fails if spinners sleep, if they never do, or if a spinner that is let go spins on.
#[test]
fn a_barrier_is_waited_for_busily_first_and_asleep_then() {
    let wakeups = |spin_ns| {
        let outcome = Setup::new("icx-2s", "v6.0", "baseline", meeting(spin_ns)).run();
        (outcome.statistics.wakeups, outcome.statistics.simulated_ns / MS)
    };
    let (few, busy) = wakeups(10 * MS);
    let (many, asleep) = wakeups(50_000);
    assert!(few < 5 && many >= 100, "{few} and {many} wakeups");
    // 100 times the later one's 300 us, whatever the spinner would have been ready for.
    assert!((30..36).contains(&busy) && (30..36).contains(&asleep), "{busy} and {asleep} ms");
}

/// Three tasks pass a token on by flags, round by round; the figure is rounds per second.
fn pipeline(cpus: [usize; 3]) -> Workload {
    let work = Op::Run { ns: 50_000 };
    let raise = |flag| Op::RaiseFlag { flag: Object::shared(flag) };
    let lower = |flag| Op::LowerFlag { flag: Object::shared(flag) };
    let task = |cpu, ops: &[Op]| {
        let mut ops = ops.to_vec();
        ops.extend([Op::Repeat { counter: 0, times: FOREVER, to: 0 }, Op::Exit]);
        on(cpu, Program::new("task", ops))
    };
    let all = vec![
        main_of(3),
        task(cpus[0], &[work, raise(0)]),
        task(cpus[1], &[lower(0), work, raise(1)]),
        task(cpus[2], &[lower(1), work, Op::Count]),
    ];
    let metrics = vec![Metric::Throughput { unit: "rounds/s", scale: 1.0 }];
    Workload { flags: 2, metrics, ..programs(all, 400) }
}

/// Fails if waiting for a flag is not busy (then two on a CPU would take turns at no loss), or if
/// a stage runs ahead of the one before it.
#[test]
fn two_stages_on_one_cpu_stall_a_pipeline_that_waits_busily() {
    let rate = |cpus| {
        let outcome = Setup::new("icx-2s", "v6.0", "baseline", pipeline(cpus)).run();
        (figure(&outcome, "throughput"), counter(&outcome, "idle_time"))
    };
    let (apart, _) = rate([1, 2, 3]);
    // All three work at once: one round per 50 us.
    assert!((19_000.0..=20_000.0).contains(&apart), "{apart} rounds/s");
    let (stalled, _) = rate([1, 1, 3]);
    assert!(stalled < apart / 10.0, "{stalled} rounds/s, apart {apart}");
}

const THREADS: &str = "threads=16,runs=10";

fn stream(machine: &str, policy: &str, case: &str) -> Setup {
    Setup::new(machine, "v6.0", policy, benchmark("stream", case))
}

fn threads_on_nodes(setup: &Setup) -> Vec<u32> {
    let outcome = setup.run();
    let on = |node| counter(&outcome, &format!("stream_on_node_{node}")).round() as u32;
    (0..setup.machine.nr_nodes()).map(on).collect()
}

/// Fails without the rule that lets a few tasks stay on a node, or without the hint's.
#[test]
fn openmp_threads_are_forked_onto_the_sockets_as_measured() {
    for (threads, baseline, spread) in
        [(2, [2, 0], [1, 1]), (4, [3, 1], [2, 2]), (8, [5, 3], [4, 4]), (16, [8, 8], [8, 8])]
    {
        let case = format!("threads={threads},runs=2");
        for (policy, split) in [("baseline", baseline), ("hint:fork_spread", spread)] {
            let found = threads_on_nodes(&stream("icx-2s", policy, &case));
            assert_eq!(found, split, "{policy}, {threads} threads");
        }
    }
}

/// Wakeups that moved main, each with the waker's CPU and where it moved main to.
fn wakeup_migrations(trace: &[Line], main: u32) -> Vec<(u32, u32)> {
    let mut waker = None;
    let mut moves = Vec::new();
    for line in trace {
        match line.event.as_str() {
            "sched_waking" if line.number("pid") == main => waker = Some(line.cpu),
            "sched_migrate_task" if line.number("pid") == main => {
                let waker = waker.take().expect("main moves when it is woken");
                moves.push((waker, line.number("dest_cpu")));
            }
            _ => {}
        }
    }
    moves
}

/// The published mechanism: a new thread is short, for it has not been accounted yet; so its wakeup
/// of main pulls main to its LLC, and two threads end on one. Fails if new threads wake nobody, if
/// they do not count as short, or if sharing costs nothing.
#[test]
fn short_task_v1_pulls_main_to_the_threads_it_creates_and_stream_loses_by_it() {
    let setup = |policy| stream("zen3-2s-nps4", policy, THREADS);
    let (baseline, short) = (setup("baseline"), setup("short-task:v1"));
    let llc = |cpu: u32| baseline.machine.cpus[cpu as usize].llc;
    let per_llc = |outcome: &placewise_sim::Outcome| -> Vec<u32> {
        let on = |llc| counter(outcome, &format!("stream_on_llc_{llc}")).round() as u32;
        (0..16).map(on).collect()
    };

    let (fast, trace) = baseline.traced();
    let main = parse(&trace)[0].number("next_pid");
    assert_eq!(wakeup_migrations(&parse(&trace), main), [], "main stays where it slept");
    assert_eq!(per_llc(&fast), [1; 16], "one thread on each LLC");

    let (slow, trace) = short.traced();
    let moves = wakeup_migrations(&parse(&trace), main);
    let llcs: BTreeSet<u16> = moves.iter().map(|&(_, to)| llc(to)).collect();
    assert!(moves.len() >= 10 && llcs.len() >= 10, "main moves from thread to thread: {moves:?}");
    assert!(moves.iter().all(|&(waker, to)| llc(waker) == llc(to)), "{moves:?}");
    assert!(per_llc(&slow).iter().any(|&threads| threads >= 2), "{:?}", per_llc(&slow));

    for metric in ["copy", "scale", "add", "triad"] {
        let loss = 1.0 - figure(&slow, metric) / figure(&fast, metric);
        assert!((0.15..0.40).contains(&loss), "{metric} loses {loss}");
    }
}

/// Fails if anything in streaming or busy waiting depends on more than the seed, or breaks the
/// books: a task in two places, time lost or made.
#[test]
fn runs_with_streams_and_flags_repeat_and_keep_the_books() {
    for (machine, name, case) in [
        ("zen3-2s-nps4", "stream", "threads=40,runs=3,elements=2000000,spin_count=3000"),
        ("xeon-4n80", "lu", "threads=70,burners=20,warmup_ms=20,window_ms=60"),
    ] {
        let setup = Setup::new(machine, "v6.0", "short-task:v1", benchmark(name, case));
        let (first, _) = setup.checked(50);
        let second = setup.run();
        assert_eq!(first.figures, second.figures);
        assert_eq!(first.statistics.figures, second.statistics.figures);
        assert!(!first.figures.is_empty());
    }
}
