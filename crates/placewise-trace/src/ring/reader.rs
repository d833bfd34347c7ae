//! The events of several CPUs in the order of time.
//!
//! Those of one CPU are in that order already. Who reads one CPU after the other says until when all
//! have been read; what is later waits, for other CPUs may have events from before it.

use super::{Found, Layouts, Missed, events};
use crate::event::{Context, Event, Record};

/// Takes pages, and tells their events.
pub struct Reader {
    layouts: Layouts,
    /// Events that are not told yet, and the pages that they are in.
    held: Vec<Held>,
    pages: Vec<u8>,
    /// Where the rest of the pages is put, so that no memory is asked for each time.
    spare: Vec<u8>,
}

/// There are tens of thousands at a time, which are put in order: it is small.
struct Held {
    time_ns: u64,
    cpu: u32,
    what: What,
}

enum What {
    /// Where its data is in the pages.
    Event {
        start: u32,
        length: u16,
    },
    Lost(u32),
}

impl Reader {
    pub fn new(layouts: Layouts) -> Self {
        Reader { layouts, held: Vec::new(), pages: Vec::new(), spare: Vec::new() }
    }

    /// Takes the next page of a CPU.
    pub fn page(&mut self, cpu: u32, page: &[u8]) {
        let (base, first) = (self.pages.len(), self.held.len());
        self.pages.extend_from_slice(page);
        let missed = events(page, |Found { time_ns, data }| {
            let (start, length) = ((base + data.start) as u32, data.len() as u16);
            let what = What::Event { start, length };
            self.held.push(Held { time_ns, cpu, what });
        });
        if let Missed::Some(count) = missed {
            let time_ns = self.held.get(first).map_or(0, |held| held.time_ns);
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            self.held.insert(first, Held { time_ns, cpu, what: What::Lost(count) });
        }
    }

    /// Tells the events from before a time.
    pub fn tell(&mut self, until_ns: u64, to: &mut dyn FnMut(&Record<'_>)) {
        self.held.sort_by_key(|held| held.time_ns);
        let told = self.held.partition_point(|held| held.time_ns < until_ns);
        for Held { time_ns, cpu, what } in self.held.drain(..told) {
            match what {
                What::Event { start, length } => {
                    let data = data(&self.pages, start, length);
                    if let Some(record) = self.layouts.record(time_ns, cpu, data) {
                        to(&record);
                    }
                }
                What::Lost(count) => to(&lost(time_ns, cpu, count.into())),
            }
        }
        self.keep_held();
    }

    /// Of the pages.
    fn keep_held(&mut self) {
        self.spare.clear();
        for held in &mut self.held {
            if let What::Event { start, length } = &mut held.what {
                let kept = self.spare.len() as u32;
                self.spare.extend_from_slice(data(&self.pages, *start, *length));
                *start = kept;
            }
        }
        std::mem::swap(&mut self.pages, &mut self.spare);
    }
}

fn data(pages: &[u8], start: u32, length: u16) -> &[u8] {
    &pages[start as usize..][..usize::from(length)]
}

fn lost(time_ns: u64, cpu: u32, count: u64) -> Record<'static> {
    let (context, event) = (Context::Unknown, Event::LostEvents { count });
    Record { time_ns, cpu, comm: "", pid: 0, tgid: None, context, event }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{WAKING, header, page, waking};
    use super::super::{Layout, MISSED_EVENTS};
    use super::*;

    fn reader() -> Reader {
        Reader::new(Layouts::new(vec![Layout::parse(1, WAKING).unwrap()]))
    }

    /// Wakeups of these pids, each so long after the one before.
    fn wakeups(flags: u64, all: &[(u32, u32)]) -> Vec<u8> {
        let event = |&(after, pid): &(u32, u32)| {
            let data = waking(1, pid);
            [&header(data.len() as u32 / 4, after)[..], &data].concat()
        };
        page(flags, &all.iter().flat_map(event).collect::<Vec<u8>>())
    }

    /// Time, CPU and pid of what is told; lost events have pid 0.
    fn told(reader: &mut Reader, until_ns: u64) -> Vec<(u64, u32, u32)> {
        let mut all = Vec::new();
        reader.tell(until_ns, &mut |record| {
            let pid = match record.event {
                Event::Waking { pid, .. } => pid,
                _ => 0,
            };
            all.push((record.time_ns, record.cpu, pid));
        });
        all
    }

    #[test]
    fn events_of_two_cpus_are_told_in_the_order_of_time() {
        let mut reader = reader();
        for (cpu, page) in
            [wakeups(0, &[(5, 10), (20, 11)]), wakeups(0, &[(10, 12), (20, 13)])].iter().enumerate()
        {
            reader.page(cpu as u32, page);
        }
        assert_eq!(told(&mut reader, 1_020), [(1_005, 0, 10), (1_010, 1, 12)]);
        // What waited comes with its own data, in front of what is read now.
        let page = wakeups(0, &[(27, 14)]);
        reader.page(0, &page);
        assert_eq!(told(&mut reader, 2_000), [(1_025, 0, 11), (1_027, 0, 14), (1_030, 1, 13)]);
        assert_eq!(told(&mut reader, 2_000), []);
    }

    #[test]
    fn what_was_lost_is_told_before_the_page() {
        let mut reader = reader();
        let page = wakeups(MISSED_EVENTS, &[(5, 10)]);
        reader.page(3, &page);
        assert_eq!(told(&mut reader, 2_000), [(1_005, 3, 0), (1_005, 3, 10)]);
    }
}
