//! The hints, in the task storage that the scheduler reads.
//!
//! The kernel frees an entry with its thread. There is no way to list such a map: who wants all
//! entries asks for each thread that there is.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use placewise_hint::{Hint, Inheritance};
use rustix::io::Errno;
use zerocopy::{FromBytes, IntoBytes};

use super::class::{self, follow_hint};
use crate::shared::HintEntry;

impl HintEntry {
    /// Of a thread that never had one.
    const NONE: Self = Self { mask: 0, only_self: 0, class: class::EXT };
}

/// The hints, by thread.
pub struct HintMap {
    map: MapHandle,
    /// Only hinted threads are ours: a hint is also what makes them so.
    only_hinted: bool,
}

impl HintMap {
    pub fn new(map: MapHandle, only_hinted: bool) -> Self {
        Self { map, only_hinted }
    }

    /// Replaces the hint of the thread, whose number is `tid`.
    pub fn set(
        &self,
        thread: BorrowedFd<'_>,
        tid: u32,
        hint: Hint,
        inheritance: Inheritance,
    ) -> Result<(), Errno> {
        let mut entry = self.entry(thread)?.unwrap_or(HintEntry::NONE);
        entry.mask = hint.mask();
        entry.only_self = (inheritance == Inheritance::OnlySelf).into();
        if self.only_hinted {
            entry.class = follow_hint(tid, hint, entry.class)?;
        }
        self.map.update(key(&thread).as_bytes(), entry.as_bytes(), MapFlags::ANY).map_err(errno)
    }

    /// None where the thread never had one.
    pub fn get(&self, thread: BorrowedFd<'_>) -> Result<Option<(Hint, Inheritance)>, Errno> {
        let inheritance = |entry: &HintEntry| match entry.only_self {
            0 => Inheritance::Children,
            _ => Inheritance::OnlySelf,
        };
        let entry = self.entry(thread)?;
        Ok(entry.and_then(|entry| Some((Hint::from_mask(entry.mask).ok()?, inheritance(&entry)))))
    }

    fn entry(&self, thread: BorrowedFd<'_>) -> Result<Option<HintEntry>, Errno> {
        let value = self.map.lookup(key(&thread).as_bytes(), MapFlags::ANY).map_err(errno)?;
        Ok(value.and_then(|bytes| HintEntry::read_from_bytes(&bytes).ok()))
    }
}

/// User space names a thread's storage by a pidfd.
fn key(thread: &impl AsFd) -> i32 {
    thread.as_fd().as_raw_fd()
}

fn errno(error: libbpf_rs::Error) -> Errno {
    match error.kind() {
        libbpf_rs::ErrorKind::NotFound => Errno::SRCH,
        _ => Errno::IO,
    }
}
