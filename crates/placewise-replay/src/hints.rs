//! What no tracepoint shows of a wakeup and a replay needs: whether it was sync, and how many CPUs
//! were looked at. An audit of the trace believes the one and works out the other. Where the wakee went the trace
//! tells later.

use std::collections::HashMap;

use placewise_audit::{Decided, Kind, NameId, Observer, Options, TaskNumber};
use placewise_trace::TraceReader;
use placewise_workload::program::Wake;

use crate::error::ReplayError;

/// What is known of one wakeup.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hint {
    pub wake: Wake,
    pub scanned: u32,
    /// The wakee left the CPU where it slept.
    pub moved: bool,
}

#[derive(Default)]
pub struct Hints {
    /// By when it was and who was woken.
    placed: HashMap<(u64, TaskNumber), Hint>,
    /// How many of the wakeups of one name by another were sync, and how many not.
    by_names: HashMap<(NameId, NameId), [u32; 2]>,
}

impl Hints {
    /// Audits the whole trace.
    pub fn of(reader: &mut TraceReader, options: &Options<'_>) -> Result<Self, ReplayError> {
        let mut hints = Hints::default();
        placewise_audit::audit(reader, options, &mut hints)?;
        Ok(hints)
    }

    /// Of a wakeup that was placed what was believed of it; of another what most are like.
    pub fn wakeup(&self, at: (u64, TaskNumber), names: (NameId, NameId)) -> Hint {
        let usual = || {
            let [plain, sync] = self.by_names.get(&names).copied().unwrap_or_default();
            let wake = if sync > plain { Wake::Sync } else { Wake::Plain };
            Hint { wake, ..Hint::default() }
        };
        self.placed.get(&at).copied().unwrap_or_else(usual)
    }
}

impl Observer for Hints {
    fn decided(&mut self, decided: &Decided<'_>) {
        let placed = decided.placed;
        if placed.kind != Kind::Wakeup {
            return;
        }
        let sync = placed.believed.sync;
        let name = |task| decided.tasks.get(task).name;
        let names = (name(placed.waker), name(placed.task));
        self.by_names.entry(names).or_default()[usize::from(sync)] += 1;
        let wake = if sync { Wake::Sync } else { Wake::Plain };
        let moved = placed.actual != placed.prev_cpu;
        let hint = Hint { wake, scanned: placed.decision.scanned, moved };
        self.placed.insert((decided.time_ns, placed.task), hint);
    }
}
