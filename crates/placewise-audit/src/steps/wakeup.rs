//! A wakeup as the trace tells it, from its beginning to its end.

use placewise_trace::Context;

/// How a wakeup ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The CPU it put the wakee on.
    pub cpu: u32,
    /// Whether a sched_migrate_task said so.
    pub migrated: bool,
    /// The CPU that printed sched_wakeup: the target's where the wake list was used. `None`: the
    /// trace has no sched_wakeup, and the wakee was next seen running.
    pub woken_by: Option<u32>,
}

/// A wakeup whose end is known.
#[derive(Clone, Copy, Debug)]
pub struct Wakeup {
    pub waking_cpu: u32,
    pub prev_cpu: u32,
    pub context: Context,
    pub outcome: Outcome,
}

impl Wakeup {
    /// The wakee did not move, and went over the wake list of its CPU.
    pub fn queued_by_prev_cpu(&self) -> bool {
        let Outcome { migrated, woken_by, .. } = self.outcome;
        !migrated && woken_by == Some(self.prev_cpu) && self.prev_cpu != self.waking_cpu
    }

    /// The wakee did not move, and nobody but the waker can have enqueued it.
    pub fn stayed(&self) -> bool {
        let Outcome { migrated, woken_by, .. } = self.outcome;
        !migrated && woken_by.is_none_or(|by| by == self.waking_cpu)
    }
}
