//! With `--only-hinted`, which tasks are ours: a hint makes a task one of class SCHED_EXT, taking
//! the hint away gives back the class that it had. All else that is scheduled by stays as it is: nice
//! value, slice, utilization clamps, and whether children start afresh (SCHED_RESET_ON_FORK).
//!
//! Limits: tasks of real-time, deadline and idle classes stay what they are. The class is always
//! inherited, also where the hint is not: such a child is scheduled here, without a hint. The kernel
//! knows the task by its number only: one that ends between the last look and the change may in
//! theory have left it to another.

use std::io;

use placewise_hint::Hint;
use rustix::io::Errno;

/// A scheduling class as the kernel numbers it, such as SCHED_OTHER.
pub type Class = u32;

const OTHER: Class = libc::SCHED_OTHER as Class;
const BATCH: Class = libc::SCHED_BATCH as Class;
pub const EXT: Class = 7;

/// Puts a thread into the class that its hint calls for. `kept` is the class that an earlier hint
/// took it from; answers with the one to keep from now on.
pub fn follow_hint(tid: u32, hint: Hint, kept: Class) -> Result<Class, Errno> {
    let attributes = attributes(tid)?;
    let change = Change::of(attributes.sched_policy, hint, kept);
    if change.class != attributes.sched_policy {
        set_class(tid, attributes, change.class)?;
    }
    Ok(change.kept)
}

/// What a hint does to the class of a thread.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    class: Class,
    /// Where the thread goes when its hint is taken away, if it is of class SCHED_EXT by then.
    kept: Class,
}

impl Change {
    fn of(class: Class, hint: Hint, kept: Class) -> Self {
        match class {
            OTHER | BATCH if hint != Hint::NONE => Self { class: EXT, kept: class },
            EXT if hint == Hint::NONE => Self { class: kept, kept: EXT },
            EXT => Self { class, kept },
            _ => Self { class, kept: EXT },
        }
    }
}

fn attributes(tid: u32) -> Result<libc::sched_attr, Errno> {
    // SAFETY: a struct of integers.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes as many bytes as there are at most.
    done(unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            tid,
            &raw mut attributes,
            size_of_val(&attributes),
            0,
        )
    })?;
    Ok(attributes)
}

/// Nice value and slice go back as they came; what no flag names (clamps) the kernel leaves alone.
fn set_class(tid: u32, mut attributes: libc::sched_attr, class: Class) -> Result<(), Errno> {
    attributes.size = size_of_val(&attributes) as u32;
    attributes.sched_policy = class;
    attributes.sched_flags &= libc::SCHED_FLAG_RESET_ON_FORK as u64;
    // SAFETY: the attributes outlive the call.
    done(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attributes, 0) })
}

fn done(returned: libc::c_long) -> Result<(), Errno> {
    match returned {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const FIFO: Class = libc::SCHED_FIFO as Class;

    #[test]
    fn a_hint_takes_a_thread_from_its_class_and_back() {
        let hint: Hint = "wake_hold".parse().unwrap();
        for class in [OTHER, BATCH] {
            let hinted = Change::of(class, hint, EXT);
            assert_eq!(hinted, Change { class: EXT, kept: class });
            let hinted_again = Change::of(EXT, hint, hinted.kept);
            assert_eq!(hinted_again, hinted);
            let cleared = Change::of(EXT, Hint::NONE, hinted_again.kept);
            assert_eq!(cleared, Change { class, kept: EXT });
        }
        assert_eq!(Change::of(FIFO, hint, EXT).class, FIFO);
        let of_itself = Change::of(EXT, hint, EXT);
        assert_eq!(Change::of(EXT, Hint::NONE, of_itself.kept).class, EXT);
    }

    /// With another class in place of SCHED_EXT, which not every kernel has.
    #[test]
    fn a_change_of_class_keeps_all_else() {
        let mut task = Command::new("sleep").arg("1000").spawn().unwrap();
        let tid = task.id();
        let mut before = attributes(tid).unwrap();
        before.size = size_of_val(&before) as u32;
        before.sched_nice = 5;
        before.sched_flags |= libc::SCHED_FLAG_RESET_ON_FORK as u64;
        // SAFETY: the attributes outlive the call.
        done(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const before, 0) }).unwrap();

        set_class(tid, attributes(tid).unwrap(), BATCH).unwrap();
        let after = attributes(tid);
        task.kill().unwrap();
        task.wait().unwrap();
        let after = after.unwrap();
        assert_eq!(after.sched_policy, BATCH);
        assert_eq!(after.sched_nice, 5);
        assert_eq!(after.sched_flags & libc::SCHED_FLAG_RESET_ON_FORK as u64, 1);
        assert_eq!(after.sched_runtime, before.sched_runtime);
    }
}
