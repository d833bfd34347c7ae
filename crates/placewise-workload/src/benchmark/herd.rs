//! herd: one task wakes many at once by futex, and is woken by the last of them.
//!
//! **Motive.** A burst of wakeups from one place: how far does the kernel spread the wakees, when the
//! CPU that each is given is not yet seen to be taken by the wakeups after it?
//!
//! **Method.** Main creates a driver and `tasks` followers, which wait until all are there. Each round the
//! driver wakes all followers by one call of futex(2) and waits; each follower counts itself in and waits
//! for the next round, and whoever is last wakes the driver. No wakeup is sync. The figure is followers'
//! rounds per second. The load of that name that interventions run does the same.
//!
//! **Left out.** A driver that looks at the count while followers still add to it calls futex(2) again, for
//! nothing; a follower that comes to wait after the driver has begun the next round goes on at once, where
//! here it waits for those who come after it.
//!
//! **Weak points.** Followers do next to nothing, so that most of a round is wakeups.

use super::gate::{comes, forks_and_lets_go};
use crate::case::Case;
use crate::model::Model;
use crate::parameter::{Parameter, Settings};
use crate::program::{ChannelKind, Metric, Object, Op, Program, Workload};

pub(crate) const MODEL: Model = Model {
    name: "herd",
    summary: "one task wakes many at once by futex and is woken by the last; wakeups per second",
    parameters: &PARAMETERS,
    build: |settings| Ok(build(settings)),
    default_cases,
};

const PARAMETERS: [Parameter; 6] = [
    Parameter::integer("tasks", 16, 1, 4096, "", "followers"),
    Parameter::integer("loops", 1000, 1, 10_000_000, "", "rounds; the window ends longer runs"),
    Parameter::integer(
        "user_ns",
        100,
        1,
        1_000_000,
        "ns",
        "user-space CPU time per round of each task, beside the system calls [assumed]",
    ),
    Parameter::startup_us(),
    Parameter::warmup_ms(100),
    Parameter::window_ms(200),
];

fn default_cases(nr_cpus: usize) -> Vec<Case> {
    vec![Case::default().with("tasks", nr_cpus)]
}

const DRIVER: u32 = 1;
const FOLLOWER: u32 = 2;

/// All say there that they are there.
const READY: Object = Object::shared(0);
/// Followers wait for the next round, which the driver begins.
const ROUND: Object = Object::shared(0);
/// The driver waits for all followers.
const DONE: Object = Object::shared(1);

fn build(settings: &Settings) -> Workload {
    let tasks = settings.count("tasks");
    let loops = settings.count("loops");
    let user = Op::Run { ns: settings.integer("user_ns") };
    let fork = |program, count| Op::Fork { program, count, base: 0, step: 0 };
    let wait = |barrier| Op::Barrier { barrier, spin_ns: 0 };
    let arrive = |barrier| Op::Arrive { barrier };
    let start_up = Op::Run { ns: settings.integer("startup_us") * 1_000 };
    let rounds = |ops: &[Op]| {
        let first = comes(start_up, READY);
        let repeat = Op::Repeat { counter: 0, times: loops, to: first.len() as u32 };
        [&first, ops, &[repeat, Op::Exit]].concat()
    };
    let main = forks_and_lets_go(&[fork(DRIVER, 1), fork(FOLLOWER, tasks)], READY, tasks + 1);
    let driver = rounds(&[arrive(ROUND), wait(DONE), user]);
    let follower = rounds(&[wait(ROUND), user, Op::Count, arrive(DONE)]);
    let programs = vec![
        Program::new("herd", main),
        Program::new("driver", driver).with_footprint(Program::TASK_KIB),
        Program::new("follower", follower).with_footprint(Program::TASK_KIB),
    ];
    Workload {
        barriers: vec![tasks + 1; 2],
        gates: 1,
        channels: vec![ChannelKind::Pipe],
        metrics: vec![Metric::Throughput { unit: "wakeups/s", scale: 1.0 }],
        ..Workload::new(MODEL.name, programs, settings.window())
    }
}
