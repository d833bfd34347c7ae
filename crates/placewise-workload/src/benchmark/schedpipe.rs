//! schedpipe: two tasks that pass a token to and fro through two pipes (`perf bench sched pipe`).
//!
//! **Motive.** The plainest wakeup there is: one waker, one wakee, nobody else. Any cost that a
//! change adds to the wakeup path shows here first.
//!
//! **Method.** Main creates a second task. Each round main writes 4 bytes to the one pipe and
//! reads 4 from the other; its partner reads and then writes. Strict alternation, sync wakeups.
//! The figure is round trips per second.
//!
//! **Left out.** The cost of a change of address space when both tasks are processes on one CPU;
//! the user-space part of a round is next to nothing and set by `user_ns`.
//!
//! **Weak points.** Both tasks fit anywhere, so placement matters only through the distance of
//! the two CPUs and their idle states: a policy that is good here may be bad under load.

use crate::case::Case;
use crate::model::Model;
use crate::parameter::{Parameter, Settings};
use crate::program::{ChannelKind, Metric, Object, Op, Program, Workload};

pub(crate) const MODEL: Model = Model {
    name: "schedpipe",
    summary: "two tasks alternate through two pipes; round trips per second (perf bench sched pipe)",
    parameters: &PARAMETERS,
    build: |settings| Ok(build(settings)),
    default_cases,
};

const PARAMETERS: [Parameter; 4] = [
    Parameter::integer(
        "loops",
        1_000_000,
        1,
        100_000_000,
        "",
        "round trips; the window ends longer runs",
    ),
    Parameter::integer(
        "user_ns",
        100,
        1,
        1_000_000,
        "ns",
        "user-space CPU time per round trip of either task, beside the system calls [assumed]",
    ),
    Parameter::warmup_ms(100),
    Parameter::window_ms(500),
];

const MESSAGE_BYTES: u32 = 4;

fn default_cases(_nr_cpus: usize) -> Vec<Case> {
    vec![Case::default()]
}

fn build(settings: &Settings) -> Workload {
    let loops = settings.count("loops");
    let user = Op::Run { ns: settings.integer("user_ns") };
    let send = |pipe| Op::Send { channel: Object::shared(pipe), bytes: MESSAGE_BYTES };
    let receive = |pipe| Op::Receive { channel: Object::shared(pipe), bytes: MESSAGE_BYTES };
    let first = vec![
        Op::Fork { program: 1, count: 1, base: 0, step: 0 },
        Op::Start,
        user,
        send(0),
        receive(1),
        Op::Count,
        Op::Repeat { counter: 0, times: loops, to: 2 },
        Op::Join,
        Op::Exit,
    ];
    let second =
        vec![receive(0), user, send(1), Op::Repeat { counter: 0, times: loops, to: 0 }, Op::Exit];
    let programs = vec![
        Program::new("sched-pipe", first).with_footprint(Program::TASK_KIB),
        Program::new("sched-pipe", second).with_footprint(Program::TASK_KIB),
    ];
    Workload {
        channels: vec![ChannelKind::Pipe; 2],
        metrics: vec![Metric::Throughput { unit: "ops/s", scale: 1.0 }],
        ..Workload::new(MODEL.name, programs, settings.window())
    }
}
