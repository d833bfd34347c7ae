//! The running kernel: a tracefs instance of our own, whose ring buffers are read in binary, a few
//! times a second.
//!
//! Who may not watch all the time has tracing switched off meanwhile, and then traced tasks pay nothing
//! either. It also goes off where more comes than is read at a time, and on when all has been read.

use std::time::Duration;

use placewise_audit::Meter;
use placewise_machine::Machine;
use placewise_trace::ring::Reader;

use crate::record::buffers::{self, Buffers, now};
use crate::record::instance::TraceInstance;

/// Between two looks at the buffers.
pub const PAUSE: Duration = Duration::from_millis(200);
/// Of all CPUs together, but each has no more than what 50,000 switches a second take in a second.
const BUFFERS_KB: usize = 256 << 10;
const LEAST_BUFFER_KB: usize = 1 << 10;
const MOST_BUFFER_KB: usize = 8 << 10;

pub struct Live {
    reader: Reader,
    buffers: Buffers,
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

impl Live {
    /// Begins to watch, for that meter.
    pub fn start(machine: &Machine, meter: &mut Meter) -> anyhow::Result<Self> {
        let share = BUFFERS_KB / machine.online().len().max(1);
        let buffer_kb = share.clamp(LEAST_BUFFER_KB, MOST_BUFFER_KB);
        let instance = TraceInstance::create(buffer_kb as u32)?;
        let buffers = Buffers::open(&instance, &machine.online())?;
        let reader = Reader::new(buffers::layouts(&instance)?);
        let watch = Watch { begun: 0, off_ns: 0, off_since: None };
        let mut live = Live { reader, buffers, all_was_read: true, watch, instance };
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
        let round = self.buffers.read(|cpu, page| {
            self.reader.page(cpu, page);
            Ok(())
        })?;
        self.all_was_read = round.read_all;
        let until = off_since.unwrap_or(u64::MAX).min(round.until_ns);
        self.reader.tell(until, &mut |record| meter.read(record));
        meter.advance(until);
        Ok(())
    }
}
