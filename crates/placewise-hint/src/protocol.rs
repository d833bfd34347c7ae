//! What is said on the hint socket: one message is one request, one message one answer.
//!
//! | request | with | answer |
//! |---|---|---|
//! | `set HINT children` or `set HINT self` | a pidfd of the thread | `ok` |
//! | `get` | a pidfd of the thread | `hint TID HINT children` or `... self` |
//! | `show` | | one `hint` message per hinted thread, then `ok` |
//!
//! Any request may be answered by `error ERRNO TEXT`. HINT is what `Hint` prints, such as
//! `fork_spread+wake_hold`. A thread is named by a pidfd and not by a number, because a number
//! means another thread in another pid namespace, and may mean another one a moment later.

use std::fmt;
use std::str::FromStr;

use crate::hint::{Hint, HintError};

/// Longer messages are refused.
pub const MESSAGE_MAX: usize = 256;

/// Who the hint is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inheritance {
    /// The thread, and what it creates from now on.
    #[default]
    Children,
    /// The thread alone.
    OnlySelf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Set(Hint, Inheritance),
    Get,
    Show,
}

/// A thread and its hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hinted {
    /// As the server's pid namespace numbers it.
    pub tid: u32,
    pub hint: Hint,
    pub inheritance: Inheritance,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Ok,
    Hint(Hinted),
    /// An errno, and what it means here.
    Error(i32, String),
}

/// Why a message means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    #[error("expected 'set HINT children|self', 'get' or 'show', not '{0}'")]
    Request(String),
    #[error("expected 'ok', 'hint TID HINT children|self' or 'error ERRNO TEXT', not '{0}'")]
    Answer(String),
    #[error(transparent)]
    Hint(#[from] HintError),
}

impl Inheritance {
    fn word(self) -> &'static str {
        match self {
            Self::Children => "children",
            Self::OnlySelf => "self",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [Self::Children, Self::OnlySelf].into_iter().find(|known| known.word() == word)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(hint, inheritance) => write!(f, "set {hint} {}", inheritance.word()),
            Self::Get => f.write_str("get"),
            Self::Show => f.write_str("show"),
        }
    }
}

impl FromStr for Request {
    type Err = ProtocolError;

    fn from_str(message: &str) -> Result<Self, ProtocolError> {
        let unknown = || ProtocolError::Request(message.into());
        match message.split(' ').collect::<Vec<_>>()[..] {
            ["set", hint, inheritance] => {
                let inheritance = Inheritance::from_word(inheritance).ok_or_else(unknown)?;
                Ok(Self::Set(hint.parse()?, inheritance))
            }
            ["get"] => Ok(Self::Get),
            ["show"] => Ok(Self::Show),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::Hint(Hinted { tid, hint, inheritance }) => {
                write!(f, "hint {tid} {hint} {}", inheritance.word())
            }
            Self::Error(errno, text) => write!(f, "error {errno} {text}"),
        }
    }
}

impl FromStr for Answer {
    type Err = ProtocolError;

    fn from_str(message: &str) -> Result<Self, ProtocolError> {
        let unknown = || ProtocolError::Answer(message.into());
        match message.splitn(4, ' ').collect::<Vec<_>>()[..] {
            ["ok"] => Ok(Self::Ok),
            ["hint", tid, hint, inheritance] => Ok(Self::Hint(Hinted {
                tid: tid.parse().map_err(|_| unknown())?,
                hint: hint.parse()?,
                inheritance: Inheritance::from_word(inheritance).ok_or_else(unknown)?,
            })),
            ["error", errno, ..] => {
                let text = message.splitn(3, ' ').nth(2).unwrap_or_default();
                Ok(Self::Error(errno.parse().map_err(|_| unknown())?, text.into()))
            }
            _ => Err(unknown()),
        }
    }
}
