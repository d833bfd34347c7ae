//! What is told of the decisions of a trace: how far they sent tasks ([`moves`]), how often the
//! policy agrees ([`agreement`]) and another would not ([`other`]), and how it came to each
//! ([`explain`](mod@explain)).

pub mod agreement;
pub mod explain;
pub mod moves;
pub mod other;
