//! The hints, in the task storage that the scheduler reads.
//!
//! The kernel frees an entry with its thread. There is no way to list such a map: who wants all
//! entries asks for each thread that there is.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use placewise_hint::{Hint, Inheritance};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Mirrors `struct hint_entry` of the BPF side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Entry {
    mask: u32,
    only_self: u32,
}

/// The map of hints, by thread.
pub struct HintMap(MapHandle);

impl From<MapHandle> for HintMap {
    fn from(map: MapHandle) -> Self {
        Self(map)
    }
}

impl HintMap {
    /// Replaces the hint of the thread.
    pub fn set(
        &self,
        thread: BorrowedFd<'_>,
        hint: Hint,
        inheritance: Inheritance,
    ) -> libbpf_rs::Result<()> {
        let only_self = inheritance == Inheritance::OnlySelf;
        let entry = Entry { mask: hint.mask(), only_self: only_self.into() };
        self.0.update(key(&thread).as_bytes(), entry.as_bytes(), MapFlags::ANY)
    }

    /// None where the thread never had one.
    pub fn get(&self, thread: BorrowedFd<'_>) -> libbpf_rs::Result<Option<(Hint, Inheritance)>> {
        let value = self.0.lookup(key(&thread).as_bytes(), MapFlags::ANY)?;
        Ok(value.and_then(|bytes| {
            let entry = Entry::read_from_bytes(&bytes).ok()?;
            let inheritance =
                if entry.only_self != 0 { Inheritance::OnlySelf } else { Inheritance::Children };
            Some((Hint::from_mask(entry.mask).ok()?, inheritance))
        }))
    }
}

/// User space names a thread's storage by a pidfd.
fn key(thread: &impl AsFd) -> i32 {
    thread.as_fd().as_raw_fd()
}
