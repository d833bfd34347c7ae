//! The socket by which hints come: who calls, whether they may, and the answer.
//!
//! The map of hints belongs to root. Everybody may connect; each request is judged by the
//! credentials that the kernel keeps of the caller. A connection has a thread of its own, so a
//! caller that does not read its answers holds up nobody else; how many a user may have is limited,
//! and so is the time that one may be silent.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use placewise_hint::{Answer, Hint, Hinted, Inheritance, MESSAGE_MAX, Request, thread_pidfd};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags,
    SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, recvmsg, send,
    socket_with,
};

use super::map::HintMap;
use super::permission::Caller;
use crate::socket::remove_left_socket;

const CONNECTIONS_PER_USER: u32 = 16;
const SILENCE: Duration = Duration::from_secs(10);

/// Listens until it is dropped, then takes its socket away.
pub struct HintServer {
    path: PathBuf,
}

/// Why nobody can be heard.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("{path}: another scx_placewise listens here")]
    Taken { path: String },
    #[error("{path}: cannot listen: {error}")]
    Listen { path: String, error: io::Error },
}

/// Told the number and the new hint of a thread that was hinted.
type Changed = dyn Fn(u32, Hint) -> Result<(), Errno> + Send + Sync;

/// What all connections share.
struct Shared {
    hints: HintMap,
    changed: Box<Changed>,
    connections: Mutex<BTreeMap<u32, u32>>,
}

impl HintServer {
    /// Starts to listen at `path`; `changed` is told the number and hint of each thread that was
    /// hinted.
    pub fn start(
        path: &Path,
        hints: HintMap,
        changed: impl Fn(u32, Hint) -> Result<(), Errno> + Send + Sync + 'static,
    ) -> Result<Self, ServerError> {
        let socket = listen_at(path)?;
        let shared = Shared { hints, changed: Box::new(changed), connections: Mutex::default() };
        let shared = Arc::new(shared);
        std::thread::spawn(move || serve(&socket, &shared));
        Ok(Self { path: path.to_path_buf() })
    }
}

impl Drop for HintServer {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn listen_at(path: &Path) -> Result<OwnedFd, ServerError> {
    let name = || path.display().to_string();
    let failed = |error: io::Error| ServerError::Listen { path: name(), error };
    if somebody_listens(path) {
        return Err(ServerError::Taken { path: name() });
    }
    let open = || -> io::Result<OwnedFd> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        remove_left_socket(path)?;
        let socket = new_socket()?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
        listen(&socket, 64)?;
        Ok(socket)
    };
    open().map_err(failed)
}

fn new_socket() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// A socket file may be left of a loader that was killed.
fn somebody_listens(path: &Path) -> bool {
    let address = SocketAddrUnix::new(path);
    address.and_then(|address| connect(&new_socket()?, &address)).is_ok()
}

fn serve(socket: &OwnedFd, shared: &Arc<Shared>) {
    loop {
        let connection = match accept_with(socket, SocketFlags::CLOEXEC) {
            Ok(connection) => connection,
            // The caller gave up, or there are no descriptors left for now.
            Err(_) => {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
        };
        let Ok(caller) = Caller::of(connection.as_fd()) else { continue };
        if shared.enter(caller.uid()) {
            let shared = Arc::clone(shared);
            std::thread::spawn(move || {
                let _ = converse(&connection, &caller, &shared);
                shared.leave(caller.uid());
            });
        }
    }
}

impl Shared {
    /// False where the user has too many connections.
    fn enter(&self, uid: u32) -> bool {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let count = connections.entry(uid).or_default();
        let room = *count < CONNECTIONS_PER_USER;
        *count += u32::from(room);
        room
    }

    fn leave(&self, uid: u32) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = connections.get_mut(&uid) {
            *count -= 1;
        }
        connections.retain(|_, count| *count > 0);
    }
}

/// Answers until the caller leaves, or is silent for too long.
fn converse(connection: &OwnedFd, caller: &Caller, shared: &Shared) -> rustix::io::Result<()> {
    set_socket_timeout(connection, Timeout::Recv, Some(SILENCE))?;
    set_socket_timeout(connection, Timeout::Send, Some(SILENCE))?;
    let mut say = |answer: Answer| {
        send(connection, answer.to_string().as_bytes(), SendFlags::NOSIGNAL).map(drop)
    };
    while let Some((text, thread)) = receive(connection)? {
        let thread = || thread.as_ref().map(AsFd::as_fd).ok_or(Errno::BADF);
        match text.parse() {
            Err(error) => say(refusal(Errno::INVAL, &error.to_string()))?,
            Ok(Request::Set(hint, inheritance)) => {
                say(answer(
                    thread().and_then(|thread| shared.set(caller, thread, hint, inheritance)),
                ))?;
            }
            Ok(Request::Get) => {
                say(answer(thread().and_then(|thread| shared.get(caller, thread))))?;
            }
            Ok(Request::Show) => {
                shared.show(caller, &mut say)?;
                say(Answer::Ok)?;
            }
        }
    }
    Ok(())
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

impl Shared {
    fn set(
        &self,
        caller: &Caller,
        thread: BorrowedFd<'_>,
        hint: Hint,
        inheritance: Inheritance,
    ) -> Result<Answer, Errno> {
        let tid = caller.may_hint(thread)?;
        self.hints.set(thread, hint, inheritance).map_err(|error| errno(&error))?;
        (self.changed)(tid, hint)?;
        Ok(Answer::Ok)
    }

    fn get(&self, caller: &Caller, thread: BorrowedFd<'_>) -> Result<Answer, Errno> {
        let tid = caller.may_hint(thread)?;
        let kept = self.hints.get(thread).map_err(|error| errno(&error))?;
        let (hint, inheritance) = kept.unwrap_or_default();
        Ok(Answer::Hint(Hinted { tid, hint, inheritance }))
    }

    /// The threads that have a hint and that the caller may hint.
    fn show(
        &self,
        caller: &Caller,
        say: &mut impl FnMut(Answer) -> rustix::io::Result<()>,
    ) -> rustix::io::Result<()> {
        for tid in all_threads() {
            let Ok(thread) = thread_pidfd(tid) else { continue };
            let Ok(Some((hint, inheritance))) = self.hints.get(thread.as_fd()) else { continue };
            if hint == Hint::NONE {
                continue;
            }
            if let Ok(tid) = caller.may_hint(thread.as_fd()) {
                say(Answer::Hint(Hinted { tid, hint, inheritance }))?;
            }
        }
        Ok(())
    }
}

fn errno(error: &libbpf_rs::Error) -> Errno {
    match error.kind() {
        libbpf_rs::ErrorKind::NotFound => Errno::SRCH,
        _ => Errno::IO,
    }
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
