//! Messages: what a transfer takes, and whom it wakes.
//!
//! A call wakes the other side before it is over. What is left of it comes before the wakee may take the CPU, but
//! where the kernel preempts itself. Limits: there the end of loopback's softirq comes after the switch, too; calls that
//! transfer nothing are over with their wakeup. Who waits for a wait queue's lock may be preempted.

use std::num::NonZeroU64;

use placewise_policy::{CpuId, PIPE_WAKES_ALL, TaskId};
use placewise_workload::program::ChannelKind;

use crate::state::channel::{Channel, Side, Wake};
use crate::state::costs::CostModel;
use crate::state::effect::{Effect, Then};
use crate::state::event_queue::Time;
use crate::state::programs::Transfer;
use crate::state::speed::Speed;
use crate::state::task::{Resume, Task};

/// Where a call that transfers a message is: the task's `stage`.
mod stage {
    /// At its begin.
    pub const CALLS: u32 = 0;
    /// It has found nothing to do, and looks a last time before it sleeps.
    pub const LOOKS: u32 = 1;
    /// It sleeps, or was woken and looks again.
    pub const SLEPT: u32 = 2;
    /// It slept, and has seen that there is something to do.
    pub const GOES_ON: u32 = 3;
    /// Not yet there: the task computes before it.
    pub const COMES: u32 = 4;
    /// It has transferred its message, and waits for the lock of a wait queue.
    pub const WAITS: u32 = 5;
}

/// A call that begins later than this takes no turn at the channel's lock until it has come there; nor does one that
/// would find nothing to do now.
const SOON: Time = 1_000;

/// Where a step of a call begins: now, after the CPU has worked for some time.
#[derive(Clone, Copy)]
pub(super) struct Begin<'a> {
    pub cpu: CpuId,
    pub pace: &'a Speed,
    pub now: Time,
    pub before: Time,
}

/// What a call that has come to its channel takes until it wakes others, and how much of that with the channel's lock;
/// and what one of its lines does.
struct Inside {
    all: Time,
    locked: Time,
    line: Time,
}

/// What a step of the call takes, nearly always its first and only one.
#[inline(always)]
pub(super) fn step_cost(
    transfer: &Transfer,
    side: Side,
    state: &mut Task,
    channel: &mut Channel,
    costs: &mut CostModel,
    mut begin: Begin,
) -> Time {
    match state.stage {
        stage::CALLS => {}
        stage::LOOKS | stage::SLEPT => return look(side, channel, costs, &begin),
        stage::WAITS => {
            // It may have been preempted until then; and what is rounded down to nothing would not end.
            let wait = channel.waking_until.saturating_sub(begin.now);
            return begin.pace.share(wait).max(1);
        }
        _ => return transfer_cost(transfer, side, channel, costs, begin),
    }
    let waits = !channel.can_transfer(side, transfer.bytes, false);
    if begin.before > SOON || waits && begin.before > 0 {
        state.stage = stage::COMES;
        return 0;
    }
    let way = way(side, channel, costs);
    if waits {
        state.stage = stage::LOOKS;
        return way + look(side, channel, costs, &begin);
    }
    begin.before += way;
    way + transfer_cost(transfer, side, channel, costs, begin)
}

/// A step that only looks takes the lines in which it does, and copies nothing.
#[inline(never)]
fn look(side: Side, channel: &mut Channel, costs: &CostModel, begin: &Begin) -> Time {
    let from = std::mem::replace(&mut channel.last_cpu, begin.cpu);
    let lines = costs.message(channel.kind, side).lines.channel;
    begin.pace.share(costs.cache_lines(lines, from, begin.cpu))
}

#[inline(always)]
fn transfer_cost(
    transfer: &Transfer,
    side: Side,
    channel: &mut Channel,
    costs: &mut CostModel,
    begin: Begin,
) -> Time {
    let inside = inside(transfer, side, channel, costs, &begin);
    inside.all + lock_wait(side, channel, begin, inside)
}

/// The call's way into the kernel, and to where it sees whether there is something to do.
#[inline(always)]
fn way(side: Side, channel: &Channel, costs: &mut CostModel) -> Time {
    let cost = costs.message(channel.kind, side);
    let (leaving, way) = (cost.leaving_ns, cost.way_ns.unwrap_or(0));
    costs.draw(costs.figures.syscall_ns).saturating_sub(leaving) + way
}

/// What is left of a call once it has woken whom it wakes.
#[inline(always)]
pub(super) fn rest(side: Side, channel: &Channel, costs: &CostModel) -> Time {
    let cost = costs.message(channel.kind, side);
    cost.after_ns + cost.leaving_ns
}

/// Lines come from where they were touched last: those of the channel by either side, those of a side by that
/// one, and by the other one those of a message and of a page of it.
#[inline(always)]
fn inside(
    transfer: &Transfer,
    side: Side,
    channel: &mut Channel,
    costs: &mut CostModel,
    begin: &Begin,
) -> Inside {
    let turns_page = channel.turns_page(side, transfer.bytes);
    let copy = costs.copy(channel, side, transfer.bytes, turns_page);
    let cost = costs.message(channel.kind, side);
    let (cpu, pace) = (begin.cpu, begin.pace);
    let line_to = costs.line_to(cpu);
    let line = pace.share(line_to.from(channel.last_cpu));
    let same_side = line_to.from(channel.last_of(side));
    let other_side = line_to.from(channel.last_of(side.other()));
    let shared = Time::from(cost.lines.channel) * line;
    let turned = if turns_page { cost.lines.page } else { 0 };
    let own = Time::from(transfer.lines) * other_side;
    let moved = Time::from(cost.lines.side) * same_side
        + Time::from(cost.lines.message + turned) * other_side
        + cost.lines_at_once.map_or(0, |at_once| own / NonZeroU64::from(at_once));
    let moved = pace.share(moved);
    channel.last_cpu = cpu;
    channel.last_of_side[side as usize] = cpu;
    let locked = shared + cost.locked(copy).map_or(0, |ns| ns + moved);
    Inside { all: cost.at_channel(copy) + shared + moved, locked, line }
}

/// How long the call waits busily for the channel's lock, as work too. A sender takes the lock last, a
/// receiver first; polled sockets have one each.
#[inline(always)]
fn lock_wait(side: Side, channel: &mut Channel, begin: Begin, inside: Inside) -> Time {
    if channel.kind == ChannelKind::PolledSockets {
        return 0;
    }
    let unlocked = match side {
        Side::Writer => inside.all.saturating_sub(inside.locked),
        Side::Reader => 0,
    };
    let arrives = begin.now + begin.pace.time_for(begin.before + unlocked);
    let handed_on = Time::from(channel.lock.lines_handed_on(arrives)) * inside.line;
    let wait = channel.lock.take(arrives, begin.pace.time_for(inside.locked + handed_on));
    begin.pace.share(wait) + handed_on
}

/// A step of the call ends: nearly always the message is transferred.
#[inline(always)]
pub(super) fn end_step(
    transfer: &Transfer,
    side: Side,
    task: TaskId,
    state: &mut Task,
    channel: &mut Channel,
    (now, effect): (Time, &mut Effect),
) -> Then {
    let called = state.stage == stage::CALLS && channel.can_transfer(side, transfer.bytes, false);
    if !called && let Some(then) = hold_up(transfer, side, task, state, (now, channel)) {
        return then;
    }
    let wake = take_place(transfer, side, channel, state, !called, effect);
    let finds_nobody = wake != Wake::Nobody && effect.wakees.is_empty();
    if finds_nobody && channel.waking_until > now && channel.locks_queue(side) {
        state.stage = stage::WAITS;
        return Then::Again;
    }
    Then::Next
}

/// It sleeps, or goes on, unless the message is to be transferred after all.
#[inline(never)]
fn hold_up(
    transfer: &Transfer,
    side: Side,
    task: TaskId,
    state: &mut Task,
    (now, channel): (Time, &mut Channel),
) -> Option<Then> {
    if state.stage == stage::WAITS {
        return Some(if channel.waking_until > now { Then::Again } else { Then::Next });
    }
    if state.stage == stage::COMES {
        state.stage = stage::CALLS;
        return Some(Then::Again);
    }
    let waited = state.stage != stage::CALLS;
    if !channel.can_transfer(side, transfer.bytes, waited) {
        state.stage = stage::SLEPT;
        channel.wait(task, side);
        return Some(Then::Block(Resume::Retry));
    }
    if state.stage != stage::GOES_ON {
        state.stage = stage::GOES_ON;
        return Some(Then::Again);
    }
    None
}

/// The message is transferred, which wakes others; a call that `slept` may pass on its wakeup. Says whom the message
/// wakes.
#[inline(always)]
fn take_place(
    transfer: &Transfer,
    side: Side,
    channel: &mut Channel,
    state: &mut Task,
    slept: bool,
    effect: &mut Effect,
) -> Wake {
    let wake = match side {
        Side::Writer => channel.send(transfer.bytes, state.base, slept),
        Side::Reader => {
            if let Some(sender) = channel.next_sender() {
                state.peer = sender;
            }
            channel.receive(transfer.bytes)
        }
    };
    channel.wake(wake, effect);
    if slept && channel.rule != PIPE_WAKES_ALL && channel.kind == ChannelKind::Pipe {
        channel.wake(channel.passed_on(side), effect);
    }
    wake
}
