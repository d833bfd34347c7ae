//! Messages: what a transfer takes, and whom it wakes.

use placewise_policy::{CpuId, PIPE_WAKES_ALL, PipeWakeRule, TaskId};
use placewise_workload::program::ChannelKind;

use crate::engine::Engine;
use crate::state::channel::{Channel, Side};
use crate::state::costs::CostModel;
use crate::state::effect::{Effect, Then};
use crate::state::event_queue::Time;
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

    /// What is inside the call takes from `begin` on: the channel's lock is taken in turn, and its
    /// lines come from where they were last.
    fn cost(self, channel: &mut Channel, costs: &mut CostModel, cpu: CpuId, begin: Time) -> Time {
        let figures = costs.figures;
        let copy = match channel.kind {
            ChannelKind::Pipe => figures.pipe_message_ns,
            ChannelKind::UnixSocket | ChannelKind::PolledSockets => figures.socket_message_ns,
            ChannelKind::LoopbackTcp => figures.tcp_message_ns + costs.copy(self.bytes),
            ChannelKind::LoopbackUdp => figures.udp_message_ns + costs.copy(self.bytes),
            ChannelKind::KernelQueue => figures.kernel_queue_ns,
        };
        let lines = match channel.kind {
            ChannelKind::Pipe | ChannelKind::UnixSocket => {
                figures.channel_lines + CostModel::lines_of(self.bytes)
            }
            _ => figures.channel_lines,
        };
        let transfer = costs.cache_lines(lines, channel.last_cpu, cpu);
        // Long messages stream, and only to the reader: the writer fills new buffers.
        let streamed = match (channel.kind, self.side) {
            (ChannelKind::LoopbackTcp | ChannelKind::LoopbackUdp, Side::Reader) => {
                let lines = CostModel::lines_of(self.bytes).div_ceil(figures.copy_overlap);
                costs.cache_lines(lines, channel.written_on, cpu)
            }
            _ => 0,
        };
        let inside = costs.draw(copy) + transfer + streamed;
        let mut left = begin + inside;
        // Polled sockets have a lock each.
        if channel.kind != ChannelKind::PolledSockets {
            left = left.max(channel.busy_until + inside);
            channel.busy_until = left;
        }
        channel.last_cpu = cpu;
        if self.side == Side::Writer {
            channel.written_on = cpu;
        }
        left - begin
    }

    /// The message is transferred, which wakes others; a call that `slept` may pass on its wakeup.
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
    /// What a step of the call takes that begins at `begin`: one that only looks takes the lines in
    /// which it does, and copies nothing.
    #[inline]
    pub(super) fn transfer_cost(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        transfer: Transfer,
        begin: Time,
    ) -> Time {
        let Engine { tasks, objects, costs, .. } = self;
        let at = &mut tasks[task].stage;
        let channel = &mut objects.channels[transfer.channel];
        let calls = *at == stage::CALLS;
        if calls && !transfer.is_possible(channel, false) {
            *at = stage::LOOKS;
        }
        let call = if calls { costs.draw(costs.figures.syscall_ns) } else { 0 };
        match *at {
            stage::LOOKS | stage::SLEPT => {
                let from = std::mem::replace(&mut channel.last_cpu, cpu);
                call + costs.cache_lines(costs.figures.channel_lines, from, cpu)
            }
            _ => call + transfer.cost(channel, costs, cpu, begin + call),
        }
    }

    /// A step of the call ends: it sleeps, or goes on, or the message is transferred.
    #[inline]
    pub(super) fn transfer(
        &mut self,
        task: TaskId,
        transfer: Transfer,
        effect: &mut Effect,
    ) -> Then {
        let state = &mut self.tasks[task];
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
