//! Writes tracepoints as ftrace text: what `trace-cmd`, `perf script` readers
//! and Perfetto accept.
//!
//! The five flag characters are those of kernels from v5.19 on, for older
//! simulated kernels too: readers of old traces take both. Unlike the kernel's,
//! a name does not break its line: control characters are written as spaces.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use crate::event::{Context, Event, Record, Sink};
use crate::header::{Header, one_line};

/// A [`Sink`] that writes text. The first error is kept for [`finish`](Self::finish).
pub struct FtraceWriter<W: Write> {
    out: W,
    status: io::Result<()>,
    decisions: bool,
    recorded: bool,
    line: String,
}

impl<W: Write> FtraceWriter<W> {
    /// Writes the header that ftrace puts before its events.
    pub fn new(out: W, nr_cpus: usize) -> Self {
        Self::begin(out, nr_cpus, false)
    }

    /// Writes what a recording knows beside: the process of who ran, and nanoseconds, as `trace-cmd report -t`
    /// has them.
    pub fn of_recording(out: W, nr_cpus: usize) -> Self {
        Self::begin(out, nr_cpus, true)
    }

    fn begin(mut out: W, nr_cpus: usize, recorded: bool) -> Self {
        let status = write_header(&mut out, nr_cpus, recorded);
        FtraceWriter { out, status, decisions: false, recorded, line: String::new() }
    }

    /// Writes placement decisions too.
    pub fn with_decisions(self) -> Self {
        FtraceWriter { decisions: true, ..self }
    }

    /// Writes what the trace says about its run.
    pub fn with_header(mut self, header: &Header) -> Self {
        if self.status.is_ok() {
            self.status = write!(self.out, "{header}");
        }
        self
    }

    /// The writer back, or the first error.
    pub fn finish(mut self) -> io::Result<W> {
        self.status?;
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write> Sink for FtraceWriter<W> {
    fn record(&mut self, record: &Record<'_>) {
        if self.status.is_ok() {
            self.line.clear();
            write_record(&mut self.line, record, self.recorded).expect("a String grows");
            self.status = writeln!(self.out, "{}", one_line(&self.line));
        }
    }

    fn takes_decisions(&self) -> bool {
        self.decisions
    }
}

fn write_header(out: &mut impl Write, nr_cpus: usize, recorded: bool) -> io::Result<()> {
    let [gap, tgid, bars] = match recorded {
        true => ["          ", "   TGID   ", "     |    "],
        false => [""; 3],
    };
    writeln!(out, "# tracer: nop")?;
    writeln!(out, "#")?;
    writeln!(out, "# entries-in-buffer/entries-written: 0/0   #P:{nr_cpus}")?;
    writeln!(out, "#")?;
    writeln!(out, "#                                {gap}_-----=> irqs-off/BH-disabled")?;
    writeln!(out, "#                               {gap}/ _----=> need-resched")?;
    writeln!(out, "#                              {gap}| / _---=> hardirq/softirq")?;
    writeln!(out, "#                              {gap}|| / _--=> preempt-depth")?;
    writeln!(out, "#                              {gap}||| / _-=> migrate-disable")?;
    writeln!(out, "#                              {gap}|||| /     delay")?;
    writeln!(out, "#           TASK-PID  {tgid}   CPU#  |||||  TIMESTAMP  FUNCTION")?;
    writeln!(out, "#              | |    {bars}     |   |||||     |         |")
}

fn write_record(out: &mut String, record: &Record<'_>, recorded: bool) -> fmt::Result {
    if let Event::LostEvents { count } = record.event {
        return write_lost_events(out, record.cpu, count);
    }
    let flags = match record.context {
        Context::Preemptible => ".....",
        Context::Task => "d..2.",
        Context::TaskLocked => "d..3.",
        Context::HardInterrupt => "d.h2.",
        Context::HardInterruptResched => "dNh2.",
        Context::SoftInterrupt => "d.s4.",
        Context::Unknown => ".....",
    };
    let (seconds, nanos) = (record.time_ns / 1_000_000_000, record.time_ns % 1_000_000_000);
    write!(out, "{:>16}-{:<7} ", comm(record.comm, record.pid), record.pid)?;
    if recorded {
        match record.tgid {
            Some(tgid) => write!(out, "({tgid:>7}) ")?,
            None => write!(out, "(-------) ")?,
        }
    }
    write!(out, "[{:03}] {flags} {seconds:5}.", record.cpu)?;
    // ftrace prints microseconds, truncated.
    match recorded {
        true => write!(out, "{nanos:09}: ")?,
        false => write!(out, "{:06}: ", nanos / 1_000)?,
    }
    write_event(out, &record.event)
}

/// The idle task shows as `<idle>` in front of a line, and as `swapper/N` within.
fn comm(comm: &str, pid: u32) -> &str {
    if pid == 0 { "<idle>" } else { comm }
}

fn write_event(out: &mut String, event: &Event<'_>) -> fmt::Result {
    match event {
        Event::Waking { comm, pid, prio, target_cpu } => {
            write!(
                out,
                "sched_waking: comm={comm} pid={pid} prio={prio} target_cpu={target_cpu:03}"
            )
        }
        Event::Wakeup { comm, pid, prio, target_cpu } => {
            write!(
                out,
                "sched_wakeup: comm={comm} pid={pid} prio={prio} target_cpu={target_cpu:03}"
            )
        }
        Event::WakeupNew { comm, pid, prio, target_cpu } => {
            write!(
                out,
                "sched_wakeup_new: comm={comm} pid={pid} prio={prio} target_cpu={target_cpu:03}"
            )
        }
        Event::Migrate { comm, pid, prio, from, to } => {
            write!(
                out,
                "sched_migrate_task: comm={comm} pid={pid} prio={prio} orig_cpu={from} dest_cpu={to}"
            )
        }
        Event::Switch {
            prev_comm,
            prev_pid,
            prev_prio,
            prev_state,
            next_comm,
            next_pid,
            next_prio,
        } => {
            write!(
                out,
                "sched_switch: prev_comm={prev_comm} prev_pid={prev_pid} prev_prio={prev_prio} "
            )?;
            write!(out, "prev_state={prev_state} ==> ")?;
            write!(out, "next_comm={next_comm} next_pid={next_pid} next_prio={next_prio}")
        }
        Event::Fork { comm, pid, child_comm, child_pid } => {
            write!(
                out,
                "sched_process_fork: comm={comm} pid={pid} child_comm={child_comm} child_pid={child_pid}"
            )
        }
        Event::Exec { pid, old_pid } => {
            write!(out, "sched_process_exec: filename= pid={pid} old_pid={old_pid}")
        }
        Event::Exit { comm, pid, prio } => {
            write!(out, "sched_process_exit: comm={comm} pid={pid} prio={prio}")
        }
        Event::Decision(decision) => write!(out, "{decision}"),
        Event::LostEvents { .. } => unreachable!("has no prefix: write_lost_events()"),
    }
}

fn write_lost_events(out: &mut String, cpu: u32, count: u64) -> fmt::Result {
    match count {
        0 => write!(out, "CPU:{cpu} [LOST EVENTS]"),
        _ => write!(out, "CPU:{cpu} [LOST {count} EVENTS]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the header.
    fn writer() -> FtraceWriter<Vec<u8>> {
        FtraceWriter { out: Vec::new(), ..FtraceWriter::new(Vec::new(), 1) }
    }

    const WAKING: Event<'_> = Event::Waking { comm: "receiver", pid: 43, prio: 120, target_cpu: 9 };

    fn line(event: Event<'_>, context: Context) -> String {
        line_by(writer(), None, event, context)
    }

    fn line_by(
        mut writer: FtraceWriter<Vec<u8>>,
        tgid: Option<u32>,
        event: Event<'_>,
        context: Context,
    ) -> String {
        writer.record(&Record {
            time_ns: 12_345_678_901,
            cpu: 7,
            comm: "sender",
            pid: 42,
            tgid,
            context,
            event,
        });
        String::from_utf8(writer.finish().unwrap()).unwrap()
    }

    #[test]
    fn a_recording_has_processes_and_nanoseconds() {
        let line = |tgid| {
            let writer = FtraceWriter { recorded: true, ..writer() };
            line_by(writer, tgid, WAKING, Context::Task)
        };
        assert_eq!(
            line(Some(40)),
            "          sender-42      (     40) [007] d..2.    12.345678901: sched_waking: comm=receiver pid=43 prio=120 target_cpu=009\n"
        );
        assert!(
            line(None)
                .starts_with("          sender-42      (-------) [007] d..2.    12.345678901: ")
        );
    }

    #[test]
    fn lines_are_laid_out_as_by_the_kernel() {
        assert_eq!(
            line(WAKING, Context::Task),
            "          sender-42      [007] d..2.    12.345678: sched_waking: comm=receiver pid=43 prio=120 target_cpu=009\n"
        );
        let migrate = Event::Migrate { comm: "receiver", pid: 43, prio: 120, from: 9, to: 136 };
        assert_eq!(
            line(migrate, Context::SoftInterrupt),
            "          sender-42      [007] d.s4.    12.345678: sched_migrate_task: comm=receiver pid=43 prio=120 orig_cpu=9 dest_cpu=136\n"
        );
    }

    #[test]
    fn the_idle_task_is_named_as_by_the_kernel() {
        let mut writer = writer();
        let event = Event::Switch {
            prev_comm: "swapper/3",
            prev_pid: 0,
            prev_prio: 120,
            prev_state: "R",
            next_comm: "sender",
            next_pid: 42,
            next_prio: 120,
        };
        writer.record(&Record {
            time_ns: 0,
            cpu: 3,
            comm: "swapper/3",
            pid: 0,
            tgid: None,
            context: Context::Task,
            event,
        });
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        assert!(text.starts_with(
            "          <idle>-0       [003] d..2.     0.000000: sched_switch: prev_comm=swapper/3"
        ));
        assert!(text.ends_with("prev_state=R ==> next_comm=sender next_pid=42 next_prio=120\n"));
    }
}
