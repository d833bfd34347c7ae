//! The trace with the LLC of each CPU that an event names, and a mark where a task changes LLC, as
//! scheduler developers write them in by hand. Line by line, so that it can be read from a pipe.
//!
//! ```text
//! ... sched_wakeup: comm=pp pid=271 prio=120 target_cpu=009 (LLC 2)    <== LLC 1 -> 2
//! ```
//!
//! Events that are not of the scheduler are left out; flags are those that a record keeps.

use std::cell::RefCell;
use std::io::{self, BufWriter, Write};
use std::rc::Rc;

use placewise_machine::Machine;
use placewise_trace::{Event, FtraceWriter, Record, Sink, TraceReader};

use super::bad_trace;

/// The kernel's limit of a pid.
const PID_MAX: u32 = 4 << 20;

pub fn run(reader: &mut TraceReader, machine: &Machine) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut lines = Lines::new(machine);
    let mut llcs = Llcs { machine, of_task: Vec::new() };
    while let Some(record) = reader.next_record().map_err(|error| bad_trace(&error))? {
        let line = lines.of(&record);
        writeln!(out, "{}", llcs.annotated(&line, &record))?;
    }
    out.flush()?;
    Ok(())
}

/// Records as text.
struct Lines {
    text: SharedBuffer,
    writer: FtraceWriter<SharedBuffer>,
}

impl Lines {
    fn new(machine: &Machine) -> Self {
        let text = SharedBuffer::default();
        let writer = FtraceWriter::new(text.clone(), machine.cpus.len()).with_decisions();
        text.take();
        Lines { text, writer }
    }

    fn of(&mut self, record: &Record<'_>) -> String {
        self.writer.record(record);
        self.text.take()
    }
}

#[derive(Clone, Default)]
struct SharedBuffer(Rc<RefCell<Vec<u8>>>);

impl SharedBuffer {
    fn take(&self) -> String {
        let text = std::mem::take(&mut *self.0.borrow_mut());
        String::from_utf8_lossy(&text).trim_end_matches('\n').to_owned()
    }
}

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where tasks are.
struct Llcs<'a> {
    machine: &'a Machine,
    /// By pid.
    of_task: Vec<Option<u16>>,
}

impl Llcs<'_> {
    fn annotated(&mut self, line: &str, record: &Record<'_>) -> String {
        let mut text = line.to_owned();
        for (key, cpu) in cpus_named(&record.event).into_iter().rev() {
            if let (Some(llc), Some(at)) = (self.of_cpu(cpu), end_of_value(&text, key)) {
                text.insert_str(at, &format!(" (LLC {llc})"));
            }
        }
        if let Some((from, to)) = self.change(record) {
            text += &format!("    <== LLC {from} -> {to}");
        }
        text
    }

    fn of_cpu(&self, cpu: u32) -> Option<u16> {
        let cpu = self.machine.cpus.get(cpu as usize);
        cpu.filter(|cpu| cpu.online).map(|cpu| cpu.llc)
    }

    /// The LLCs of a task that the event finds in another one than the last event did.
    fn change(&mut self, record: &Record<'_>) -> Option<(u16, u16)> {
        match record.event {
            // The CPU that the task comes from.
            Event::Waking { pid, target_cpu, .. } => self.seen(pid, target_cpu),
            Event::Wakeup { pid, target_cpu, .. } => self.seen(pid, target_cpu),
            Event::Migrate { pid, from, to, .. } => {
                let missed = self.seen(pid, from);
                self.seen(pid, to).or(missed)
            }
            Event::WakeupNew { pid, target_cpu, .. } => {
                // The child begins where its parent runs.
                self.forget(pid);
                self.seen(pid, record.cpu);
                self.seen(pid, target_cpu)
            }
            Event::Switch { next_pid, .. } => self.seen(next_pid, record.cpu),
            _ => None,
        }
    }

    fn seen(&mut self, pid: u32, cpu: u32) -> Option<(u16, u16)> {
        let to = self.of_cpu(cpu)?;
        let from = self.task(pid)?.replace(to)?;
        (from != to).then_some((from, to))
    }

    fn forget(&mut self, pid: u32) {
        if let Some(task) = self.task(pid) {
            *task = None;
        }
    }

    /// `None`: the idle task, or a pid that cannot be.
    fn task(&mut self, pid: u32) -> Option<&mut Option<u16>> {
        if pid == 0 || pid >= PID_MAX {
            return None;
        }
        let at = pid as usize;
        if self.of_task.len() <= at {
            self.of_task.resize(at + 1, None);
        }
        self.of_task.get_mut(at)
    }
}

/// The CPUs in the fields of an event, in the order of the text.
fn cpus_named(event: &Event<'_>) -> Vec<(&'static str, u32)> {
    match *event {
        Event::Waking { target_cpu, .. }
        | Event::Wakeup { target_cpu, .. }
        | Event::WakeupNew { target_cpu, .. } => vec![(" target_cpu=", target_cpu)],
        Event::Migrate { from, to, .. } => vec![(" orig_cpu=", from), (" dest_cpu=", to)],
        _ => Vec::new(),
    }
}

/// Behind the value of the last `key`: a comm in front of it may hold the same text.
fn end_of_value(line: &str, key: &str) -> Option<usize> {
    let start = line.rfind(key)? + key.len();
    let length = line[start..].find(' ').unwrap_or(line.len() - start);
    Some(start + length)
}
