//! CFS bandwidth control: cpu.max.
//!
//! ```text
//!   period timer ──> runtime of the cgroup ──> slices ──> runtime of each CPU's queue
//! ```
//!
//! Each period the cgroup gets its quota of runtime. A CPU takes it in slices, for what its tasks
//! of the cgroup use; where there is none left, it throttles the cgroup once none of its tasks is
//! current any more, and the next period timer lets it go on as far as the quota makes up for
//! what was used too much. A CPU that runs out of tasks gives back what it has left but for a
//! millisecond; the slack timer hands that to CPUs that wait.
//!
//! Limits: cgroups are throttled as a whole in all kernels (task by task from v6.18 on); slices
//! that are left over last beyond their period, as from v5.4 on; there is no cpu.max.burst; the
//! timers take no CPU time, and what they decide reaches all CPUs at once; periods count from
//! boot.

use placewise_policy::*;
use placewise_workload::program::Quota;

use crate::engine::Engine;
use crate::state::cfs_bandwidth::Bandwidth;
use crate::state::cpu::Activity;
use crate::state::event_queue::Time;
use crate::state::events::Slot;

/// sched_cfs_bandwidth_slice.
const SLICE: i64 = 5_000_000;
const SLACK_PERIOD: Time = 5_000_000;
/// Slack is not worth while a period is as near to its end: min_bandwidth_expiration.
const MIN_EXPIRATION: Time = 2_000_000;

impl Engine<'_> {
    fn bandwidth_of(&mut self, group: u32) -> &mut Bandwidth {
        &mut self.confinement.cfs_bandwidth.groups[group as usize]
    }

    fn remaining(&mut self, group: u32, cpu: CpuId) -> &mut i64 {
        &mut self.bandwidth_of(group).remaining[cpu]
    }

    /// runtime_enabled: a CPU that goes offline has to get rid of its tasks.
    fn is_limited(&self, group: u32, cpu: CpuId) -> bool {
        self.confinement.cfs_bandwidth.groups[group as usize].quota.is_some() && self.is_online(cpu)
    }

    fn is_throttled(&self, group: u32, cpu: CpuId) -> bool {
        self.scheduler.policy.group_rq[group as usize][cpu].throttled != 0
    }

    fn is_empty(&self, group: u32, cpu: CpuId) -> bool {
        self.scheduler.policy.group_rq[group as usize][cpu].cfs.h_nr_queued == 0
    }

    /// Does something to each group that the task is in, if any may be limited, which is seldom so. Only fair tasks
    /// use runtime.
    #[inline]
    fn for_limited(&mut self, cpu: CpuId, task: TaskId, act: fn(&mut Self, u32, CpuId)) {
        if self.confinement.cfs_bandwidth.in_use && !self.scheduler.is_rt(task) {
            self.for_groups_of(cpu, task, act);
        }
    }

    #[inline(never)]
    fn for_groups_of(&mut self, cpu: CpuId, task: TaskId, act: fn(&mut Self, u32, CpuId)) {
        self.groups_of(task).for_each(|group| act(self, group, cpu));
    }

    /// The task groups that a task is in, from below.
    pub(crate) fn groups_of(&self, task: TaskId) -> impl Iterator<Item = u32> + use<> {
        let mut group = self.scheduler.policy.task[task].task_group;
        let mut groups = [ROOT_TASK_GROUP; NR_TASK_GROUP_LEVELS as usize];
        for level in &mut groups {
            *level = group;
            group = self.scheduler.policy.task_group[group as usize].parent;
        }
        groups.into_iter().take_while(|&group| group != ROOT_TASK_GROUP)
    }

    /// tg_set_cfs_bandwidth: cpu.max of a task group is set.
    pub(crate) fn set_quota(&mut self, group: u32, quota: Option<Quota>) {
        let bandwidth = self.bandwidth_of(group);
        bandwidth.quota = quota;
        bandwidth.runtime = quota.map_or(0, |quota| quota.quota);
        if quota.is_some() {
            self.start_period(group);
        }
        for cpu in self.cpus.ids() {
            *self.remaining(group, cpu) = 0;
            self.unthrottle(group, cpu);
        }
    }

    fn start_period(&mut self, group: u32) {
        let slot = Slot::Period(group);
        let Some(quota) = self.bandwidth_of(group).quota else { return };
        if self.events.due(slot).is_none() {
            self.events.arm(slot, (self.now / quota.period + 1) * quota.period);
        }
    }

    /// The current task of `cpu` has used runtime of all its task groups.
    pub(super) fn account_runtime(&mut self, cpu: CpuId, task: TaskId, ran: Time) {
        for group in self.groups_of(task) {
            if !self.is_limited(group, cpu) {
                continue;
            }
            *self.remaining(group, cpu) -= ran as i64;
            if !self.has_runtime(group, cpu, SLICE) {
                self.cpus[cpu].need_resched = true;
            }
        }
    }

    /// Is there runtime left for a task group on `cpu`, or to be had: up to `target`?
    fn has_runtime(&mut self, group: u32, cpu: CpuId, target: i64) -> bool {
        if *self.remaining(group, cpu) > 0 {
            return true;
        }
        self.start_period(group);
        self.bandwidth_of(group).assign(cpu, target)
    }

    /// check_cfs_rq_runtime: the task, which was current, waits again or sleeps.
    #[inline]
    pub(super) fn throttle_exhausted(&mut self, cpu: CpuId, task: TaskId) {
        self.for_limited(cpu, task, |engine, group, cpu| {
            engine.throttle_if_exhausted(group, cpu, 1);
        });
    }

    /// check_enqueue_throttle: a task comes to groups that may have had none here.
    #[inline]
    pub(super) fn throttle_before_enqueue(&mut self, cpu: CpuId, task: TaskId) {
        self.for_limited(cpu, task, |engine, group, cpu| {
            if engine.is_empty(group, cpu) {
                engine.throttle_if_exhausted(group, cpu, SLICE);
            }
        });
    }

    fn throttle_if_exhausted(&mut self, group: u32, cpu: CpuId, target: i64) {
        let throttles = self.is_limited(group, cpu)
            && !self.is_throttled(group, cpu)
            && !self.has_runtime(group, cpu, target);
        if !throttles {
            return;
        }
        let now = self.now;
        self.bandwidth_of(group).throttled.push((cpu, now));
        self.scheduler.throttle(group, cpu, now);
    }

    fn unthrottle(&mut self, group: u32, cpu: CpuId) {
        let now = self.now;
        let bandwidth = self.bandwidth_of(group);
        let Some(at) = bandwidth.throttled.iter().position(|&(waits, _)| waits == cpu) else {
            return;
        };
        let (_, since) = bandwidth.throttled.remove(at);
        bandwidth.statistics.throttled_ns += now - since;
        self.account_current(cpu);
        self.scheduler.unthrottle(group, cpu, now);
        if self.cpus[cpu].activity == Activity::Idle && self.scheduler.policy.rq[cpu].nr_running > 0
        {
            self.kick_idle(cpu, self.now);
        }
    }

    /// do_sched_cfs_period_timer.
    pub(crate) fn period_begins(&mut self, group: u32) {
        let bandwidth = self.bandwidth_of(group);
        let Some(quota) = bandwidth.quota else { return };
        let waits = !bandwidth.throttled.is_empty();
        bandwidth.runtime = quota.quota;
        bandwidth.statistics.nr_periods += 1;
        if bandwidth.idle && !waits {
            return;
        }
        bandwidth.statistics.nr_throttled += u64::from(waits);
        bandwidth.idle = !waits;
        self.start_period(group);
        self.distribute(group);
    }

    /// CPUs that wait get what makes up for what they used too much, first come first served.
    fn distribute(&mut self, group: u32) {
        for (cpu, _) in self.bandwidth_of(group).throttled.clone() {
            if self.has_runtime(group, cpu, 1) {
                self.unthrottle(group, cpu);
            }
        }
    }

    /// return_cfs_rq_runtime: a task has left; groups that have none left here give back the rest.
    #[inline]
    pub(super) fn return_runtime(&mut self, cpu: CpuId, task: TaskId) {
        self.for_limited(cpu, task, |engine, group, cpu| {
            if engine.is_empty(group, cpu) && engine.is_limited(group, cpu) {
                engine.return_runtime_of(group, cpu);
            }
        });
    }

    fn return_runtime_of(&mut self, group: u32, cpu: CpuId) {
        let bandwidth = self.bandwidth_of(group);
        if bandwidth.give_back(cpu)
            && bandwidth.runtime > SLICE as Time
            && !bandwidth.throttled.is_empty()
        {
            self.start_slack(group);
        }
    }

    fn start_slack(&mut self, group: u32) {
        let slot = Slot::Slack(group);
        let near = self.period_ends_within(group, SLACK_PERIOD + MIN_EXPIRATION);
        if !near && self.events.due(slot).is_none() {
            self.events.arm(slot, self.now + SLACK_PERIOD);
        }
    }

    fn period_ends_within(&self, group: u32, time: Time) -> bool {
        let end = self.events.due(Slot::Period(group));
        end.is_none_or(|end| end < self.now + time)
    }

    /// do_sched_cfs_slack_timer.
    pub(crate) fn slack_timer(&mut self, group: u32) {
        let bandwidth = self.bandwidth_of(group);
        let worth = bandwidth.quota.is_some() && bandwidth.runtime > SLICE as Time;
        if worth && !self.period_ends_within(group, MIN_EXPIRATION) {
            self.distribute(group);
        }
    }

    /// unthrottle_offline_cfs_rqs: a CPU that goes offline lets all its tasks go.
    pub(super) fn unthrottle_all(&mut self, cpu: CpuId) {
        for group in 1..self.confinement.cfs_bandwidth.groups.len() as u32 {
            *self.remaining(group, cpu) = 1;
            self.unthrottle(group, cpu);
        }
    }
}
