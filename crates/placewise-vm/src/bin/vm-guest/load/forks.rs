//! Processes that do nothing but fork children, which end at once, and wait for them.

use std::io;

use super::case::Case;
use super::team::{self, Body, Kind, Outcome};

pub fn run(case: &mut Case) -> anyhow::Result<Outcome> {
    let parents = case.number("parents", 4)?;
    let loops = case.number("loops", 100)?;
    case.ends_by_itself()?;
    let body =
        |_| -> Body { Box::new(move || (0..loops).try_fold(0, |n, _| fork().map(|()| n + 1))) };
    team::run(Kind::Process, (0..parents).map(body).collect(), || {})
}

fn fork() -> io::Result<()> {
    // SAFETY: the child does nothing but exit.
    let child = unsafe { libc::fork() };
    match child {
        // SAFETY: _exit() runs nothing of this program.
        0 => unsafe { libc::_exit(0) },
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: waitpid() may be told that nobody wants the status.
        _ => match unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        },
    }
}
