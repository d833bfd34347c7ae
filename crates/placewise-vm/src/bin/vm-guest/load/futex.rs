//! Words on which tasks of one process sleep.

use std::sync::atomic::AtomicU32;

use rustix::thread::futex;

/// Until somebody wakes, at once if the word is not `value`; may return for no reason.
pub fn wait(word: &AtomicU32, value: u32) {
    // What it returns is why it did: all callers look at the word again.
    let _ = futex::wait(word, futex::Flags::PRIVATE, value, None);
}

pub fn wake(word: &AtomicU32, tasks: u32) {
    futex::wake(word, futex::Flags::PRIVATE, tasks).expect("a futex word is mapped");
}
