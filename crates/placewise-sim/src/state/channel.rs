//! What carries messages: how much fits, and who is woken.
//!
//! A pipe has 16 pages; a message merges into the last page if it fits there
//! whole, unless its writer had to sleep: that one waits for a page of its own.
//! Of the pages that are read empty it keeps one or two for what is written
//! next; others are allocated and freed. An AF_UNIX stream socket counts the true
//! size of what is in flight: its senders sleep at the send buffer's limit and
//! are woken, all together, once three quarters of it have drained. A TCP
//! connection is a stream of bytes, whose senders are woken once a third of the
//! send buffer has drained; a UDP datagram that finds the receiver's buffer full
//! is lost.
//!
//! Limits: the messages of one channel are of one size for the receiver, except
//! on TCP; no partial reads or writes; a writer that slept pays for no page of
//! its own; TCP has no window, no segments and no delayed acknowledgements.

use std::collections::VecDeque;

use placewise_policy::*;
use placewise_workload::program::ChannelKind;

use crate::state::effect::Effect;
use crate::state::event_queue::Time;
use crate::state::lock::Lock;
use crate::state::waker::WakerContext;

const PAGE: u32 = 4096;
const PIPE_PAGES: usize = 16;

/// How many empty pages a pipe keeps: one more since v6.15, which brought that rule as well, 46af8e2406c2 ("pipe: cache 2
/// pages instead of 1").
fn kept_pages(rule: PipeWakeRule) -> u32 {
    if rule == PIPE_WAKES_ON_FREED_SLOT { 2 } else { 1 }
}

/// net.core.wmem_default.
const SEND_BUFFER: u64 = 212_992;

/// What a TCP socket's send buffer grows to at once where a segment holds 64 KiB, as on loopback.
const TCP_SEND_BUFFER: u64 = 2_626_560;
/// net.core.rmem_default.
const RECEIVE_BUFFER: u64 = 212_992;

/// A message's size in socket buffers: the header, and data in a power of two
/// together with its tail room.
fn true_size(bytes: u32) -> u64 {
    const HEADER: u64 = 256;
    const TAIL_ROOM: u64 = 320;
    HEADER + (u64::from(bytes) + TAIL_ROOM).next_power_of_two()
}

pub struct Channel {
    pub kind: ChannelKind,
    /// What there is to read: pages of a pipe, bytes of TCP, else messages.
    held: u64,
    /// What counts for the limit at which writers sleep: pages of a pipe, else bytes; and that limit.
    taken: u64,
    limit: u64,
    /// A reader waits for no more than this, in what is held.
    portion: u64,
    /// The CPU that touched it last, and those that last did on each side.
    pub last_cpu: CpuId,
    pub last_of_side: [CpuId; 2],
    pub lock: Lock,
    /// Until then a call that wakes others has the lock of their wait queue.
    pub waking_until: Time,
    pub readers: VecDeque<TaskId>,
    pub writers: VecDeque<TaskId>,
    /// Whom a pipe wakes.
    pub rule: PipeWakeRule,
    /// What holds the messages of a pipe; any other channel has none.
    pages: Pages,
    /// Where messages can be answered, the base of the sender of each.
    senders: VecDeque<u32>,
}

/// Pages in a ring.
#[derive(Default)]
struct Pages {
    /// Bytes not yet read in each.
    left: [u32; PIPE_PAGES],
    /// Bytes that the last has room for.
    room: u32,
    first: usize,
    used: usize,
    /// Empty ones that are kept.
    kept: u32,
}

/// Which end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Writer,
    Reader,
}

impl Side {
    #[inline]
    pub fn other(self) -> Self {
        match self {
            Side::Writer => Side::Reader,
            Side::Reader => Side::Writer,
        }
    }
}

/// Whom a transfer wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    Nobody,
    OneReader,
    OneWriter,
    AllReaders,
    AllWriters,
    Everybody,
}

impl Channel {
    pub fn new(kind: ChannelKind, rule: PipeWakeRule) -> Self {
        let limit = match kind {
            ChannelKind::Pipe => PIPE_PAGES as u64,
            ChannelKind::UnixSocket => SEND_BUFFER,
            ChannelKind::LoopbackTcp => TCP_SEND_BUFFER,
            // Their senders do not sleep.
            ChannelKind::LoopbackUdp | ChannelKind::KernelQueue | ChannelKind::PolledSockets => {
                u64::MAX
            }
        };
        Channel {
            kind,
            held: 0,
            taken: 0,
            limit,
            portion: if kind == ChannelKind::LoopbackTcp { u64::MAX } else { 1 },
            last_cpu: CpuId::default(),
            last_of_side: [CpuId::default(); 2],
            lock: Lock::default(),
            waking_until: 0,
            readers: VecDeque::new(),
            writers: VecDeque::new(),
            rule,
            pages: Pages::default(),
            senders: VecDeque::new(),
        }
    }

    /// The CPU that touched it last on that side.
    #[inline]
    pub fn last_of(&self, side: Side) -> CpuId {
        self.last_of_side[side as usize]
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// The base of the task that sent the next message, where the channel keeps that.
    #[inline]
    pub fn next_sender(&self) -> Option<u32> {
        self.senders.front().copied()
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.taken >= self.limit
    }

    /// May a writer put a message in? One that `slept` merges into no page of a pipe.
    #[inline]
    fn has_room(&self, bytes: u32, slept: bool) -> bool {
        !self.is_full() || (!slept && self.pages.merges(bytes))
    }

    /// Can a message be transferred on that side?
    #[inline(always)]
    pub fn can_transfer(&self, side: Side, bytes: u32, slept: bool) -> bool {
        match side {
            Side::Writer => self.has_room(bytes, slept),
            Side::Reader => !self.lacks(bytes),
        }
    }

    /// Does this message open a page of the pipe, or free one?
    #[inline]
    pub fn turns_page(&self, side: Side, bytes: u32) -> bool {
        match side {
            Side::Writer => !self.pages.merges(bytes),
            Side::Reader => self.pages.drains(bytes),
        }
    }

    /// Does a call that turns a page of the pipe allocate or free it?
    #[inline(always)]
    pub fn pays_for_page(&self, side: Side) -> bool {
        match side {
            Side::Writer => self.pages.kept == 0,
            Side::Reader => self.pages.kept == kept_pages(self.rule),
        }
    }

    /// Puts a message in, for which there is room; says whom that wakes.
    #[inline(always)]
    pub fn send(&mut self, bytes: u32, sender: u32, slept: bool) -> Wake {
        debug_assert!(self.has_room(bytes, slept));
        let was_empty = self.is_empty();
        if self.kind == ChannelKind::Pipe {
            self.pages.push(bytes, slept);
            self.count_pages();
            return match self.rule {
                PIPE_WAKES_ALL => Wake::Everybody,
                _ if was_empty => Wake::OneReader,
                _ => Wake::Nobody,
            };
        }
        self.send_otherwise(bytes, sender)
    }

    #[inline]
    fn count_pages(&mut self) {
        self.held = self.pages.used as u64;
        self.taken = self.held;
    }

    /// The same of what is no pipe.
    #[inline(never)]
    fn send_otherwise(&mut self, bytes: u32, sender: u32) -> Wake {
        if self.keeps_senders() {
            self.senders.push_back(sender);
        }
        let (held, taken) = self.amounts(bytes);
        if self.kind == ChannelKind::LoopbackUdp && self.taken + taken > RECEIVE_BUFFER {
            return Wake::Nobody;
        }
        self.held += held;
        self.taken += taken;
        match self.kind {
            ChannelKind::KernelQueue | ChannelKind::PolledSockets => Wake::OneReader,
            _ => Wake::AllReaders,
        }
    }

    /// Takes a message out, which is there; says whom that wakes.
    #[inline(always)]
    pub fn receive(&mut self, bytes: u32) -> Wake {
        debug_assert!(!self.lacks(bytes));
        let was_full = self.is_full();
        if self.kind == ChannelKind::Pipe {
            let freed = self.pages.pop(bytes, kept_pages(self.rule));
            self.count_pages();
            return match self.rule {
                PIPE_WAKES_ALL if freed => Wake::Everybody,
                PIPE_WAKES_ON_FULL_READ if was_full => Wake::OneWriter,
                PIPE_WAKES_ON_FREED_SLOT if was_full && freed => Wake::OneWriter,
                _ => Wake::Nobody,
            };
        }
        self.receive_otherwise(bytes)
    }

    /// The same of what is no pipe.
    #[inline(never)]
    fn receive_otherwise(&mut self, bytes: u32) -> Wake {
        self.senders.pop_front();
        let (held, taken) = self.amounts(bytes);
        self.held -= held;
        self.taken -= taken;
        let drained = match self.kind {
            ChannelKind::UnixSocket => self.taken * 4 <= SEND_BUFFER,
            ChannelKind::LoopbackTcp => self.taken * 3 <= TCP_SEND_BUFFER * 2,
            _ => false,
        };
        if drained { Wake::AllWriters } else { Wake::Nobody }
    }

    /// Of TCP and UDP nothing is known of what is held but how much it is.
    fn keeps_senders(&self) -> bool {
        !matches!(self.kind, ChannelKind::LoopbackTcp | ChannelKind::LoopbackUdp)
    }

    /// How much is held more with a message of so many bytes in what is no pipe, and how much is taken.
    fn amounts(&self, bytes: u32) -> (u64, u64) {
        match self.kind {
            ChannelKind::LoopbackTcp => (bytes.into(), bytes.into()),
            ChannelKind::KernelQueue | ChannelKind::PolledSockets => (1, 0),
            _ => (1, true_size(bytes)),
        }
    }

    /// Less is there than a read of `bytes` wants.
    #[inline]
    fn lacks(&self, bytes: u32) -> bool {
        self.held < u64::from(bytes).min(self.portion)
    }

    /// Does a call on that side take the lock of the wait queue, too, if others are being woken who are still on it? Who
    /// sends through a socket looks whether anybody is; of the calls of a pipe those have to wake that wake all.
    #[inline]
    pub fn locks_queue(&self, side: Side) -> bool {
        match self.kind {
            ChannelKind::Pipe => self.rule == PIPE_WAKES_ALL,
            ChannelKind::KernelQueue | ChannelKind::PolledSockets => false,
            _ => side == Side::Writer,
        }
    }

    /// A task sleeps at its end.
    pub fn wait(&mut self, task: TaskId, side: Side) {
        match side {
            Side::Reader => self.readers.push_back(task),
            Side::Writer => self.writers.push_back(task),
        }
    }

    /// Those that a transfer wakes are woken, in the way of the channel's kind.
    #[inline]
    pub fn wake(&mut self, wake: Wake, effect: &mut Effect) {
        if wake != Wake::Nobody {
            self.wake_some(wake, effect);
        }
    }

    fn wake_some(&mut self, wake: Wake, effect: &mut Effect) {
        let (sync, context) = match self.kind {
            ChannelKind::Pipe | ChannelKind::UnixSocket | ChannelKind::PolledSockets => {
                (true, WakerContext::Task)
            }
            ChannelKind::LoopbackTcp | ChannelKind::LoopbackUdp => (true, WakerContext::Softirq),
            ChannelKind::KernelQueue => (false, WakerContext::Task),
        };
        effect.wake_as(sync, context);
        match wake {
            Wake::Nobody => {}
            Wake::OneReader => effect.wake_first(&mut self.readers),
            Wake::OneWriter => effect.wake_first(&mut self.writers),
            Wake::AllReaders => effect.wake_all(&mut self.readers),
            Wake::AllWriters => effect.wake_all(&mut self.writers),
            Wake::Everybody => {
                effect.wake_all(&mut self.readers);
                effect.wake_all(&mut self.writers);
            }
        }
    }

    /// Whom a call of this pipe that slept wakes when it is done: another of its kind, if there is
    /// something left for that one.
    pub fn passed_on(&self, side: Side) -> Wake {
        match side {
            Side::Reader if !self.is_empty() => Wake::OneReader,
            Side::Writer if !self.is_full() => Wake::OneWriter,
            _ => Wake::Nobody,
        }
    }
}

impl Pages {
    /// Does a message fit into the last page?
    #[inline]
    fn merges(&self, bytes: u32) -> bool {
        bytes <= self.room
    }

    /// Does a message that is read empty the first page?
    #[inline]
    fn drains(&self, bytes: u32) -> bool {
        self.left[self.first % PIPE_PAGES] <= bytes
    }

    #[inline]
    fn push(&mut self, bytes: u32, slept: bool) {
        if slept || !self.merges(bytes) {
            self.used += 1;
            self.room = PAGE;
            self.kept = self.kept.saturating_sub(1);
        }
        self.left[(self.first + self.used - 1) % PIPE_PAGES] += bytes;
        self.room = self.room.saturating_sub(bytes);
    }

    /// True if a page became free; so many are kept.
    #[inline]
    fn pop(&mut self, bytes: u32, kept: u32) -> bool {
        let drained = self.drains(bytes);
        let first = &mut self.left[self.first % PIPE_PAGES];
        *first = first.saturating_sub(bytes);
        if drained {
            self.first += 1;
            self.used -= 1;
            self.kept = (self.kept + 1).min(kept);
            if self.used == 0 {
                self.room = 0;
            }
        }
        drained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For channels that are no pipes.
    const RULE: PipeWakeRule = PIPE_WAKES_ON_FULL_READ;

    /// The first step of a call.
    fn send(channel: &mut Channel, bytes: u32) -> Option<Wake> {
        channel.has_room(bytes, false).then(|| channel.send(bytes, 0, false))
    }

    fn receive(channel: &mut Channel, bytes: u32) -> Option<Wake> {
        (!channel.lacks(bytes)).then(|| channel.receive(bytes))
    }

    fn filled(kind: ChannelKind, rule: PipeWakeRule) -> (Channel, u32) {
        let mut channel = Channel::new(kind, rule);
        let sent = (0..).take_while(|_| send(&mut channel, 100).is_some()).count();
        (channel, sent as u32)
    }

    #[test]
    fn a_pipe_holds_640_messages_of_100_bytes() {
        assert_eq!(filled(ChannelKind::Pipe, PIPE_WAKES_ON_FULL_READ).1, 640);
    }

    #[test]
    fn a_reader_is_woken_only_from_empty() {
        let mut pipe = Channel::new(ChannelKind::Pipe, RULE);
        assert_eq!(send(&mut pipe, 100), Some(Wake::OneReader));
        assert_eq!(send(&mut pipe, 100), Some(Wake::Nobody));
    }

    #[test]
    fn every_read_of_a_full_pipe_wakes_a_writer_that_may_find_it_full() {
        let (mut pipe, _) = filled(ChannelKind::Pipe, PIPE_WAKES_ON_FULL_READ);
        assert_eq!(receive(&mut pipe, 100), Some(Wake::OneWriter));
        assert_eq!(send(&mut pipe, 100), None, "no page is free yet");
    }

    /// Half a pipe at a time, as messages are measured. Fails if calls were slow by chance, if a pipe kept no page, or as
    /// many under each kernel.
    #[test]
    fn calls_pay_for_the_pages_that_a_pipe_does_not_keep() {
        for (rule, paid) in [(PIPE_WAKES_ON_FULL_READ, 7), (PIPE_WAKES_ON_FREED_SLOT, 6)] {
            let mut pipe = Channel::new(ChannelKind::Pipe, rule);
            let mut times_paid = [0; 2];
            for _ in 0..3 {
                times_paid = [0; 2];
                for side in [Side::Writer, Side::Reader] {
                    for _ in 0..320 {
                        let pays = pipe.turns_page(side, 100) && pipe.pays_for_page(side);
                        times_paid[side as usize] += u32::from(pays);
                        match side {
                            Side::Writer => pipe.send(100, 0, false),
                            Side::Reader => pipe.receive(100),
                        };
                    }
                }
            }
            assert_eq!(times_paid, [paid; 2]);
        }
    }

    #[test]
    fn a_writer_that_slept_waits_for_a_page_of_its_own() {
        let mut pipe = Channel::new(ChannelKind::Pipe, RULE);
        for _ in 0..PIPE_PAGES {
            pipe.send(100, 0, true);
        }
        assert!(!pipe.has_room(100, true), "there are as many pages as messages");
        assert!(pipe.has_room(100, false), "the last page has room for more");
    }

    #[test]
    fn since_6_18_only_a_freed_slot_wakes_a_writer() {
        let (mut pipe, _) = filled(ChannelKind::Pipe, PIPE_WAKES_ON_FREED_SLOT);
        for _ in 0..39 {
            assert_eq!(receive(&mut pipe, 100), Some(Wake::Nobody));
        }
        assert_eq!(receive(&mut pipe, 100), Some(Wake::OneWriter));
        assert!(send(&mut pipe, 100).is_some());
    }

    #[test]
    fn a_socket_blocks_at_277_and_wakes_its_writers_at_69() {
        let (mut socket, sent) = filled(ChannelKind::UnixSocket, PIPE_WAKES_ON_FULL_READ);
        assert_eq!(sent, 278, "the message that reaches the limit still goes in");
        let mut left = sent;
        while receive(&mut socket, 100) == Some(Wake::Nobody) {
            left -= 1;
        }
        assert_eq!(left - 1, 69);
    }

    #[test]
    fn a_tcp_message_is_read_in_portions_and_only_when_all_of_a_portion_is_there() {
        let mut tcp = Channel::new(ChannelKind::LoopbackTcp, RULE);
        assert_eq!(send(&mut tcp, 100), Some(Wake::AllReaders));
        assert_eq!(receive(&mut tcp, 4), Some(Wake::AllWriters));
        assert_eq!(receive(&mut tcp, 97), None);
        assert!(receive(&mut tcp, 96).is_some());
        assert!(receive(&mut tcp, 1).is_none(), "all has been read");
    }

    #[test]
    fn a_tcp_sender_blocks_at_its_buffer_and_is_woken_at_two_thirds() {
        let mut tcp = Channel::new(ChannelKind::LoopbackTcp, RULE);
        while send(&mut tcp, 60_000).is_some() {}
        let mut left = 44 * 60_000;
        while receive(&mut tcp, 60_000) == Some(Wake::Nobody) {
            left -= 60_000;
        }
        left -= 60_000;
        assert!(left * 3 <= TCP_SEND_BUFFER * 2 && (left + 60_000) * 3 > TCP_SEND_BUFFER * 2);
    }

    #[test]
    fn a_datagram_that_finds_no_room_is_lost_and_wakes_nobody() {
        let mut udp = Channel::new(ChannelKind::LoopbackUdp, RULE);
        let kept = (0..).take_while(|_| send(&mut udp, 1) == Some(Wake::AllReaders)).count();
        assert_eq!(kept as u64, RECEIVE_BUFFER / 768);
        assert_eq!(send(&mut udp, 1), Some(Wake::Nobody));
        assert_eq!((0..).take_while(|_| receive(&mut udp, 1).is_some()).count(), kept);
    }

    #[test]
    fn a_queue_wakes_one_and_says_who_sent_what_is_read_next() {
        let mut queue = Channel::new(ChannelKind::KernelQueue, RULE);
        assert_eq!(queue.send(1, 7, false), Wake::OneReader);
        assert_eq!(queue.send(1, 8, false), Wake::OneReader);
        for sender in [7, 8] {
            assert_eq!(queue.next_sender(), Some(sender));
            assert!(receive(&mut queue, 1).is_some());
        }
        assert_eq!(receive(&mut queue, 1), None);
    }
}
