//! What stands before an event: `comm-pid (tgid) [cpu] flags time: ` in ftrace and
//! `trace-cmd report`, `comm pid/tid [cpu] time: ` in `perf script`.
//!
//! A comm may hold any text of 15 bytes at most: too short for `1[000] 0.000000: `, a pid, CPU and
//! time, so the leftmost place where these can be read is the right one.

use super::scan::{digits, last_digits, last_number, skip_spaces, split_once, splits};
use crate::event::Context;

/// The column of the comm in front of ftrace's lines.
const COMM_WIDTH: usize = 16;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Prefix<'a> {
    pub task: RunningTask<'a>,
    /// `u64::MAX` when it does not fit.
    pub cpu: u64,
    pub context: Context,
    pub time_ns: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct RunningTask<'a> {
    pub comm: &'a str,
    pub pid: u32,
    pub tgid: Option<u32>,
}

/// The prefix, and the line after it.
pub(super) fn parse(line: &str) -> Option<(Prefix<'_>, &str)> {
    splits(line, b'[').find_map(|(before, after)| parse_around(before, after))
}

fn parse_around<'a>(before: &'a str, after: &'a str) -> Option<(Prefix<'a>, &'a str)> {
    let (cpu, rest) = cpu(after)?;
    let rest = skip_spaces(rest.strip_prefix("] ")?);
    let (flags, rest) = flags(rest)?;
    let (time_ns, rest) = time(rest)?;
    let task = task(before)?;
    Some((Prefix { task, cpu, context: context(flags), time_ns }, skip_spaces(rest)))
}

/// At least three digits.
fn cpu(text: &str) -> Option<(u64, &str)> {
    digits(text).filter(|(_, rest)| text.len() - rest.len() >= 3)
}

/// Flags are optional, and never start with a digit.
fn flags(text: &str) -> Option<(&str, &str)> {
    if text.as_bytes().first()?.is_ascii_digit() {
        return Some(("", text));
    }
    let (flags, rest) = split_once(text, b' ')?;
    Some((flags, skip_spaces(rest)))
}

/// `5.544334: ` in nanoseconds: micro- or nanoseconds after the point.
fn time(text: &str) -> Option<(u64, &str)> {
    let (seconds, rest) = digits(text)?;
    let fraction_text = rest.strip_prefix('.')?;
    let (fraction, rest) = digits(fraction_text)?;
    let nanos = match fraction_text.len() - rest.len() {
        6 => fraction * 1_000,
        9 => fraction,
        _ => return None,
    };
    let rest = rest.strip_prefix(": ")?;
    Some((seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?, rest))
}

/// `comm-pid`, `comm-pid (tgid)`, `comm pid`, `comm pid/tid`. A tgid that the kernel does not know
/// is `(-------)`.
fn task(text: &str) -> Option<RunningTask<'_>> {
    let text = text.trim_ascii_end();
    let (text, tgid) = match text.strip_suffix(')') {
        Some(text) => split_tgid(text)?,
        None => (text, None),
    };
    let (before, pid) = last_number(text.trim_ascii_end())?;
    let pid = u32::try_from(pid).ok()?;
    let (comm, tgid) = match before.as_bytes().last()? {
        b'-' => (without_instance(&before[..before.len() - 1]), tgid),
        b' ' => (before.trim_ascii_end(), tgid),
        b'/' => {
            let (comm, tgid) = last_digits(&before[..before.len() - 1]);
            (comm.trim_ascii_end(), tgid.parse().ok())
        }
        _ => return None,
    };
    Some(RunningTask { comm: skip_spaces(comm), pid, tgid })
}

/// What stands before `(tgid`, and that, if it is known.
fn split_tgid(text: &str) -> Option<(&str, Option<u32>)> {
    if let Some((before, tgid)) = last_number(text)
        && let Some(before) = before.trim_ascii_end().strip_suffix('(')
    {
        return Some((before, u32::try_from(tgid).ok()));
    }
    Some((text.rsplit_once('(')?.0, None))
}

/// `trace-cmd report` puts `instance: ` in front when events are of a tracing instance. What
/// follows that is a comm of at most 15 bytes in a column of 16.
fn without_instance(column: &str) -> &str {
    let comm = column.len().checked_sub(COMM_WIDTH).and_then(|at| column.split_at_checked(at));
    match comm {
        Some((instance, comm)) if instance.ends_with(": ") => comm,
        _ => column,
    }
}

/// By the kernel's flag characters: interrupts, reschedule, context, preemption depth.
fn context(flags: &str) -> Context {
    let &[interrupts, resched, context, depth, ..] = flags.as_bytes() else {
        return Context::Unknown;
    };
    match context {
        b'h' | b'H' | b'z' | b'Z' if matches!(resched, b'N' | b'n' | b'B' | b'b') => {
            Context::HardInterruptResched
        }
        b'h' | b'H' | b'z' | b'Z' => Context::HardInterrupt,
        b's' => Context::SoftInterrupt,
        _ if interrupts == b'.' && matches!(depth, b'.' | b'0') => Context::Preemptible,
        _ if matches!(depth, b'3'..=b'9' | b'a'..=b'f') => Context::TaskLocked,
        _ => Context::Task,
    }
}
