//! What changes from outside during a run, at the times that the workload names.

use placewise_workload::program::{Change, Setting};

use crate::engine::Engine;
use crate::error::SimError;
use crate::state::confinement::task_group;
use crate::state::events::Slot;

impl Engine<'_> {
    /// The next change is due at its time.
    pub(crate) fn await_change(&mut self) {
        if let Some(change) = self.changes.first() {
            self.events.arm(Slot::Change, change.at.max(self.now));
        }
    }

    pub(crate) fn change(&mut self) -> Result<(), SimError> {
        let Some((Change { to, .. }, later)) = self.changes.split_first() else { return Ok(()) };
        self.changes = later;
        self.await_change();
        match *to {
            Setting::Offline { cpu } => self.set_online(cpu.into(), false)?,
            Setting::Online { cpu } => self.set_online(cpu.into(), true)?,
            Setting::Cpuset { cgroup, cpus } => self.set_cpuset(task_group(Some(cgroup)), cpus),
            Setting::Quota { cgroup, quota } => self.set_quota(task_group(Some(cgroup)), quota),
            Setting::Affinity { ref task, cpus } => self.set_affinity(task, cpus),
        }
        Ok(())
    }
}
