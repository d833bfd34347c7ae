//! What a call that transfers a message takes beside entering and leaving the kernel, by the kind of
//! its channel and the side that it is on.

use std::num::NonZeroU32;

use placewise_machine::{BySide, ChannelLines, Costs, SHORT_COPY_OVERLAP};
use placewise_workload::program::ChannelKind;

use crate::state::channel::Side;
use crate::state::event_queue::Time;

#[derive(Clone, Copy)]
pub struct MessageCost {
    /// The work, and what of it grows with the message.
    pub ns: Time,
    pub ns_per_kib: Time,
    /// Of that, what comes after the other side was woken; and of the system call, which is assumed to take as long
    /// to leave as to enter.
    pub after_ns: Time,
    pub leaving_ns: Time,
    /// Percent of that work, and all lines, if the message is moved with the channel's lock.
    pub locked_pct: Option<u32>,
    pub lines: ChannelLines,
    /// The message's own lines come from where it was written, so many at once.
    pub lines_at_once: Option<NonZeroU32>,
}

impl MessageCost {
    pub fn new(kind: ChannelKind, side: Side, figures: &Costs) -> Self {
        // Of what a message takes on both sides, where each takes so much on average.
        let part = |average: Time, writer_pct: u32| {
            let pct = match side {
                Side::Writer => writer_pct,
                Side::Reader => 100 - writer_pct,
            };
            2 * average * Time::from(pct) / 100
        };
        let ns = match kind {
            ChannelKind::Pipe => part(figures.pipe_message_ns, figures.pipe_writer_pct),
            ChannelKind::UnixSocket | ChannelKind::PolledSockets => {
                part(figures.socket_message_ns, figures.socket_writer_pct)
            }
            ChannelKind::LoopbackTcp => figures.tcp_message_ns,
            ChannelKind::LoopbackUdp => figures.udp_message_ns,
            ChannelKind::KernelQueue => figures.kernel_queue_ns,
        };
        let of_side = |figure: BySide| match side {
            Side::Writer => figure.write,
            Side::Reader => figure.read,
        };
        let after = figures.after_wakeup_pct;
        let after_pct = match kind {
            ChannelKind::Pipe => of_side(after.pipe),
            ChannelKind::UnixSocket | ChannelKind::PolledSockets => of_side(after.socket),
            ChannelKind::LoopbackTcp => of_side(after.tcp),
            ChannelKind::LoopbackUdp => of_side(after.udp),
            ChannelKind::KernelQueue => 0,
        };
        let is_loopback = matches!(kind, ChannelKind::LoopbackTcp | ChannelKind::LoopbackUdp);
        let lines_at_once = match kind {
            // Nobody waits for what a writer stores.
            _ if side == Side::Writer => 0,
            ChannelKind::Pipe | ChannelKind::UnixSocket => SHORT_COPY_OVERLAP,
            // Long messages stream.
            _ if is_loopback => figures.copy_overlap,
            _ => 0,
        };
        let touched = |channel| ChannelLines { channel, side: 0, message: 0, page: 0 };
        let lines = match kind {
            ChannelKind::Pipe => figures.pipe_lines,
            // Only a pipe has pages.
            ChannelKind::UnixSocket | ChannelKind::PolledSockets => {
                ChannelLines { page: 0, ..figures.socket_lines }
            }
            ChannelKind::LoopbackTcp => touched(of_side(figures.tcp_lines)),
            ChannelKind::LoopbackUdp => touched(of_side(figures.udp_lines)),
            ChannelKind::KernelQueue => touched(figures.channel_lines),
        };
        MessageCost {
            ns,
            after_ns: ns * Time::from(after_pct) / 100,
            leaving_ns: figures.syscall_ns / 2,
            lines,
            ns_per_kib: if is_loopback { figures.copy_ns_per_kib } else { 0 },
            // Of a pipe it is a mutex, held while the message is copied; else a spinlock, under which
            // the message is put on a list, or taken off it.
            locked_pct: (kind == ChannelKind::Pipe).then_some(figures.pipe_locked_pct),
            lines_at_once: NonZeroU32::new(lines_at_once),
        }
    }
}
