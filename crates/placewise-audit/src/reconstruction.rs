//! What a kernel's placement decisions saw, rebuilt from a trace, and the
//! decisions made again.
//!
//! The steps of a trace drive the policy's state as an engine does: a wakeup
//! enqueues, a switch picks and dequeues, a tick is made up where the kernel had
//! one. So run queues, idle masks, wake relations, run lengths and PELT are kept
//! by the policy's own code. At every wakeup and fork the policy is asked where
//! it would have put the task; then the task goes where the kernel put it.
//!
//! What a trace does not show is inferred (see [`crate::inference`]). Limits:
//! tasks of other classes than fair are queued like fair ones of almost no
//! weight; no task groups; averages start at 0 with the trace; the scan limit is
//! renewed once per balance interval of an idle LLC.

use placewise_machine::{Machine, MachineError};
use placewise_policy::weight::weight_of;
use placewise_policy::*;
use placewise_trace::Context;

use crate::affinity::Affinity;
use crate::step::{Action, Outcome, PrevState, Step};
use crate::sync::SyncFlags;
use crate::task::{TaskId, Tasks};

/// Idle CPUs' blocked load is brought up to date this often (LOAD_AVG_PERIOD jiffies of 1 ms).
const BLOCKED_LOAD_PERIOD_NS: u64 = 32_000_000;
const NSEC_PER_MSEC: u64 = 1_000_000;
/// Priorities below are real-time.
const MAX_RT_PRIO: i32 = 100;
const DEFAULT_PRIO: i32 = 120;

/// Where a task is, as far as the trace has told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Whereabouts {
    #[default]
    Unseen,
    Asleep,
    /// On a run queue, running or not.
    Queued,
    /// Between sched_waking and sched_wakeup.
    Waking,
}

/// A wakeup whose wakee was still on its CPU.
#[derive(Clone, Copy, Debug)]
struct Spinning {
    waking_cpu: u32,
    prev_cpu: u32,
    context: Context,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, Default)]
struct TaskTrail {
    whereabouts: Whereabouts,
    /// The CPU on whose wake list it is.
    pending_on: Option<u32>,
    spinning: Option<Spinning>,
    /// It went to sleep while others were queued on its CPU: it may have stayed queued (delayed).
    slept_beside_others: bool,
}

/// Why a wakeup ran no placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPlacement {
    /// The wakee had not been switched out.
    StillQueued,
    /// It was switching out, and went over its CPU's wake list.
    StillOnCpu,
    /// It slept, but was still queued (delayed dequeue).
    Delayed,
    /// It may run on one CPU only.
    Bound,
    /// It is no fair task.
    OtherClass,
    /// The trace does not show how it ended.
    NoEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Wakeup,
    Fork,
}

/// One decision of the kernel beside that of the policy.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub kind: Kind,
    pub time_ns: u64,
    pub task: TaskId,
    pub waker: TaskId,
    pub waking_cpu: u32,
    pub prev_cpu: u32,
    /// What the kernel chose.
    pub actual: u32,
    /// What the policy chooses.
    pub predicted: u32,
    pub decision: Decision,
    pub moved_by_event: bool,
}

/// What a step was.
#[derive(Clone, Copy, Debug)]
pub enum Verdict {
    Nothing,
    NoPlacement(NoPlacement),
    Placed(Placed),
}

/// The state that a trace has led to, under one policy.
pub struct Reconstruction {
    state: Placement,
    trails: Vec<TaskTrail>,
    /// Wakeups on their way over each CPU's wake list.
    pending: Vec<u32>,
    /// When each LLC's scan limit is due again.
    scan_limit_due: Vec<u64>,
    affinity: Affinity,
    sync: SyncFlags,
    now: u64,
}

impl Reconstruction {
    pub fn new(machine: &Machine, policy: &Policy) -> Result<Self, MachineError> {
        let (mut state, _) = topology::boot(machine, &policy.profile)?;
        for cpu in 0..machine.cpus.len() {
            state.rq[cpu].idle_exit_latency = LATENCY_UNKNOWN;
        }
        Ok(Reconstruction {
            affinity: Affinity::new(machine),
            state,
            trails: Vec::new(),
            pending: vec![0; NR_CPUS as usize],
            scan_limit_due: vec![0; NR_CPUS as usize],
            sync: SyncFlags::default(),
            now: 0,
        })
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn sync_flags(&self) -> &SyncFlags {
        &self.sync
    }

    /// Takes the next step of the trace.
    pub fn step(&mut self, step: &Step, tasks: &Tasks) -> Verdict {
        self.now = self.now.max(step.time_ns + topology::BOOT);
        match step.action {
            Action::Running { task } => self.running(step.cpu, task, tasks),
            Action::Waking { task, prev_cpu, outcome } => {
                return self.waking(step, task, prev_cpu, outcome, tasks);
            }
            Action::Wakeup { task, target_cpu } => return self.wakeup(task, target_cpu, tasks),
            Action::Fork { parent, child } => self.fork(step.cpu, parent, child, tasks),
            Action::WakeupNew { task, target_cpu } => {
                return self.wakeup_new(step, task, target_cpu, tasks);
            }
            Action::Migrate { task, from, to, placement } => {
                self.migrate(step.cpu, task, from, to, placement, tasks);
            }
            Action::Switch { prev, prev_state, next } => {
                return self.switch(step.cpu, prev, prev_state, next, tasks);
            }
            Action::Exit { task } => self.state.task[task as usize].exiting = 1,
            Action::Lost { .. } => {}
            Action::Forgotten { task } => self.forget(task),
            Action::Exec { .. } | Action::Decided(_) => {}
        }
        Verdict::Nothing
    }

    fn trail(&mut self, task: TaskId) -> &mut TaskTrail {
        let at = task as usize;
        if self.trails.len() <= at {
            self.trails.resize(at + 1, TaskTrail::default());
        }
        &mut self.trails[at]
    }

    fn whereabouts(&self, task: TaskId) -> Whereabouts {
        self.trails.get(task as usize).map_or(Whereabouts::Unseen, |trail| trail.whereabouts)
    }

    /// A task is first heard of: it last was on `cpu`.
    fn meet(&mut self, task: TaskId, cpu: u32, tasks: &Tasks) {
        if task < FIRST_TASK || self.whereabouts(task) != Whereabouts::Unseen {
            return;
        }
        let weight = weight_of_prio(tasks.get(task).prio);
        self.state.task[task as usize] = Task {
            avg: SchedAvg { load_avg: u64::from(weight), ..self.state.task[task as usize].avg },
            weight,
            last_wakee: NO_TASK,
            recent_used_cpu: cpu as u16,
            cpu: cpu as u16,
            mru_prev: NO_TASK,
            mru_next: NO_TASK,
            eligible: 1,
            ..self.state.task[task as usize]
        };
        self.learn_affinity(task, cpu, tasks);
        self.trail(task).whereabouts = Whereabouts::Asleep;
    }

    fn learn_affinity(&mut self, task: TaskId, cpu: u32, tasks: &Tasks) {
        let allowed = self.affinity.of(task, tasks.name_of(task), cpu);
        let entry = &mut self.state.task[task as usize];
        entry.cpus_allowed = allowed.cpus;
        entry.nr_cpus_allowed = allowed.nr;
        entry.per_cpu_kthread = allowed.per_cpu_kthread.into();
    }

    fn current(&self, cpu: u32) -> TaskId {
        self.state.rq[cpu as usize].curr
    }

    /// The trace shows `task` on `cpu`, whatever is known of both.
    fn running(&mut self, cpu: u32, task: TaskId, tasks: &Tasks) {
        if self.current(cpu) == task {
            return;
        }
        self.switch_in(cpu, task, tasks);
    }

    fn put_on_queue(&mut self, task: TaskId, cpu: u32, flags: u32) {
        if task < FIRST_TASK {
            return;
        }
        if self.whereabouts(task) == Whereabouts::Queued {
            if u32::from(self.state.task[task as usize].cpu) == cpu {
                return;
            }
            self.take_off_queue(task, DEQUEUE_MIGRATE);
        }
        self.state.set_task_cpu(task, cpu);
        self.state.enqueue_task(task, flags, self.now);
        self.trail(task).whereabouts = Whereabouts::Queued;
    }

    fn take_off_queue(&mut self, task: TaskId, flags: u32) {
        let cpu = u32::from(self.state.task[task as usize].cpu);
        if self.current(cpu) == task {
            self.state.update_curr(cpu, self.now);
            self.state.rq[cpu as usize].curr = cpu;
        }
        self.state.dequeue_task(task, flags, self.now);
        self.trail(task).whereabouts = Whereabouts::Asleep;
    }

    fn switch_in(&mut self, cpu: u32, next: TaskId, tasks: &Tasks) {
        self.meet(next, cpu, tasks);
        self.put_on_queue(next, cpu, 0);
        if next < FIRST_TASK {
            self.state.rq[cpu as usize].idle_stamp = self.now;
        }
        self.state.set_next_task(cpu, next, self.now);
    }

    fn switch(
        &mut self,
        cpu: u32,
        prev: TaskId,
        prev_state: PrevState,
        next: TaskId,
        tasks: &Tasks,
    ) -> Verdict {
        self.running(cpu, prev, tasks);
        self.catch_up_ticks(cpu);
        self.state.update_curr(cpu, self.now);
        let mut verdict = Verdict::Nothing;
        if prev >= FIRST_TASK {
            match prev_state {
                PrevState::Runnable => {
                    self.state.put_prev_task(cpu, self.now);
                    self.state.task[prev as usize].nivcsw += 1;
                }
                PrevState::Asleep | PrevState::Dead => self.fall_asleep(cpu, prev),
            }
        }
        self.switch_in(cpu, next, tasks);
        if prev_state == PrevState::Asleep
            && let Some(spinning) = self.trail(prev).spinning.take()
        {
            verdict = Verdict::Placed(self.place(prev, &spinning, tasks));
            self.leave_for(prev, spinning.waking_cpu, spinning.outcome);
        }
        if prev_state == PrevState::Dead {
            self.trail(prev).whereabouts = Whereabouts::Unseen;
            self.state.task[prev as usize].exiting = 0;
        }
        verdict
    }

    fn fall_asleep(&mut self, cpu: u32, task: TaskId) {
        self.state.task[task as usize].nvcsw += 1;
        let others = self.state.rq[cpu as usize].nr_running > 1;
        self.state.dequeue_task(task, DEQUEUE_SLEEP, self.now);
        let trail = self.trail(task);
        trail.whereabouts = Whereabouts::Asleep;
        trail.slept_beside_others = others;
    }

    fn forget(&mut self, task: TaskId) {
        if self.whereabouts(task) == Whereabouts::Queued {
            self.take_off_queue(task, DEQUEUE_MIGRATE);
        }
        self.arrive(task);
        *self.trail(task) = TaskTrail::default();
    }

    fn waking(
        &mut self,
        step: &Step,
        task: TaskId,
        prev_cpu: u32,
        outcome: Option<Outcome>,
        tasks: &Tasks,
    ) -> Verdict {
        if task < FIRST_TASK {
            return Verdict::Nothing;
        }
        self.meet(task, prev_cpu, tasks);
        self.learn_affinity(task, prev_cpu, tasks);
        let Some(outcome) = outcome else {
            return Verdict::NoPlacement(NoPlacement::NoEnd);
        };
        let wakeup = Spinning { waking_cpu: step.cpu, prev_cpu, context: step.context, outcome };
        if self.whereabouts(task) == Whereabouts::Queued {
            return self.wake_queued(task, wakeup);
        }
        self.state.set_task_cpu(task, prev_cpu);
        self.trail(task).whereabouts = Whereabouts::Waking;
        if let Some(reason) = self.no_placement(task, &wakeup, tasks) {
            self.leave_for(task, step.cpu, outcome);
            return Verdict::NoPlacement(reason);
        }
        let placed = self.place(task, &wakeup, tasks);
        self.leave_for(task, step.cpu, outcome);
        Verdict::Placed(placed)
    }

    /// The wakee has not been switched out yet, or is waiting to run.
    fn wake_queued(&mut self, task: TaskId, wakeup: Spinning) -> Verdict {
        if self.current(wakeup.prev_cpu) != task {
            return Verdict::NoPlacement(NoPlacement::StillQueued);
        }
        let over_wake_list = wakeup.outcome.woken_by == wakeup.prev_cpu
            && wakeup.prev_cpu != wakeup.waking_cpu
            && !wakeup.outcome.migrated;
        if over_wake_list {
            return Verdict::NoPlacement(NoPlacement::StillOnCpu);
        }
        self.trail(task).spinning = Some(wakeup);
        Verdict::Nothing
    }

    fn no_placement(&mut self, task: TaskId, wakeup: &Spinning, tasks: &Tasks) -> Option<NoPlacement> {
        if tasks.get(task).prio < MAX_RT_PRIO {
            return Some(NoPlacement::OtherClass);
        }
        if self.state.task[task as usize].nr_cpus_allowed == 1 {
            return Some(NoPlacement::Bound);
        }
        self.was_delayed(task, wakeup).then_some(NoPlacement::Delayed)
    }

    /// Woken at once by the waker, where an ordinary wakeup would have used the wake list.
    fn was_delayed(&mut self, task: TaskId, wakeup: &Spinning) -> bool {
        let Spinning { waking_cpu, prev_cpu, outcome, .. } = *wakeup;
        self.state.profile.delayed_dequeue
            && self.trail(task).slept_beside_others
            && !outcome.migrated
            && outcome.woken_by == waking_cpu
            && waking_cpu != prev_cpu
            && self.state.ttwu_queue_wakelist(task, waking_cpu, prev_cpu, false)
    }

    fn place(&mut self, task: TaskId, wakeup: &Spinning, tasks: &Tasks) -> Placed {
        let Spinning { waking_cpu, prev_cpu, context, outcome } = *wakeup;
        self.catch_up_loads(waking_cpu);
        self.catch_up_loads(prev_cpu);
        self.renew_scan_limit(waking_cpu);
        self.renew_scan_limit(prev_cpu);
        let interrupt = matches!(
            context,
            Context::HardInterrupt | Context::HardInterruptResched | Context::SoftInterrupt
        );
        let waker = self.current(waking_cpu);
        let flags = WF_TTWU | if interrupt { WF_INTERRUPT } else { 0 };
        let guess = self.sync.guess(waker, task, interrupt, tasks);
        let before = Memory::of(&self.state, waker, task);
        let mut predicted = self.select(task, prev_cpu, waking_cpu, flags, guess);
        let mut decision = self.state.decision;
        if self.sync.may_be_sync(waker, interrupt) {
            let after = Memory::of(&self.state, waker, task);
            before.restore(&mut self.state, waker, task);
            let other = self.select(task, prev_cpu, waking_cpu, flags, !guess);
            after.restore(&mut self.state, waker, task);
            self.sync.learn(waker, task, guess, predicted, other, outcome.cpu, tasks);
        }
        std::mem::swap(&mut self.state.decision, &mut decision);
        let decision = std::mem::replace(&mut self.state.decision, decision);
        if !self.state_allows(task, outcome.cpu) {
            self.affinity.widen(task, outcome.cpu);
        }
        self.affinity.learn(task, predicted, outcome.cpu);
        predicted = predicted.min(NR_CPUS - 1);
        Placed {
            kind: Kind::Wakeup,
            time_ns: self.now,
            task,
            waker,
            waking_cpu,
            prev_cpu,
            actual: outcome.cpu,
            predicted,
            decision,
            moved_by_event: outcome.migrated,
        }
    }

    fn state_allows(&self, task: TaskId, cpu: u32) -> bool {
        let bits = &self.state.task[task as usize].cpus_allowed.bits;
        bits[cpu as usize / 64] >> (cpu % 64) & 1 != 0
    }

    fn select(&mut self, task: TaskId, prev: u32, cpu: u32, flags: u32, sync: bool) -> u32 {
        let flags = flags | if sync { WF_SYNC } else { 0 };
        self.state.select_task_rq(task, prev, cpu, flags, self.now)
    }

    /// The wakee is on its way to where the kernel put it.
    fn leave_for(&mut self, task: TaskId, waking_cpu: u32, outcome: Outcome) {
        if !outcome.migrated && outcome.woken_by == outcome.cpu && outcome.cpu != waking_cpu {
            self.send(task, outcome.cpu);
        }
    }

    fn send(&mut self, task: TaskId, cpu: u32) {
        self.arrive(task);
        self.trail(task).pending_on = Some(cpu);
        self.pending[cpu as usize] += 1;
        self.state.set_ttwu_pending(cpu, true);
    }

    fn arrive(&mut self, task: TaskId) {
        if let Some(cpu) = self.trail(task).pending_on.take() {
            self.pending[cpu as usize] -= 1;
            if self.pending[cpu as usize] == 0 {
                self.state.set_ttwu_pending(cpu, false);
            }
        }
    }

    fn migrate(&mut self, cpu: u32, task: TaskId, from: u32, to: u32, placement: bool, tasks: &Tasks) {
        if task < FIRST_TASK {
            return;
        }
        self.meet(task, from, tasks);
        if self.whereabouts(task) == Whereabouts::Queued {
            self.put_on_queue(task, to, ENQUEUE_MIGRATED);
        } else {
            self.state.set_task_cpu(task, to);
            if placement && cpu != to && !self.shares_cache_and_busy(cpu, to) {
                self.send(task, to);
            }
        }
    }

    /// The wakee is enqueued by the waker itself: no wake list.
    fn shares_cache_and_busy(&mut self, cpu: u32, to: u32) -> bool {
        self.state.cpu[cpu as usize].llc == self.state.cpu[to as usize].llc
            && self.state.rq[to as usize].nr_running > 0
    }

    fn wakeup(&mut self, task: TaskId, target_cpu: u32, tasks: &Tasks) -> Verdict {
        if task < FIRST_TASK {
            return Verdict::Nothing;
        }
        self.meet(task, target_cpu, tasks);
        let still_queued = self.trail(task).spinning.take().is_some();
        self.put_on_queue(task, target_cpu, ENQUEUE_WAKEUP);
        self.arrive(task);
        self.state.sample_avg_idle(target_cpu, self.now);
        if still_queued {
            return Verdict::NoPlacement(NoPlacement::StillQueued);
        }
        Verdict::Nothing
    }

    fn fork(&mut self, cpu: u32, parent: TaskId, child: TaskId, tasks: &Tasks) {
        self.forget(child);
        self.meet(parent, cpu, tasks);
        let weight = weight_of_prio(tasks.get(parent).prio);
        self.state.task[child as usize] = Task {
            weight,
            avg: SchedAvg { last_update_time: 0, load_sum: 0, runnable_sum: 0, util_sum: 0,
                period_contrib: 0, load_avg: 0, runnable_avg: 0, util_avg: 0 },
            exec_start: 0,
            sum_exec_runtime: 0,
            prev_sleep_runtime: 0,
            run_length_avg: 0,
            nvcsw: 0,
            nivcsw: 0,
            util_est_enqueued: 0,
            util_est_ewma: 0,
            on_rq: 0,
            delayed: 0,
            exiting: 0,
            ..self.state.task[parent as usize]
        };
        self.state.copy_task(child, parent, cpu);
        self.affinity.inherit(child, parent);
        self.trail(child).whereabouts = Whereabouts::Asleep;
        self.learn_affinity(child, cpu, tasks);
    }

    fn wakeup_new(&mut self, step: &Step, task: TaskId, target_cpu: u32, tasks: &Tasks) -> Verdict {
        let known = self.whereabouts(task) != Whereabouts::Unseen;
        self.meet(task, step.cpu, tasks);
        for cpu in 0..self.state.root.nr_cpu_ids {
            self.catch_up_loads(cpu);
        }
        let predicted =
            self.state.select_task_rq(task, step.cpu, step.cpu, WF_FORK, self.now);
        let decision = self.state.decision;
        self.state.place_new_task(task, target_cpu);
        self.put_on_queue(task, target_cpu, 0);
        if !known || tasks.get(task).prio < MAX_RT_PRIO {
            return Verdict::Nothing;
        }
        if self.state.task[task as usize].nr_cpus_allowed == 1 {
            return Verdict::NoPlacement(NoPlacement::Bound);
        }
        Verdict::Placed(Placed {
            kind: Kind::Fork,
            time_ns: self.now,
            task,
            waker: decision.waker,
            waking_cpu: step.cpu,
            prev_cpu: step.cpu,
            actual: target_cpu,
            predicted,
            decision,
            moved_by_event: target_cpu != step.cpu,
        })
    }

    /// The last tick that a busy CPU had.
    fn catch_up_ticks(&mut self, cpu: u32) {
        let tick_ns = u64::from(self.state.root.tick_ns);
        let last_tick = self.now / tick_ns * tick_ns;
        if last_tick > self.state.rq[cpu as usize].cfs.avg.last_update_time {
            self.state.task_tick(cpu, last_tick);
        }
    }

    /// The averages of `cpu` as the kernel would have stored them by now.
    fn catch_up_loads(&mut self, cpu: u32) {
        if self.current(cpu) >= FIRST_TASK {
            return self.catch_up_ticks(cpu);
        }
        let last = self.now / BLOCKED_LOAD_PERIOD_NS * BLOCKED_LOAD_PERIOD_NS;
        if last > self.state.rq[cpu as usize].cfs.avg.last_update_time {
            self.state.update_blocked_averages(cpu, last);
        }
    }

    /// What the balancer's last statistics pass over the LLC of `cpu` made of the scan limit.
    fn renew_scan_limit(&mut self, cpu: u32) {
        let llc = usize::from(self.state.cpu[cpu as usize].llc);
        if self.now < self.scan_limit_due[llc] {
            return;
        }
        let size = self.state.llc[llc].size;
        let interval = u64::from(size) * NSEC_PER_MSEC;
        self.scan_limit_due[llc] = (self.now / interval + 1) * interval;
        let mut util = 0;
        for other in 0..self.state.root.nr_cpu_ids {
            if usize::from(self.state.cpu[other as usize].llc) == llc {
                self.catch_up_loads(other);
                let rq = &self.state.rq[other as usize].cfs;
                let of_cpu = rq.avg.util_avg.max(u64::from(rq.util_est));
                util += of_cpu.min(u64::from(self.state.cpu[other as usize].capacity_orig));
            }
        }
        let imbalance_pct = self.state.llc[llc].imbalance_pct;
        self.state.llc[llc].nr_idle_scan = nr_idle_scan_of(util, size, imbalance_pct);
    }
}

fn weight_of_prio(prio: i32) -> u32 {
    if prio < MAX_RT_PRIO {
        return 1;
    }
    weight_of((prio - DEFAULT_PRIO).clamp(-20, 19) as i8, false)
}

/// What a wakeup decision changes, so that it can be made twice.
struct Memory {
    last_wakee: u32,
    wakee_flips: u32,
    wakee_flip_decay_ts: u64,
    waker_recent: u16,
    wakee_recent: u16,
    llcs: [(u16, u32); 2],
}

impl Memory {
    fn of(state: &State, waker: TaskId, wakee: TaskId) -> Self {
        let (waker_task, wakee_task) =
            (&state.task[waker as usize], &state.task[wakee as usize]);
        let waking_cpu = waker_task.cpu;
        let llc = |cpu: u16| {
            let llc = state.cpu[usize::from(cpu)].llc;
            (llc, state.llc[usize::from(llc)].has_idle_cores)
        };
        Memory {
            last_wakee: waker_task.last_wakee,
            wakee_flips: waker_task.wakee_flips,
            wakee_flip_decay_ts: waker_task.wakee_flip_decay_ts,
            waker_recent: waker_task.recent_used_cpu,
            wakee_recent: wakee_task.recent_used_cpu,
            llcs: [llc(waking_cpu), llc(wakee_task.cpu)],
        }
    }

    fn restore(&self, state: &mut State, waker: TaskId, wakee: TaskId) {
        let entry = &mut state.task[waker as usize];
        entry.last_wakee = self.last_wakee;
        entry.wakee_flips = self.wakee_flips;
        entry.wakee_flip_decay_ts = self.wakee_flip_decay_ts;
        entry.recent_used_cpu = self.waker_recent;
        state.task[wakee as usize].recent_used_cpu = self.wakee_recent;
        for (llc, has_idle_cores) in self.llcs {
            state.llc[usize::from(llc)].has_idle_cores = has_idle_cores;
        }
    }
}
