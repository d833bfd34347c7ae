//! How long calls that pass messages are under one kernel, compared with another.
//!
//! Costs of messages are those under Linux 6.18 wherever a machine has them: what they are under another kernel is
//! told by the instructions that calls take there. A sender that allocates for longer than a receiver takes has
//! its receiver sleep more often: with it all that wakeups decide.
//!
//! Limits: counted under five of Debian's kernels, with its configuration; those in between are taken for the one
//! before. TCP and UDP are taken to be the same under all.

use crate::{MESSAGE_CALLS_5_10, MESSAGE_CALLS_6_12, MESSAGE_CALLS_7_3, MessageCalls};

/// Instructions of a write and of a read of 100 bytes, without those of a system call that does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instructions {
    pub write: u64,
    pub read: u64,
}

impl Instructions {
    /// Of both sides together.
    pub const fn of_both(self) -> u64 {
        self.write + self.read
    }

    /// Of a pipe: measured on an emulated machine, half of what it holds at a time.
    pub const fn of_pipe(calls: MessageCalls) -> Self {
        match calls {
            // 5.10 and 6.1 differ by 3 %.
            MESSAGE_CALLS_5_10 => Instructions { write: 864, read: 806 },
            MESSAGE_CALLS_6_12 => Instructions { write: 863, read: 801 },
            MESSAGE_CALLS_7_3 => Instructions { write: 811, read: 679 },
            _ => Instructions { write: 714, read: 634 },
        }
    }

    /// Of an AF_UNIX stream socket: measured as those of a pipe.
    pub const fn of_socket(calls: MessageCalls) -> Self {
        match calls {
            // 5.10 and 6.1 differ by 4 %.
            MESSAGE_CALLS_5_10 => Instructions { write: 2_705, read: 1_913 },
            MESSAGE_CALLS_6_12 => Instructions { write: 2_118, read: 1_899 },
            MESSAGE_CALLS_7_3 => Instructions { write: 2_091, read: 1_677 },
            _ => Instructions { write: 2_063, read: 1_867 },
        }
    }
}
