//! Calls that find a pipe full: what they cost, and what they do once they are woken.

use std::collections::BTreeMap;

use placewise_workload::program::{ChannelKind, FOREVER, Object, Op, Program, Workload};

use crate::common::{Setup, main_of, programs};
use crate::trace::parse;

/// Far more than all else that a call or a wakeup costs.
const MESSAGE_US: u64 = 200;

/// How long, in us, each of two writers runs from its switch in until it falls asleep, in the order in
/// which they do, on a pipe whose reader is ten times as slow. Before v6.18 each read of the full pipe
/// wakes one of them.
fn stints_of_writers() -> Vec<u64> {
    let channel = Object::shared(0);
    let for_ever = |name, mut ops: Vec<Op>| {
        ops.extend([Op::Repeat { counter: 0, times: FOREVER, to: 0 }, Op::Exit]);
        Program::new(name, ops)
    };
    let receive = Op::Receive { channel, bytes: 100 };
    let reader = for_ever("reader", vec![Op::Run { ns: 10 * MESSAGE_US * 1_000 }, receive]);
    let writer = || for_ever("writer", vec![Op::Send { channel, bytes: 100 }]);
    let all = programs(vec![main_of(3), reader, writer(), writer()], 1_000);
    let workload = Workload { channels: vec![ChannelKind::Pipe], ..all };
    let mut setup = Setup::new("uma-8", "v6.0", "baseline", workload);
    setup.machine.costs.pipe_message_ns = MESSAGE_US * 1_000;
    let (mut since, mut stints) = (BTreeMap::new(), Vec::new());
    for line in parse(&setup.traced().1).iter().filter(|line| line.event == "sched_switch") {
        if line.text("prev_comm") == "writer" && line.text("prev_state") == "S" {
            let began = since.remove(&line.number("prev_pid"));
            stints.extend(began.map(|began| line.micros - began));
        }
        if line.text("next_comm") == "writer" {
            since.insert(line.number("next_pid"), line.micros);
        }
    }
    stints
}

fn copies(stint: &u64) -> bool {
    *stint > MESSAGE_US / 2
}

/// Fails if a writer that is woken in vain made its whole call again: it would copy each time.
#[test]
fn a_writer_woken_in_vain_only_looks() {
    let stints = stints_of_writers();
    let looks = stints.iter().filter(|stint| !copies(stint)).count();
    assert!(stints.len() > 200, "{} stints", stints.len());
    assert!(looks * 10 > stints.len() * 9, "{looks} of {} stints only look", stints.len());
}

/// Fails if a writer that slept merged its message into the last page, as one that comes anew does: it
/// would go on at the next read, while the other one fills the page, and not once 40 reads free one.
#[test]
fn a_writer_that_slept_waits_until_a_page_is_free() {
    let stints = stints_of_writers();
    let looks: Vec<usize> = stints.split(copies).map(<[u64]>::len).collect();
    // Until the pipe is full both fill it, and the first page to be freed is begun before.
    let between = &looks[3..looks.len() - 1];
    assert!(!between.is_empty() && between.iter().all(|&n| n == 39), "{looks:?}");
}
