//! The scheduler's tracepoints as messages: `FtraceEvent` and what is in it.
//!
//! The state of who is switched out is a number of the kernel's there, which readers take for that
//! of the release that the trace names; [`StateBits`] turns a printed one back.
//!
//! Limit: of a state of several letters (`D|K`, before v4.14) the first counts.

use super::wire::Message;
use crate::event::{Context, Event, Record};

/// The fields of `FtraceEvent`.
mod field {
    pub const TIMESTAMP: u32 = 1;
    pub const PID: u32 = 2;
    pub const COMMON_FLAGS: u32 = 5;
    pub const SCHED_SWITCH: u32 = 4;
    pub const SCHED_WAKEUP: u32 = 17;
    pub const SCHED_WAKING: u32 = 20;
    pub const SCHED_WAKEUP_NEW: u32 = 114;
    pub const SCHED_PROCESS_EXEC: u32 = 237;
    pub const SCHED_PROCESS_EXIT: u32 = 238;
    pub const SCHED_PROCESS_FORK: u32 = 239;
    pub const SCHED_MIGRATE_TASK: u32 = 491;
}

/// `enum trace_flag_type`
const IRQS_OFF: u64 = 1 << 0;
const NEED_RESCHED: u64 = 1 << 2;
const HARDIRQ: u64 = 1 << 3;
const SOFTIRQ: u64 = 1 << 4;

/// What `prev_state` says by bits that kernels have moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateBits {
    parked: i64,
    idle: i64,
    preempted: i64,
}

impl StateBits {
    /// Of a kernel release; readers take one that is not named for 4.4.
    pub fn of(release: Option<&str>) -> Self {
        match release.and_then(version).unwrap_or((4, 4)) {
            version if version >= (4, 14) => {
                StateBits { parked: 0x40, idle: 0x80, preempted: 0x100 }
            }
            version if version >= (4, 8) => {
                StateBits { parked: 0x200, idle: 0x402, preempted: 0x1000 }
            }
            _ => StateBits { parked: 0x200, idle: 0x402, preempted: 0x800 },
        }
    }

    fn number(self, state: &str) -> i64 {
        // Whatever a preempted task was about to do.
        if state.ends_with('+') {
            return self.preempted;
        }
        match state.as_bytes().first() {
            Some(b'S') => 0x01,
            Some(b'D') => 0x02,
            Some(b'T') => 0x04,
            Some(b't') => 0x08,
            Some(b'X' | b'x') => 0x10,
            Some(b'Z') => 0x20,
            Some(b'P') => self.parked,
            Some(b'I') => self.idle,
            _ => 0,
        }
    }
}

/// `(6, 12)` of `6.12.0-amd64`
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Writes the event of a record; the record's time is `timestamp` here.
pub fn write(out: &mut Message, record: &Record<'_>, timestamp: u64, states: StateBits) {
    out.uint(field::TIMESTAMP, timestamp);
    out.uint(field::PID, record.pid.into());
    if let Some(flags) = flags(record.context) {
        out.uint(field::COMMON_FLAGS, flags);
    }
    match record.event {
        Event::Waking { comm, pid, prio, target_cpu } => {
            woken(out, field::SCHED_WAKING, comm, pid, prio, target_cpu);
        }
        Event::Wakeup { comm, pid, prio, target_cpu } => {
            woken(out, field::SCHED_WAKEUP, comm, pid, prio, target_cpu);
        }
        Event::WakeupNew { comm, pid, prio, target_cpu } => {
            woken(out, field::SCHED_WAKEUP_NEW, comm, pid, prio, target_cpu);
        }
        Event::Migrate { comm, pid, prio, from, to } => {
            out.message(field::SCHED_MIGRATE_TASK, |out| {
                task(out, comm, pid, prio);
                out.uint(4, from.into());
                out.uint(5, to.into());
            });
        }
        Event::Switch { .. } => switch(out, &record.event, states),
        Event::Fork { comm, pid, child_comm, child_pid } => {
            out.message(field::SCHED_PROCESS_FORK, |out| {
                out.text(1, comm);
                out.uint(2, pid.into());
                out.text(3, child_comm);
                out.uint(4, child_pid.into());
            });
        }
        Event::Exec { pid, old_pid } => out.message(field::SCHED_PROCESS_EXEC, |out| {
            out.uint(2, pid.into());
            out.uint(3, old_pid.into());
        }),
        Event::Exit { comm, pid, prio } => out.message(field::SCHED_PROCESS_EXIT, |out| {
            out.text(1, comm);
            out.uint(2, pid.into());
            out.int(4, prio.into());
        }),
        Event::Decision(_) | Event::LostEvents { .. } => {
            unreachable!("no tracepoint of the kernel")
        }
    }
}

fn flags(context: Context) -> Option<u64> {
    match context {
        Context::Preemptible => Some(0),
        Context::Task | Context::TaskLocked => Some(IRQS_OFF),
        Context::HardInterrupt => Some(IRQS_OFF | HARDIRQ),
        Context::HardInterruptResched => Some(IRQS_OFF | HARDIRQ | NEED_RESCHED),
        Context::SoftInterrupt => Some(IRQS_OFF | SOFTIRQ),
        Context::Unknown => None,
    }
}

fn task(out: &mut Message, comm: &str, pid: u32, prio: i32) {
    out.text(1, comm);
    out.uint(2, pid.into());
    out.int(3, prio.into());
}

fn woken(out: &mut Message, field: u32, comm: &str, pid: u32, prio: i32, target_cpu: u32) {
    out.message(field, |out| {
        task(out, comm, pid, prio);
        out.uint(5, target_cpu.into());
    });
}

fn switch(out: &mut Message, event: &Event<'_>, states: StateBits) {
    let &Event::Switch {
        prev_comm,
        prev_pid,
        prev_prio,
        prev_state,
        next_comm,
        next_pid,
        next_prio,
    } = event
    else {
        unreachable!("asked for switches only");
    };
    out.message(field::SCHED_SWITCH, |out| {
        task(out, prev_comm, prev_pid, prev_prio);
        out.int(4, states.number(prev_state));
        out.text(5, next_comm);
        out.uint(6, next_pid.into());
        out.int(7, next_prio.into());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_the_numbers_of_the_release() {
        let number = |release, state| StateBits::of(release).number(state);
        for release in [None, Some("3.10"), Some("4.9.0"), Some("6.12.107+deb13-amd64")] {
            let plain = ["R", "S", "D", "T", "t", "X", "Z"].map(|state| number(release, state));
            assert_eq!(plain, [0, 1, 2, 4, 8, 16, 32]);
        }
        let moved = |release| ["P", "I", "R+"].map(|state| number(release, state));
        assert_eq!(moved(Some("6.12.107+deb13-amd64")), [0x40, 0x80, 0x100]);
        assert_eq!(moved(Some("4.14")), [0x40, 0x80, 0x100]);
        assert_eq!(moved(Some("4.9.0")), [0x200, 0x402, 0x1000]);
        assert_eq!(moved(Some("3.10")), [0x200, 0x402, 0x800]);
        assert_eq!(moved(None), moved(Some("4.4")));
        assert_eq!(number(Some("6.1.0"), "S+"), 0x100, "preempted on its way to sleep");
    }
}
