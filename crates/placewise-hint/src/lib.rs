//! Placement hints: what a program may say about where it should run.
//!
//! The words, the names of intents for them, and the way to say them to a running `scx_placewise`.
//! What a hint does to a placement is decided in `policy/hint.h`.
//!
//! ```no_run
//! use placewise_hint::{Client, Inheritance, SOCKET};
//!
//! let mut client = Client::connect(SOCKET.as_ref())?;
//! client.set_self("fork_spread".parse()?, Inheritance::Children)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A program that does not want Rust includes `include/placewise-hint.h`, which says the same to
//! the same socket.

mod client;
mod hint;
mod intent;
mod protocol;

pub use client::{Client, ClientError, SOCKET, thread_pidfd};
pub use hint::{Fork, Hint, HintError, Wake};
pub use intent::{Intent, IntentError, Intents};
pub use protocol::{Answer, Hinted, Inheritance, MESSAGE_MAX, ProtocolError, Request};
