//! The scheduler's tracepoints as values.

use crate::decision::Decision;

/// One tracepoint, with what the kernel prints in front of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub time_ns: u64,
    /// The CPU that printed it, and what ran there.
    pub cpu: u32,
    pub comm: &'a str,
    pub pid: u32,
    /// Its process, where the trace says so: ftrace's `record-tgid`, perf's `pid/tid`.
    pub tgid: Option<u32>,
    pub context: Context,
    pub event: Event<'a>,
}

/// Where on its CPU a tracepoint was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// A task in the kernel that may be preempted: `.....`.
    Preemptible,
    /// A task in the kernel, interrupts off: `d..2.`.
    Task,
    /// The same, with more locks held than a wakeup takes, as that of a wait queue: `d..3.`.
    TaskLocked,
    /// A hardware interrupt: `d.h2.`.
    HardInterrupt,
    /// A hardware interrupt that wants a reschedule: `dNh2.`.
    HardInterruptResched,
    /// A soft interrupt: `d.s4.`.
    SoftInterrupt,
    /// The trace does not say: `perf script` prints no flags.
    Unknown,
}

impl Context {
    pub fn is_hard_interrupt(self) -> bool {
        matches!(self, Context::HardInterrupt | Context::HardInterruptResched)
    }

    pub fn is_interrupt(self) -> bool {
        self.is_hard_interrupt() || self == Context::SoftInterrupt
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// `target_cpu` is the CPU the wakee was last on.
    Waking {
        comm: &'a str,
        pid: u32,
        prio: i32,
        target_cpu: u32,
    },
    Wakeup {
        comm: &'a str,
        pid: u32,
        prio: i32,
        target_cpu: u32,
    },
    WakeupNew {
        comm: &'a str,
        pid: u32,
        prio: i32,
        target_cpu: u32,
    },
    Migrate {
        comm: &'a str,
        pid: u32,
        prio: i32,
        from: u32,
        to: u32,
    },
    Switch {
        prev_comm: &'a str,
        prev_pid: u32,
        prev_prio: i32,
        /// `R`, `S`, `R+`, ...
        prev_state: &'a str,
        next_comm: &'a str,
        next_pid: u32,
        next_prio: i32,
    },
    Fork {
        comm: &'a str,
        pid: u32,
        child_comm: &'a str,
        child_pid: u32,
    },
    /// `pid` has become another program; a thread that does so takes its leader's pid.
    Exec {
        pid: u32,
        old_pid: u32,
    },
    Exit {
        comm: &'a str,
        pid: u32,
        prio: i32,
    },
    /// Not of the kernel: a placement was decided, and from what.
    Decision(Box<Decision>),
    /// The trace lacks events of the record's CPU here, `count` of them, 0 if it does not say how
    /// many. The record has the time of the one before it (0 if there is none), and no task.
    LostEvents {
        count: u64,
    },
}

/// Takes the tracepoints of a run in the order of their time.
pub trait Sink {
    fn record(&mut self, record: &Record<'_>);

    /// Is it to get [`Event::Decision`] too?
    fn takes_decisions(&self) -> bool {
        false
    }
}
