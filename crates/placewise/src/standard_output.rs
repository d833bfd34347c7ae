//! Whether what is printed can arrive anywhere.
//!
//! Rust's runtime puts /dev/null in the place of a standard output that is closed, and its
//! `Stdout` takes a write that fails with EBADF for done: a program that has printed nothing would
//! end with 0. What the descriptor was like can be told only before the runtime has seen it, so
//! this looks before `main`.
//!
//! Limits: what goes wrong later (a full disk, a reader that has gone) only the write can tell.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::stdio::stdout;

static IS_WRITABLE: AtomicBool = AtomicBool::new(false);

/// The C library calls what is in this section before it calls `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let mode = fcntl_getfl(stdout()).map(|flags| flags & OFlags::RWMODE);
    let is_writable = mode == Ok(OFlags::WRONLY) || mode == Ok(OFlags::RDWR);
    IS_WRITABLE.store(is_writable, Ordering::Relaxed);
}

pub fn is_writable() -> bool {
    IS_WRITABLE.load(Ordering::Relaxed)
}
