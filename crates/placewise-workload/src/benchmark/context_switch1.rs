//! context_switch1: many pairs of tasks that each alternate through two pipes (will-it-scale).
//!
//! **Motive.** schedpipe at scale: from about as many pairs as half the CPUs on, idle CPUs get
//! rare, run-queue locks get busy, and the search for an idle CPU gets in its own way.
//!
//! **Method.** Main creates `instances` tasks, which wait until all are there; each then
//! creates a partner, unless `partners` has main create these too. The two pass one
//! byte to and fro for ever, by sync wakeups. Each round trip counts two iterations, as the tool
//! counts them, summed over all instances. The share of time spent on run-queue locks is reported
//! as well.
//!
//! **Left out.** Everything the tool does around the loop: its shared counters, its two seconds of
//! start-up, and the pinning of tasks, which would leave nothing to place.
//!
//! **Weak points.** The system has two stable regimes, in one of which wakeups hop between
//! momentarily idle CPUs while in the other pairs share a CPU; near the change from one to the
//! other a run may sit in either for most of a second. The default window is right inside a
//! regime; near a transition use `window_ms=1000` and several seeds.

use super::gate::{GO, LETS_GO, comes, forks_and_lets_go};
use crate::case::Case;
use crate::model::Model;
use crate::parameter::{Parameter, Settings};
use crate::program::{ChannelKind, FOREVER, Metric, Object, Op, Program, Workload};

pub(crate) const MODEL: Model = Model {
    name: "context_switch1",
    summary: "pairs of tasks alternate through pipes; iterations per second (will-it-scale)",
    parameters: &PARAMETERS,
    build: |settings| Ok(build(settings)),
    default_cases,
};

const PARAMETERS: [Parameter; 6] = [
    Parameter::integer("instances", 1, 1, 4096, "", "pairs of tasks"),
    Parameter::choice(
        "partners",
        &["own", "main"],
        "who creates the partner of an instance: the instance once it runs, or main before the start",
    ),
    Parameter::integer(
        "user_ns",
        100,
        1,
        1_000_000,
        "ns",
        "user-space CPU time per round trip of either task, beside the system calls [assumed]",
    ),
    Parameter::startup_us(),
    Parameter::warmup_ms(100),
    Parameter::window_ms(200),
];

/// The published ladder climbs from one instance to one per CPU in this many equal steps.
const STEPS: usize = 14;

fn default_cases(nr_cpus: usize) -> Vec<Case> {
    let mut instances = vec![1];
    instances.extend((1..=STEPS).map(|step| step * nr_cpus / STEPS));
    instances.retain(|instances| *instances > 0);
    instances.dedup();
    let case = |instances| Case::default().with("instances", instances);
    instances.into_iter().map(case).collect()
}

const INSTANCE: u32 = 1;
const PARTNER: u32 = 2;

fn build(settings: &Settings) -> Workload {
    let instances = settings.count("instances");
    let user = Op::Run { ns: settings.integer("user_ns") };
    let send = |pipe| Op::Send { channel: Object::own(pipe), bytes: 1 };
    let receive = |pipe| Op::Receive { channel: Object::own(pipe), bytes: 1 };
    let start_up = Op::Run { ns: settings.integer("startup_us") * 1_000 };
    let start = [start_up, Op::GateWait { gate: GO }];
    let ready = Object::shared(2 * instances);
    let report = comes(start_up, ready);
    let partner = [receive(0), user, send(1)];
    let pass = [user, send(0), receive(1), Op::Count, Op::Count];
    let (main, instance, partner) = match settings.choice("partners") {
        "main" => (
            forks_and_lets_go(&for_each_pair(instances), ready, 2 * instances),
            endless(&report, &pass),
            endless(&report, &partner),
        ),
        _ => (
            [&[fork(INSTANCE, instances, 0)][..], &LETS_GO].concat(),
            endless(&[&start[..], &[fork(PARTNER, 1, 0)]].concat(), &pass),
            endless(&start[..1], &partner),
        ),
    };
    let programs = vec![
        Program::new("context_switch1", main),
        Program::new("context_switch1", instance).with_footprint(Program::TASK_KIB),
        Program::new("context_switch1", partner).with_footprint(Program::TASK_KIB),
    ];
    Workload {
        channels: vec![ChannelKind::Pipe; instances as usize * 2 + 1],
        gates: 1,
        metrics: vec![
            Metric::Throughput { unit: "iterations/s", scale: 1.0 },
            Metric::RunQueueLockShare,
        ],
        ..Workload::new(MODEL.name, programs, settings.window())
    }
}

fn fork(program: u32, count: u32, base: u32) -> Op {
    Op::Fork { program, count, base, step: 2 }
}

fn for_each_pair(instances: u32) -> Vec<Op> {
    let pair = |number| [fork(INSTANCE, 1, 2 * number), fork(PARTNER, 1, 2 * number)];
    (0..instances).flat_map(pair).collect()
}

/// The same for ever, after what comes first.
fn endless(first: &[Op], again: &[Op]) -> Vec<Op> {
    let repeat = Op::Repeat { counter: 0, times: FOREVER, to: first.len() as u32 };
    [first, again, &[repeat, Op::Exit]].concat()
}
