//! pgbench: one client process that drives many database backends over unix sockets.
//!
//! **Motive.** One waker with many wakees, each of which wakes it in turn. Pulling every backend to
//! the client's CPU is wrong, and so is pulling the client to every backend's; wake_wide() was written
//! for this.
//!
//! **Method.** A postmaster listens. pgbench opens `clients` connections one after the other, and
//! the postmaster forks a backend for each. Then each of pgbench's `threads` sends one query on
//! each of its connections, polls, and for every reply that has come computes and sends the next
//! query to the backend it came from. A backend reads, takes and releases the locks of the table and of
//! its index, computes, takes and releases them again, and replies: to note that it uses a relation, and
//! that it no longer does, PostgreSQL before 9.2 locks the part of the lock manager's table that the
//! relation is in, which is the same part for all backends. With `log_us` a transaction writes: it ends
//! once the log is on the device. Wakeups between client and backend are sync, those of a lock's next
//! holder are not; the device's interrupt wakes from a CPU that is often idle. Locks make backends
//! change their wakee too, without which wake_wide() would never find one busy enough. The figure is
//! transactions per second, a transaction being one query (`-S`).
//!
//! **Left out.** The database itself: all locks but two, shared buffers, the writers of log and data. A
//! larger database only makes a query longer. The cost of poll with the number of sockets, and commits
//! that share a flush of the log.
//!
//! **Weak points.** Published tables do not say how many threads pgbench had; one is its own default,
//! and fits those that stop to scale before all CPUs are busy. Kernels before 6.13 drop the sync hint
//! for a task that waits in epoll, as backends since PostgreSQL 9.6 do; here it is kept.

use crate::case::Case;
use crate::model::Model;
use crate::parameter::{Parameter, Settings, Value};
use crate::program::{ChannelKind, FOREVER, Metric, Object, Op, Program, Workload};

pub(crate) const MODEL: Model = Model {
    name: "pgbench",
    summary: "one client process drives many backends over unix sockets; transactions per second",
    parameters: &PARAMETERS,
    build: |settings| Ok(build(settings)),
    default_cases,
};

const PARAMETERS: [Parameter; 9] = [
    Parameter::choice("db", &["22MB", "7484MB", "15GB"], "size of the database"),
    Parameter::integer("clients", 1, 1, 2048, "", "connections, each with a backend"),
    Parameter::integer("threads", 1, 1, 64, "", "threads of pgbench, at most one per connection"),
    Parameter::integer(
        "client_us",
        13,
        1,
        1_000_000,
        "us",
        "CPU time of pgbench per transaction, beside the system calls [calibrated with the costs of x86-12]",
    ),
    Parameter {
        name: "backend_us",
        meaning: "CPU time of a backend per transaction, beside the system calls; default 47, 65 and 66 by `db` [calibrated with the costs of x86-12]",
        value: Value::Integer { default: None, min: 1, max: 1_000_000, unit: "us" },
    },
    Parameter::integer(
        "lock_ns",
        3_000,
        0,
        1_000_000,
        "ns",
        "CPU time of a backend per transaction under the two locks that all share [assumed]",
    ),
    Parameter::integer(
        "log_us",
        0,
        0,
        1_000_000,
        "us",
        "time the log's device takes for a transaction's record; 0 = transactions only read",
    ),
    Parameter::warmup_ms(1_000),
    Parameter::window_ms(1_000),
];

/// A backend's stack, caches of plans and relations, and the pages a query touches (assumed).
const BACKEND_FOOTPRINT_KIB: u32 = 256;
/// pgbench's state of all connections (assumed).
const CLIENT_FOOTPRINT_KIB: u32 = 64;

/// The postmaster is up before pgbench starts.
const SETTLE_NS: u64 = 10_000_000;
/// A new backend initialises itself before it is ready (assumed).
const BACKEND_START_NS: u64 = 1_000_000;

const QUERY_BYTES: u32 = 80;
const REPLY_BYTES: u32 = 100;

fn default_cases(nr_cpus: usize) -> Vec<Case> {
    [1, 2, 4, 8, 12, 16, 24, 32]
        .into_iter()
        .filter(|clients| *clients <= 4 * nr_cpus)
        .map(|clients| Case::default().with("clients", clients))
        .collect()
}

const POSTMASTER: u32 = 1;
/// Threads beside main, which is the first one, and then the backends of each thread.
const THREADS: u32 = 2;

/// What the programs share: numbers and channels.
#[derive(Clone, Copy)]
struct Layout {
    clients: u32,
    threads: u32,
}

impl Layout {
    /// The replies to one thread of pgbench.
    fn replies(self, thread: u32) -> Object {
        Object::shared(self.clients + thread)
    }

    /// Where pgbench hears that a new backend is ready.
    fn ready(self) -> Object {
        Object::shared(self.clients + self.threads)
    }

    fn listen(self) -> Object {
        Object::shared(self.clients + self.threads + 1)
    }

    fn channels(self) -> Vec<ChannelKind> {
        let mut channels = vec![ChannelKind::UnixSocket; self.clients as usize];
        channels.extend(vec![ChannelKind::PolledSockets; self.threads as usize]);
        channels.extend([ChannelKind::UnixSocket; 2]);
        channels
    }

    /// Connections go to the threads in turn.
    fn thread_of(self, client: u32) -> u32 {
        client % self.threads
    }

    fn backend_program(self, thread: u32) -> u32 {
        THREADS + self.threads - 1 + thread
    }
}

/// The parts of the lock manager's table that the table and its index are in.
const RELATIONS: [Object; 2] = [Object::shared(0), Object::shared(1)];
/// Each is locked at the start of a transaction and at its end.
const LOCKED_SECTIONS: u64 = 2 * RELATIONS.len() as u64;
/// How much longer or shorter than others a query may take (assumed).
const QUERY_SPREAD_PCT: u8 = 50;
/// The same for what is written to the log (assumed).
const LOG_SPREAD_PCT: u8 = 25;

/// A backend's queries.
const QUERIES: Object = Object::own(0);

fn build(settings: &Settings) -> Workload {
    let clients = settings.count("clients");
    let layout = Layout { clients, threads: settings.count("threads").min(clients) };
    let client_work = Op::Run { ns: settings.integer("client_us") * 1_000 };
    let default_us = match settings.choice("db") {
        "22MB" => 47,
        "7484MB" => 65,
        _ => 66,
    };
    let backend_us = settings.integer_or("backend_us", default_us);
    let transaction = transaction(settings, backend_us * 1_000);

    let mut programs = vec![
        Program::new("pgbench", main(layout, client_work)).with_footprint(CLIENT_FOOTPRINT_KIB),
        Program::new("postmaster", postmaster(layout)).of_processes(),
    ];
    programs.extend((1..layout.threads).map(|number| {
        let ops = thread(layout, number, client_work);
        Program::new("pgbench", ops).with_footprint(CLIENT_FOOTPRINT_KIB)
    }));
    programs.extend((0..layout.threads).map(|thread| {
        let ops = backend(layout, thread, &transaction);
        Program::new("postgres", ops).of_processes().with_footprint(BACKEND_FOOTPRINT_KIB)
    }));
    Workload {
        channels: layout.channels(),
        mutexes: RELATIONS.len() as u32,
        metrics: vec![Metric::Throughput { unit: "tps", scale: 1.0 }],
        ..Workload::new(MODEL.name, programs, settings.window())
    }
}

/// Opens the connections, starts the other threads, and is itself the first.
fn main(layout: Layout, work: Op) -> Vec<Op> {
    let mut ops = vec![
        Op::Fork { program: POSTMASTER, count: 1, base: 0, step: 0 },
        Op::Sleep { ns: SETTLE_NS, random_pct: 0 },
        Op::Send { channel: layout.listen(), bytes: QUERY_BYTES },
        Op::Receive { channel: layout.ready(), bytes: REPLY_BYTES },
        Op::Repeat { counter: 0, times: layout.clients, to: 2 },
    ];
    for number in 1..layout.threads {
        let program = THREADS + number - 1;
        ops.push(Op::Fork { program, count: 1, base: 0, step: 0 });
    }
    ops.push(Op::Start);
    drive(&mut ops, layout, 0, work);
    ops
}

fn thread(layout: Layout, number: u32, work: Op) -> Vec<Op> {
    let mut ops = Vec::new();
    drive(&mut ops, layout, number, work);
    ops
}

/// A query to each backend of the thread, then the next one to whoever has replied.
fn drive(ops: &mut Vec<Op>, layout: Layout, thread: u32, work: Op) {
    let own = (0..layout.clients).filter(|client| layout.thread_of(*client) == thread);
    for client in own {
        ops.push(work);
        ops.push(Op::Send { channel: Object::shared(client), bytes: QUERY_BYTES });
    }
    let first = ops.len() as u32;
    ops.extend([
        Op::Receive { channel: layout.replies(thread), bytes: REPLY_BYTES },
        Op::Count,
        work,
        Op::Reply { channel: QUERIES, bytes: QUERY_BYTES },
        Op::Repeat { counter: 1, times: FOREVER, to: first },
        Op::Exit,
    ]);
}

/// One backend for each connection; backend number n serves connection n.
fn postmaster(layout: Layout) -> Vec<Op> {
    let mut ops = Vec::new();
    for client in 0..layout.clients {
        let program = layout.backend_program(layout.thread_of(client));
        ops.push(Op::Receive { channel: layout.listen(), bytes: QUERY_BYTES });
        ops.push(Op::Fork { program, count: 1, base: client, step: 0 });
    }
    ops.extend([Op::Join, Op::Exit]);
    ops
}

/// What a backend does between a query and its reply.
fn transaction(settings: &Settings, work_ns: u64) -> Vec<Op> {
    let section_ns = settings.integer("lock_ns") / LOCKED_SECTIONS;
    let lock_table = |mutex| [Op::Lock { mutex }, Op::Run { ns: section_ns }, Op::Unlock { mutex }];
    let log_ns = settings.integer("log_us") * 1_000;

    let mut ops: Vec<Op> = RELATIONS.into_iter().flat_map(lock_table).collect();
    ops.push(Op::RunAbout { ns: work_ns, spread_pct: QUERY_SPREAD_PCT });
    if log_ns > 0 {
        ops.push(Op::Device { ns: log_ns, random_pct: LOG_SPREAD_PCT });
    }
    ops.extend(RELATIONS.into_iter().flat_map(lock_table));
    ops
}

fn backend(layout: Layout, thread: u32, transaction: &[Op]) -> Vec<Op> {
    let mut ops = vec![
        Op::Run { ns: BACKEND_START_NS },
        Op::Send { channel: layout.ready(), bytes: REPLY_BYTES },
        Op::Receive { channel: QUERIES, bytes: QUERY_BYTES },
    ];
    ops.extend_from_slice(transaction);
    ops.extend([
        Op::Send { channel: layout.replies(thread), bytes: REPLY_BYTES },
        Op::Repeat { counter: 0, times: FOREVER, to: 2 },
        Op::Exit,
    ]);
    ops
}
