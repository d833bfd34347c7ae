//! The arena that a BPF object shares with the process that loaded it.

use std::ops::Range;
use std::ptr::NonNull;

use libbpf_rs::{AsRawLibbpf, MapCore, MapType, Object};

/// One entry of the map.
const PAGE_SIZE: usize = 4096;

/// Where libbpf mapped the arena, and how many bytes it has.
pub fn mapping(object: &Object) -> (NonNull<u8>, usize) {
    let arena = object.maps().find(|map| map.map_type() == MapType::Arena);
    let arena = arena.expect("the object has an arena");
    let size = arena.max_entries() as usize * PAGE_SIZE;
    let mut ignored = 0; // what libbpf itself keeps in the arena
    let map = arena.as_libbpf_object();
    // SAFETY: the map belongs to a loaded object.
    let start = unsafe { libbpf_sys::bpf_map__initial_value(map.as_ptr(), &raw mut ignored) };
    (NonNull::new(start.cast()).expect("libbpf maps arenas"), size)
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
