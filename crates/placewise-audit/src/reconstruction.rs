//! What a kernel's placement decisions saw, rebuilt from a trace.
//!
//! The steps of a trace drive the scheduler core as the simulator does: a wakeup
//! enqueues, a switch picks and dequeues, ticks are made up where the kernel had
//! them. So run queues, idle masks, wake relations, run lengths and PELT are kept
//! by the policy's own code, and virtual time as far as it tells whether a sleeper
//! stays queued. `decide.rs` asks the policy at every wakeup and
//! fork; then the task goes where the kernel put it, whatever the answer was.
//!
//! ```text
//!   sched_waking ────── decide.rs, then the wake list of the target
//!   sched_wakeup ────── enqueue
//!   sched_migrate_task  dequeue, enqueue elsewhere; of a wakeup: the wake list
//!   sched_switch ────── dequeue or put back; pick
//!   sched_wakeup_new ── decide.rs, enqueue
//! ```
//!
//! Limits: tasks of other classes than fair are queued like fair ones of almost
//! no weight; no task groups; averages and lags are 0 when the trace begins.

use std::collections::BTreeMap;

use placewise_machine::{CpuSet, Machine, MachineError};
use placewise_policy::weight::weight_of;
use placewise_policy::*;
use placewise_run_queue::{Dequeue, Enqueue, Picked, Scheduler};

use crate::affinity::Affinity;
use crate::beliefs::Beliefs;
use crate::decide::{NoPlacement, Verdict, Wakeup};
use crate::inference::InferenceCounts;
use crate::step::{Action, PrevState, Step};
use crate::task::{DEFAULT_PRIO, TaskId, Tasks};

/// A run time in the trace may be wrong by so much: its clock tells microseconds, and the kernel
/// accounts some way before it prints the switch. Where a sleeper's lag is too small to tell, it is
/// taken to stay queued: a wakeup that moves it will show otherwise.
const CLOCK_RESOLUTION_NS: i64 = 4_000;

/// Priorities below are real-time.
const MAX_RT_PRIO: i32 = 100;

/// Where a task is, as far as the trace has told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    #[default]
    Unseen,
    Asleep,
    /// On a run queue: running, waiting, or asleep but delayed.
    Queued,
    /// Between sched_waking and sched_wakeup.
    Waking,
}

/// What is remembered of a task beside the policy's state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trail {
    pub whereabouts: Whereabouts,
    /// The CPU on whose wake list it is.
    pub pending_on: Option<u32>,
    /// The trace has no sched_wakeup of it: it is taken to arrive when it leaves.
    pub arrives_unseen: bool,
    /// A wakeup that found it on its CPU still.
    pub spinning: Option<Wakeup>,
    /// When it was switched out last.
    pub switched_out_at: u64,
    /// It went to sleep while others were queued on its CPU: it may have stayed there (delayed).
    pub slept_beside_others: bool,
    /// It may run on one CPU only, which is more than inferred.
    pub bound: bool,
    /// The state of the affinities when its own was looked up.
    affinity_generation: u64,
}

/// The state that a trace has led to, under one policy.
pub struct Reconstruction {
    pub(crate) scheduler: Scheduler,
    /// Of every task: no trace shows hints.
    hint: u8,
    pub(crate) affinity: Affinity,
    pub(crate) beliefs: Beliefs,
    pub(crate) inferred: InferenceCounts,
    /// The policy's clock: that of the trace, moved so that ticks fall on its multiples.
    pub(crate) now: u64,
    clock_offset: u64,
    /// Before, the events of some CPUs are missing.
    complete_from: u64,
    trails: Vec<Trail>,
    /// Wakeups on their way over each CPU's wake list.
    pending: Vec<u32>,
    /// When each LLC's scan limit is due again.
    pub(crate) scan_limit_due: Vec<u64>,
}

impl Reconstruction {
    /// `stated`: affinities that the trace's header knows, by pid.
    pub fn new(
        machine: &Machine,
        policy: &Policy,
        stated: &BTreeMap<u32, CpuSet>,
    ) -> Result<Self, MachineError> {
        let (mut scheduler, _) = Scheduler::boot(machine, &policy.profile, &[])?;
        for cpu in 0..machine.cpus.len() {
            scheduler.policy.rq[cpu].idle_exit_latency = LATENCY_UNKNOWN;
        }
        Ok(Reconstruction {
            affinity: Affinity::new(machine, stated.clone()),
            beliefs: Beliefs::default(),
            inferred: InferenceCounts::default(),
            scheduler,
            hint: policy.hint.mask() as u8,
            now: topology::BOOT,
            clock_offset: topology::BOOT,
            complete_from: 0,
            trails: Vec::new(),
            pending: vec![0; NR_CPUS as usize],
            scan_limit_due: vec![0; NR_CPUS as usize],
        })
    }

    pub fn state(&self) -> &State {
        &self.scheduler.policy
    }

    /// What had to be inferred so far.
    pub fn inferred(&self) -> InferenceCounts {
        InferenceCounts {
            believed_sync: self.beliefs.counts.sync,
            believed_wide: self.beliefs.counts.wide,
            held_to_seen_cpus: self.affinity.nr_held(),
            ..self.inferred
        }
    }

    /// Takes the next step of the trace.
    pub fn step(&mut self, step: &Step, tasks: &Tasks) -> Verdict {
        match self.follow(step, tasks) {
            Verdict::Placed(_) if self.now < self.complete_from => {
                Verdict::NoPlacement(NoPlacement::BeforeComplete)
            }
            verdict => verdict,
        }
    }

    fn follow(&mut self, step: &Step, tasks: &Tasks) -> Verdict {
        self.now = self.now.max(step.time_ns + self.clock_offset);
        match step.action {
            Action::Begin { tick_phase_ns, complete_from_ns } => {
                self.begin(tick_phase_ns, complete_from_ns);
            }
            Action::Running { task } => self.runs(step.cpu, task, tasks),
            Action::Waking { task, prev_cpu, outcome } => {
                return self.waking(step, task, prev_cpu, outcome, tasks);
            }
            Action::Wakeup { task, target_cpu } => return self.wakeup(task, target_cpu, tasks),
            Action::Fork { parent, child } => self.fork(step.cpu, parent, child, tasks),
            Action::WakeupNew { task, target_cpu } => {
                return self.wakeup_new(step.cpu, task, target_cpu, tasks);
            }
            Action::Migrate { task, from, to, placement } => {
                self.migrate(step.cpu, task, from, to, placement, tasks);
            }
            Action::Switch { prev, prev_state, next } => {
                return self.switch(step.cpu, prev, prev_state, next, tasks);
            }
            Action::Exit { task } => self.scheduler.policy.task[task as usize].exiting = 1,
            Action::Forgotten { task } => self.forget(task),
            Action::Exec { .. }
            | Action::Decided { .. }
            | Action::Lost { .. }
            | Action::Silence { .. } => {}
        }
        Verdict::Nothing
    }

    fn begin(&mut self, tick_phase_ns: Option<u64>, complete_from_ns: u64) {
        let tick_ns = u64::from(self.scheduler.policy.root.tick_ns);
        self.clock_offset = topology::BOOT + tick_ns - tick_phase_ns.unwrap_or(0) % tick_ns;
        self.complete_from = complete_from_ns + self.clock_offset;
        self.inferred.tick_phase_ns = tick_phase_ns;
    }

    pub(crate) fn trail(&mut self, task: TaskId) -> &mut Trail {
        let at = task as usize;
        if self.trails.len() <= at {
            self.trails.resize(at + 1, Trail::default());
        }
        &mut self.trails[at]
    }

    pub(crate) fn whereabouts(&self, task: TaskId) -> Whereabouts {
        self.trails.get(task as usize).map_or(Whereabouts::Unseen, |trail| trail.whereabouts)
    }

    /// A task is first heard of: it was on `cpu` last.
    pub(crate) fn meet(&mut self, task: TaskId, cpu: u32, tasks: &Tasks) {
        if task < FIRST_TASK {
            return;
        }
        if self.whereabouts(task) == Whereabouts::Unseen {
            let weight = weight_of_prio(tasks.get(task).prio);
            self.scheduler.policy.task[task as usize] = self.new_task(weight, cpu);
            // It has slept for long, as far as one can tell.
            self.scheduler.policy.task[task as usize].avg.load_avg = 0;
            self.scheduler.add(task.into());
            self.trail(task).whereabouts = Whereabouts::Asleep;
        }
        self.reweight(task, weight_of_prio(tasks.get(task).prio));
        if self.trail(task).affinity_generation != self.affinity.generation() {
            self.look_up_affinity(task, cpu, tasks);
        }
    }

    /// The trace shows a new priority. That of a queued task waits until it sleeps.
    fn reweight(&mut self, task: TaskId, weight: u32) {
        let entry = &self.scheduler.policy.task[task as usize];
        if entry.weight != weight && entry.on_rq == 0 {
            self.scheduler.reweight(task.into(), weight);
        }
    }

    /// A task without a past.
    fn new_task(&self, weight: u32, cpu: u32) -> Task {
        Task {
            avg: SchedAvg { load_avg: u64::from(weight), ..SchedAvg::default() },
            weight,
            hint: self.hint,
            last_wakee: NO_TASK,
            recent_used_cpu: cpu as u16,
            cpu: cpu as u16,
            mru_prev: NO_TASK,
            mru_next: NO_TASK,
            eligible: 1,
            ..Task::default()
        }
    }

    fn look_up_affinity(&mut self, task: TaskId, cpu: u32, tasks: &Tasks) {
        self.trail(task).affinity_generation = self.affinity.generation();
        let allowed = self.affinity.of(task, cpu, tasks);
        self.trail(task).bound = allowed.cpus.len() == 1 && !allowed.inferred;
        let entry = &mut self.scheduler.policy.task[task as usize];
        entry.cpus_allowed = Cpumask { bits: *allowed.cpus.words() };
        entry.nr_cpus_allowed = allowed.cpus.len() as u16;
        entry.per_cpu_kthread = allowed.per_cpu_kthread.into();
    }

    pub(crate) fn put_on_queue(&mut self, task: TaskId, cpu: u32, why: Enqueue, tasks: &Tasks) {
        if task < FIRST_TASK {
            return;
        }
        if self.whereabouts(task) == Whereabouts::Queued {
            if u32::from(self.scheduler.cpu_of(task.into())) == cpu {
                return;
            }
            self.take_off_queue(task, Dequeue::Balance);
        }
        self.scheduler.account(cpu.into(), self.now);
        self.scheduler.set_task_cpu(task.into(), cpu.into());
        self.scheduler.enqueue(task.into(), why, self.now);
        self.trail(task).whereabouts = Whereabouts::Queued;
        self.affinity.see(task, tasks.get(task).name, cpu);
    }

    /// Takes a task off the queue it is on, delayed or not.
    pub(crate) fn take_off_queue(&mut self, task: TaskId, why: Dequeue) {
        let cpu = u32::from(self.scheduler.cpu_of(task.into()));
        self.scheduler.account(cpu.into(), self.now);
        self.scheduler.dequeue(task.into(), why, self.now);
        self.scheduler.policy.task[task as usize].delayed = 0;
        self.trail(task).whereabouts = Whereabouts::Asleep;
    }

    /// The trace shows `task` on `cpu`, whatever was known of both.
    fn runs(&mut self, cpu: u32, task: TaskId, tasks: &Tasks) {
        let current = u32::from(self.scheduler.current(cpu.into()));
        if current == task {
            return;
        }
        // What it ran before has left unseen.
        if current >= FIRST_TASK {
            self.take_off_queue(current, Dequeue::Sleep);
        }
        self.switch_in(cpu, task, tasks);
    }

    fn switch_in(&mut self, cpu: u32, next: TaskId, tasks: &Tasks) {
        self.meet(next, cpu, tasks);
        if next >= FIRST_TASK {
            if self.scheduler.is_delayed(next.into()) {
                self.take_off_queue(next, Dequeue::Sleep);
            }
            self.leave_other_cpu(next, cpu);
            self.put_on_queue(next, cpu, Enqueue::Wakeup, tasks);
        }
        // Delayed tasks that the pick came upon before `next` have left the queue.
        while let Some(Picked::Left(task)) = self.scheduler.pick(cpu.into(), self.now) {
            self.trail(task.into()).whereabouts = Whereabouts::Asleep;
        }
        if next < FIRST_TASK {
            self.scheduler.policy.rq[cpu as usize].idle_stamp = self.now;
        }
        self.scheduler.take(cpu.into(), next.into(), self.now);
    }

    /// A task that a gap in the trace has left running elsewhere.
    fn leave_other_cpu(&mut self, task: TaskId, cpu: u32) {
        let last = u32::from(self.scheduler.cpu_of(task.into()));
        if last != cpu && u32::from(self.scheduler.current(last.into())) == task {
            self.take_off_queue(task, Dequeue::Balance);
        }
    }

    fn switch(
        &mut self,
        cpu: u32,
        prev: TaskId,
        prev_state: PrevState,
        next: TaskId,
        tasks: &Tasks,
    ) -> Verdict {
        self.runs(cpu, prev, tasks);
        self.catch_up_ticks(cpu);
        self.scheduler.account(cpu.into(), self.now);
        if prev >= FIRST_TASK {
            match prev_state {
                PrevState::Runnable => self.put_back(cpu, prev),
                _ => self.fall_asleep(cpu, prev, prev_state),
            }
        }
        self.switch_in(cpu, next, tasks);
        if prev < FIRST_TASK {
            return Verdict::Nothing;
        }
        if prev_state == PrevState::Dead {
            self.scheduler.policy.task_dead(prev);
            self.trail(prev).whereabouts = Whereabouts::Unseen;
        }
        match self.trail(prev).spinning.take() {
            Some(wakeup) if prev_state != PrevState::Runnable => {
                self.wake_sleeper(prev, &wakeup, tasks)
            }
            _ => Verdict::Nothing,
        }
    }

    fn put_back(&mut self, cpu: u32, task: TaskId) {
        self.scheduler.policy.task[task as usize].nivcsw += 1;
        self.scheduler.put_back(cpu.into(), self.now);
    }

    fn fall_asleep(&mut self, cpu: u32, task: TaskId, state: PrevState) {
        self.trail(task).switched_out_at = self.now;
        self.trail(task).slept_beside_others =
            self.scheduler.policy.rq[cpu as usize].nr_running > 1;
        if state != PrevState::Asleep {
            self.scheduler.deactivate(cpu.into(), self.now);
        } else if self.scheduler.sleep(cpu.into(), CLOCK_RESOLUTION_NS, self.now) {
            return;
        }
        self.trail(task).whereabouts = Whereabouts::Asleep;
    }

    fn forget(&mut self, task: TaskId) {
        if self.whereabouts(task) == Whereabouts::Queued {
            self.take_off_queue(task, Dequeue::Balance);
        }
        self.arrive(task);
        self.affinity.forget(task);
        *self.trail(task) = Trail::default();
    }

    fn wakeup(&mut self, task: TaskId, target_cpu: u32, tasks: &Tasks) -> Verdict {
        if task < FIRST_TASK {
            return Verdict::Nothing;
        }
        self.meet(task, target_cpu, tasks);
        let still_queued = self.trail(task).spinning.take().is_some();
        if self.scheduler.is_delayed(task.into()) {
            self.requeue_delayed(task);
        }
        self.put_on_queue(task, target_cpu, Enqueue::Wakeup, tasks);
        self.arrive(task);
        self.scheduler.policy.sample_avg_idle(target_cpu, self.now);
        if still_queued {
            return Verdict::NoPlacement(NoPlacement::StillQueued);
        }
        Verdict::Nothing
    }

    fn requeue_delayed(&mut self, task: TaskId) {
        let cpu = u32::from(self.scheduler.cpu_of(task.into()));
        self.scheduler.account(cpu.into(), self.now);
        self.scheduler.wake_delayed(task.into(), self.now);
    }

    fn fork(&mut self, cpu: u32, parent: TaskId, child: TaskId, tasks: &Tasks) {
        self.meet(parent, cpu, tasks);
        self.forget(child);
        let weight = weight_of_prio(tasks.get(parent).prio);
        self.scheduler.policy.task[child as usize] = self.new_task(weight, cpu);
        if parent >= FIRST_TASK {
            self.scheduler.policy.copy_task(child, parent, cpu);
        }
        self.scheduler.add(child.into());
        self.affinity.inherit(child, parent);
        self.trail(child).whereabouts = Whereabouts::Asleep;
        self.look_up_affinity(child, cpu, tasks);
    }

    fn migrate(
        &mut self,
        cpu: u32,
        task: TaskId,
        from: u32,
        to: u32,
        placement: bool,
        tasks: &Tasks,
    ) {
        if task < FIRST_TASK {
            return;
        }
        self.meet(task, from, tasks);
        if self.whereabouts(task) == Whereabouts::Queued {
            self.put_on_queue(task, to, Enqueue::Balance, tasks);
            return;
        }
        if std::mem::take(&mut self.trail(task).arrives_unseen) {
            self.put_on_queue(task, to, Enqueue::Wakeup, tasks);
            return;
        }
        let over_wake_list =
            placement && self.scheduler.policy.ttwu_queue_wakelist(task, cpu, to, false);
        self.scheduler.set_task_cpu(task.into(), to.into());
        if over_wake_list {
            self.send(task, to);
        }
    }

    /// The wakee is on its way over the wake list of `cpu`.
    pub(crate) fn send(&mut self, task: TaskId, cpu: u32) {
        self.arrive(task);
        self.trail(task).pending_on = Some(cpu);
        self.pending[cpu as usize] += 1;
        self.scheduler.policy.set_ttwu_pending(cpu, true);
    }

    fn arrive(&mut self, task: TaskId) {
        if let Some(cpu) = self.trail(task).pending_on.take() {
            self.pending[cpu as usize] -= 1;
            if self.pending[cpu as usize] == 0 {
                self.scheduler.policy.set_ttwu_pending(cpu, false);
            }
        }
    }
}

/// Is a task of this priority placed by the fair class?
pub(crate) fn is_fair(prio: i32) -> bool {
    prio >= MAX_RT_PRIO
}

fn weight_of_prio(prio: i32) -> u32 {
    if !is_fair(prio) {
        return 1;
    }
    weight_of((prio - DEFAULT_PRIO).clamp(-20, 19) as i8, false)
}

#[cfg(test)]
mod tests;
