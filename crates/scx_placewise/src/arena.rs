//! The arena that a BPF object shares with the process that loaded it.

use std::ptr::NonNull;

use libbpf_rs::{AsRawLibbpf, MapCore, MapType, Object};

/// One entry of the map.
pub const PAGE_SIZE: usize = 4096;

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
