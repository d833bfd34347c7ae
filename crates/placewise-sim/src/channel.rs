//! What carries messages: how much fits, and who is woken.
//!
//! A pipe has 16 pages; a message merges into the last page if it fits there
//! whole. An AF_UNIX stream socket counts the true size of what is in flight:
//! its senders sleep at the send buffer's limit and are woken, all together,
//! once three quarters of it have drained. All wakeups are sync.
//!
//! Limits: the messages of one channel are of one size for the receiver; no
//! partial reads or writes.

use std::collections::VecDeque;

use placewise_policy::*;
use placewise_workload::program::ChannelKind;

use crate::event_queue::Time;

const PAGE: u32 = 4096;
const PIPE_PAGES: usize = 16;
/// net.core.wmem_default.
const SEND_BUFFER: u64 = 212_992;

/// A message's size in socket buffers: the header, and data in a power of two
/// together with its tail room.
fn true_size(bytes: u32) -> u64 {
    const HEADER: u64 = 256;
    const TAIL_ROOM: u64 = 320;
    HEADER + (u64::from(bytes) + TAIL_ROOM).next_power_of_two()
}

pub struct Channel {
    content: Content,
    pub readers: VecDeque<u32>,
    pub writers: VecDeque<u32>,
    /// The CPU that touched it last, and until when its lock is held.
    pub last_cpu: u32,
    pub busy_until: Time,
}

enum Content {
    Pipe { pages: VecDeque<Page> },
    Socket { messages: u64, in_flight: u64 },
}

/// Bytes not yet read, and where the last of them ends in the page.
struct Page {
    left: u32,
    end: u32,
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
    pub fn new(kind: ChannelKind) -> Self {
        let content = match kind {
            ChannelKind::Pipe => Content::Pipe { pages: VecDeque::with_capacity(PIPE_PAGES) },
            ChannelKind::UnixSocket => Content::Socket { messages: 0, in_flight: 0 },
        };
        Channel {
            content,
            readers: VecDeque::new(),
            writers: VecDeque::new(),
            last_cpu: 0,
            busy_until: 0,
        }
    }

    pub fn kind(&self) -> ChannelKind {
        match self.content {
            Content::Pipe { .. } => ChannelKind::Pipe,
            Content::Socket { .. } => ChannelKind::UnixSocket,
        }
    }

    pub fn is_empty(&self) -> bool {
        match &self.content {
            Content::Pipe { pages } => pages.is_empty(),
            Content::Socket { messages, .. } => *messages == 0,
        }
    }

    fn is_full(&self) -> bool {
        match &self.content {
            Content::Pipe { pages } => pages.len() == PIPE_PAGES,
            Content::Socket { in_flight, .. } => *in_flight >= SEND_BUFFER,
        }
    }

    /// Puts a message in, or refuses; says whom that wakes.
    pub fn send(&mut self, bytes: u32, rule: PipeWakeRule) -> Option<Wake> {
        let was_empty = self.is_empty();
        match &mut self.content {
            Content::Pipe { pages } => {
                push(pages, bytes)?;
                Some(match rule {
                    PIPE_WAKES_ALL => Wake::Everybody,
                    _ if was_empty => Wake::OneReader,
                    _ => Wake::Nobody,
                })
            }
            Content::Socket { messages, in_flight } => {
                if *in_flight >= SEND_BUFFER {
                    return None;
                }
                *messages += 1;
                *in_flight += true_size(bytes);
                Some(Wake::AllReaders)
            }
        }
    }

    /// Takes a message out, or finds none; says whom that wakes.
    pub fn receive(&mut self, bytes: u32, rule: PipeWakeRule) -> Option<Wake> {
        if self.is_empty() {
            return None;
        }
        let was_full = self.is_full();
        Some(match &mut self.content {
            Content::Pipe { pages } => {
                let freed = pop(pages, bytes);
                match rule {
                    PIPE_WAKES_ALL if freed => Wake::Everybody,
                    PIPE_WAKES_ON_FULL_READ if was_full => Wake::OneWriter,
                    PIPE_WAKES_ON_FREED_SLOT if was_full && freed => Wake::OneWriter,
                    _ => Wake::Nobody,
                }
            }
            Content::Socket { messages, in_flight } => {
                *messages -= 1;
                *in_flight -= true_size(bytes);
                if *in_flight * 4 <= SEND_BUFFER { Wake::AllWriters } else { Wake::Nobody }
            }
        })
    }

    /// Work left for another waiter of the same kind: the wakeup is passed on.
    pub fn next_reader_has_work(&self) -> bool {
        self.kind() == ChannelKind::Pipe && !self.is_empty() && !self.readers.is_empty()
    }

    pub fn next_writer_has_room(&self) -> bool {
        self.kind() == ChannelKind::Pipe && !self.is_full() && !self.writers.is_empty()
    }
}

fn push(pages: &mut VecDeque<Page>, bytes: u32) -> Option<()> {
    if let Some(last) = pages.back_mut().filter(|last| last.end + bytes <= PAGE) {
        last.left += bytes;
        last.end += bytes;
    } else if pages.len() < PIPE_PAGES {
        pages.push_back(Page { left: bytes, end: bytes });
    } else {
        return None;
    }
    Some(())
}

/// True if a page became free.
fn pop(pages: &mut VecDeque<Page>, bytes: u32) -> bool {
    let first = pages.front_mut().expect("a message is there");
    first.left -= bytes.min(first.left);
    let drained = first.left == 0;
    if drained {
        pages.pop_front();
    }
    drained
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(kind: ChannelKind, rule: PipeWakeRule) -> (Channel, u32) {
        let mut channel = Channel::new(kind);
        let sent = (0..).take_while(|_| channel.send(100, rule).is_some()).count();
        (channel, sent as u32)
    }

    #[test]
    fn a_pipe_holds_640_messages_of_100_bytes() {
        assert_eq!(filled(ChannelKind::Pipe, PIPE_WAKES_ON_FULL_READ).1, 640);
    }

    #[test]
    fn a_reader_is_woken_only_from_empty() {
        let mut pipe = Channel::new(ChannelKind::Pipe);
        assert_eq!(pipe.send(100, PIPE_WAKES_ON_FULL_READ), Some(Wake::OneReader));
        assert_eq!(pipe.send(100, PIPE_WAKES_ON_FULL_READ), Some(Wake::Nobody));
    }

    #[test]
    fn every_read_of_a_full_pipe_wakes_a_writer_that_may_find_it_full() {
        let (mut pipe, _) = filled(ChannelKind::Pipe, PIPE_WAKES_ON_FULL_READ);
        assert_eq!(pipe.receive(100, PIPE_WAKES_ON_FULL_READ), Some(Wake::OneWriter));
        assert_eq!(pipe.send(100, PIPE_WAKES_ON_FULL_READ), None, "no page is free yet");
    }

    #[test]
    fn since_6_18_only_a_freed_slot_wakes_a_writer() {
        let (mut pipe, _) = filled(ChannelKind::Pipe, PIPE_WAKES_ON_FREED_SLOT);
        for _ in 0..39 {
            assert_eq!(pipe.receive(100, PIPE_WAKES_ON_FREED_SLOT), Some(Wake::Nobody));
        }
        assert_eq!(pipe.receive(100, PIPE_WAKES_ON_FREED_SLOT), Some(Wake::OneWriter));
        assert!(pipe.send(100, PIPE_WAKES_ON_FREED_SLOT).is_some());
    }

    #[test]
    fn a_socket_blocks_at_277_and_wakes_its_writers_at_69() {
        let (mut socket, sent) = filled(ChannelKind::UnixSocket, PIPE_WAKES_ON_FULL_READ);
        assert_eq!(sent, 278, "the message that reaches the limit still goes in");
        let mut left = sent;
        while socket.receive(100, PIPE_WAKES_ON_FULL_READ) == Some(Wake::Nobody) {
            left -= 1;
        }
        assert_eq!(left - 1, 69);
    }
}
