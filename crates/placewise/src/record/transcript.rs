//! The text of a recording: its events in the order of time, each with the name and the process of the
//! task that ran.
//!
//! Events say which pid ran. What that is called is what the last event said that named it, as the kernel's
//! own text has it; which process it is of, the kernel knows at the end.

use std::collections::HashMap;
use std::io::{self, Write};

use placewise_trace::ring::Reader;
use placewise_trace::{Event, FtraceWriter, Record, Sink};

use super::spool::Spooled;

pub struct Transcript<W: Write> {
    reader: Reader,
    names: Names,
    writer: FtraceWriter<W>,
    /// Until when events were in buffers that have been read. An event gets its time before it is in one, so that
    /// what is told is a round behind.
    read_ns: u64,
}

#[derive(Default)]
struct Names {
    comms: HashMap<u32, String>,
    tgids: HashMap<u32, u32>,
}

impl<W: Write> Transcript<W> {
    /// `tgids` are those of pids.
    pub fn new(reader: Reader, tgids: HashMap<u32, u32>, writer: FtraceWriter<W>) -> Self {
        let names = Names { tgids, ..Names::default() };
        Self { reader, names, writer, read_ns: 0 }
    }

    pub fn take(&mut self, spooled: Spooled<'_>) {
        match spooled {
            Spooled::Page { cpu, page } => self.reader.page(cpu, page),
            Spooled::Round { until_ns } => {
                let until_ns = std::mem::replace(&mut self.read_ns, until_ns);
                self.tell(until_ns);
            }
        }
    }

    fn tell(&mut self, until_ns: u64) {
        let Self { reader, names, writer, .. } = self;
        reader.tell(until_ns, &mut |record| {
            writer.record(&names.named(record));
            names.learn(&record.event);
        });
    }

    /// After the last event.
    pub fn finish(mut self) -> io::Result<W> {
        self.tell(u64::MAX);
        self.writer.finish()
    }
}

impl Names {
    /// Who is not named yet is what the record has.
    fn named<'a>(&'a self, record: &Record<'a>) -> Record<'a> {
        let comm = self.comms.get(&record.pid).map_or(record.comm, String::as_str);
        Record { comm, tgid: self.tgids.get(&record.pid).copied(), ..record.clone() }
    }

    fn learn(&mut self, event: &Event<'_>) {
        match *event {
            Event::Switch { prev_comm, prev_pid, next_comm, next_pid, .. } => {
                self.name(prev_pid, prev_comm);
                self.name(next_pid, next_comm);
            }
            Event::Fork { comm, pid, child_comm, child_pid } => {
                self.name(pid, comm);
                self.name(child_pid, child_comm);
            }
            _ => {}
        }
    }

    fn name(&mut self, pid: u32, comm: &str) {
        let known = self.comms.entry(pid).or_default();
        if known != comm {
            comm.clone_into(known);
        }
    }
}

#[cfg(test)]
mod tests {
    use placewise_trace::Context;

    use super::*;

    fn record(pid: u32) -> Record<'static> {
        let event = Event::Exit { comm: "", pid, prio: 120 };
        let context = Context::Task;
        Record { time_ns: 0, cpu: 0, comm: "<...>", pid, tgid: None, context, event }
    }

    #[test]
    fn a_task_is_called_what_it_was_called_last() {
        let mut names = Names { tgids: HashMap::from([(7, 5)]), ..Names::default() };
        let of = |names: &Names, pid| {
            let record = record(pid);
            let named = names.named(&record);
            (named.comm.to_owned(), named.tgid)
        };
        assert_eq!(of(&names, 7), ("<...>".to_owned(), Some(5)));
        let fork = Event::Fork { comm: "sh", pid: 5, child_comm: "sh", child_pid: 7 };
        names.learn(&fork);
        assert_eq!([5, 7].map(|pid| of(&names, pid).0), ["sh", "sh"]);
        names.learn(&Event::Switch {
            prev_comm: "true",
            prev_pid: 7,
            prev_prio: 120,
            prev_state: "S",
            next_comm: "next",
            next_pid: 9,
            next_prio: 120,
        });
        assert_eq!([5, 7, 9].map(|pid| of(&names, pid).0), ["sh", "true", "next"]);
        assert_eq!(of(&names, 9).1, None);
    }
}
