//! Single decisions step by step, chosen by number or time.

use placewise_audit::{Decided, Explanation};

use super::units::trace_time;
use crate::input::InputError;

const NSEC_PER_SEC: u64 = 1_000_000_000;
/// What ftrace prints of a time.
const NSEC_PER_USEC: u64 = 1_000;

/// Which decisions to explain.
#[derive(Clone, Copy, Debug)]
pub enum Wanted {
    Number(u64),
    /// Those of this time, or the first after it.
    Time(u64),
}

/// `5.544334` in nanoseconds.
pub fn parse_time(text: &str) -> Result<u64, String> {
    let expected = || "expected seconds as in the trace, such as 5.544334".to_owned();
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(seconds) || !is_number(fraction) || fraction.len() > 9 {
        return Err(expected());
    }
    let seconds: u64 = seconds.parse().map_err(|_| expected())?;
    let nanos: u64 = format!("{fraction:0<9}").parse().map_err(|_| expected())?;
    seconds.checked_mul(NSEC_PER_SEC).and_then(|ns| ns.checked_add(nanos)).ok_or_else(expected)
}

/// `decision 12, a wakeup at 5.544334: pp-271 by pp-270 on CPU 3, previous CPU 5`
pub fn heading(of: &Explanation) -> String {
    let Explanation { number, kind, task, pid, waker, waker_pid, waking_cpu, prev_cpu, .. } = of;
    let (kind, time) = (kind.word(), trace_time(of.time_ns));
    format!(
        "decision {number}, a {kind} at {time}: {task}-{pid} by {waker}-{waker_pid} on CPU \
         {waking_cpu}, previous CPU {prev_cpu}"
    )
}

/// The explanations of a trace as they come.
pub struct Explanations {
    wanted: Wanted,
    found: Vec<Explanation>,
}

impl Explanations {
    pub fn new(wanted: Wanted) -> Self {
        Explanations { wanted, found: Vec::new() }
    }

    pub fn look_at(&mut self, decision: &Decided<'_>) {
        if self.wants(decision) {
            self.found.push(Explanation::of(decision));
        }
    }

    fn wants(&self, decision: &Decided<'_>) -> bool {
        let micros = |ns| ns / NSEC_PER_USEC;
        match (self.wanted, self.found.first()) {
            (Wanted::Number(number), _) => decision.number == number,
            (Wanted::Time(time_ns), None) => micros(decision.time_ns) >= micros(time_ns),
            (Wanted::Time(_), Some(first)) => micros(decision.time_ns) == micros(first.time_ns),
        }
    }

    /// The explanations; none is the user's error. `decisions`: how many the trace has.
    pub fn finish(self, trace: &str, decisions: u64) -> Result<Vec<Explanation>, InputError> {
        if !self.found.is_empty() {
            return Ok(self.found);
        }
        Err(InputError(match self.wanted {
            Wanted::Number(number) if decisions == 0 => {
                format!("--explain {number}: {trace} has no placement decision")
            }
            Wanted::Number(number) => format!(
                "--explain {number}: {trace} has {decisions} placement decisions; \
                 name one from 1 to {decisions}"
            ),
            Wanted::Time(_) => {
                format!("--at: {trace} has no placement decision at that time or after it")
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_as_in_the_trace() {
        assert_eq!(parse_time("5.544334"), Ok(5_544_334_000));
        assert_eq!(parse_time("0.000000001"), Ok(1));
        assert_eq!(parse_time("7"), Ok(7_000_000_000));
        for text in ["", ".5", "5.", "-1", "5s", "5.5.5", "1.0000000001", "99999999999999999999"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
