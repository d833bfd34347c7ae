//! The packets of a Perfetto trace beside the tracepoints: tracks, what is on them, and the names of
//! processes.
//!
//! Names are written out wherever they stand: whoever reads a part of the file needs no other part.

use super::wire::Message;

/// The fields of `TracePacket`.
mod field {
    pub const FTRACE_EVENTS: u32 = 1;
    pub const PROCESS_TREE: u32 = 2;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const SYSTEM_INFO: u32 = 45;
    pub const TRACK_DESCRIPTOR: u32 = 60;
}

/// All packets are of one writer.
const SEQUENCE_ID: u64 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: what follows needs nothing from before it.
const INCREMENTAL_STATE_CLEARED: u64 = 1;

/// `TrackEvent.Type`
#[derive(Clone, Copy)]
pub enum Type {
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
    Counter = 4,
}

/// A track by its number in the file.
pub type TrackId = u64;

/// The children of a track stand in the order of their ranks: `ChildTracksOrdering.EXPLICIT`.
const EXPLICIT: u64 = 3;

/// A packet as it is in the file: `Trace.packet`.
fn packet(out: &mut Message, fill: impl FnOnce(&mut Message)) {
    out.message(1, |packet| {
        packet.uint(field::SEQUENCE_ID, SEQUENCE_ID);
        fill(packet);
    });
}

/// The kernel of the trace; its first packet.
pub fn system_info(out: &mut Message, release: Option<&str>) {
    packet(out, |packet| {
        packet.uint(field::SEQUENCE_FLAGS, INCREMENTAL_STATE_CLEARED);
        packet.message(field::SYSTEM_INFO, |info| {
            info.message(1, |utsname| {
                utsname.text(1, "Linux");
                release.iter().for_each(|release| utsname.text(3, release));
            });
        });
    });
}

/// Tracepoints of a CPU, written by [`super::ftrace`]; `lost`: some before them are missing.
pub fn ftrace_events(out: &mut Message, cpu: u32, events: &Message, lost: bool) {
    packet(out, |packet| {
        packet.message(field::FTRACE_EVENTS, |bundle| {
            bundle.uint(1, cpu.into());
            bundle.append(events);
            if lost {
                bundle.uint(3, 1);
            }
        });
    });
}

/// A thread of a process, with the name of the process so far.
pub fn process_tree(out: &mut Message, tid: u32, tgid: u32, name: &str) {
    packet(out, |packet| {
        packet.message(field::PROCESS_TREE, |tree| {
            tree.message(1, |process| {
                process.uint(1, tgid.into());
                process.text(3, name);
            });
            if tid != tgid {
                tree.message(2, |thread| {
                    thread.uint(1, tid.into());
                    thread.uint(3, tgid.into());
                });
            }
        });
    });
}

/// A track that has others below it.
pub fn group_track(out: &mut Message, track: TrackId, name: &str, rank: u64) {
    packet(out, |packet| {
        packet.message(field::TRACK_DESCRIPTOR, |descriptor| {
            descriptor.uint(1, track);
            descriptor.text(2, name);
            descriptor.uint(11, EXPLICIT);
            descriptor.uint(12, rank);
        });
    });
}

pub fn child_track(
    out: &mut Message,
    track: TrackId,
    parent: TrackId,
    name: &str,
    rank: u64,
    is_counter: bool,
) {
    packet(out, |packet| {
        packet.message(field::TRACK_DESCRIPTOR, |descriptor| {
            descriptor.uint(1, track);
            descriptor.uint(5, parent);
            descriptor.text(2, name);
            descriptor.uint(12, rank);
            if is_counter {
                descriptor.message(8, |_| ());
            }
        });
    });
}

pub fn thread_track(out: &mut Message, track: TrackId, tid: u32, tgid: u32) {
    packet(out, |packet| {
        packet.message(field::TRACK_DESCRIPTOR, |descriptor| {
            descriptor.uint(1, track);
            descriptor.message(4, |thread| {
                thread.uint(1, tgid.into());
                thread.uint(2, tid.into());
            });
        });
    });
}

/// Something on a track; `fill` says more of it.
pub fn track_event(
    out: &mut Message,
    timestamp: u64,
    track: TrackId,
    kind: Type,
    fill: impl FnOnce(&mut Message),
) {
    packet(out, |packet| {
        packet.uint(field::TIMESTAMP, timestamp);
        packet.message(field::TRACK_EVENT, |event| {
            event.uint(9, kind as u64);
            event.uint(11, track);
            fill(event);
        });
    });
}

pub fn counter(out: &mut Message, timestamp: u64, track: TrackId, value: u32) {
    track_event(out, timestamp, track, Type::Counter, |event| event.uint(30, value.into()));
}

/// `TrackEvent.name`
pub fn name(event: &mut Message, category: &str, name: &str) {
    event.text(22, category);
    event.text(23, name);
}

/// An arrow begins here, or goes on.
pub fn flow(event: &mut Message, flow: u64) {
    event.fixed64(47, flow);
}

/// The arrow ends here.
pub fn terminating_flow(event: &mut Message, flow: u64) {
    event.fixed64(48, flow);
}

/// What readers show beside an event: `DebugAnnotation`.
pub fn text_argument(event: &mut Message, name: &str, value: &str) {
    event.message(4, |argument| {
        argument.text(10, name);
        argument.text(6, value);
    });
}

pub fn number_argument(event: &mut Message, name: &str, value: u64) {
    event.message(4, |argument| {
        argument.text(10, name);
        argument.uint(3, value);
    });
}
