//! The running kernel: a tracefs instance of our own, whose ring buffers are read in binary, a few
//! times a second.
//!
//! The CPUs are put in order by time. What came while they were read waits for the next time, for
//! other CPUs may have events from before it. How much is read at a time is bounded, and so is what
//! that takes: what the buffers cannot hold meanwhile is lost, and counted.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, anyhow};
use placewise_audit::Meter;
use placewise_machine::Machine;
use placewise_trace::ring::{self, EVENTS, Layout, Layouts, Missed};
use placewise_trace::{Event, Record};
use rustix::time::{ClockId, clock_gettime};

use crate::record::instance::TraceInstance;

/// Between two looks at the buffers.
pub const PAUSE: Duration = Duration::from_millis(200);
/// Of all CPUs together, but each has no more than what 50,000 switches a second take in a second.
const BUFFERS_KB: usize = 256 << 10;
const LEAST_BUFFER_KB: usize = 1 << 10;
const MOST_BUFFER_KB: usize = 8 << 10;
/// Of all CPUs together, at a time.
const MOST_BYTES: usize = 4 << 20;

pub struct Live {
    layouts: Layouts,
    cpus: Vec<Cpu>,
    /// One page as it is read.
    page: Vec<u8>,
    /// Events that are not told yet, and their data.
    held: Vec<Held>,
    data: Vec<u8>,
    /// Goes last: it cannot be removed while its files are open.
    _instance: TraceInstance,
}

struct Cpu {
    number: u32,
    pipe: File,
}

/// An event that is not told yet.
struct Held {
    time_ns: u64,
    cpu: u32,
    what: What,
}

enum What {
    /// Where its data is.
    Event(Range<usize>),
    Lost(u64),
}

impl Live {
    pub fn start(machine: &Machine) -> anyhow::Result<Self> {
        let share = BUFFERS_KB / machine.online().len().max(1);
        let buffer_kb = share.clamp(LEAST_BUFFER_KB, MOST_BUFFER_KB);
        let instance = TraceInstance::create(buffer_kb as u32)?;
        let layout = |(at, (name, _)): (usize, &(&str, &[&str]))| {
            let format = instance.format(name)?;
            Layout::parse(at, &format).map_err(|field| anyhow!("{name}: its format has no {field}"))
        };
        let layouts = EVENTS.iter().enumerate().map(layout).collect::<anyhow::Result<_>>()?;
        let open = |number: usize| -> anyhow::Result<Cpu> {
            let pipe = instance.raw(number).with_context(|| format!("CPU {number}"))?;
            Ok(Cpu { number: number as u32, pipe })
        };
        let cpus = machine.online().iter().map(open).collect::<anyhow::Result<_>>()?;
        let page = vec![0; instance.page_bytes()?];
        instance.start()?;
        let (held, data) = (Vec::new(), Vec::new());
        Ok(Live { layouts: Layouts::new(layouts), cpus, page, held, data, _instance: instance })
    }

    /// Hands what there is to the meter, in the order of time.
    pub fn read(&mut self, meter: &mut Meter) -> anyhow::Result<()> {
        let mut until = now();
        let most = (MOST_BYTES / self.cpus.len().max(1)).max(self.page.len());
        for at in 0..self.cpus.len() {
            let is_behind = self.read_cpu(at, most).context("cannot read the ring buffer")?;
            if is_behind && let Some(last) = self.held.last() {
                // Others may be ahead of it by now.
                until = until.min(last.time_ns);
            }
        }
        self.held.sort_by_key(|held| held.time_ns);
        let told = self.held.partition_point(|held| held.time_ns < until);
        for Held { time_ns, cpu, what } in self.held.drain(..told) {
            match what {
                What::Event(at) => {
                    if let Some(record) = self.layouts.record(time_ns, cpu, &self.data[at]) {
                        meter.read(&record);
                    }
                }
                What::Lost(count) => meter.read(&lost(time_ns, cpu, count)),
            }
        }
        self.keep_data();
        meter.advance(until);
        Ok(())
    }

    /// Only that of the events that are still held.
    fn keep_data(&mut self) {
        let before = std::mem::take(&mut self.data);
        for held in &mut self.held {
            if let What::Event(at) = &mut held.what {
                let start = self.data.len();
                self.data.extend_from_slice(&before[at.clone()]);
                *at = start..self.data.len();
            }
        }
    }

    /// Whether there is more than may be read at a time.
    fn read_cpu(&mut self, at: usize, most: usize) -> io::Result<bool> {
        let Cpu { number: cpu, pipe } = &mut self.cpus[at];
        let cpu = *cpu;
        let mut read = 0;
        while read < most {
            let length = match pipe.read(&mut self.page) {
                Ok(0) => return Ok(false),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            read += length;
            let (page, held, data) = (&self.page[..length], &mut self.held, &mut self.data);
            let first = held.len();
            let missed = ring::events(page, |found| {
                let start = data.len();
                data.extend_from_slice(&page[found.data]);
                let what = What::Event(start..data.len());
                held.push(Held { time_ns: found.time_ns, cpu, what });
            });
            if let Missed::Some(count) = missed {
                let time_ns = held.get(first).map_or(0, |held| held.time_ns);
                held.insert(first, Held { time_ns, cpu, what: What::Lost(count) });
            }
        }
        Ok(true)
    }
}

fn lost(time_ns: u64, cpu: u32, count: u64) -> Record<'static> {
    Record {
        time_ns,
        cpu,
        comm: "",
        pid: 0,
        tgid: None,
        context: placewise_trace::Context::Unknown,
        event: Event::LostEvents { count },
    }
}

/// By the clock of the trace.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
