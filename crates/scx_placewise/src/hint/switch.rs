//! With `--only-hinted`, which tasks are ours: a hint makes a task one of class SCHED_EXT, taking
//! the hint away gives it back.
//!
//! Limits: tasks of real-time, deadline and idle classes stay what they are. The class is always
//! inherited, also where the hint is not: such a child is scheduled here, without a hint.

use placewise_hint::Hint;
use rustix::io::Errno;

const SCHED_EXT: i32 = 7;

/// Puts a thread into the class that its hint calls for.
pub fn follow_hint(tid: u32, hint: Hint) -> Result<(), Errno> {
    let tid = tid as i32; // the kernel's own are
    // SAFETY: takes and gives numbers.
    let class = unsafe { libc::sched_getscheduler(tid) };
    let class = errno(class)? & !libc::SCHED_RESET_ON_FORK;
    if ![libc::SCHED_OTHER, libc::SCHED_BATCH, SCHED_EXT].contains(&class) {
        return Ok(());
    }
    let wanted = if hint == Hint::NONE { libc::SCHED_OTHER } else { SCHED_EXT };
    let no_priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter outlives the call.
    errno(unsafe { libc::sched_setscheduler(tid, wanted, &raw const no_priority) }).map(drop)
}

fn errno(returned: i32) -> Result<i32, Errno> {
    let last = || Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO);
    if returned < 0 { Err(last()) } else { Ok(returned) }
}
