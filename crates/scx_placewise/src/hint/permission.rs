//! Whether a caller may hint a thread: as with the prctl of the kernel series, whoever may read it
//! through ptrace.
//!
//! The kernel decides. A thread of ours reads a link in /proc that takes exactly this right, with
//! the caller's file-system identity and capabilities. Whom one may signal, limit or trace goes by
//! the other identities, which stay ours: nobody gets hold of this process meanwhile.
//!
//! Limits: of a caller's capabilities only root's are looked at, and of these the ones that this
//! process may have itself. A caller in a user namespace of its own may hint nothing; threads in one
//! are for callers with CAP_SYS_PTRACE. A security module judges this process in the caller's place.
//! It takes Linux 6.5.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::UCred;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// A pidfd of the process at the other end of a socket. Linux 6.5.
const SO_PEERPIDFD: libc::c_int = 77;

/// Who is at the other end of a connection, as of its beginning.
pub struct Caller {
    credentials: UCred,
    /// In our user namespace: elsewhere a uid says nothing of rights.
    at_home: bool,
    /// Root may have been left less than all of them.
    capabilities: CapabilitySet,
}

impl Caller {
    /// Fails where the caller has ended by now.
    pub fn of(connection: BorrowedFd<'_>) -> io::Result<Self> {
        let credentials = socket_peercred(connection)?;
        let process = peer_pidfd(connection)?;
        let pid = number_of(process.as_fd())?;
        let at_home = fs::read_link(format!("/proc/{pid}/ns/user"))?
            == fs::read_link("/proc/thread-self/ns/user")?;
        let capabilities = match credentials.uid.is_root() {
            true => effective_capabilities(pid)?,
            false => CapabilitySet::empty(),
        };
        // The number meant this process all the time only if it still does.
        match has_ended(process.as_fd()) {
            true => Err(Errno::SRCH.into()),
            false => Ok(Self { credentials, at_home, capabilities }),
        }
    }

    /// The thread's number where the caller may, else EPERM or ESRCH.
    pub fn may_hint(&self, thread: BorrowedFd<'_>) -> Result<u32, Errno> {
        let tid = number_of(thread)?;
        let answer = self.may_read(tid);
        // The number meant this thread all the time only if it still does.
        if has_ended(thread) { Err(Errno::SRCH) } else { answer.map(|()| tid) }
    }

    fn may_read(&self, tid: u32) -> Result<(), Errno> {
        // The kernel lets every process read itself, for whomever it asks.
        let is_ours = Path::new(&format!("/proc/self/task/{tid}")).exists();
        if is_ours || !self.at_home {
            return Err(Errno::PERM);
        }
        let _identity = BorrowedIdentity::of(self)?;
        // Where /proc hides what one may not read, there is none.
        fs::read_link(format!("/proc/{tid}/ns/pid")).map(drop).map_err(|_| Errno::PERM)
    }
}

/// While it lasts, the calling thread opens files as a caller would.
struct BorrowedIdentity {
    own: CapabilitySets,
}

impl BorrowedIdentity {
    fn of(caller: &Caller) -> Result<Self, Errno> {
        let UCred { uid, gid, .. } = caller.credentials;
        // From here on, whatever fails, drop() takes back our own.
        let identity = Self { own: capabilities(None)? };
        let taken_on = set_file_system_ids(uid.as_raw(), gid.as_raw());
        let effective = caller.capabilities & identity.own.permitted;
        set_capabilities(None, CapabilitySets { effective, ..identity.own })?;
        if taken_on { Ok(identity) } else { Err(Errno::PERM) }
    }
}

impl Drop for BorrowedIdentity {
    fn drop(&mut self) {
        // Neither takes a right. If one failed all the same, this thread could do less than before.
        set_file_system_ids(geteuid().as_raw(), getegid().as_raw());
        let _ = set_capabilities(None, self.own);
    }
}

/// Of the calling thread alone; false where they are not these now.
fn set_file_system_ids(uid: u32, gid: u32) -> bool {
    const NOBODY: u32 = u32::MAX; // changes nothing, and answers with what it is
    // SAFETY: all take and give numbers.
    unsafe {
        libc::setfsgid(gid);
        libc::setfsuid(uid);
        (libc::setfsuid(NOBODY) as u32, libc::setfsgid(NOBODY) as u32) == (uid, gid)
    }
}

/// The number by which this process knows what a pidfd means.
fn number_of(pidfd: BorrowedFd<'_>) -> Result<u32, Errno> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))
        .map_err(|_| Errno::BADF)?;
    let number = info.lines().find_map(|line| line.strip_prefix("Pid:"));
    // No such line: no pidfd. Not positive: ended, or outside of this pid namespace.
    let number: i64 = number.and_then(|number| number.trim().parse().ok()).ok_or(Errno::BADF)?;
    u32::try_from(number).ok().filter(|&number| number > 0).ok_or(Errno::SRCH)
}

/// A pidfd is readable once what it means has ended.
fn has_ended(pidfd: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
    !matches!(poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
}

fn peer_pidfd(connection: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut pidfd: libc::c_int = -1;
    let mut length = size_of_val(&pidfd) as libc::socklen_t;
    // SAFETY: the kernel writes one int, where there is room for one.
    let failed = unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut pidfd).cast(),
            &raw mut length,
        )
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(pidfd) })
}

fn effective_capabilities(pid: u32) -> io::Result<CapabilitySet> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    Ok(CapabilitySet::from_bits_truncate(mask.unwrap_or(0)))
}
