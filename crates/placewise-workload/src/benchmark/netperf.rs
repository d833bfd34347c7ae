//! netperf TCP_RR and UDP_RR: pairs of processes that pass one byte to and fro over loopback.
//!
//! **Motive.** The shortest request and response that goes through the network stack. Waker and
//! wakee alternate as in schedpipe, but every wakeup comes from a softirq: what is sent over
//! loopback arrives before the sender's system call ends, on the sender's CPU.
//!
//! **Method.** A netserver listens; main starts `threads` netperf processes one after the other,
//! as the usual scripts do. Each connects, whereupon netserver forks a server process for it, and
//! waits for the server's answer; then the two alternate, one byte each way. Wakeups are sync, with
//! the sender as the current task and in_task() false. The figure is transactions per second,
//! summed over all pairs; published tables also give the mean of the pairs.
//!
//! **Left out.** The control connection beyond its first exchange, the exec of each process, delayed
//! acknowledgements and timers of TCP, ksoftirqd.
//!
//! **Weak points.** The cost of the network stack is one figure per message for either side, set
//! between two published rates that it cannot both meet. Near one pair per CPU the model, as the machine, can sit in one of two
//! states, pairs that share a CPU or pairs that hop, for longer than the window.
//! Under CFS one of a pair on one CPU goes on preempting the other; real ones stop that after some
//! hundred transactions, and are a tenth slower then.

use crate::case::Case;
use crate::model::Model;
use crate::parameter::{Parameter, Settings};
use crate::program::{ChannelKind, FOREVER, Metric, Object, Op, Program, Workload};

pub(crate) const MODEL: Model = Model {
    name: "netperf",
    summary: "pairs of processes alternate over loopback TCP or UDP; transactions per second",
    parameters: &PARAMETERS,
    build: |settings| Ok(build(settings)),
    default_cases,
};

const PARAMETERS: [Parameter; 5] = [
    Parameter::choice("proto", &["TCP_RR", "UDP_RR"], "netperf's test"),
    Parameter::integer("threads", 1, 1, 2048, "", "netperf processes, each with a server process"),
    Parameter::integer(
        "user_ns",
        200,
        1,
        1_000_000,
        "ns",
        "user-space CPU time per transaction of either process, beside the system calls [assumed]",
    ),
    Parameter::warmup_ms(300),
    Parameter::window_ms(200),
];

/// What the kernel keeps of a task and its end of a connection, in KiB: measured as [`Program::TASK_KIB`], 2.1 us over
/// loopback, by UDP and by TCP.
const FOOTPRINT_KIB: u32 = 39;

/// netserver is up before the first netperf starts.
const SETTLE_NS: u64 = 10_000_000;

/// The published ladder climbs to two processes per CPU in this many equal steps.
const STEPS: usize = 8;

fn default_cases(nr_cpus: usize) -> Vec<Case> {
    let mut threads: Vec<usize> = (1..=STEPS).map(|step| step * nr_cpus * 2 / STEPS).collect();
    threads.retain(|threads| *threads > 0);
    threads.dedup();
    threads.into_iter().map(|threads| Case::default().with("threads", threads)).collect()
}

const UNIT: &str = "transactions/s";

const NETSERVER: u32 = 1;
const NETPERF: u32 = 2;
const SERVER: u32 = 3;

/// A pair's two directions.
const REQUEST: Object = Object::own(0);
const RESPONSE: Object = Object::own(1);
const PAIR: u32 = 2;

fn build(settings: &Settings) -> Workload {
    let threads = settings.count("threads");
    let user = Op::Run { ns: settings.integer("user_ns") };
    let kind = match settings.choice("proto") {
        "UDP_RR" => ChannelKind::LoopbackUdp,
        _ => ChannelKind::LoopbackTcp,
    };
    let listen = Object::shared(threads * PAIR);
    let mut channels = vec![kind; (threads * PAIR) as usize];
    channels.push(ChannelKind::LoopbackTcp);

    let main = vec![
        Op::Fork { program: NETSERVER, count: 1, base: 0, step: 0 },
        Op::Sleep { ns: SETTLE_NS, random_pct: 0 },
        Op::Fork { program: NETPERF, count: threads, base: 0, step: PAIR },
        Op::Start,
        Op::Join,
        Op::Exit,
    ];
    let send = |channel| Op::Send { channel, bytes: 1 };
    let receive = |channel| Op::Receive { channel, bytes: 1 };
    let netperf = vec![
        send(listen),
        receive(RESPONSE),
        user,
        send(REQUEST),
        receive(RESPONSE),
        Op::Count,
        Op::Repeat { counter: 0, times: FOREVER, to: 2 },
        Op::Exit,
    ];
    let server = vec![
        send(RESPONSE),
        receive(REQUEST),
        user,
        Op::Repeat { counter: 0, times: FOREVER, to: 0 },
        Op::Exit,
    ];
    let programs = vec![
        Program::new("sh", main),
        Program::new("netserver", netserver(threads, listen)).of_processes(),
        Program::new("netperf", netperf).of_processes().with_footprint(FOOTPRINT_KIB),
        Program::new("netserver", server).of_processes().with_footprint(FOOTPRINT_KIB),
    ];
    Workload {
        channels,
        metrics: vec![
            Metric::Throughput { unit: UNIT, scale: 1.0 },
            Metric::ThroughputPerPair { unit: UNIT, pairs: threads },
        ],
        ..Workload::new(MODEL.name, programs, settings.window())
    }
}

/// One server process for each connection, in the order they come.
fn netserver(threads: u32, listen: Object) -> Vec<Op> {
    let mut ops = Vec::new();
    for pair in 0..threads {
        ops.push(Op::Receive { channel: listen, bytes: 1 });
        ops.push(Op::Fork { program: SERVER, count: 1, base: pair * PAIR, step: 0 });
    }
    ops.extend([Op::Join, Op::Exit]);
    ops
}
