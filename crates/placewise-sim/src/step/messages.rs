//! Messages: what a transfer takes, and whom it wakes.

use placewise_policy::{CpuId, PIPE_WAKES_ALL, TaskId};
use placewise_workload::program::ChannelKind;

use crate::engine::Engine;
use crate::state::channel::Side;
use crate::state::costs::CostModel;
use crate::state::effect::{Effect, Then};
use crate::state::event_queue::Time;
use crate::state::task::Resume;

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

impl Engine<'_> {
    /// What a step of the call takes that begins at `begin`: one that only looks takes the lines in
    /// which it does, and copies nothing.
    pub(super) fn transfer_cost(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        transfer: Transfer,
        begin: Time,
    ) -> Time {
        let calls = self.tasks[task].stage == stage::CALLS;
        if calls && !self.is_possible(transfer, false) {
            self.tasks[task].stage = stage::LOOKS;
        }
        let call = if calls { self.costs.draw(self.costs.figures.syscall_ns) } else { 0 };
        match self.tasks[task].stage {
            stage::LOOKS | stage::SLEPT => {
                let channel = &mut self.objects.channels[transfer.channel];
                let from = std::mem::replace(&mut channel.last_cpu, cpu);
                call + self.costs.cache_lines(self.costs.figures.channel_lines, from, cpu)
            }
            _ => call + self.inside_cost(cpu, transfer, begin + call),
        }
    }

    /// The channel's lock is taken in turn, and its lines come from where they were last.
    fn inside_cost(&mut self, cpu: CpuId, transfer: Transfer, begin: Time) -> Time {
        let Transfer { channel: index, side, bytes } = transfer;
        let figures = self.costs.figures;
        let channel = &self.objects.channels[index];
        let copy = match channel.kind {
            ChannelKind::Pipe => figures.pipe_message_ns,
            ChannelKind::UnixSocket | ChannelKind::PolledSockets => figures.socket_message_ns,
            ChannelKind::LoopbackTcp => figures.tcp_message_ns + self.costs.copy(bytes),
            ChannelKind::LoopbackUdp => figures.udp_message_ns + self.costs.copy(bytes),
            ChannelKind::KernelQueue => figures.kernel_queue_ns,
        };
        let lines = match channel.kind {
            ChannelKind::Pipe | ChannelKind::UnixSocket => {
                figures.channel_lines + CostModel::lines_of(bytes)
            }
            _ => figures.channel_lines,
        };
        let transfer = self.costs.cache_lines(lines, channel.last_cpu, cpu);
        // Long messages stream, and only to the reader: the writer fills new buffers.
        let streamed = match (channel.kind, side) {
            (ChannelKind::LoopbackTcp | ChannelKind::LoopbackUdp, Side::Reader) => {
                let lines = CostModel::lines_of(bytes).div_ceil(figures.copy_overlap);
                self.costs.cache_lines(lines, channel.written_on, cpu)
            }
            _ => 0,
        };
        let inside = self.costs.draw(copy) + transfer + streamed;
        let channel = &mut self.objects.channels[index];
        let mut left = begin + inside;
        // Polled sockets have a lock each.
        if channel.kind != ChannelKind::PolledSockets {
            left = left.max(channel.busy_until + inside);
            channel.busy_until = left;
        }
        channel.last_cpu = cpu;
        if side == Side::Writer {
            channel.written_on = cpu;
        }
        left - begin
    }

    fn is_possible(&self, transfer: Transfer, slept: bool) -> bool {
        let channel = &self.objects.channels[transfer.channel];
        match transfer.side {
            Side::Writer => channel.has_room(transfer.bytes, slept),
            Side::Reader => !channel.lacks(transfer.bytes),
        }
    }

    /// A step of the call ends: it sleeps, or goes on, or the message is transferred.
    pub(super) fn transfer(
        &mut self,
        task: TaskId,
        transfer: Transfer,
        effect: &mut Effect,
    ) -> Then {
        let at = self.tasks[task].stage;
        let slept = matches!(at, stage::SLEPT | stage::GOES_ON);
        if !self.is_possible(transfer, slept) {
            self.tasks[task].stage = stage::SLEPT;
            self.objects.channels[transfer.channel].wait(task, transfer.side);
            return Then::Block(Resume::Retry);
        }
        match at {
            stage::LOOKS => self.tasks[task].stage = stage::CALLS,
            stage::SLEPT => self.tasks[task].stage = stage::GOES_ON,
            _ => {
                self.transferred(task, transfer, slept, effect);
                return Then::Next;
            }
        }
        Then::Again
    }

    fn transferred(&mut self, task: TaskId, transfer: Transfer, slept: bool, effect: &mut Effect) {
        let Transfer { channel, side, bytes } = transfer;
        let rule = self.scheduler.policy.profile.pipe_wakes;
        let task = &mut self.tasks[task];
        let channel = &mut self.objects.channels[channel];
        let wake = match side {
            Side::Writer => channel.send(bytes, task.base, rule, slept),
            Side::Reader => {
                task.peer = channel.next_sender().unwrap_or(task.peer);
                channel.receive(bytes, rule)
            }
        };
        channel.wake(wake, effect);
        if slept && rule != PIPE_WAKES_ALL && channel.kind == ChannelKind::Pipe {
            channel.wake(channel.passed_on(side), effect);
        }
    }
}
