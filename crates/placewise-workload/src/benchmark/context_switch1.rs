//! context_switch1: many pairs of tasks that each alternate through two pipes (will-it-scale).
//!
//! **Motive.** schedpipe at scale: from about as many pairs as half the CPUs on, idle CPUs get
//! rare, run-queue locks get busy, and the search for an idle CPU gets in its own way.
//!
//! **Method.** Main creates `instances` tasks, which wait until all are there; each then
//! creates a partner. The two pass one
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

const PARAMETERS: [Parameter; 4] = [
    Parameter::integer("instances", 1, 1, 4096, "", "pairs of tasks"),
    Parameter::integer(
        "user_ns",
        100,
        1,
        1_000_000,
        "ns",
        "user-space CPU time per round trip of either task, beside the system calls [assumed]",
    ),
    Parameter::warmup_ms(100),
    Parameter::window_ms(200),
];

/// Stacks, page tables and code of a process that finds another core cold (assumed: large enough
/// that the throughput falls past one task per CPU, as published).
const FOOTPRINT_KIB: u32 = 128;

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

/// All instances start at once.
const GO: Object = Object::shared(0);

fn build(settings: &Settings) -> Workload {
    let instances = settings.count("instances");
    let user = Op::Run { ns: settings.integer("user_ns") };
    let send = |pipe| Op::Send { channel: Object::own(pipe), bytes: 1 };
    let receive = |pipe| Op::Receive { channel: Object::own(pipe), bytes: 1 };
    let main = vec![
        Op::Fork { program: INSTANCE, count: instances, base: 0, step: 2 },
        Op::Start,
        Op::GateOpen { gate: GO },
        Op::Join,
        Op::Exit,
    ];
    let instance = vec![
        Op::GateWait { gate: GO },
        Op::Fork { program: PARTNER, count: 1, base: 0, step: 0 },
        user,
        send(0),
        receive(1),
        Op::Count,
        Op::Count,
        Op::Repeat { counter: 0, times: FOREVER, to: 2 },
        Op::Exit,
    ];
    let partner =
        vec![receive(0), user, send(1), Op::Repeat { counter: 0, times: FOREVER, to: 0 }, Op::Exit];
    let programs = vec![
        Program::new("context_switch1", main),
        Program::new("context_switch1", instance).with_footprint(FOOTPRINT_KIB),
        Program::new("context_switch1", partner).with_footprint(FOOTPRINT_KIB),
    ];
    Workload {
        channels: vec![ChannelKind::Pipe; instances as usize * 2],
        gates: 1,
        metrics: vec![
            Metric::Throughput { unit: "iterations/s", scale: 1.0 },
            Metric::RunQueueLockShare,
        ],
        ..Workload::new(MODEL.name, programs, settings.window())
    }
}
