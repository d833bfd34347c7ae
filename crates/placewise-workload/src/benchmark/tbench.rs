//! tbench: clients that each talk to a server process of their own over loopback TCP.
//!
//! **Motive.** Request and response with all tasks in pairs and the machine filling up: what counts
//! is how far a client is from its server, and how well the pairs are spread. Both are decided when
//! the servers are forked, because they sleep at once and most wakeups then find their previous CPU
//! idle.
//!
//! **Method.** tbench_srv listens; tbench forks `clients` clients, each of which connects, whereupon
//! tbench_srv forks a server process that waits for requests. All clients then meet at a barrier. A
//! client computes, writes a request and reads the response in two reads, its first four bytes and the
//! rest; the server does the same from the other side. Requests and responses carry the file data of a
//! file server's clients: of each hundred requests of the tool's load file 27 read and 9 write
//! data, with a mean of 5.4 KB over all; here every hundred requests are these, evenly mixed.
//! Data-ready wakeups are sync, in softirq on the sender's CPU. The figure counts the
//! file data as the tool does, in units of 10^6 bytes.
//!
//! **Left out.** The order of requests in the load file and their spread of sizes, `Deltree` at
//! either end, bandwidth of caches and memory, TCP's acknowledgements and windows.
//!
//! **Weak points.** Published tables do not name the load file; the tool's own is assumed.
//! Compute time per request is not known; it is small, since the published baseline of one client
//! leaves 10 microseconds for the whole of a request, on both sides. Which server serves which
//! client follows the order of connecting.

use crate::case::Case;
use crate::model::Model;
use crate::parameter::{Parameter, Settings};
use crate::program::{ChannelKind, FOREVER, Metric, Object, Op, Program, Workload};

pub(crate) const MODEL: Model = Model {
    name: "tbench",
    summary: "clients and their servers exchange requests over loopback TCP; MB/s",
    parameters: &PARAMETERS,
    build: |settings| Ok(build(settings)),
    default_cases,
};

const PARAMETERS: [Parameter; 4] = [
    Parameter::integer("clients", 1, 1, 2048, "", "clients, each with a server process"),
    Parameter::integer(
        "user_ns",
        100,
        1,
        1_000_000,
        "ns",
        "user-space CPU time per request of either side, beside the system calls [assumed]",
    ),
    Parameter::warmup_ms(400),
    Parameter::window_ms(200),
];

/// Buffers of 70 KB on either side, half of which is used on average, and the load (assumed).
const FOOTPRINT_KIB: u32 = 64;

/// tbench_srv is up before tbench starts.
const SETTLE_NS: u64 = 10_000_000;

fn default_cases(nr_cpus: usize) -> Vec<Case> {
    (0..=10)
        .map(|power| 1_usize << power)
        .filter(|clients| *clients == 1 || *clients <= 4 * nr_cpus)
        .map(|clients| Case::default().with("clients", clients))
        .collect()
}

/// A request and its response in bytes, and how much of them is file data.
#[derive(Clone, Copy)]
struct Exchange {
    request: u32,
    response: u32,
    data: u32,
}

/// Opening, closing, asking for attributes.
const SMALL: Exchange = Exchange { request: 80, response: 80, data: 0 };

const fn read(data: u32) -> Exchange {
    Exchange { request: 59, response: data + 59, data }
}

const fn write(data: u32) -> Exchange {
    Exchange { request: data + 59, response: 55, data }
}

/// How many of each hundred requests are of a kind: the load file's shares and means, rounded.
const KINDS: [(usize, Exchange); 5] =
    [(64, SMALL), (23, read(3_328)), (4, read(61_440)), (6, write(4_096)), (3, write(65_536))];

/// Requests in one round of the mix.
const ROUND: usize = 100;

/// One round, in which each kind is spread as evenly as it goes.
fn round() -> Vec<Exchange> {
    let mut sent = [0; KINDS.len()];
    let next = |slot: usize| {
        let due = |kind: &usize| {
            let (share, _) = KINDS[*kind];
            (slot * share) as i64 - (sent[*kind] * ROUND) as i64
        };
        let kind = (0..KINDS.len()).max_by_key(due).expect("there are kinds");
        sent[kind] += 1;
        KINDS[kind].1
    };
    (1..=ROUND).map(next).collect()
}

const TBENCH_SRV: u32 = 1;
const CLIENT: u32 = 2;
const SERVER: u32 = 3;

/// A connection's two directions.
const REQUEST: Object = Object::own(0);
const RESPONSE: Object = Object::own(1);
const CONNECTION: u32 = 2;

/// All clients start at once.
const START: Object = Object::shared(0);

fn build(settings: &Settings) -> Workload {
    let clients = settings.count("clients");
    let user = Op::Run { ns: settings.integer("user_ns") };
    let listen = Object::shared(clients * CONNECTION);
    let main = vec![
        Op::Fork { program: TBENCH_SRV, count: 1, base: 0, step: 0 },
        Op::Sleep { ns: SETTLE_NS, random_pct: 0 },
        Op::Fork { program: CLIENT, count: clients, base: 0, step: CONNECTION },
        Op::Barrier { barrier: START, spin_ns: 0 },
        Op::Start,
        Op::Join,
        Op::Exit,
    ];
    let programs = vec![
        Program::new("tbench", main),
        Program::new("tbench_srv", tbench_srv(clients, listen)).of_processes(),
        Program::new("tbench", client(user, listen)).of_processes().with_footprint(FOOTPRINT_KIB),
        Program::new("tbench_srv", server(user)).of_processes().with_footprint(FOOTPRINT_KIB),
    ];
    let data: u32 = round().iter().map(|exchange| exchange.data).sum();
    let megabytes_per_request = f64::from(data) / ROUND as f64 / 1e6;
    Workload {
        channels: vec![ChannelKind::LoopbackTcp; (clients * CONNECTION) as usize + 1],
        barriers: vec![clients + 1],
        metrics: vec![Metric::Throughput { unit: "MB/s", scale: megabytes_per_request }],
        ..Workload::new(MODEL.name, programs, settings.window())
    }
}

/// One server process for each connection, in the order they come.
fn tbench_srv(clients: u32, listen: Object) -> Vec<Op> {
    let mut ops = Vec::new();
    for connection in 0..clients {
        ops.push(Op::Receive { channel: listen, bytes: 1 });
        ops.push(Op::Fork { program: SERVER, count: 1, base: connection * CONNECTION, step: 0 });
    }
    ops.extend([Op::Join, Op::Exit]);
    ops
}

fn client(user: Op, listen: Object) -> Vec<Op> {
    let mut ops =
        vec![Op::Send { channel: listen, bytes: 1 }, Op::Barrier { barrier: START, spin_ns: 0 }];
    let first = ops.len() as u32;
    for exchange in round() {
        ops.push(user);
        ops.push(Op::Send { channel: REQUEST, bytes: exchange.request });
        ops.extend(read_message(RESPONSE, exchange.response));
        ops.push(Op::Count);
    }
    ops.extend([Op::Repeat { counter: 0, times: FOREVER, to: first }, Op::Exit]);
    ops
}

fn server(user: Op) -> Vec<Op> {
    let mut ops = Vec::new();
    for exchange in round() {
        ops.extend(read_message(REQUEST, exchange.request));
        ops.push(user);
        ops.push(Op::Send { channel: RESPONSE, bytes: exchange.response });
    }
    ops.extend([Op::Repeat { counter: 0, times: FOREVER, to: 0 }, Op::Exit]);
    ops
}

/// The length comes first, in a read of its own.
fn read_message(channel: Object, bytes: u32) -> [Op; 2] {
    const LENGTH: u32 = 4;
    [Op::Receive { channel, bytes: LENGTH }, Op::Receive { channel, bytes: bytes - LENGTH }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_the_shares_of_the_load_file_and_spreads_them() {
        let round = round();
        for (share, kind) in KINDS {
            let places: Vec<usize> = (0..ROUND)
                .filter(|&at| (round[at].data, round[at].request) == (kind.data, kind.request))
                .collect();
            assert_eq!(places.len(), share);
            let widest = places.windows(2).map(|two| two[1] - two[0]).max().unwrap();
            assert!(widest <= 2 * ROUND / share, "{share}: {places:?}");
        }
    }

    #[test]
    fn a_request_carries_as_much_data_as_in_the_load_file_on_average() {
        let data: u32 = round().iter().map(|exchange| exchange.data).sum();
        assert_eq!(data / ROUND as u32, 5_434);
    }
}
