//! hackbench: groups of senders and receivers that exchange many small messages
//! (`perf bench sched messaging`).
//!
//! **Motive.** Many short wakeups between many tasks: how well does the kernel keep message
//! partners close while it spreads the load? With few groups the machine is mostly idle and the
//! distance between sender and receiver decides; with many, CPU time and run-queue wait do.
//!
//! **Method.** Main creates the groups one after the other, in each first the receivers and then
//! the senders. Every task reports "ready" through one pipe and waits for "go"; main collects all
//! reports, starts the clock, opens the gate and reaps. A sender does `loops` rounds of one
//! 100-byte message to each receiver of its group. All senders of a group share each receiver's
//! channel. The figure is the time for groups x fds x fds x loops messages.
//!
//! **Left out.** Work on the data itself, beyond `user_ns` per message on either side; the cost of
//! a change of address space between processes; that whoever waits for the mutex inside a pipe
//! sleeps once its owner does not run, here all spin; exec.
//!
//! **Weak points.** Published tables that name only the groups do not say what tasks and what
//! transport they used, nor how many loops. Their author gave the command line for the same kind of
//! machine elsewhere: threads, pipes and 100,000 loops. That is the default here, although the
//! tool's own is processes, sockets and 100 loops. The load-balance rework of 2019 used the tool's
//! own default with 256,000 / groups loops; mmtests, which ends at 296 groups, has 10,000.
//!
//! Simulating all loops would cost billions of events, so a short window after a short warm-up is
//! measured, and what is left then takes as long as its rate says: the finishing tail, when few tasks are left, is
//! not in it, unless there are few messages, which are all simulated. Tasks begin on one NUMA
//! node, and may crowd on one or the other for seconds, as under a real kernel (docs/vm.md): figures for
//! publication want several seeds. One group is drawn into one LLC when it is let go, as by a real kernel
//! (docs/vm.md). The balancer pushes its tasks into another one, the first after 0.5 s on 120 CPUs and 1 s on
//! 240, so that a run of a million loops is warmed up for 2 s; few senders do not sleep, and stay where they were
//! pushed.

use super::gate::{comes, forks_and_lets_go};
use crate::case::Case;
use crate::model::Model;
use crate::parameter::{Parameter, Settings};
use crate::program::{ChannelKind, Metric, Object, Op, Program, Window, Workload};

pub(crate) const MODEL: Model = Model {
    name: "hackbench",
    summary: "groups of senders and receivers exchange 100-byte messages; time (perf bench sched messaging)",
    parameters: &PARAMETERS,
    build: |settings| Ok(build(settings)),
    default_cases,
};

const PARAMETERS: [Parameter; 9] = [
    Parameter::choice("tasks", &["thread", "process"], "what senders and receivers are"),
    Parameter::choice(
        "ipc",
        &["pipe", "socket"],
        "what carries the messages: pipes or AF_UNIX stream sockets",
    ),
    Parameter::integer("groups", 10, 1, 512, "", "groups"),
    Parameter::integer("fds", 20, 1, 100, "", "senders, and as many receivers, in each group"),
    Parameter::integer(
        "loops",
        100_000,
        1,
        10_000_000,
        "",
        "messages from each sender to each receiver",
    ),
    Parameter::integer(
        "user_ns",
        50,
        1,
        1_000_000,
        "ns",
        "user-space CPU time per message on either side, beside the system call [calibrated with the costs of zen3-2s-nps1]",
    ),
    Parameter::startup_us(),
    Parameter::warmup_ms(400),
    Parameter::window_ms(600),
];

const MESSAGE_BYTES: u32 = 100;

/// What the kernel keeps of a task and its end of a socket, in KiB: measured as [`Program::TASK_KIB`], which is what it is
/// with a pipe, by messages of 1 and of 100 bytes, 2.0 to 4.3 us.
const SOCKET_FOOTPRINT_KIB: u32 = 53;

/// What each thread has in memory of its stack and its share of the heap, in KiB (assumed).
const STACK_KIB: u64 = 16;

fn default_cases(_nr_cpus: usize) -> Vec<Case> {
    [1, 2, 4, 8, 16].into_iter().map(|groups| Case::default().with("groups", groups)).collect()
}

const RECEIVER: u32 = 1;
const SENDER: u32 = 2;

/// As many messages as that are simulated soon enough.
const FEW_MESSAGES: u64 = 10_000_000;

/// Some twentieth of what a round of 20 messages takes at least (assumed).
const WARM_UP_PER_LOOP_NS: u64 = 2_000;

fn build(settings: &Settings) -> Workload {
    let groups = settings.count("groups");
    let fds = settings.count("fds");
    let loops = settings.count("loops");
    let user = Op::Run { ns: settings.integer("user_ns") };
    let start_up = Op::Run { ns: settings.integer("startup_us") * 1_000 };
    let ready = Object::shared(groups * fds);
    let (kind, footprint_kib) = match settings.choice("ipc") {
        "socket" => (ChannelKind::UnixSocket, SOCKET_FOOTPRINT_KIB),
        _ => (ChannelKind::Pipe, Program::TASK_KIB),
    };
    let task = |name, ops| {
        let program = Program::new(name, ops).with_footprint(footprint_kib);
        match settings.choice("tasks") {
            "process" => program.of_processes(),
            _ => program,
        }
    };
    let mut channels = vec![kind; (groups * fds) as usize];
    channels.push(ChannelKind::Pipe);

    let programs = vec![
        Program::new("hackbench", main(groups, fds, ready))
            .with_memory(u64::from(2 * groups * fds) * STACK_KIB),
        task("receiver", receiver(fds, loops, start_up, user, ready)),
        task("sender", sender(fds, loops, start_up, user, ready)),
    ];
    let messages = u64::from(groups) * u64::from(fds) * u64::from(fds) * u64::from(loops);
    Workload {
        channels,
        gates: 1,
        metrics: vec![Metric::Time { units: messages }],
        ..Workload::new(MODEL.name, programs, window(settings, messages, loops))
    }
}

/// The balancer takes a second or two to spread groups over LLCs as wide as a socket: little of a run of a million
/// loops, which takes tens of seconds, and all of a warm-up of 100,000.
fn window(settings: &Settings, messages: u64, loops: u32) -> Window {
    let mut window = settings.window_of(messages <= FEW_MESSAGES);
    let long = u64::from(loops) * WARM_UP_PER_LOOP_NS;
    if window.until_steady && long > window.warm_up {
        window.warm_up = long;
        window.until_steady = false;
    }
    window
}

/// Group g owns the channels from g x fds on: receiver i reads the ith of them, senders write all.
fn main(groups: u32, fds: u32, ready: Object) -> Vec<Op> {
    let mut forks = Vec::new();
    for group in 0..groups {
        let base = group * fds;
        forks.push(Op::Fork { program: RECEIVER, count: fds, base, step: 1 });
        forks.push(Op::Fork { program: SENDER, count: fds, base, step: 0 });
    }
    forks_and_lets_go(&forks, ready, groups * fds * 2)
}

fn receiver(fds: u32, loops: u32, start_up: Op, user: Op, ready: Object) -> Vec<Op> {
    let first = comes(start_up, ready);
    let again = [
        Op::Receive { channel: Object::own(0), bytes: MESSAGE_BYTES },
        user,
        Op::Count,
        Op::Repeat { counter: 0, times: fds * loops, to: first.len() as u32 },
        Op::Exit,
    ];
    [&first[..], &again].concat()
}

fn sender(fds: u32, loops: u32, start_up: Op, user: Op, ready: Object) -> Vec<Op> {
    let mut ops = comes(start_up, ready).to_vec();
    let first = ops.len() as u32;
    for receiver in 0..fds {
        let channel = Object::own(receiver);
        ops.extend([user, Op::Send { channel, bytes: MESSAGE_BYTES }]);
    }
    ops.extend([Op::Repeat { counter: 0, times: loops, to: first }, Op::Exit]);
    ops
}
