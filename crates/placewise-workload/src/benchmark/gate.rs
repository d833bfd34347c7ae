//! What the models share whose tasks report that they are there, and are let go at once.

use crate::program::{Object, Op};

/// The gate that main opens; a workload has no other.
pub(super) const GO: Object = Object::shared(0);

/// What a task does first. All report through one channel.
pub(super) fn comes(start_up: Op, ready: Object) -> [Op; 3] {
    [start_up, Op::Send { channel: ready, bytes: 1 }, Op::GateWait { gate: GO }]
}

/// Main hears of all `tasks` that it has forked, starts the clock, lets them go and reaps them.
pub(super) fn forks_and_lets_go(forks: &[Op], ready: Object, tasks: u32) -> Vec<Op> {
    let collect = forks.len() as u32;
    let hears = [
        Op::Receive { channel: ready, bytes: 1 },
        Op::Repeat { counter: 0, times: tasks, to: collect },
    ];
    [forks, &hears, &LETS_GO].concat()
}

/// The end of a main that hears of nobody, too.
pub(super) const LETS_GO: [Op; 4] = [Op::Start, Op::GateOpen { gate: GO }, Op::Join, Op::Exit];
