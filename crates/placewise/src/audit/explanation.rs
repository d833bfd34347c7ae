//! Single decisions step by step, chosen by number or time.

use placewise_audit::{Decided, Kind, Rule, explain};
use serde::Serialize;

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

/// A decision step by step.
#[derive(Serialize)]
pub struct Explanation {
    pub number: u64,
    pub time_ns: u64,
    pub kind: &'static str,
    pub task: String,
    pub pid: u32,
    pub waker: String,
    pub waker_pid: u32,
    pub waking_cpu: u32,
    pub prev_cpu: u32,
    pub predicted_cpu: u32,
    pub actual_cpu: u32,
    pub rules: Vec<ExplainedRule>,
}

#[derive(Serialize)]
pub struct ExplainedRule {
    pub rule: &'static str,
    pub saw: String,
    pub answer: String,
}

impl From<Rule> for ExplainedRule {
    fn from(Rule { rule, saw, answer }: Rule) -> Self {
        ExplainedRule { rule, saw, answer }
    }
}

impl Explanation {
    fn of(decision: &Decided<'_>) -> Self {
        let Decided { number, time_ns, placed, sight, state, tasks, .. } = *decision;
        Explanation {
            number,
            time_ns,
            kind: match placed.kind {
                Kind::Wakeup => "wakeup",
                Kind::Fork => "fork",
            },
            task: tasks.name_of(placed.task).to_owned(),
            pid: tasks.get(placed.task).pid,
            waker: tasks.name_of(placed.waker).to_owned(),
            waker_pid: tasks.get(placed.waker).pid,
            waking_cpu: placed.waking_cpu,
            prev_cpu: placed.prev_cpu,
            predicted_cpu: placed.predicted,
            actual_cpu: placed.actual,
            rules: explain(placed, sight, state, tasks).into_iter().map(Into::into).collect(),
        }
    }

    /// `wakeup 12 at 5.544334: pp-271 by pp-270 on CPU 3, previous CPU 5`
    pub fn heading(&self) -> String {
        let time = trace_time(self.time_ns);
        let Explanation { number, kind, task, pid, waker, waker_pid, .. } = self;
        format!(
            "decision {number}, a {kind} at {time}: {task}-{pid} by \
             {waker}-{waker_pid} on CPU {}, previous CPU {}",
            self.waking_cpu, self.prev_cpu
        )
    }
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
