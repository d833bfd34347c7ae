//! The program that is run for a recording, as a child without a shell in between, and what its end
//! means for the recorder's exit status.
//!
//! Limit: what it has started itself is not ended with it.

use std::ffi::{CString, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::unistd::{User, getgrouplist, setgid, setgroups, setuid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::input::InputError;

/// How long a program may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// A started program. It does not outlive the recording.
pub struct RunningCommand {
    name: String,
    child: Child,
    /// Readable once the program has ended; None before v5.3.
    end: Option<OwnedFd>,
    status: Option<ExitStatus>,
}

/// Of a program that ended by itself.
#[derive(Debug, thiserror::Error)]
#[error("command `{name}` failed: {status}; the trace is kept")]
pub struct CommandFailed {
    name: String,
    status: ExitStatus,
}

impl CommandFailed {
    /// As shells give it.
    pub fn exit_status(&self) -> u8 {
        let of_signal = || 128 + self.status.signal().unwrap_or(0);
        self.status.code().unwrap_or_else(of_signal) as u8
    }
}

impl RunningCommand {
    /// None where there is no command.
    pub fn start(words: &[OsString], user: Option<&User>) -> Result<Option<Self>, InputError> {
        let Some((program, arguments)) = words.split_first() else { return Ok(None) };
        let name = program.to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.args(arguments);
        let changed = user.map_or(Ok(()), |user| change_user(&mut command, user));
        let child = changed.and_then(|()| command.spawn()).map_err(|error| {
            InputError(format!("command `{name}`: cannot be started: {}", why(&error, &name)))
        })?;
        let pid = Pid::from_child(&child);
        let end = pidfd_open(pid, PidfdFlags::empty()).ok();
        Ok(Some(Self { name, child, end, status: None }))
    }

    pub fn end(&self) -> Option<BorrowedFd<'_>> {
        self.end.as_ref().map(OwnedFd::as_fd)
    }

    pub fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// Fails if the program did.
    pub fn result(&self) -> Result<(), CommandFailed> {
        match self.status {
            Some(status) if !status.success() => {
                Err(CommandFailed { name: self.name.clone(), status })
            }
            _ => Ok(()),
        }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        }
        let asked = Instant::now();
        while !self.has_ended() && asked.elapsed() < GRACE {
            sleep(Duration::from_millis(20), self.end());
        }
        if !self.has_ended() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Why a program of this name did not start.
fn why(error: &io::Error, name: &str) -> String {
    match error.kind() {
        ErrorKind::NotFound if name.contains('/') => {
            "there is no such file, or its interpreter is missing".to_owned()
        }
        ErrorKind::NotFound => {
            "there is no such program in PATH; install it, or name it with its path".to_owned()
        }
        kind => kind.to_string(),
    }
}

/// A signal or the end of the command ends the sleep.
pub fn sleep(time: Duration, command_end: Option<BorrowedFd<'_>>) {
    let mut ends: Vec<PollFd> = command_end
        .iter()
        .map(|end| PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN))
        .collect();
    let time = Timespec::try_from(time).expect("it is short");
    let _ = poll(&mut ends, Some(&time));
}

/// As a login does, but for the rest of the environment.
fn change_user(command: &mut Command, user: &User) -> io::Result<()> {
    command.env("HOME", &user.dir).env("USER", &user.name).env("LOGNAME", &user.name);
    let (uid, gid) = (user.uid, user.gid);
    let groups = getgrouplist(&CString::new(user.name.as_str())?, gid)?;
    let drop_rights = move || {
        setgroups(&groups)?;
        setgid(gid)?;
        Ok(setuid(uid)?)
    };
    // SAFETY: the closure runs after fork, and does nothing but system calls.
    unsafe { command.pre_exec(drop_rights) };
    Ok(())
}
