//! Reads ftrace text back, by the layout that the kernel prints.

use std::collections::BTreeMap;

/// One event of a trace.
#[derive(Debug)]
pub struct Line {
    pub cpu: u32,
    pub micros: u64,
    pub event: String,
    fields: BTreeMap<String, String>,
}

impl Line {
    pub fn number(&self, field: &str) -> u32 {
        self.text(field).parse().expect("a number")
    }

    pub fn text(&self, field: &str) -> &str {
        self.fields.get(field).unwrap_or_else(|| panic!("no {field} in {self:?}"))
    }
}

/// All events; panics at a line that the kernel would not print.
pub fn parse(text: &str) -> Vec<Line> {
    text.lines().filter(|line| !line.starts_with('#')).map(parse_line).collect()
}

fn parse_line(line: &str) -> Line {
    parts(line).unwrap_or_else(|| panic!("not a line of ftrace: {line}"))
}

/// `   name-412     [003] d..2.    10.000123: sched_waking: comm=name pid=413 prio=120 target_cpu=003`
fn parts(line: &str) -> Option<Line> {
    let (task, rest) = line.split_once(" [")?;
    let (name, pid) = task.trim().rsplit_once('-')?;
    let (cpu, rest) = rest.split_once("] ")?;
    let (flags, rest) = rest.split_once(' ')?;
    let (time, rest) = rest.trim_start().split_once(": ")?;
    let (seconds, micros) = time.split_once('.')?;
    let (event, fields) = rest.split_once(": ")?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = !name.is_empty()
        && [pid, cpu, seconds, micros].into_iter().all(is_number)
        && (cpu.len(), micros.len()) == (3, 6)
        && are_flags(flags.as_bytes())
        && event.starts_with("sched_");
    let field = |word: &str| {
        let (name, value) = word.split_once('=')?;
        (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
    };
    fits.then_some(Line {
        cpu: cpu.parse().ok()?,
        micros: seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?,
        event: event.to_owned(),
        fields: fields.split_whitespace().filter_map(field).collect(),
    })
}

/// Interrupts off, need-resched, in which context, preempt count, migration disabled.
fn are_flags(flags: &[u8]) -> bool {
    let [interrupts, resched, context, preempt, migration] = flags else { return false };
    b"dD.".contains(interrupts)
        && b"N.".contains(resched)
        && b"Hhs.".contains(context)
        && (preempt.is_ascii_digit() || *preempt == b'.')
        && *migration == b'.'
}
