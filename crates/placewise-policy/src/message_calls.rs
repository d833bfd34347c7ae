//! How long calls that pass messages are under one kernel, compared with another.
//!
//! Costs of messages are those under Linux 6.18 wherever a machine has them: what they are under another kernel is
//! told by the instructions that calls take there. A sender that allocates for longer than a receiver takes has
//! its receiver sleep more often: with it all that wakeups decide.
//!
//! Limits: counted under five of Debian's kernels, with its configuration; those in between are taken for the one
//! before. TCP and UDP are taken to be the same under all.

use crate::{MESSAGE_CALLS_5_10, MESSAGE_CALLS_6_12, MESSAGE_CALLS_7_3, MessageCalls};

/// Instructions of calls that pass 100 bytes, without those of a system call that does nothing: counted on an emulated
/// machine, half of what a channel holds at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instructions {
    pub pipe: OfBothSides,
    /// Of an AF_UNIX stream socket.
    pub socket: OfBothSides,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfBothSides {
    pub write: u64,
    pub read: u64,
}

impl Instructions {
    pub const fn of(calls: MessageCalls) -> Self {
        let [pipe, socket] = match calls {
            // 5.10 and 6.1 differ by 3 and by 4 %.
            MESSAGE_CALLS_5_10 => [[864, 806], [2_705, 1_913]],
            MESSAGE_CALLS_6_12 => [[863, 801], [2_118, 1_899]],
            MESSAGE_CALLS_7_3 => [[811, 679], [2_091, 1_677]],
            // MESSAGE_CALLS_6_18
            _ => [[714, 634], [2_063, 1_867]],
        };
        Instructions { pipe: OfBothSides::new(pipe), socket: OfBothSides::new(socket) }
    }
}

impl OfBothSides {
    const fn new([write, read]: [u64; 2]) -> Self {
        OfBothSides { write, read }
    }

    pub const fn together(self) -> u64 {
        self.write + self.read
    }
}
