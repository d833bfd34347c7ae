//! The running kernel: a tracefs instance of our own, whose ring buffers are read in binary, a few
//! times a second.
//!
//! What came while the CPUs were read waits for the next time, for other CPUs may have events from
//! before it. How much is read at a time is bounded, and so is what that takes: what the buffers
//! cannot hold meanwhile is lost, and counted.
//!
//! Who may not watch all the time has tracing switched off meanwhile, and then traced tasks pay nothing
//! either. It also goes off where more comes than is read at a time, and on when all has been read.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::time::Duration;

use anyhow::{Context, anyhow};
use placewise_audit::Meter;
use placewise_machine::Machine;
use placewise_trace::ring::{KINDS, Kind, Layout, Layouts, Reader};
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
    reader: Reader,
    cpus: Vec<Cpu>,
    /// At the last look.
    all_was_read: bool,
    watch: Watch,
    /// Goes last: it cannot be removed while its files are open.
    instance: TraceInstance,
}

/// When tracing was on, by the clock of the trace.
struct Watch {
    begun: u64,
    /// Before `off_since`.
    off_ns: u64,
    off_since: Option<u64>,
}

struct Cpu {
    number: u32,
    pipe: File,
}

impl Live {
    /// Begins to watch, for that meter.
    pub fn start(machine: &Machine, meter: &mut Meter) -> anyhow::Result<Self> {
        let share = BUFFERS_KB / machine.online().len().max(1);
        let buffer_kb = share.clamp(LEAST_BUFFER_KB, MOST_BUFFER_KB);
        let instance = TraceInstance::create(buffer_kb as u32)?;
        let layout = |(at, Kind { name, .. }): (usize, &Kind)| {
            let format = instance.format(name)?;
            Layout::parse(at, &format).map_err(|field| anyhow!("{name}: its format has no {field}"))
        };
        let layouts = KINDS.iter().enumerate().map(layout).collect::<anyhow::Result<_>>()?;
        let open = |number: usize| -> anyhow::Result<Cpu> {
            let pipe = instance.raw(number).with_context(|| format!("CPU {number}"))?;
            Ok(Cpu { number: number as u32, pipe })
        };
        let cpus = machine.online().iter().map(open).collect::<anyhow::Result<_>>()?;
        let reader = Reader::new(Layouts::new(layouts), instance.page_bytes()?);
        let watch = Watch { begun: 0, off_ns: 0, off_since: None };
        let mut live = Live { reader, cpus, all_was_read: true, watch, instance };
        live.instance.start()?;
        live.begin(meter);
        Ok(live)
    }

    /// What came before is none of this meter's.
    pub fn begin(&mut self, meter: &mut Meter) {
        let begun = now();
        let off_since = self.watch.off_since.map(|_| begun);
        self.watch = Watch { begun, off_ns: 0, off_since };
        meter.untraced(begun, begun);
    }

    /// Whether it is to be watched from now on.
    pub fn watch(&mut self, may_watch: bool, meter: &mut Meter) -> anyhow::Result<()> {
        match (self.watch.off_since, may_watch && self.all_was_read) {
            (None, false) => {
                self.instance.stop()?;
                self.watch.off_since = Some(now());
                self.all_was_read = false;
            }
            (Some(since), true) => {
                let until = now();
                self.instance.start()?;
                meter.untraced(since, until);
                self.watch.off_ns += until - since;
                self.watch.off_since = None;
            }
            _ => {}
        }
        Ok(())
    }

    /// The share of the time that was watched.
    pub fn watched(&self) -> f64 {
        let Watch { begun, off_ns, off_since } = self.watch;
        let now = now();
        let off_ns = off_ns + off_since.map_or(0, |since| now - since);
        1.0 - off_ns as f64 / (now - begun).max(1) as f64
    }

    /// Hands what there is to the meter, in the order of time.
    pub fn read(&mut self, meter: &mut Meter) -> anyhow::Result<()> {
        let off_since = self.watch.off_since;
        if off_since.is_some() && self.all_was_read {
            return Ok(());
        }
        self.all_was_read = true;
        let mut until = off_since.unwrap_or_else(now);
        let most = MOST_BYTES / self.cpus.len().max(1);
        for at in 0..self.cpus.len() {
            let is_behind = self.read_cpu(at, most).context("cannot read the ring buffer")?;
            self.all_was_read &= !is_behind;
            if is_behind && let Some(last_ns) = self.reader.last_ns() {
                // Others may be ahead of it by now.
                until = until.min(last_ns);
            }
        }
        self.reader.tell(until, &mut |record| meter.read(record));
        meter.advance(until);
        Ok(())
    }

    /// Whether there is more than may be read at a time.
    fn read_cpu(&mut self, at: usize, most: usize) -> io::Result<bool> {
        let Cpu { number, pipe } = &mut self.cpus[at];
        let mut read = 0;
        while read < most {
            match self.reader.read(*number, pipe) {
                Ok(0) => return Ok(false),
                Ok(length) => read += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// By the clock of the trace.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
