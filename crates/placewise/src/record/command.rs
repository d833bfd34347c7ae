//! The program that is run for a recording, as a child without a shell in between.
//!
//! Limit: what it has started itself is not ended with it.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

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
    /// Its end was our doing.
    terminated: bool,
}

impl RunningCommand {
    /// None where there is no command.
    pub fn start(words: &[OsString]) -> Result<Option<Self>, InputError> {
        let Some((program, arguments)) = words.split_first() else { return Ok(None) };
        let name = program.to_string_lossy().into_owned();
        let child = Command::new(program).args(arguments).spawn().map_err(|error| {
            InputError(format!("command `{name}`: cannot be started: {}", error.kind()))
        })?;
        let pid = Pid::from_child(&child);
        let end = pidfd_open(pid, PidfdFlags::empty()).ok();
        Ok(Some(Self { name, child, end, status: None, terminated: false }))
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

    /// Asks the program to end if it still runs.
    pub fn terminate(&mut self) {
        if !self.has_ended() {
            self.terminated = true;
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        }
    }

    /// What the program died of, if not of us.
    pub fn finish(mut self) -> Option<String> {
        self.end_it();
        let status = self.status.filter(|status| !self.terminated && !status.success())?;
        Some(format!("command `{}` failed: {status}", self.name))
    }

    fn end_it(&mut self) {
        self.terminate();
        let asked = Instant::now();
        while !self.has_ended() && asked.elapsed() < GRACE {
            super::sleep(Duration::from_millis(20), self.end());
        }
        if !self.has_ended() {
            let _ = self.child.kill();
            self.status = self.child.wait().ok();
        }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.end_it();
    }
}
