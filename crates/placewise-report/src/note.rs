//! What happened in a trace, as far as a page draws it. The recorder notes it beside the audit; the
//! draft keeps it, on a thread of its own.

use placewise_audit::{Explanation, NameId, Task, TaskNumber};

use crate::cells::BesideIdle;
use crate::runs::Class;

/// Something that happened on a CPU.
pub struct Note {
    /// On the timeline.
    pub now: u64,
    /// In the part of the trace that is drawn.
    pub is_inside: bool,
    pub cpu: u32,
    pub event: Event,
}

pub enum Event {
    /// Time was left out here.
    Silence {
        ns: u64,
    },
    /// A name comes up for the first time.
    Name {
        id: NameId,
        name: String,
    },
    /// What ran there before is not known.
    Running(Start),
    /// `is_runnable`: it goes on waiting.
    Switch {
        prev: TaskNumber,
        is_runnable: bool,
        next: Start,
    },
    /// A task is to run on a CPU.
    Woken {
        who: Who,
        cpu: u32,
    },
    Moved {
        task: TaskNumber,
        to: u32,
    },
    Forgotten {
        task: TaskNumber,
    },
    /// How a task was placed, and why, if it missed an idle CPU.
    Placed {
        task: TaskNumber,
        class: Class,
        explanation: Option<Box<Explanation>>,
    },
    /// So many tasks wait beside an idle CPU from now on.
    BesideIdle(BesideIdle),
}

/// A task, as the trace has it by now.
#[derive(Clone, Copy)]
pub struct Who {
    pub task: TaskNumber,
    pub pid: u32,
    pub tgid: Option<u32>,
    pub name: NameId,
}

impl Who {
    pub fn of(task: TaskNumber, of: &Task) -> Self {
        Who { task, pid: of.pid, tgid: of.tgid, name: of.name }
    }
}

/// A task begins to run.
#[derive(Clone, Copy)]
pub struct Start {
    pub who: Who,
    /// Where it ran before.
    pub last_cpu: Option<u32>,
    /// How far that is: an index of the distances and one more, or 0.
    pub distance: u8,
}
