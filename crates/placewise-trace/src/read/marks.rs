//! Lines that are no events: marks of lost events, and what tools print around events.

use super::scan::{digits, first_word};

/// A place on a CPU where events are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    /// `u64::MAX` when it does not fit.
    pub cpu: u64,
    /// 0 when the mark does not say.
    pub count: u64,
}

/// `CPU:3 [LOST 42 EVENTS]` and `##### CPU 3 buffer started ####` of ftrace,
/// `CPU:3 [42 EVENTS DROPPED]` of trace-cmd, which may put `instance: ` in front. The second
/// stands where the events of a CPU begin whose earlier ones were overwritten.
pub(super) fn lost(line: &str) -> Option<Lost> {
    let (cpu, count) = match line.strip_prefix("##### CPU ") {
        Some(rest) => {
            let (cpu, rest) = digits(rest)?;
            (cpu, rest.starts_with(" buffer started").then_some(0)?)
        }
        None if line.starts_with('#') => return None,
        None => {
            let (cpu, rest) = digits(&line[line.find("CPU:")? + "CPU:".len()..])?;
            (cpu, count(rest.trim_ascii().strip_prefix('[')?.strip_suffix(']')?)?)
        }
    };
    Some(Lost { cpu, count })
}

/// `LOST 42 EVENTS`, `LOST EVENTS`, `42 EVENTS DROPPED` or `EVENTS DROPPED`.
fn count(text: &str) -> Option<u64> {
    let text = match text.strip_prefix("LOST") {
        Some(text) => text.strip_suffix("EVENTS")?,
        None => text.strip_suffix("EVENTS DROPPED")?,
    };
    match text.trim_ascii() {
        "" => Some(0),
        text => text.parse().ok(),
    }
}

/// The text of `perf script --show-lost-events` after the prefix.
pub(super) fn perf_lost(text: &str) -> Option<u64> {
    let text = text.strip_prefix("PERF_RECORD_LOST")?;
    let (_, count) = text.split_once(" lost ")?;
    Some(digits(count)?.0)
}

/// How many events the ring buffers of all CPUs have overwritten, by ftrace's header:
/// `# entries-in-buffer/entries-written: 3582/5705   #P:32`.
pub(super) fn overwritten(comment: &str) -> Option<u64> {
    let counts = comment.strip_prefix("# entries-in-buffer/entries-written: ")?;
    let (kept, rest) = digits(counts)?;
    let (written, _) = digits(rest.strip_prefix('/')?)?;
    written.checked_sub(kept)
}

/// Whether a line without prefix is one that tools print besides events: empty, a banner of
/// `trace-cmd report`, a frame of a call stack.
pub(super) fn is_no_event(line: &str) -> bool {
    let text = line.trim_ascii();
    text.is_empty()
        || text.starts_with("=> ")
        || text.starts_with("version = ")
        || text.starts_with("cpus=")
        || text.starts_with("CPU ") && text.ends_with(" is empty")
        || line.starts_with([' ', '\t']) && is_frame(text)
}

/// `ffffffff810b1e2f schedule+0x1f ([kernel.kallsyms])`
fn is_frame(text: &str) -> bool {
    let address = first_word(text);
    address.len() >= 5 && address.bytes().all(|byte| byte.is_ascii_hexdigit())
}
