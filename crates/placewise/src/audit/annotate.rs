//! The trace with the LLC of each CPU that an event names, and a mark where a task changes LLC, as
//! scheduler developers write them in by hand. Line by line, so that it can be read from a pipe.
//!
//! ```text
//! ... sched_wakeup: comm=pp pid=271 prio=120 target_cpu=009 (LLC 2)    <== LLC 1 -> 2
//! ```
//!
//! Lines that are no event of the scheduler are left out. What does not show in a name is spelt out.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};

use placewise_audit::PID_MAX;
use placewise_machine::Machine;
use placewise_trace::{Event, Record, TraceReader};

use super::origin::bad_trace;
use crate::report::foreign::visible;

pub fn run(reader: &mut TraceReader, machine: &Machine) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut llcs = Llcs { machine, of_task: Vec::new() };
    while let Some(record) = reader.next_record().map_err(|error| bad_trace(&error))? {
        let marks = llcs.marks(&record);
        writeln!(out, "{}", visible(&marks.on(reader.line())))?;
    }
    out.flush()?;
    Ok(())
}

/// What is written into one line.
struct Marks {
    /// The key of a field that names a CPU, and the CPU's LLC; in the order of the text.
    llcs: Vec<(&'static str, u16)>,
    change: Option<(u16, u16)>,
}

impl Marks {
    fn on(&self, line: &str) -> String {
        let mut text = line.to_owned();
        for (key, llc) in self.llcs.iter().rev() {
            if let Some(at) = end_of_value(&text, key) {
                text.insert_str(at, &format!(" (LLC {llc})"));
            }
        }
        if let Some((from, to)) = self.change {
            write!(text, "    <== LLC {from} -> {to}").expect("a String grows");
        }
        text
    }
}

/// Where tasks are.
struct Llcs<'a> {
    machine: &'a Machine,
    /// By pid.
    of_task: Vec<Option<u16>>,
}

impl Llcs<'_> {
    fn marks(&mut self, record: &Record<'_>) -> Marks {
        let of = |(key, cpu)| Some((key, self.of_cpu(cpu)?));
        let llcs = cpus_named(&record.event).into_iter().filter_map(of).collect();
        Marks { llcs, change: self.change(record) }
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

/// Behind the value of the last `key`: a comm in front of it may hold the same text. `perf sched`
/// and trace-cmd print some events without keys; those lines stay as they are.
fn end_of_value(line: &str, key: &str) -> Option<usize> {
    let start = line.rfind(key)? + key.len();
    let length = line[start..].find(' ').unwrap_or(line.len() - start);
    Some(start + length)
}
