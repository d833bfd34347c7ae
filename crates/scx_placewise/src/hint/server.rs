//! The socket by which hints come: who calls, whether they may, and the answer.
//!
//! The map of hints belongs to root. Everybody may connect; each request is judged by the
//! credentials that the kernel keeps of the caller. A connection has a thread of its own, so a
//! caller that does not read its answers holds up nobody else; what a user may have of the server is
//! limited (limits.rs), and so is the time that one may be silent. Where there are no threads or
//! descriptors left, callers are turned away until there are.

use std::fs::{self, DirBuilder};
use std::io;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use placewise_hint::{Answer, Hint, Hinted, Inheritance, MESSAGE_MAX, Request, thread_pidfd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags,
    SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, recvmsg, send,
    socket_with,
};

use super::limits::{Seat, Users};
use super::map::HintMap;
use super::permission::Caller;
use crate::socket::remove_left_socket;

/// A conversation needs little.
const STACK: usize = 256 << 10;
const SILENCE: Duration = Duration::from_secs(10);
/// How often the listener shows at least that it still listens.
const BEAT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Listens until it is dropped, then takes its socket away.
pub struct HintServer {
    path: PathBuf,
    beats: Arc<AtomicU64>,
}

/// Why nobody can be heard.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("{path}: another scx_placewise listens here")]
    Taken { path: String },
    #[error("{path}: cannot listen: {error}")]
    Listen { path: String, error: io::Error },
}

impl HintServer {
    /// Starts to listen at `path`.
    pub fn start(path: &Path, hints: HintMap) -> Result<Self, ServerError> {
        let socket = listen_at(path)?;
        let (hints, users, beats) = (Arc::new(hints), Arc::default(), Arc::default());
        let server = Self { path: path.to_path_buf(), beats: Arc::clone(&beats) };
        thread::Builder::new()
            .name("hints".into())
            .spawn(move || serve(&socket, &hints, &users, &beats))
            .map_err(|error| listening_failed(path, error))?;
        Ok(server)
    }

    /// Grows once a second at the least while callers are heard.
    pub fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }
}

impl Drop for HintServer {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn listen_at(path: &Path) -> Result<OwnedFd, ServerError> {
    if somebody_listens(path) {
        return Err(ServerError::Taken { path: path.display().to_string() });
    }
    let open = || -> io::Result<OwnedFd> {
        if let Some(directory) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
        }
        remove_left_socket(path)?;
        let socket = new_socket()?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
        listen(&socket, 64)?;
        Ok(socket)
    };
    open().map_err(|error| listening_failed(path, error))
}

fn listening_failed(path: &Path, error: io::Error) -> ServerError {
    ServerError::Listen { path: path.display().to_string(), error }
}

fn new_socket() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// A socket file may be left of a loader that was killed.
fn somebody_listens(path: &Path) -> bool {
    let address = SocketAddrUnix::new(path);
    address.and_then(|address| connect(&new_socket()?, &address)).is_ok()
}

fn serve(socket: &OwnedFd, hints: &Arc<HintMap>, users: &Arc<Users>, beats: &AtomicU64) {
    loop {
        beats.fetch_add(1, Ordering::Relaxed);
        let mut polled = [PollFd::new(socket, PollFlags::IN)];
        if poll(&mut polled, Some(&BEAT)) == Ok(0) {
            continue;
        }
        // The caller gave up, or there are no descriptors or threads left for now.
        if accept(socket, hints, users).is_err() {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Gives a caller a thread, or turns it away.
fn accept(socket: &OwnedFd, hints: &Arc<HintMap>, users: &Arc<Users>) -> io::Result<()> {
    let connection = accept_with(socket, SocketFlags::CLOEXEC)?;
    let uid = socket_peercred(&connection)?.uid.as_raw();
    let Some(seat) = users.admit(uid) else { return Ok(()) };
    let hints = Arc::clone(hints);
    let converse = move || drop(converse(&connection, &seat, &hints));
    thread::Builder::new().name("hint".into()).stack_size(STACK).spawn(converse).map(drop)
}

/// Answers until the caller leaves, or is silent for too long.
fn converse(connection: &OwnedFd, seat: &Seat, hints: &HintMap) -> io::Result<()> {
    set_socket_timeout(connection, Timeout::Recv, Some(SILENCE))?;
    set_socket_timeout(connection, Timeout::Send, Some(SILENCE))?;
    let caller = seat.serve(|| Caller::of(connection.as_fd()))?;
    let conversation = Conversation { connection, caller, hints };
    while let Some((text, thread)) = receive(connection)? {
        seat.serve(|| conversation.respond(&text, thread.as_ref().map(AsFd::as_fd)))?;
    }
    Ok(())
}

/// What a request is answered from.
struct Conversation<'a> {
    connection: &'a OwnedFd,
    caller: Caller,
    hints: &'a HintMap,
}

impl Conversation<'_> {
    fn respond(&self, text: &str, thread: Option<BorrowedFd<'_>>) -> rustix::io::Result<()> {
        let thread = thread.ok_or(Errno::BADF);
        match text.parse() {
            Err(error) => self.say(refusal(Errno::INVAL, &error.to_string())),
            Ok(Request::Set(hint, inheritance)) => {
                self.say(answer(thread.and_then(|thread| self.set(thread, hint, inheritance))))
            }
            Ok(Request::Get) => self.say(answer(thread.and_then(|thread| self.get(thread)))),
            Ok(Request::Show) => self.show(),
        }
    }

    fn say(&self, answer: Answer) -> rustix::io::Result<()> {
        send(self.connection, answer.to_string().as_bytes(), SendFlags::NOSIGNAL).map(drop)
    }

    fn set(
        &self,
        thread: BorrowedFd<'_>,
        hint: Hint,
        inheritance: Inheritance,
    ) -> Result<Answer, Errno> {
        let tid = self.caller.may_hint(thread)?;
        self.hints.set(thread, tid, hint, inheritance)?;
        Ok(Answer::Ok)
    }

    fn get(&self, thread: BorrowedFd<'_>) -> Result<Answer, Errno> {
        let tid = self.caller.may_hint(thread)?;
        let (hint, inheritance) = self.hints.get(thread)?.unwrap_or_default();
        Ok(Answer::Hint(Hinted { tid, hint, inheritance }))
    }

    /// The threads that have a hint and that the caller may hint.
    fn show(&self) -> rustix::io::Result<()> {
        for tid in all_threads() {
            let Ok(thread) = thread_pidfd(tid) else { continue };
            let Ok(Some((hint, inheritance))) = self.hints.get(thread.as_fd()) else { continue };
            if hint == Hint::NONE {
                continue;
            }
            if let Ok(tid) = self.caller.may_hint(thread.as_fd()) {
                self.say(Answer::Hint(Hinted { tid, hint, inheritance }))?;
            }
        }
        self.say(Answer::Ok)
    }
}

fn answer(done: Result<Answer, Errno>) -> Answer {
    done.unwrap_or_else(|errno| {
        let text = match errno {
            Errno::PERM => "not permitted: only who may ptrace a thread may hint it",
            Errno::SRCH => "no such thread, it may have ended",
            Errno::BADF => "no pidfd of a thread came with the request",
            _ => return refusal(errno, &errno.to_string()),
        };
        refusal(errno, text)
    })
}

/// Cut to what a message holds.
fn refusal(errno: Errno, text: &str) -> Answer {
    let room = MESSAGE_MAX - "error -2147483648 ".len();
    let text: String = text.chars().filter(char::is_ascii).take(room).collect();
    Answer::Error(errno.raw_os_error(), text)
}

fn all_threads() -> Vec<i32> {
    let mut all: Vec<i32> = numbers_in("/proc")
        .flat_map(|process| numbers_in(&format!("/proc/{process}/task")).collect::<Vec<_>>())
        .collect();
    all.sort_unstable();
    all
}

fn numbers_in(directory: &str) -> impl Iterator<Item = i32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A message and the descriptor beside it; None at the end. One that is too long ends the
/// connection: what was cut off might change its meaning.
fn receive(connection: &OwnedFd) -> rustix::io::Result<Option<(String, Option<OwnedFd>)>> {
    let mut buffer = [0; MESSAGE_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = recvmsg(
        connection,
        &mut [IoSliceMut::new(&mut buffer)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if message.bytes == 0 {
        return Ok(None);
    }
    if message.flags.contains(ReturnFlags::TRUNC) {
        return Err(Errno::MSGSIZE);
    }
    let thread = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(Some((String::from_utf8_lossy(&buffer[..message.bytes]).into_owned(), thread)))
}
