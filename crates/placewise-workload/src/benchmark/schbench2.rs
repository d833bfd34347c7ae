//! schbench as rewritten in 2023: workers serve requests as fast as they can, and messengers wake them.
//!
//! **Motive.** A web server that saturates the machine: what counts is requests per second, and what
//! costs them are idle CPUs, late wakeups and preempted work.
//!
//! **Method.** Each messenger creates its workers, wakes every worker on its list and futex-waits. A
//! worker puts itself on the list, futex-wakes the messenger and futex-waits; the wait is sampled as in
//! the older version. Then it serves a request: it sleeps for `sleep_us`, takes the lock of the CPU that
//! it is on, computes for `work_us` and lets go of the lock. A worker that finds the lock of its CPU
//! taken spins: its holder was preempted there or has moved on. The request's latency is that of all
//! four steps.
//!
//! **Left out.** The matrices that the work multiplies, beyond the footprint; requests at a given rate
//! (`-R`, `-A`), the pipe mode (`-p`), pinning. In a mix, all parts share the locks.
//!
//! **Weak points.** How long the work takes follows from the machine and two options of the tool, of
//! which tables name neither; the default is what the tool's documentation shows for its defaults.

use crate::case::Case;
use crate::model::Model;
use crate::parameter::{Parameter, Settings};
use crate::program::{FOREVER, Metric, Object, Op, Program, Workload};

pub(crate) const MODEL: Model = Model {
    name: "schbench2",
    summary: "workers serve requests under locks of their CPUs; latencies, requests per second",
    parameters: &PARAMETERS,
    build: |settings| Ok(build(settings)),
    default_cases,
};

const PARAMETERS: [Parameter; 6] = [
    Parameter::integer("workers", 16, 1, 4096, "", "workers of each messenger (-t)"),
    Parameter::integer("messengers", 1, 1, 64, "", "messengers (-m)"),
    Parameter::integer(
        "work_us",
        17_000,
        1,
        10_000_000,
        "us",
        "CPU time of a request's work [published: the calibration run of the tool's documentation]",
    ),
    Parameter::integer("sleep_us", 100, 1, 10_000_000, "us", "sleep in each request (-s)"),
    Parameter::warmup_ms(1_000),
    Parameter::window_ms(4_000),
];

/// The tool's default for the matrices (-F).
const FOOTPRINT_KIB: u32 = 256;

/// What each worker allocates for its three matrices.
const MATRICES_KIB: u64 = FOOTPRINT_KIB as u64;

fn default_cases(nr_cpus: usize) -> Vec<Case> {
    let halves = [nr_cpus / 4, nr_cpus / 2, nr_cpus, 2 * nr_cpus];
    let mut workers: Vec<usize> = halves.into_iter().filter(|workers| *workers > 0).collect();
    workers.dedup();
    workers.into_iter().map(|workers| Case::default().with("workers", workers)).collect()
}

const MESSENGER: u32 = 1;
const WORKER: u32 = 2;

/// The messenger's list: its own base is its number, and its workers inherit it.
const LIST: Object = Object::own(0);

const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

fn build(settings: &Settings) -> Workload {
    let messengers = settings.count("messengers");
    let workers = settings.count("workers");
    let main = vec![
        Op::Start,
        Op::Fork { program: MESSENGER, count: messengers, base: 0, step: 1 },
        Op::Join,
        Op::Exit,
    ];
    let programs = vec![
        Program::new("schbench", main).with_memory(u64::from(messengers * workers) * MATRICES_KIB),
        Program::new("schbench-msg", messenger(workers)),
        Program::new("schbench-worker", worker(settings)).with_footprint(FOOTPRINT_KIB),
    ];
    let wakeup = QUANTILES.map(|quantile| Metric::WakeupLatency { quantile });
    let request = QUANTILES.map(|quantile| Metric::RequestLatency { quantile });
    let rate = Metric::Throughput { unit: "requests/s", scale: 1.0 };
    Workload {
        lists: messengers,
        metrics: wakeup.into_iter().chain(request).chain([rate]).collect(),
        ..Workload::new(MODEL.name, programs, settings.window())
    }
}

fn messenger(workers: u32) -> Vec<Op> {
    vec![
        Op::Fork { program: WORKER, count: workers, base: 0, step: 0 },
        Op::WakeListed { list: LIST },
        Op::Wait { sample: false },
        Op::Repeat { counter: 0, times: FOREVER, to: 1 },
        Op::Exit,
    ]
}

fn worker(settings: &Settings) -> Vec<Op> {
    vec![
        Op::Enlist { list: LIST },
        Op::WakeParent,
        Op::Wait { sample: true },
        Op::BeginRequest,
        Op::Sleep { ns: settings.integer("sleep_us") * 1_000, random_pct: 0 },
        Op::LockCpu,
        Op::Run { ns: settings.integer("work_us") * 1_000 },
        Op::UnlockCpu,
        Op::EndRequest,
        Op::Count,
        Op::Repeat { counter: 0, times: FOREVER, to: 0 },
        Op::Exit,
    ]
}
