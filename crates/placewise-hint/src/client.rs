//! The caller's end of the hint socket.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recv, sendmsg, socket_with,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::gettid;

use crate::hint::Hint;
use crate::protocol::{Answer, Hinted, Inheritance, MESSAGE_MAX, ProtocolError, Request};

/// Where `scx_placewise` listens unless told otherwise.
pub const SOCKET: &str = "/run/placewise/hint.sock";

/// `PIDFD_THREAD`: a thread, not only a thread group's leader. Linux 6.9.
const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(0o200);

/// Why nothing was hinted.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot reach scx_placewise at {socket}: {}", not_heard(.error))]
    Connect { socket: String, error: io::Error },
    #[error("cannot talk to scx_placewise: {0}")]
    Talk(#[from] io::Error),
    #[error("scx_placewise answers in words that are not known here: {0}")]
    Protocol(#[from] ProtocolError),
    #[error("no thread {tid}: {}", reason(.error))]
    Thread { tid: i32, error: io::Error },
    /// What the server refused, as an errno and its own words.
    #[error("{text}")]
    Refused { errno: i32, text: String },
}

fn not_heard(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => "it does not run here".into(),
        _ => error.to_string(),
    }
}

fn reason(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::SRCH) => "it does not exist".into(),
        Some(Errno::INVAL) => "Linux 6.9 or later can hint threads".into(),
        _ => error.to_string(),
    }
}

/// A handle on a thread that no other thread can come to mean.
pub fn thread_pidfd(tid: i32) -> Result<OwnedFd, ClientError> {
    let thread = |error: io::Error| ClientError::Thread { tid, error };
    let not_positive = || thread(Errno::SRCH.into());
    let pid = Pid::from_raw(tid).filter(|_| tid > 0).ok_or_else(not_positive)?;
    pidfd_open(pid, PIDFD_THREAD).map_err(|errno| thread(errno.into()))
}

/// A connection to `scx_placewise`.
pub struct Client {
    socket: OwnedFd,
}

impl Client {
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let connected = || -> rustix::io::Result<OwnedFd> {
            let kind = SocketType::SEQPACKET;
            let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
            connect(&socket, &SocketAddrUnix::new(path)?)?;
            Ok(socket)
        };
        let failed = |errno: Errno| ClientError::Connect {
            socket: path.display().to_string(),
            error: errno.into(),
        };
        Ok(Self { socket: connected().map_err(failed)? })
    }

    /// Gives the calling thread a hint in place of the one it had.
    pub fn set_self(&mut self, hint: Hint, inheritance: Inheritance) -> Result<(), ClientError> {
        let thread = thread_pidfd(gettid().as_raw_nonzero().get())?;
        self.set(thread.as_fd(), hint, inheritance)
    }

    /// Gives a thread a hint in place of the one it had.
    pub fn set(
        &mut self,
        thread: BorrowedFd<'_>,
        hint: Hint,
        inheritance: Inheritance,
    ) -> Result<(), ClientError> {
        self.send(Request::Set(hint, inheritance), Some(thread))?;
        match self.receive()? {
            Answer::Ok => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// The hint of a thread.
    pub fn get(&mut self, thread: BorrowedFd<'_>) -> Result<Hinted, ClientError> {
        self.send(Request::Get, Some(thread))?;
        match self.receive()? {
            Answer::Hint(hinted) => Ok(hinted),
            other => Err(unexpected(other)),
        }
    }

    /// Every thread with a hint, of those that the caller may hint.
    pub fn show(&mut self) -> Result<Vec<Hinted>, ClientError> {
        self.send(Request::Show, None)?;
        let mut all = Vec::new();
        loop {
            match self.receive()? {
                Answer::Hint(hinted) => all.push(hinted),
                Answer::Ok => return Ok(all),
                other => return Err(unexpected(other)),
            }
        }
    }

    fn send(&mut self, request: Request, thread: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let text = request.to_string();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if let Some(thread) = &thread {
            control.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(thread)));
        }
        let bytes = [IoSlice::new(text.as_bytes())];
        sendmsg(&self.socket, &bytes, &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    fn receive(&mut self) -> Result<Answer, ClientError> {
        let mut buffer = [0; MESSAGE_MAX];
        let (length, _) =
            rustix::io::retry_on_intr(|| recv(&self.socket, &mut buffer[..], RecvFlags::empty()))
                .map_err(io::Error::from)?;
        if length == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(String::from_utf8_lossy(&buffer[..length]).parse()?)
    }
}

fn unexpected(answer: Answer) -> ClientError {
    match answer {
        Answer::Error(errno, text) => ClientError::Refused { errno, text },
        other => ProtocolError::Answer(other.to_string()).into(),
    }
}
