//! What a trace lacks, and what of it could not be read.

use crate::decision::DecisionError;

/// Everything that keeps the records from being the whole story. Counts grow while records are
/// read and are final after the last one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events that the tracer says it lost while recording, where it says how many.
    pub lost_events: u64,
    /// Places where events are missing: one per [`LostEvents`](crate::Event::LostEvents).
    pub gaps: u64,
    /// Events overwritten in the ring buffer before the trace was read, as its header tells.
    pub overrun: u64,
    /// Lines that should hold an event and could not be read.
    pub malformed_lines: u64,
    pub first_malformed: Option<FirstMalformed>,
    /// The last line does not end in a newline. It may have been cut within a number, so no
    /// record is made of it.
    pub truncated_last_line: bool,
    /// The compressed file ends too early. What could be decompressed was read.
    pub truncated_file: bool,
    /// Records older than the one before them. They are passed on with the time that they show.
    pub clock_steps: u64,
    pub largest_clock_step_ns: u64,
    /// Records left out since they name a CPU of [`NR_CPUS`](Self::NR_CPUS) or above.
    pub cpus_out_of_range: u64,
    /// Events left out since nothing here is made of them, such as those of timers.
    pub unknown_events: u64,
    /// Lines with bytes that are not UTF-8, each of which is read as `?`.
    pub non_utf8_lines: u64,
}

/// The first malformed line, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstMalformed {
    pub line: u64,
    pub reason: Malformed,
}

/// What was expected of a malformed line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("expected `task-pid [cpu] flags seconds.micros: event: fields`")]
    Prefix,
    #[error("expected `{0}`")]
    Field(&'static str),
    #[error("expected a number that fits at `{0}`")]
    Number(&'static str),
    #[error(transparent)]
    Decision(#[from] DecisionError),
    #[error("expected a line of at most {max} bytes", max = super::lines::LONGEST_LINE)]
    TooLong,
}

impl Losses {
    /// CPUs that the policies have room for.
    pub const NR_CPUS: u32 = 1024;

    pub(super) fn malformed(&mut self, line: u64, reason: Malformed) {
        self.malformed_lines += 1;
        self.first_malformed.get_or_insert(FirstMalformed { line, reason });
    }

    pub(super) fn gap(&mut self, count: u64) {
        self.gaps += 1;
        self.lost_events = self.lost_events.saturating_add(count);
    }

    pub(super) fn clock_step(&mut self, back_ns: u64) {
        self.clock_steps += 1;
        self.largest_clock_step_ns = self.largest_clock_step_ns.max(back_ns);
    }
}
