//! What it takes to know the load of a task group. All CPUs share one number (`tg->load_avg`): it is read whenever
//! a task comes to a run queue or leaves it (`update_cfs_group`), and written where the load there has changed by
//! more than a 64th (`update_tg_load_avg`), which it has where tasks come from other CPUs. The lock of the run
//! queue is held meanwhile. Since v6.7 a CPU writes it once in a millisecond.
//!
//! Limits: ticks and balancing do so for nothing.

use placewise_policy::{CpuId, ROOT_TASK_GROUP, TaskId};

use crate::engine::Engine;
use crate::state::event_queue::Time;
use crate::state::shared_line::{Asks, Takes};

impl Engine<'_> {
    /// `by` has put a task on the run queue of `cpu`, or taken it off, when the clock there said `at`; the time is owed.
    #[inline]
    pub(super) fn weigh_groups(&mut self, cpu: CpuId, task: TaskId, by: CpuId, at: Time) {
        if self.workload.has_waits_for_load {
            return;
        }
        let mut group = self.scheduler.policy.task[task].task_group;
        while group != ROOT_TASK_GROUP {
            self.weigh_group(group as usize, cpu, by, at);
            group = self.scheduler.policy.task_group[group as usize].parent;
        }
    }

    fn weigh_group(&mut self, group: usize, cpu: CpuId, by: CpuId, at: Time) {
        let asked = self.owes_until(by);
        let contributes = self.scheduler.policy.group_rq[group][cpu].last_update_tg_load_avg == at;
        let cache = self.hardware.memory.places[by].cache.into();
        let load = &mut self.confinement.loads[group];
        let asks = Asks { cpu: by, cache, at: asked, writes: contributes };
        let takes = Takes {
            from_writer: self.costs.cache_lines(1, load.last_writer, by),
            near: self.costs.line_within_cache(),
        };
        let waits = load.come(asks, takes) - asked;
        if waits > 0 {
            self.owe_turn(by, waits, 0);
            let done = self.owes_until(by);
            self.cpus[cpu].lock.keep_until(done);
        }
    }
}
