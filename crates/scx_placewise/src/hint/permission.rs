//! Whether a caller may hint a thread: as with the prctl of the kernel series, whoever may read it
//! through ptrace.
//!
//! The kernel decides. A thread of ours takes the caller's identity and reads a link in /proc that
//! takes exactly this right. So security modules and undumpable programs are seen to as well.
//!
//! Limits: of a caller's capabilities only root's are looked at, and of these the ones that this
//! process may have itself. A caller in a user namespace of its own has no right over a process of
//! another one, even one it created itself.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::UCred;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, pidfd_open};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

/// Who is at the other end of a connection, as of its beginning.
pub struct Caller {
    credentials: UCred,
    /// Root may have been left less than all of them.
    capabilities: CapabilitySet,
}

impl Caller {
    pub fn of(connection: BorrowedFd<'_>) -> io::Result<Self> {
        let credentials = socket_peercred(connection)?;
        let root = credentials.uid.is_root();
        let capabilities =
            if root { effective_capabilities(&credentials)? } else { CapabilitySet::empty() };
        Ok(Self { credentials, capabilities })
    }

    pub fn uid(&self) -> u32 {
        self.credentials.uid.as_raw()
    }

    /// `Ok` where the caller may, else EPERM or ESRCH.
    pub fn may_hint(&self, thread: BorrowedFd<'_>) -> Result<u32, Errno> {
        let tid = tid_of(thread)?;
        let answer = std::thread::scope(|scope| {
            let asked = scope.spawn(|| self.read_as_caller(tid));
            asked.join().unwrap_or(Err(Errno::PERM))
        });
        // The number means the thread of the pidfd only if that has not ended by now.
        if has_ended(thread) { Err(Errno::SRCH) } else { answer.map(|()| tid) }
    }

    /// Gives up the identity of the calling thread for good.
    fn read_as_caller(&self, tid: u32) -> Result<(), Errno> {
        let UCred { uid, gid, .. } = self.credentials;
        set_thread_groups(&[])?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        let both = self.capabilities & capabilities(None)?.permitted;
        let taken_on = CapabilitySets {
            effective: both,
            permitted: both,
            inheritable: CapabilitySet::empty(),
        };
        set_capabilities(None, taken_on)?;
        match fs::read_link(format!("/proc/{tid}/ns/pid")) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Errno::SRCH),
            Err(_) => Err(Errno::PERM),
        }
    }
}

/// The number by which this process knows the thread.
fn tid_of(thread: BorrowedFd<'_>) -> Result<u32, Errno> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", thread.as_raw_fd()))
        .map_err(|_| Errno::BADF)?;
    let number = info.lines().find_map(|line| line.strip_prefix("Pid:"));
    // No such line: no pidfd. Not positive: ended, or outside of this pid namespace.
    let number: i64 = number.and_then(|number| number.trim().parse().ok()).ok_or(Errno::BADF)?;
    u32::try_from(number).ok().filter(|&tid| tid > 0).ok_or(Errno::SRCH)
}

/// A pidfd is readable once its thread has ended.
fn has_ended(thread: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(thread, PollFlags::IN)];
    !matches!(poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
}

fn effective_capabilities(caller: &UCred) -> io::Result<CapabilitySet> {
    let process: OwnedFd = pidfd_open(caller.pid, PidfdFlags::empty())?;
    let status = fs::read_to_string(format!("/proc/{}/status", caller.pid))?;
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    if has_ended(process.as_fd()) {
        return Ok(CapabilitySet::empty());
    }
    Ok(CapabilitySet::from_bits_truncate(mask.unwrap_or(0)))
}
