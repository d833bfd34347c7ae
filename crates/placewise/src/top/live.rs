//! The running kernel: a tracefs instance of our own, whose ring buffers are read in binary, a few
//! times a second.
//!
//! What came while the CPUs were read waits for the next time, for other CPUs may have events from
//! before it. How much is read at a time is bounded, and so is what that takes: what the buffers
//! cannot hold meanwhile is lost, and counted.

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
    /// Goes last: it cannot be removed while its files are open.
    _instance: TraceInstance,
}

struct Cpu {
    number: u32,
    pipe: File,
}

impl Live {
    pub fn start(machine: &Machine) -> anyhow::Result<Self> {
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
        instance.start()?;
        Ok(Live { reader, cpus, _instance: instance })
    }

    /// Hands what there is to the meter, in the order of time.
    pub fn read(&mut self, meter: &mut Meter) -> anyhow::Result<()> {
        let mut until = now();
        let most = MOST_BYTES / self.cpus.len().max(1);
        for at in 0..self.cpus.len() {
            let is_behind = self.read_cpu(at, most).context("cannot read the ring buffer")?;
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
