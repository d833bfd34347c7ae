//! The arena that a BPF object shares with the process that loaded it.

use std::ops::Range;
use std::ptr::NonNull;

use libbpf_rs::{AsRawLibbpf, MapCore, MapType, Object};

/// One entry of the map.
const PAGE_SIZE: usize = 4096;

/// Where libbpf mapped the arena, which holds a `T`.
pub fn mapping<T>(object: &Object) -> NonNull<T> {
    let arena = object.maps().find(|map| map.map_type() == MapType::Arena);
    let arena = arena.expect("the object has an arena");
    assert_eq!(arena.max_entries() as usize, size_of::<T>().div_ceil(PAGE_SIZE), "pages");
    let mut ignored = 0; // what libbpf itself keeps in the arena
    let map = arena.as_libbpf_object();
    // SAFETY: the map belongs to a loaded object.
    let start = unsafe { libbpf_sys::bpf_map__initial_value(map.as_ptr(), &raw mut ignored) };
    NonNull::new(start.cast()).expect("libbpf maps arenas")
}

/// Has the kernel add the pages of a range of the arena.
///
/// # Safety
/// The range is within the arena, and what it holds is all zeros.
pub unsafe fn populate(start: NonNull<u8>, range: Range<usize>) {
    let first = range.start / PAGE_SIZE * PAGE_SIZE;
    for page in (first..range.end).step_by(PAGE_SIZE) {
        let at = page.max(range.start);
        // SAFETY: as the caller says.
        unsafe { start.add(at).write_volatile(0) };
    }
}
