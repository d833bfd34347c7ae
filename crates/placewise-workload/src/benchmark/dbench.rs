//! dbench: processes that do the file operations of a file server's clients.
//!
//! **Motive.** Many short, independent tasks that sleep for locks, kernel threads and devices: no
//! task has a partner to be near to, and many wakeups come from a worker or an interrupt whose CPU
//! says nothing about where the wakee should run.
//!
//! **Method.** Main starts `groups` clients, which meet at a barrier and then do operations of
//! equal size. Each takes `op_us` of CPU time, and a part of it, `journal_ns`, under the one lock of
//! the file system's journal. One operation in 83, as in the tool's load file, is a flush: the client
//! hands it to a kworker and sleeps; the kworker sleeps until the device's interrupt, `device_us`
//! later, and wakes the client. Interrupts go to the CPUs in turn. None of these wakeups is sync.
//! The figure is file data in units of 10^6 bytes per second, at the load file's mean of 5.4 KB
//! per operation.
//!
//! **Left out.** The file system itself and the page cache: directories, allocation, write-back.
//! Kworkers that are bound to a CPU: these are not. The batching of commits.
//!
//! **Weak points.** What limits the published runs is a file system that they do not name. One
//! lock with the hold time that their flat middle allows stands for it. The mutex sleeps at once when
//! it is taken; the kernel's spins for a while.

use crate::case::Case;
use crate::model::Model;
use crate::parameter::{Parameter, Settings};
use crate::program::{ChannelKind, FOREVER, Metric, Object, Op, Program, Workload};

pub(crate) const MODEL: Model = Model {
    name: "dbench",
    summary: "file operations with locks, kworkers and device interrupts; MB/s",
    parameters: &PARAMETERS,
    build: |settings| Ok(build(settings)),
    default_cases,
};

const PARAMETERS: [Parameter; 7] = [
    Parameter::integer("groups", 1, 1, 2048, "", "client processes"),
    Parameter::integer("kworkers", 8, 1, 256, "", "kernel threads that serve flushes"),
    Parameter::integer(
        "op_us",
        13,
        1,
        1_000_000,
        "us",
        "CPU time of an operation outside of the journal's lock [calibrated with the costs of arm64-224]",
    ),
    Parameter::integer(
        "journal_ns",
        2_000,
        1,
        1_000_000,
        "ns",
        "CPU time of an operation under the journal's lock [calibrated with the costs of arm64-224]",
    ),
    Parameter::integer(
        "device_us",
        50,
        1,
        1_000_000,
        "us",
        "time the device takes for a flush [assumed]",
    ),
    Parameter::warmup_ms(300),
    Parameter::window_ms(500),
];

/// Operations to each flush, and bytes of file data per operation, by the load file.
const OPS_PER_FLUSH: u32 = 83;
const MEGABYTES_PER_OP: f64 = 5_428.0 / 1e6;

/// The 64 KiB an operation moves at most (assumed).
const FOOTPRINT_KIB: u32 = 64;

fn default_cases(nr_cpus: usize) -> Vec<Case> {
    [1, 4, 16, 32, 64, 128, 256]
        .into_iter()
        .filter(|groups| *groups <= 2 * nr_cpus)
        .map(|groups| Case::default().with("groups", groups))
        .collect()
}

const CLIENT: u32 = 1;
const KWORKER: u32 = 2;

/// Where a client waits for its flush; the queue of all flushes comes after these.
const DONE: Object = Object::own(0);
const JOURNAL: Object = Object::shared(0);
/// All clients start at once.
const START: Object = Object::shared(0);

/// What an item on a kernel queue is said to hold: queues only count them.
const ITEM_BYTES: u32 = 1;

fn build(settings: &Settings) -> Workload {
    let clients = settings.count("groups");
    let flushes = Object::shared(clients);
    let main = vec![
        Op::Fork { program: KWORKER, count: settings.count("kworkers"), base: 0, step: 0 },
        Op::Fork { program: CLIENT, count: clients, base: 0, step: 1 },
        Op::Barrier { barrier: START, spin_ns: 0 },
        Op::Start,
        Op::Join,
        Op::Exit,
    ];
    let client = vec![
        Op::Barrier { barrier: START, spin_ns: 0 },
        Op::Run { ns: settings.integer("op_us") * 1_000 },
        Op::Lock { mutex: JOURNAL },
        Op::Run { ns: settings.integer("journal_ns") },
        Op::Unlock { mutex: JOURNAL },
        Op::Count,
        Op::Repeat { counter: 0, times: OPS_PER_FLUSH, to: 1 },
        Op::Send { channel: flushes, bytes: ITEM_BYTES },
        Op::Receive { channel: DONE, bytes: ITEM_BYTES },
        Op::Repeat { counter: 1, times: FOREVER, to: 1 },
        Op::Exit,
    ];
    let kworker = vec![
        Op::Receive { channel: flushes, bytes: ITEM_BYTES },
        Op::Device { ns: settings.integer("device_us") * 1_000, random_pct: 25 },
        Op::Reply { channel: DONE, bytes: ITEM_BYTES },
        Op::Repeat { counter: 0, times: FOREVER, to: 0 },
        Op::Exit,
    ];
    let programs = vec![
        Program::new("dbench", main),
        Program::new("dbench", client).of_processes().with_footprint(FOOTPRINT_KIB),
        Program::new("kworker/u", kworker),
    ];
    Workload {
        channels: vec![ChannelKind::KernelQueue; clients as usize + 1],
        mutexes: 1,
        barriers: vec![clients + 1],
        metrics: vec![Metric::Throughput { unit: "MB/s", scale: MEGABYTES_PER_OP }],
        ..Workload::new(MODEL.name, programs, settings.window())
    }
}
