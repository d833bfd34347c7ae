//! Messages: what a transfer takes, and whom it wakes.

use placewise_policy::{CpuId, PIPE_WAKES_ALL, TaskId};
use placewise_workload::program::ChannelKind;

use crate::engine::Engine;
use crate::state::channel::Wake;
use crate::state::costs::CostModel;
use crate::state::effect::{Effect, Then};
use crate::state::event_queue::Time;
use crate::state::task::Resume;

/// Which end of a channel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Writer,
    Reader,
}

impl Engine<'_> {
    /// The channel's lock is taken in turn, and its lines come from where they were last.
    pub(super) fn transfer_cost(
        &mut self,
        cpu: CpuId,
        index: usize,
        side: Side,
        bytes: u32,
        begin: Time,
    ) -> Time {
        let figures = self.costs.figures;
        let channel = &self.objects.channels[index];
        let copy = match channel.kind() {
            ChannelKind::Pipe => figures.pipe_message_ns,
            ChannelKind::UnixSocket | ChannelKind::PolledSockets => figures.socket_message_ns,
            ChannelKind::LoopbackTcp => figures.tcp_message_ns + self.costs.copy(bytes),
            ChannelKind::LoopbackUdp => figures.udp_message_ns + self.costs.copy(bytes),
            ChannelKind::KernelQueue => figures.kernel_queue_ns,
        };
        let transfer = match channel.kind() {
            ChannelKind::Pipe | ChannelKind::UnixSocket => {
                let lines = figures.channel_lines + CostModel::lines_of(bytes);
                self.costs.cache_lines(lines, channel.last_cpu, cpu)
            }
            _ => self.costs.cache_lines(figures.channel_lines, channel.last_cpu, cpu),
        };
        // Long messages stream, and only to the reader: the writer fills new buffers.
        let streamed = match (channel.kind(), side) {
            (ChannelKind::LoopbackTcp | ChannelKind::LoopbackUdp, Side::Reader) => {
                let lines = CostModel::lines_of(bytes).div_ceil(figures.copy_overlap);
                self.costs.cache_lines(lines, channel.written_on, cpu)
            }
            _ => 0,
        };
        let call = self.costs.draw(figures.syscall_ns);
        let inside = self.costs.draw(copy) + transfer + streamed;
        let channel = &mut self.objects.channels[index];
        let mut left = begin + call + inside;
        // Polled sockets have a lock each.
        if channel.kind() != ChannelKind::PolledSockets {
            left = left.max(channel.busy_until + inside);
            channel.busy_until = left;
        }
        channel.last_cpu = cpu;
        if side == Side::Writer {
            channel.written_on = cpu;
        }
        left - begin
    }

    pub(crate) fn send(
        &mut self,
        task: TaskId,
        channel: usize,
        bytes: u32,
        effect: &mut Effect,
    ) -> Then {
        let rule = self.scheduler.policy.profile.pipe_wakes;
        let sender = self.tasks[task].base;
        let channel = &mut self.objects.channels[channel];
        let Some(wake) = channel.send(bytes, sender, rule) else {
            channel.writers.push_back(task);
            return Then::Block(Resume::Retry);
        };
        channel.wake(wake, effect);
        if rule != PIPE_WAKES_ALL && channel.next_writer_has_room() {
            channel.wake(Wake::OneWriter, effect);
        }
        Then::Next
    }

    pub(crate) fn receive(
        &mut self,
        task: TaskId,
        channel: usize,
        bytes: u32,
        effect: &mut Effect,
    ) -> Then {
        let rule = self.scheduler.policy.profile.pipe_wakes;
        let channel = &mut self.objects.channels[channel];
        if let Some(sender) = channel.next_sender() {
            self.tasks[task].peer = sender;
        }
        let Some(wake) = channel.receive(bytes, rule) else {
            channel.readers.push_back(task);
            return Then::Block(Resume::Retry);
        };
        channel.wake(wake, effect);
        if rule != PIPE_WAKES_ALL && channel.next_reader_has_work() {
            channel.wake(Wake::OneReader, effect);
        }
        Then::Next
    }
}
