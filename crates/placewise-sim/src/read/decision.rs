//! Placement decisions, and what each of them read if the trace is to show it.
//!
//! The readings are taken before the policy is asked, which changes some of
//! them, and the event is recorded after it has answered. A run whose trace does
//! not take decisions pays one test per decision.

use placewise_machine::CpuSet;
use placewise_policy::*;
use placewise_trace::{
    AffineReason, CpuReadings, Decision, Readings, RunQueueReadings, SearchReason,
    SlowPathReadings, TaskReadings, WakeupReadings,
};

use crate::engine::Engine;
use crate::state::affinity::cpu_set;

impl Engine<'_> {
    /// The decision before it is taken.
    pub(crate) fn readings(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        prev: CpuId,
        wake_flags: u32,
    ) -> Decision {
        let (placement, cpus) = if wake_flags & WF_TTWU != 0 {
            let readings = self.wakeup_readings(cpu, task, prev, wake_flags);
            (Readings::Wakeup(readings), self.searchable(cpu) | self.searchable(prev))
        } else {
            let readings = self.slow_path_readings(task);
            (Readings::Fork(readings), cpu_set(&self.scheduler.policy.root.online))
        };
        let state = &self.scheduler.policy;
        let placed = &state.task[task];
        Decision {
            pid: self.pid(task),
            waker_pid: self.pid(self.scheduler.current(cpu)),
            waking_cpu: cpu.into(),
            prev_cpu: prev.into(),
            jiffies: self.now / u64::from(state.root.tick_ns),
            cpus,
            idle: cpu_set(&state.root.idle) & cpus,
            sched_idle: cpu_set(&state.root.sched_idle) & cpus,
            allowed: cpu_set(&placed.cpus_allowed),
            hint: placed.hint.into(),
            idle_policy: placed.idle_policy != 0,
            placement,
            target_cpu: prev.into(),
            result_cpu: prev.into(),
            affine: AffineReason::NotTried,
            search: SearchReason::None,
        }
    }

    /// The CPUs that a search from `cpu` may look at: its LLC, and where CPUs differ in capacity,
    /// the lowest domain that shows it.
    fn searchable(&self, cpu: CpuId) -> CpuSet {
        let state = &self.scheduler.policy;
        let here = &state.cpu[cpu];
        let spans = state.domain[cpu][..here.nr_domains as usize]
            .iter()
            .map(|domain| &state.span[domain.span as usize]);
        let all_capacities =
            spans.into_iter().find(|span| span.flags & SD_ASYM_CPUCAPACITY_FULL != 0);
        cpu_set(&state.llc[here.llc as usize].cpus)
            | all_capacities.map_or(CpuSet::EMPTY, |span| cpu_set(&span.cpus))
    }

    fn wakeup_readings(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        prev: CpuId,
        wake_flags: u32,
    ) -> WakeupReadings {
        let waker = self.scheduler.current(cpu);
        let prev_curr = self.scheduler.current(prev);
        let [of_waker, of_wakee, of_prev_curr] =
            [waker, task, prev_curr].map(|task| self.task_readings(task));
        let wakee_util_est = self.scheduler.policy.task_util_est(task.into());
        let state = &self.scheduler.policy;
        let rq = &state.rq[cpu];
        let exiting = state.task[waker].exiting != 0;
        WakeupReadings {
            sync: wake_flags & WF_SYNC != 0 && !exiting,
            interrupt: wake_flags & WF_INTERRUPT != 0,
            waking: self.cpu_readings(cpu),
            prev: self.cpu_readings(prev),
            avg_idle: rq.avg_idle,
            wake_avg_idle: rq.wake_avg_idle,
            wake_stamp: rq.wake_stamp,
            avg_scan_cost: self.avg_scan_cost(cpu),
            waker_per_cpu_kthread: state.task[waker].per_cpu_kthread != 0,
            waker: of_waker,
            wakee: of_wakee,
            wakee_recent_used_cpu: state.task[task].recent_used_cpu,
            wakee_util_est,
            prev_curr_pid: self.pid(prev_curr),
            prev_curr: of_prev_curr,
        }
    }

    fn cpu_readings(&self, cpu: CpuId) -> CpuReadings {
        let rq = &self.scheduler.policy.rq[cpu];
        let llc = &self.scheduler.policy.llc[self.scheduler.policy.cpu[cpu].llc as usize];
        CpuReadings {
            nr_running: rq.nr_running,
            h_nr_delayed: rq.cfs.h_nr_delayed,
            load: match self.scheduler.policy.profile.affine {
                AFFINE_QUEUES => rq.cfs.load_weight,
                _ => rq.cfs.avg.load_avg,
            },
            has_idle_cores: llc.has_idle_cores != 0,
            nr_idle_scan: llc.nr_idle_scan,
        }
    }

    /// SIS_PROP keeps the cost in the domain of the LLC, which a lone CPU does not have.
    fn avg_scan_cost(&self, cpu: CpuId) -> u64 {
        let llc = self.scheduler.policy.cpu[cpu].llc;
        let level = self.scheduler.policy.llc[llc as usize].domain_level as usize;
        self.scheduler.policy.domain[cpu].get(level).map_or(0, |domain| domain.avg_scan_cost)
    }

    fn task_readings(&mut self, task: TaskId) -> TaskReadings {
        let h_load = self.task_h_load(task);
        let record = &self.scheduler.policy.task[task];
        TaskReadings {
            wakee_flips: record.wakee_flips,
            wakee_flip_decay_ts: record.wakee_flip_decay_ts,
            last_wakee: match record.last_wakee {
                NO_TASK => 0,
                wakee => self.pid(wakee.into()),
            },
            load: match self.scheduler.policy.profile.affine {
                AFFINE_QUEUES => record.weight.into(),
                _ => h_load,
            },
            sum_exec_runtime: record.sum_exec_runtime,
            nvcsw: record.nvcsw,
            run_length_avg: record.run_length_avg,
        }
    }

    /// The policy's task_h_load(). That keeps parts of its answer for the rest of the jiffy, which a
    /// decision that does not ask must not do: tracing leaves the run as it is.
    fn task_h_load(&mut self, task: TaskId) -> u64 {
        let cpu = self.scheduler.cpu_of(task);
        let groups = self.groups_of(task).chain([ROOT_TASK_GROUP]);
        let policy = &mut self.scheduler.policy;
        let before: Vec<(u32, u64, u64)> = groups
            .map(|group| {
                let CfsRq { h_load, last_h_load_update, .. } = *cfs_rq(policy, group, cpu);
                (group, h_load, last_h_load_update)
            })
            .collect();
        let load = policy.task_h_load(task.into());
        for (group, h_load, last_h_load_update) in before {
            let queue = cfs_rq(policy, group, cpu);
            (queue.h_load, queue.last_h_load_update) = (h_load, last_h_load_update);
        }
        load
    }

    fn slow_path_readings(&mut self, task: TaskId) -> SlowPathReadings {
        let load = self.task_h_load(task);
        let util_est = self.scheduler.policy.task_util_est(task.into());
        let state = &self.scheduler.policy;
        let record = &state.task[task];
        let imbalanced = |group: &u32| state.group[*group as usize].imbalance != 0;
        SlowPathReadings {
            load,
            runnable: record.avg.runnable_avg,
            util: record.avg.util_avg,
            util_est,
            imbalanced_groups: (0..state.root.nr_groups).filter(imbalanced).collect(),
            rq: state.root.online.iter().map(|cpu| self.run_queue_readings(cpu)).collect(),
        }
    }

    fn run_queue_readings(&self, cpu: CpuId) -> RunQueueReadings {
        let rq = &self.scheduler.policy.rq[cpu];
        let latency = rq.idle_exit_latency;
        RunQueueReadings {
            cpu: cpu.into(),
            nr_running: rq.nr_running,
            h_nr_queued: rq.cfs.h_nr_queued,
            h_nr_delayed: rq.cfs.h_nr_delayed,
            load: rq.cfs.avg.load_avg,
            runnable: rq.cfs.avg.runnable_avg,
            util: rq.cfs.avg.util_avg,
            util_est: rq.cfs.util_est,
            idle_stamp: rq.idle_stamp,
            idle_exit_latency: (latency != LATENCY_UNKNOWN).then_some(latency),
        }
    }
}

fn cfs_rq(state: &mut State, group: u32, cpu: CpuId) -> &mut CfsRq {
    match group {
        ROOT_TASK_GROUP => &mut state.rq[cpu].cfs,
        group => &mut state.group_rq[group as usize][cpu].cfs,
    }
}
