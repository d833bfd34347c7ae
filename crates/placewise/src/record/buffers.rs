//! The ring buffers of an instance, read in rounds: what each CPU has, a page at a time, and until
//! when nothing is missing.
//!
//! What comes while the CPUs are read waits for the next round, for other CPUs may have events from
//! before it. How much a round reads is bounded: what the buffers cannot hold meanwhile is lost, and
//! counted.

use std::fs::File;
use std::io::{self, ErrorKind, Read};

use anyhow::{Context, anyhow};
use placewise_machine::CpuSet;
use placewise_trace::ring::{self, KINDS, Kind, Layout, Layouts};
use rustix::time::{ClockId, clock_gettime};

use super::instance::TraceInstance;

/// Of all CPUs together, in a round.
const MOST_BYTES: usize = 4 << 20;

pub struct Buffers {
    cpus: Vec<Cpu>,
    page: Vec<u8>,
}

struct Cpu {
    number: u32,
    pipe: File,
}

/// What a round came to.
pub struct Round {
    /// All events from before it have been read.
    pub until_ns: u64,
    /// Nothing was left.
    pub read_all: bool,
}

impl Buffers {
    /// Those of `cpus`.
    pub fn open(instance: &TraceInstance, cpus: &CpuSet) -> anyhow::Result<Self> {
        let open = |number: usize| -> anyhow::Result<Cpu> {
            let pipe = instance.raw(number).with_context(|| format!("CPU {number}"))?;
            Ok(Cpu { number: number as u32, pipe })
        };
        let cpus = cpus.iter().map(open).collect::<anyhow::Result<_>>()?;
        Ok(Buffers { cpus, page: vec![0; instance.page_bytes()?] })
    }

    /// Hands on each page with its CPU.
    pub fn read(
        &mut self,
        mut to: impl FnMut(u32, &[u8]) -> io::Result<()>,
    ) -> anyhow::Result<Round> {
        let mut round = Round { until_ns: now(), read_all: true };
        let most = MOST_BYTES / self.cpus.len().max(1);
        for cpu in &mut self.cpus {
            let last = cpu.read(&mut self.page, most, &mut to)?;
            if let Some(begun_ns) = last {
                // Others may be ahead of it by now.
                round = Round { until_ns: round.until_ns.min(begun_ns), read_all: false };
            }
        }
        Ok(round)
    }
}

impl Cpu {
    /// When the last page began, if there is more than may be read in a round.
    fn read(
        &mut self,
        page: &mut [u8],
        most: usize,
        to: &mut impl FnMut(u32, &[u8]) -> io::Result<()>,
    ) -> anyhow::Result<Option<u64>> {
        let (mut read, mut begun_ns) = (0, 0);
        while read < most {
            match self.pipe.read(page) {
                Ok(0) => return Ok(None),
                Ok(length) => {
                    begun_ns = ring::begun(&page[..length]).unwrap_or(begun_ns);
                    to(self.number, &page[..length])?;
                    read += length;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot read the ring buffer"),
            }
        }
        Ok(Some(begun_ns))
    }
}

/// Where the fields of events are, on this kernel.
pub fn layouts(instance: &TraceInstance) -> anyhow::Result<Layouts> {
    let layout = |(at, Kind { name, .. }): (usize, &Kind)| {
        let format = instance.format(name)?;
        Layout::parse(at, &format).map_err(|field| anyhow!("{name}: its format has no {field}"))
    };
    let layouts = KINDS.iter().enumerate().map(layout).collect::<anyhow::Result<_>>()?;
    Ok(Layouts::new(layouts))
}

/// By the clock of the trace.
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
