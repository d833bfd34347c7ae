//! Messages: what a transfer takes, and whom it wakes.

use placewise_policy::{CpuId, PIPE_WAKES_ALL, PipeWakeRule, TaskId};
use placewise_workload::program::ChannelKind;

use crate::engine::Engine;
use crate::state::channel::{Channel, Side};
use crate::state::costs::CostModel;
use crate::state::effect::{Effect, Then};
use crate::state::event_queue::Time;
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
}

/// A call that begins later than this takes no turn at the channel's lock until it has come there.
const SOON: Time = 1_000;

/// What a call takes beside entering and leaving the kernel, and how much of that with a lock.
struct Inside {
    all: Time,
    locked: Time,
}

/// A message that a task transfers by a call.
#[derive(Clone, Copy)]
pub(super) struct Transfer {
    pub channel: usize,
    pub side: Side,
    pub bytes: u32,
}

impl Transfer {
    fn is_possible(self, channel: &Channel, slept: bool) -> bool {
        match self.side {
            Side::Writer => channel.has_room(self.bytes, slept),
            Side::Reader => !channel.lacks(self.bytes),
        }
    }

    /// Of what a message takes on both sides, where each takes so much on average.
    fn part(self, average: Time, writer_pct: u32) -> Time {
        let pct = match self.side {
            Side::Writer => writer_pct,
            Side::Reader => 100 - writer_pct,
        };
        2 * average * Time::from(pct) / 100
    }

    /// The lines of the channel, and of the message, come from where they were last.
    #[inline(always)]
    fn cost(self, channel: &mut Channel, costs: &mut CostModel, cpu: CpuId) -> Inside {
        let figures = costs.figures;
        let copy = match channel.kind {
            ChannelKind::Pipe => self.part(figures.pipe_message_ns, figures.pipe_writer_pct),
            ChannelKind::UnixSocket | ChannelKind::PolledSockets => {
                self.part(figures.socket_message_ns, figures.socket_writer_pct)
            }
            ChannelKind::LoopbackTcp => figures.tcp_message_ns + costs.copy(self.bytes),
            ChannelKind::LoopbackUdp => figures.udp_message_ns + costs.copy(self.bytes),
            ChannelKind::KernelQueue => figures.kernel_queue_ns,
        };
        let line = costs.cache_lines(1, channel.last_cpu, cpu);
        let shared = Time::from(figures.channel_lines) * line;
        let message = match channel.kind {
            ChannelKind::Pipe | ChannelKind::UnixSocket => {
                Time::from(CostModel::lines_of(self.bytes)) * line
            }
            // Long messages stream, and only to the reader: the writer fills new buffers.
            ChannelKind::LoopbackTcp | ChannelKind::LoopbackUdp if self.side == Side::Reader => {
                let lines = CostModel::lines_of(self.bytes).div_ceil(figures.copy_overlap);
                costs.cache_lines(lines, channel.written_on, cpu)
            }
            _ => 0,
        };
        channel.last_cpu = cpu;
        if self.side == Side::Writer {
            channel.written_on = cpu;
        }
        let copy = costs.draw(copy);
        let locked = match channel.kind {
            // A mutex, held while the message is copied.
            ChannelKind::Pipe => {
                copy * Time::from(figures.pipe_locked_pct) / 100 + shared + message
            }
            // A spinlock: the message is put on a list, or taken off it.
            _ => shared,
        };
        Inside { all: copy + shared + message, locked }
    }

    /// How long the call waits busily for the channel's lock, as work too: it begins now, and the CPU
    /// works for some time before the call comes to what is inside. A sender takes the lock last, a
    /// receiver first; polled sockets have one each.
    #[inline]
    fn lock_wait(
        self,
        channel: &mut Channel,
        pace: Speed,
        (now, before): (Time, Time),
        inside: Inside,
    ) -> Time {
        if channel.kind == ChannelKind::PolledSockets {
            return 0;
        }
        let unlocked = match self.side {
            Side::Writer => inside.all - inside.locked,
            Side::Reader => 0,
        };
        let arrives = now + pace.time_for(before + unlocked);
        let wait = channel.lock.take(arrives, pace.time_for(inside.locked));
        pace.share(wait)
    }

    /// The message is transferred, which wakes others; a call that `slept` may pass on its wakeup.
    #[inline]
    fn take_place(
        self,
        channel: &mut Channel,
        task: &mut Task,
        rule: PipeWakeRule,
        slept: bool,
        effect: &mut Effect,
    ) {
        let wake = match self.side {
            Side::Writer => channel.send(self.bytes, task.base, rule, slept),
            Side::Reader => {
                task.peer = channel.next_sender().unwrap_or(task.peer);
                channel.receive(self.bytes, rule)
            }
        };
        channel.wake(wake, effect);
        if slept && rule != PIPE_WAKES_ALL && channel.kind == ChannelKind::Pipe {
            channel.wake(channel.passed_on(self.side), effect);
        }
    }
}

impl Engine<'_> {
    /// What a step of the call takes whose task computes for `before` first: one that only looks takes
    /// the lines in which it does, and copies nothing.
    #[inline]
    pub(super) fn transfer_cost(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        transfer: Transfer,
        before: Time,
    ) -> Time {
        let Engine { tasks, objects, costs, cpus, now, .. } = self;
        let at = &mut tasks[task].stage;
        let channel = &mut objects.channels[transfer.channel];
        let calls = *at == stage::CALLS;
        if calls && before > SOON {
            *at = stage::COMES;
            return 0;
        }
        if calls && !transfer.is_possible(channel, false) {
            *at = stage::LOOKS;
        }
        let call = if calls { costs.draw(costs.figures.syscall_ns) } else { 0 };
        match *at {
            stage::LOOKS | stage::SLEPT => {
                let from = std::mem::replace(&mut channel.last_cpu, cpu);
                call + costs.cache_lines(costs.figures.channel_lines, from, cpu)
            }
            _ => {
                let inside = transfer.cost(channel, costs, cpu);
                let begins = (*now, before + call);
                call + inside.all + transfer.lock_wait(channel, cpus[cpu].pace, begins, inside)
            }
        }
    }

    /// A step of the call ends: it sleeps, or goes on, or the message is transferred.
    #[inline]
    pub(super) fn transfer(&mut self, cpu: CpuId, task: TaskId, transfer: Transfer) -> Then {
        let effect = &mut self.cpus[cpu].effect;
        effect.begin();
        let state = &mut self.tasks[task];
        if state.stage == stage::COMES {
            state.stage = stage::CALLS;
            return Then::Again;
        }
        let channel = &mut self.objects.channels[transfer.channel];
        let slept = matches!(state.stage, stage::SLEPT | stage::GOES_ON);
        if !transfer.is_possible(channel, slept) {
            state.stage = stage::SLEPT;
            channel.wait(task, transfer.side);
            return Then::Block(Resume::Retry);
        }
        match state.stage {
            stage::LOOKS => state.stage = stage::CALLS,
            stage::SLEPT => state.stage = stage::GOES_ON,
            _ => {
                let rule = self.scheduler.policy.profile.pipe_wakes;
                transfer.take_place(channel, state, rule, slept, effect);
                return Then::Next;
            }
        }
        Then::Again
    }
}
