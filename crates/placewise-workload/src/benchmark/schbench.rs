//! schbench: messengers that wake workers; the latency of these wakeups is the figure.
//!
//! **Motive.** A server that hands requests to workers suffers from the tail of the wakeup
//! latency. With few workers the placement of each wakeup decides; from about as many runnable
//! tasks as CPUs on, queueing does, and values jump to milliseconds.
//!
//! **Method.** Each messenger creates its workers. A worker spins for `cputime_us` of wall time,
//! puts itself on its messenger's list, futex-wakes the messenger and futex-waits. The messenger
//! marks itself blocked, takes one time stamp, futex-wakes every worker on its list, last come first,
//! futex-waits, spins for `message_cputime_us` and sleeps `sleeptime_us` plus up to a quarter at random.
//! Each wake is a call, after which the messenger may be preempted while the others wait. Wakes
//! that came while it was not blocked are forgotten, so it waits for a worker of this round. The
//! sample is the time from the stamp to the return of the worker's wait, taken before it spins again, so it
//! holds the messenger's walk over its list as well. This is the order of the tool's revisions of
//! 2021 that published values of some 20 to 500 microseconds come from; later ones sample after
//! the spin. Until October 2020 the messenger did not spin. All wakeups are futex wakeups, never sync.
//!
//! **Left out.** The work inside the spin (it touches no data of note), the log buckets of the
//! tool's histogram (quantiles here are those of the recorded samples), its dropping of samples of
//! zero microseconds, and the threads that only print.
//!
//! **Weak points.** Published tables name the number of workers but not how they are split over
//! messengers. A knee between 256 and 512 workers on 256 CPUs, and between 128 and 256 on 128,
//! fits one messenger, which is the default here; so does the slope below the knee, some 4
//! microseconds per worker, which is one messenger's walk. A knee at half as many fits two, the tool's
//! own default, which the tables' author used in later posts. A worker yields 11 to 16 samples per second, so a p99
//! of few workers rests on few samples.

use crate::case::Case;
use crate::model::Model;
use crate::parameter::{Parameter, Settings, Value};
use crate::program::{FOREVER, Metric, Object, Op, Program, Workload};

pub(crate) const MODEL: Model = Model {
    name: "schbench",
    summary: "messengers wake workers by futex; wakeup latency",
    parameters: &PARAMETERS,
    build: |settings| Ok(build(settings)),
    default_cases,
};

const PARAMETERS: [Parameter; 7] = [
    Parameter::integer("workers", 16, 1, 4096, "", "workers of each messenger"),
    Parameter::integer("messengers", 1, 1, 64, "", "messengers"),
    Parameter::integer("cputime_us", 30_000, 1, 10_000_000, "us", "wall time a worker spins"),
    Parameter::integer(
        "message_cputime_us",
        30_000,
        0,
        10_000_000,
        "us",
        "wall time a messenger spins in each round; 0 in the tool's revisions before October 2020",
    ),
    Parameter::integer(
        "sleeptime_us",
        30_000,
        1,
        10_000_000,
        "us",
        "least time a messenger sleeps in each round; up to 25 % are added at random",
    ),
    Parameter::warmup_ms(1_000),
    Parameter {
        name: "window_ms",
        meaning: "simulated time that is measured; default 10,000 up to 16 workers in all, 40,000 beyond",
        value: Value::Integer { default: None, min: 1, max: 600_000, unit: "ms" },
    },
];

/// What each thread has in memory, in KiB: its stack and its samples (assumed).
const STACK_KIB: u64 = 16;

/// Beyond this many workers the tail is made by rare coincidences and wants a longer window.
const FEW_WORKERS: u64 = 16;

fn default_cases(nr_cpus: usize) -> Vec<Case> {
    (0..=9)
        .map(|power| 1_usize << power)
        .filter(|workers| *workers == 1 || *workers <= 2 * nr_cpus)
        .map(|workers| Case::default().with("workers", workers))
        .collect()
}

const MESSENGER: u32 = 1;
const WORKER: u32 = 2;

/// The messenger's list: its own base is its number, and its workers inherit it.
const LIST: Object = Object::own(0);

fn build(settings: &Settings) -> Workload {
    let messengers = settings.count("messengers");
    let workers = settings.count("workers");
    let window_ms = match u64::from(messengers) * u64::from(workers) {
        0..=FEW_WORKERS => 10_000,
        _ => 40_000,
    };
    let threads = u64::from(messengers) * u64::from(workers + 1);
    let programs = vec![
        Program::new("schbench", main(messengers)).with_memory(threads * STACK_KIB),
        Program::new("messenger", messenger(settings, workers)).with_footprint(Program::TASK_KIB),
        Program::new("worker", worker(settings)).with_footprint(Program::TASK_KIB),
    ];
    Workload {
        lists: messengers,
        metrics: [0.5, 0.9, 0.99, 0.999]
            .map(|quantile| Metric::WakeupLatency { quantile })
            .to_vec(),
        ..Workload::new(MODEL.name, programs, settings.window_or(window_ms))
    }
}

fn main(messengers: u32) -> Vec<Op> {
    vec![
        Op::Start,
        Op::Fork { program: MESSENGER, count: messengers, base: 0, step: 1 },
        Op::Join,
        Op::Exit,
    ]
}

fn messenger(settings: &Settings, workers: u32) -> Vec<Op> {
    vec![
        Op::Fork { program: WORKER, count: workers, base: 0, step: 0 },
        Op::WakeListed { list: LIST },
        Op::Wait { sample: false },
        Op::Spin { ns: settings.integer("message_cputime_us") * 1_000 },
        Op::Sleep { ns: settings.integer("sleeptime_us") * 1_000, random_pct: 25 },
        Op::Repeat { counter: 0, times: FOREVER, to: 1 },
        Op::Exit,
    ]
}

fn worker(settings: &Settings) -> Vec<Op> {
    vec![
        Op::Spin { ns: settings.integer("cputime_us") * 1_000 },
        Op::Enlist { list: LIST },
        Op::WakeParent,
        Op::Wait { sample: true },
        Op::Repeat { counter: 0, times: FOREVER, to: 0 },
        Op::Exit,
    ]
}
