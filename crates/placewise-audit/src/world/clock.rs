//! The policy's clock: that of the trace, moved so that ticks fall on its multiples.

use placewise_policy::topology::BOOT;

pub struct Clock {
    pub now: u64,
    offset: u64,
    /// Before, the events of some CPUs are missing.
    complete_from: u64,
    /// Where in its period the tick was seen; `None`: not seen.
    pub tick_phase_ns: Option<u64>,
}

impl Clock {
    pub fn new() -> Self {
        Clock { now: BOOT, offset: BOOT, complete_from: 0, tick_phase_ns: None }
    }

    pub fn begin(&mut self, tick_ns: u64, tick_phase_ns: Option<u64>, complete_from_ns: u64) {
        self.offset = BOOT + tick_ns - tick_phase_ns.unwrap_or(0) % tick_ns;
        self.complete_from = complete_from_ns + self.offset;
        self.tick_phase_ns = tick_phase_ns;
    }

    /// To a time of the trace; it never goes back.
    pub fn advance(&mut self, time_ns: u64) {
        self.now = self.now.max(time_ns + self.offset);
    }

    /// Has the trace the events of all CPUs by now?
    pub fn is_complete(&self) -> bool {
        self.now >= self.complete_from
    }
}
