//! What a call that transfers a message takes beside entering and leaving the kernel, by the kind of
//! its channel and the side that it is on.

use std::num::NonZeroU32;

use placewise_machine::{ByChannel, BySide, ChannelLines, Costs, SHORT_COPY_OVERLAP};
use placewise_policy::instructions::{Instructions, OfBothSides};
use placewise_policy::{MEASURED_6_18, MeasuredKernel};
use placewise_workload::program::ChannelKind;

use crate::state::channel::Side;
use crate::state::event_queue::Time;

#[derive(Clone, Copy)]
pub struct MessageCost {
    /// The work, and what of it grows with the message.
    pub ns: Time,
    pub ns_per_kib: Time,
    pub slow_way: SlowWay,
    /// Of that, what comes after the other side was woken; and of the system call, which is assumed to take as long
    /// to leave as to enter.
    pub after_ns: Time,
    pub leaving_ns: Time,
    /// If the message is moved with the channel's lock, what of the work comes before: the way to the channel.
    pub way_ns: Option<Time>,
    pub lines: ChannelLines,
    /// The message's own lines come from where it was written, so many at once.
    pub lines_at_once: Option<NonZeroU32>,
}

impl MessageCost {
    pub fn new(kind: ChannelKind, side: Side, figures: &Costs, kernel: MeasuredKernel) -> Self {
        let ns = work(kind, side, figures, kernel);
        let of_side = |figure: BySide| match side {
            Side::Writer => figure.write,
            Side::Reader => figure.read,
        };
        let of_kind = |figure: ByChannel| match kind {
            ChannelKind::Pipe => of_side(figure.pipe),
            ChannelKind::UnixSocket | ChannelKind::PolledSockets => of_side(figure.socket),
            ChannelKind::LoopbackTcp => of_side(figure.tcp),
            ChannelKind::LoopbackUdp => of_side(figure.udp),
            ChannelKind::KernelQueue => 0,
        };
        let after_pct = of_kind(figures.after_wakeup_pct);
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
        let after_ns = ns * Time::from(after_pct) / 100;
        let unlocked_ns = ns * Time::from(100 - figures.pipe_locked_pct) / 100;
        MessageCost {
            ns,
            after_ns,
            leaving_ns: figures.syscall_ns / 2,
            slow_way: SlowWay::new(kind, of_kind(figures.message_spread_pct)),
            lines,
            ns_per_kib: if is_loopback { figures.copy_ns_per_kib } else { 0 },
            // Of a pipe it is a mutex, held while the message is copied; else a spinlock, under which
            // the message is put on a list, or taken off it.
            way_ns: (kind == ChannelKind::Pipe).then_some(unlocked_ns.saturating_sub(after_ns)),
            lines_at_once: NonZeroU32::new(lines_at_once),
        }
    }

    /// What a call whose work takes so long does of it at the channel, until it wakes others. What makes a call slow,
    /// a page to find, is: the rest takes as long as in others.
    #[inline(always)]
    pub fn at_channel(&self, work: Time) -> Time {
        work.saturating_sub(self.way_ns.unwrap_or(0) + self.after_ns)
    }

    /// And with the channel's lock, if the message is moved with that.
    #[inline(always)]
    pub fn locked(&self, work: Time) -> Option<Time> {
        self.way_ns.map(|_| self.at_channel(work))
    }
}

fn work(kind: ChannelKind, side: Side, figures: &Costs, kernel: MeasuredKernel) -> Time {
    // Of what a message takes on both sides, where each takes so much on average under Linux 6.18.
    let part = |average: Time, writer_pct: u32, [here, there]: [OfBothSides; 2]| {
        let (pct, here, there) = match side {
            Side::Writer => (writer_pct, here.write, there.write),
            Side::Reader => (100 - writer_pct, here.read, there.read),
        };
        2 * average * Time::from(pct) * here / there / 100
    };
    let calls = [kernel, MEASURED_6_18].map(Instructions::of);
    match kind {
        ChannelKind::Pipe => {
            part(figures.pipe_message_ns, figures.pipe_writer_pct, calls.map(|it| it.pipe))
        }
        ChannelKind::UnixSocket | ChannelKind::PolledSockets => {
            part(figures.socket_message_ns, figures.socket_writer_pct, calls.map(|it| it.socket))
        }
        ChannelKind::LoopbackTcp => figures.tcp_message_ns,
        ChannelKind::LoopbackUdp => figures.udp_message_ns,
        ChannelKind::KernelQueue => figures.kernel_queue_ns,
    }
}

/// One call of so many allocates or frees a page of a pipe, where messages of 100 bytes are measured half a pipe at a
/// time: a page holds 40 of them, and of eight pages two are kept. How the rows of studies/interventions fit with 32, as
/// below, was seen before this was worked out: 275 of 299 signs, and 280 with this.
const ONE_WITH_PAGE_OF: u32 = 53;

/// One call of so many finds no object where it looks first. Assumed; no other was tried.
const ONE_SLOW_OF: u32 = 32;
const FIXED_POINT: u32 = 16;

/// How much longer than on average a call is that is slow, and how much shorter all others are, in fixed point.
#[derive(Clone, Copy)]
pub struct SlowWay {
    slow: u64,
    quick: u64,
}

impl SlowWay {
    /// Calls have this standard deviation together, in percent of what they take on average.
    fn new(kind: ChannelKind, spread_pct: u32) -> Self {
        let one_of = if kind == ChannelKind::Pipe { ONE_WITH_PAGE_OF } else { ONE_SLOW_OF };
        let slow = 1.0 / f64::from(one_of);
        let longer = f64::from(spread_pct) / 100.0 / (slow * (1.0 - slow)).sqrt();
        let fixed = |factor: f64| (factor.max(0.0) * f64::from(1 << FIXED_POINT)) as u64;
        let quick = 1.0 - longer * slow;
        SlowWay { slow: fixed(quick + longer), quick: fixed(quick) }
    }

    /// Where nothing tells which calls are slow.
    #[inline(always)]
    pub fn is_drawn(random: u32) -> bool {
        random.is_multiple_of(ONE_SLOW_OF)
    }

    #[inline(always)]
    pub fn apply(self, figure: Time, is_slow: bool) -> Time {
        let factor = if is_slow { self.slow } else { self.quick };
        (figure * factor) >> FIXED_POINT
    }
}

#[cfg(test)]
mod tests {
    use placewise_policy::MEASURED_5_10;

    use super::*;

    /// Fails if slow calls made the average longer, or came as often as not.
    #[test]
    fn one_call_of_many_is_slow_and_the_average_stays() {
        let of = |spread_pct: u32| {
            let way = SlowWay::new(ChannelKind::UnixSocket, spread_pct);
            (0..ONE_SLOW_OF)
                .map(move |random| way.apply(1_000_000, SlowWay::is_drawn(random)) as f64 / 1e6)
        };
        for spread_pct in [0, 20, 58, 200] {
            let mean = of(spread_pct).sum::<f64>() / f64::from(ONE_SLOW_OF);
            let square = of(spread_pct).map(|call| (call - mean).powi(2)).sum::<f64>();
            let deviation = (square / f64::from(ONE_SLOW_OF)).sqrt();
            assert!((mean - 1.0).abs() < 1e-3, "{mean}");
            assert!((100.0 * deviation - f64::from(spread_pct)).abs() < 0.1, "{deviation}");
            assert_eq!(
                of(spread_pct).filter(|call| *call > mean + 0.1).count(),
                usize::from(spread_pct > 0)
            );
        }
    }

    /// By hand. Fails if a part of what makes a call slow were done without the lock.
    #[test]
    fn what_makes_a_pipes_call_slow_is_done_with_its_lock() {
        let mut costs = placewise_machine::load("uma-8").unwrap().costs;
        (costs.pipe_message_ns, costs.pipe_writer_pct, costs.pipe_locked_pct) = (1_000, 50, 40);
        let cost = |kind| MessageCost::new(kind, Side::Writer, &costs, MEASURED_6_18);
        let pipe = cost(ChannelKind::Pipe);
        assert_eq!([900, 1_000, 3_000].map(|work| pipe.locked(work)), [300, 400, 2_400].map(Some));
        assert_eq!(cost(ChannelKind::UnixSocket).locked(3_000), None);
    }

    /// Fails if one kernel's calls took as long as another's, or writers as much longer as readers.
    #[test]
    fn messages_take_as_long_as_the_kernels_calls() {
        let mut costs = placewise_machine::load("uma-8").unwrap().costs;
        (costs.socket_message_ns, costs.socket_writer_pct) = (1_000_000, 50);
        let cost = |side, calls| MessageCost::new(ChannelKind::UnixSocket, side, &costs, calls).ns;
        for (side, instructions) in [(Side::Writer, 2_705), (Side::Reader, 1_913)] {
            let under_6_18 = if side == Side::Writer { 2_063 } else { 1_867 };
            assert_eq!(cost(side, MEASURED_6_18), 1_000_000);
            assert_eq!(cost(side, MEASURED_5_10), 1_000_000 * instructions / under_6_18);
        }
    }
}
