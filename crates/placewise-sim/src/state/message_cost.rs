//! What a call that transfers a message takes beside entering and leaving the kernel, by the kind of
//! its channel and the side that it is on.

use placewise_machine::{ChannelLines, Costs, SHORT_COPY_OVERLAP};
use placewise_workload::program::ChannelKind;

use crate::state::channel::Side;
use crate::state::event_queue::Time;

#[derive(Clone, Copy)]
pub struct MessageCost {
    /// The work, and what of it grows with the message.
    pub ns: Time,
    pub ns_per_kib: Time,
    /// Percent of that, and all lines, if the message is moved with the channel's lock.
    pub locked_pct: Option<u32>,
    pub lines: ChannelLines,
    /// The message's own lines come from where it was written, so many at once.
    pub lines_at_once: Option<u32>,
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
        let is_loopback = matches!(kind, ChannelKind::LoopbackTcp | ChannelKind::LoopbackUdp);
        let lines_at_once = match kind {
            // Nobody waits for what a writer stores.
            _ if side == Side::Writer => None,
            ChannelKind::Pipe | ChannelKind::UnixSocket => Some(SHORT_COPY_OVERLAP),
            // Long messages stream.
            _ if is_loopback => Some(figures.copy_overlap),
            _ => None,
        };
        let lines = match kind {
            ChannelKind::Pipe => figures.pipe_lines,
            ChannelKind::UnixSocket | ChannelKind::PolledSockets => figures.socket_lines,
            _ => {
                // The head of the buffer, for who reads it.
                let message = u32::from(is_loopback && side == Side::Reader);
                ChannelLines { channel: figures.channel_lines, side: 0, message, page: 0 }
            }
        };
        MessageCost {
            ns,
            lines,
            ns_per_kib: if is_loopback { figures.copy_ns_per_kib } else { 0 },
            // Of a pipe it is a mutex, held while the message is copied; else a spinlock, under which
            // the message is put on a list, or taken off it.
            locked_pct: (kind == ChannelKind::Pipe).then_some(figures.pipe_locked_pct),
            lines_at_once,
        }
    }
}
