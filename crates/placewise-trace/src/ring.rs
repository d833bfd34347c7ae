//! The pages of a tracing ring buffer, as `trace_pipe_raw` hands them out: events in binary, which
//! cost a fraction of what their text does.
//!
//! Where the fields of an event are, the kernel says in its `format` file. What the page itself looks
//! like has been part of the interface since v2.6.30.
//!
//! Limits: 64-bit kernels; states of tasks are those of v4.14 and later.

mod reader;

use std::ops::Range;

use crate::event::{Context, Event, Record};
use crate::read::scan::position;

pub use reader::Reader;

/// In front of the events of a page: its time, and how much of it is used.
const PAGE_HEADER: usize = 16;
const COMMIT: u64 = (1 << 27) - 1;
const MISSED_EVENTS: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// `enum ring_buffer_type`, above the lengths of events.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;

/// `enum trace_flag_type`
const IRQS_OFF: u8 = 1 << 0;
const NEED_RESCHED: u8 = 1 << 2;
const HARDIRQ: u8 = 1 << 3;
const SOFTIRQ: u8 = 1 << 4;
const NMI: u8 = 1 << 6;
const BH_OFF: u8 = 1 << 7;
/// Of `preempt_count`.
const DEPTH: u8 = 0xf;

/// An event that is read.
pub struct Kind {
    pub name: &'static str,
    fields: &'static [&'static str],
    /// Of its fields, by their place among those.
    event: for<'d> fn(&Fields<'_, 'd>) -> Option<Event<'d>>,
}

const WOKEN: [&str; 4] = ["comm", "pid", "prio", "target_cpu"];

/// All that are read.
pub const KINDS: [Kind; 8] = [
    Kind {
        name: "sched_switch",
        fields: &[
            "prev_comm",
            "prev_pid",
            "prev_prio",
            "prev_state",
            "next_comm",
            "next_pid",
            "next_prio",
        ],
        event: |of| {
            Some(Event::Switch {
                prev_comm: of.text(0)?,
                prev_pid: of.unsigned(1)?,
                prev_prio: of.signed(2)?,
                prev_state: state(of.number(3)?),
                next_comm: of.text(4)?,
                next_pid: of.unsigned(5)?,
                next_prio: of.signed(6)?,
            })
        },
    },
    Kind {
        name: "sched_waking",
        fields: &WOKEN,
        event: |of| {
            let (comm, pid, prio, target_cpu) = of.woken()?;
            Some(Event::Waking { comm, pid, prio, target_cpu })
        },
    },
    Kind {
        name: "sched_wakeup",
        fields: &WOKEN,
        event: |of| {
            let (comm, pid, prio, target_cpu) = of.woken()?;
            Some(Event::Wakeup { comm, pid, prio, target_cpu })
        },
    },
    Kind {
        name: "sched_wakeup_new",
        fields: &WOKEN,
        event: |of| {
            let (comm, pid, prio, target_cpu) = of.woken()?;
            Some(Event::WakeupNew { comm, pid, prio, target_cpu })
        },
    },
    Kind {
        name: "sched_migrate_task",
        fields: &["comm", "pid", "prio", "orig_cpu", "dest_cpu"],
        event: |of| {
            Some(Event::Migrate {
                comm: of.text(0)?,
                pid: of.unsigned(1)?,
                prio: of.signed(2)?,
                from: of.unsigned(3)?,
                to: of.unsigned(4)?,
            })
        },
    },
    Kind {
        name: "sched_process_fork",
        fields: &["parent_comm", "parent_pid", "child_comm", "child_pid"],
        event: |of| {
            Some(Event::Fork {
                comm: of.text(0)?,
                pid: of.unsigned(1)?,
                child_comm: of.text(2)?,
                child_pid: of.unsigned(3)?,
            })
        },
    },
    Kind {
        name: "sched_process_exec",
        fields: &["pid", "old_pid"],
        event: |of| Some(Event::Exec { pid: of.unsigned(0)?, old_pid: of.unsigned(1)? }),
    },
    Kind {
        name: "sched_process_exit",
        fields: &["comm", "pid", "prio"],
        event: |of| {
            Some(Event::Exit { comm: of.text(0)?, pid: of.unsigned(1)?, prio: of.signed(2)? })
        },
    },
];

/// Where the fields of an event are.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    id: u16,
    /// Of [`KINDS`].
    kind: usize,
    fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    bytes: Range<usize>,
    /// The field says where its text is.
    is_location: bool,
}

impl Layout {
    /// Of one of [`KINDS`] by its `format` file; the name of the field that is missing else.
    pub fn parse(kind: usize, format: &str) -> Result<Self, &'static str> {
        let id = format.lines().find_map(|line| line.strip_prefix("ID: ")?.trim().parse().ok());
        let field = |name: &&'static str| field(format, name).ok_or(*name);
        let fields = KINDS[kind].fields.iter().map(field).collect::<Result<_, _>>()?;
        Ok(Layout { id: id.ok_or("ID")?, kind, fields })
    }
}

/// `field:pid_t prev_pid; offset:24; size:4; signed:1;`
fn field(format: &str, name: &str) -> Option<Field> {
    let declared = |line: &str| {
        let declaration = line.trim().strip_prefix("field:")?.split(';').next()?;
        let declared = declaration.rsplit(' ').next()?.split('[').next()?;
        (declared == name).then(|| declaration.starts_with("__data_loc"))
    };
    let (line, is_location) =
        format.lines().find_map(|line| declared(line).map(|is_location| (line, is_location)))?;
    let value = |key: &str| -> Option<usize> {
        line.split(';').find_map(|part| part.trim().strip_prefix(key)?.parse().ok())
    };
    let offset = value("offset:")?;
    Some(Field { bytes: offset..offset + value("size:")?, is_location })
}

/// Layouts by the ids of their events.
pub struct Layouts(Vec<Option<Layout>>);

impl Layouts {
    pub fn new(layouts: Vec<Layout>) -> Self {
        let mut by_id = Vec::new();
        for layout in layouts {
            let id = usize::from(layout.id);
            by_id.resize_with(by_id.len().max(id + 1), || None);
            by_id[id] = Some(layout);
        }
        Layouts(by_id)
    }

    /// None for an event that is not read, or is too short to be what it says.
    pub fn record<'d>(&self, time_ns: u64, cpu: u32, data: &'d [u8]) -> Option<Record<'d>> {
        let id = u16::from_le_bytes(data.get(..2)?.try_into().ok()?);
        let layout = self.0.get(usize::from(id))?.as_ref()?;
        let pid = u32::from_le_bytes(data.get(4..8)?.try_into().ok()?);
        let context = context(data[2], data[3] & DEPTH);
        let event = (KINDS[layout.kind].event)(&Fields { layout, data })?;
        Some(Record { time_ns, cpu, comm: "<...>", pid, tgid: None, context, event })
    }
}

/// As of what the kernel prints of them.
fn context(flags: u8, depth: u8) -> Context {
    let has = |wanted: u8| flags & wanted != 0;
    match depth {
        _ if has(HARDIRQ | NMI) && has(NEED_RESCHED) => Context::HardInterruptResched,
        _ if has(HARDIRQ | NMI) => Context::HardInterrupt,
        _ if has(SOFTIRQ) => Context::SoftInterrupt,
        0 if !has(IRQS_OFF | BH_OFF) => Context::Preemptible,
        3.. => Context::TaskLocked,
        _ => Context::Task,
    }
}

/// What stands in the fields of an event, by their place among those of its kind.
struct Fields<'l, 'd> {
    layout: &'l Layout,
    data: &'d [u8],
}

impl<'d> Fields<'_, 'd> {
    fn number(&self, at: usize) -> Option<i64> {
        number(self.data, &self.layout.fields[at])
    }

    fn unsigned(&self, at: usize) -> Option<u32> {
        self.number(at).map(|number| number as u32)
    }

    fn signed(&self, at: usize) -> Option<i32> {
        self.number(at).map(|number| number as i32)
    }

    /// Up to the NUL behind it; a name that is no text is `?`.
    fn text(&self, at: usize) -> Option<&'d str> {
        let field = &self.layout.fields[at];
        let bytes = match field.is_location {
            false => self.data.get(field.bytes.clone())?,
            true => {
                let location = number(self.data, field)? as u32;
                let (start, length) = (location as usize & 0xffff, location as usize >> 16);
                self.data.get(start..start + length)?
            }
        };
        Some(name(bytes))
    }

    /// Those of [`WOKEN`].
    fn woken(&self) -> Option<(&'d str, u32, i32, u32)> {
        Some((self.text(0)?, self.unsigned(1)?, self.signed(2)?, self.unsigned(3)?))
    }
}

fn name(bytes: &[u8]) -> &str {
    let end = position(bytes, 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).unwrap_or("?")
}

fn number(data: &[u8], field: &Field) -> Option<i64> {
    let bytes = data.get(field.bytes.clone())?;
    match bytes.len() {
        2 => Some(i16::from_le_bytes(bytes.try_into().ok()?).into()),
        4 => Some(i32::from_le_bytes(bytes.try_into().ok()?).into()),
        8 => Some(i64::from_le_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

fn state(number: i64) -> &'static str {
    match number {
        0 => "R",
        state if state & 0x100 != 0 => "R+",
        state if state & 0x01 != 0 => "S",
        state if state & 0x02 != 0 => "D",
        state if state & 0x04 != 0 => "T",
        state if state & 0x08 != 0 => "t",
        state if state & 0x10 != 0 => "X",
        state if state & 0x20 != 0 => "Z",
        state if state & 0x40 != 0 => "P",
        _ => "I",
    }
}

/// An event of a page: its time, and where its data is in the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub time_ns: u64,
    pub data: Range<usize>,
}

/// What a page tells of events before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    None,
    /// So many, or 0 if it does not say.
    Some(u64),
}

/// When a page was begun: before all events in it.
pub fn begun(page: &[u8]) -> Option<u64> {
    read_u64(page, 0)
}

/// The events of a page, in their order. A page that is not well formed ends where it is not.
pub fn events(page: &[u8], mut found: impl FnMut(Found)) -> Missed {
    let (Some(mut time_ns), Some(commit)) = (read_u64(page, 0), read_u64(page, 8)) else {
        return Missed::None;
    };
    let end = (PAGE_HEADER + (commit & COMMIT) as usize).min(page.len());
    let mut at = PAGE_HEADER;
    while at + 4 <= end {
        let Some(header) = read_u32(page, at) else { break };
        let (kind, delta) = (header & 0x1f, u64::from(header >> 5));
        at += 4;
        let more = read_u32(page, at).map(u64::from);
        match (kind, more) {
            (TIME_EXTEND, Some(more)) => {
                time_ns += delta + (more << DELTA_BITS);
                at += 4;
            }
            (TIME_STAMP, Some(more)) => {
                // The uppermost bits are not in it.
                let high = time_ns >> 59 << 59;
                time_ns = high | (delta + (more << DELTA_BITS));
                at += 4;
            }
            (PADDING, Some(length)) if delta != 0 => at += length as usize,
            (PADDING | TIME_EXTEND | TIME_STAMP, _) => break,
            (kind, more) => {
                time_ns += delta;
                // A length of its own counts itself.
                let (start, length) = match (kind, more) {
                    (0, Some(length)) if length >= 4 => (at + 4, length as usize - 4),
                    (0, _) => break,
                    (words, _) => (at, words as usize * 4),
                };
                if start + length > end {
                    break;
                }
                found(Found { time_ns, data: start..start + length });
                at = start + length.next_multiple_of(4);
            }
        }
    }
    match commit {
        commit if commit & MISSED_EVENTS == 0 => Missed::None,
        commit if commit & MISSED_STORED == 0 => Missed::Some(0),
        _ => Missed::Some(read_u64(page, end).unwrap_or(0)),
    }
}

fn read_u32(page: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(page.get(at..at + 4)?.try_into().ok()?))
}

fn read_u64(page: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(page.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub const WAKING: &str = "\
name: sched_waking
ID: 318
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;
";

    pub fn waking(waker: u32, pid: u32) -> Vec<u8> {
        let mut data = vec![62, 1, HARDIRQ, 0];
        data.extend(waker.to_le_bytes());
        data.extend(b"b\x1b[31m\0\0\0\0\0\0\0\0\0\0");
        [pid, 120, 3].iter().for_each(|number| data.extend(number.to_le_bytes()));
        data
    }

    pub fn header(kind: u32, delta: u32) -> [u8; 4] {
        (kind | delta << 5).to_le_bytes()
    }

    pub fn page(flags: u64, content: &[u8]) -> Vec<u8> {
        let mut page = 1_000u64.to_le_bytes().to_vec();
        page.extend((content.len() as u64 | flags).to_le_bytes());
        page.extend(content);
        page
    }

    fn found(page: &[u8]) -> (Vec<Found>, Missed) {
        let mut all = Vec::new();
        let missed = events(page, |found| all.push(found));
        (all, missed)
    }

    #[test]
    fn times_add_up_and_padding_is_passed_over() {
        let words = waking(10, 11).len() as u32 / 4;
        let content = [
            &header(words, 5)[..],
            &waking(10, 11),
            &header(PADDING, 1),
            &8u32.to_le_bytes(),
            &[0; 4],
            &header(TIME_EXTEND, 7),
            &2u32.to_le_bytes(),
            // A length of its own, as long events have it.
            &header(0, 1),
            &(words * 4 + 4).to_le_bytes(),
            &waking(12, 13),
            &header(PADDING, 0),
            &[0; 12],
        ]
        .concat();
        let (all, missed) = found(&page(0, &content));
        let times: Vec<u64> = all.iter().map(|found| found.time_ns).collect();
        assert_eq!(times, [1_005, 1_005 + 7 + (2 << 27) + 1]);
        assert_eq!(missed, Missed::None);
    }

    #[test]
    fn an_event_is_read_by_its_format() {
        let layouts = Layouts::new(vec![Layout::parse(1, WAKING).unwrap()]);
        let data = waking(10, 11);
        let expected = Record {
            time_ns: 7,
            cpu: 2,
            comm: "<...>",
            pid: 10,
            tgid: None,
            context: Context::HardInterrupt,
            event: Event::Waking { comm: "b\x1b[31m", pid: 11, prio: 120, target_cpu: 3 },
        };
        assert_eq!(layouts.record(7, 2, &data), Some(expected));
        assert_eq!(layouts.record(7, 2, &data[..30]), None, "cut off");
        let lacks = WAKING.replace("target_cpu", "cpu");
        assert_eq!(Layout::parse(1, &lacks), Err("target_cpu"));
    }

    #[test]
    fn flags_say_where_it_was_reached() {
        for (flags, depth, expected) in [
            (0, 0, Context::Preemptible),
            (BH_OFF, 0, Context::Task),
            (IRQS_OFF, 0, Context::Task),
            (IRQS_OFF | NEED_RESCHED, 2, Context::Task),
            (IRQS_OFF, 3, Context::TaskLocked),
            (IRQS_OFF | SOFTIRQ, 4, Context::SoftInterrupt),
            (IRQS_OFF | SOFTIRQ | HARDIRQ, 4, Context::HardInterrupt),
            (IRQS_OFF | NMI, 0, Context::HardInterrupt),
            (IRQS_OFF | HARDIRQ | NEED_RESCHED, 2, Context::HardInterruptResched),
        ] {
            assert_eq!(context(flags, depth), expected, "{flags:#x} {depth}");
        }
    }

    #[test]
    fn a_name_ends_at_its_first_nul_and_is_text() {
        let name = |start: &[u8]| {
            let mut name = [0; 16];
            name[..start.len()].copy_from_slice(start);
            super::name(&name).to_owned()
        };
        for length in 0..=16 {
            assert_eq!(name(&b"0123456789abcdef"[..length]), "0123456789abcdef"[..length]);
        }
        assert_eq!(name(b"ab\0\x01\xff\0c"), "ab", "what is behind it does not matter");
        assert_eq!(name("\u{1}\u{7f}\u{e9}t\u{e9}".as_bytes()), "\u{1}\u{7f}\u{e9}t\u{e9}");
        assert_eq!(name(b"a\xff"), "?");
    }

    #[test]
    fn a_name_may_be_elsewhere_in_the_event() {
        let fields = vec![Field { bytes: 0..4, is_location: true }];
        let layout = Layout { id: 1, kind: 0, fields };
        let data = [&(8u32 | 5 << 16).to_le_bytes()[..], &[0; 4], b"abcd\0"].concat();
        assert_eq!(Fields { layout: &layout, data: &data }.text(0), Some("abcd"));
        assert_eq!(Fields { layout: &layout, data: &data[..10] }.text(0), None);
    }

    #[test]
    fn lost_events_are_counted_where_the_page_says_how_many() {
        let words = waking(10, 11).len() as u32 / 4;
        let content = [&header(words, 5)[..], &waking(10, 11)].concat();
        assert_eq!(found(&page(MISSED_EVENTS, &content)).1, Missed::Some(0));
        let mut stored = page(MISSED_EVENTS | MISSED_STORED, &content);
        stored.extend(42u64.to_le_bytes());
        let (all, missed) = found(&stored);
        assert_eq!((all.len(), missed), (1, Missed::Some(42)));
    }

    #[test]
    fn what_is_no_page_does_no_harm() {
        let words = waking(10, 11).len() as u32 / 4;
        let whole = page(0, &[&header(words, 5)[..], &waking(10, 11)].concat());
        for end in 0..whole.len() {
            assert_eq!(found(&whole[..end]).0, []);
        }
        found(&[0xff; 4096]);
        found(&[0; 4096]);
    }
}
