//! The world that a trace shows, as far as it shows it.
//!
//! The steps of a trace drive the scheduler core as the simulator does: a wakeup
//! enqueues, a switch picks and dequeues, ticks are made up where the kernel had
//! them. So run queues, idle masks, wake relations, run lengths and PELT are kept
//! by the policy's own code, and virtual time as far as it tells whether a sleeper
//! stays queued. What a step may have decided is an [`Occasion`] for the judge; then
//! the task goes where the kernel put it, whatever the answer was.
//!
//! ```text
//!   sched_waking ────── an occasion, then the wake list of the target
//!   sched_wakeup ────── enqueue
//!   sched_migrate_task  dequeue, enqueue elsewhere; of a wakeup: the wake list
//!   sched_switch ────── dequeue or put back; pick
//!   sched_wakeup_new ── an occasion, then enqueue
//! ```
//!
//! Limits: tasks of other classes than fair are queued like fair ones of almost
//! no weight; task groups are those of the header; averages and lags are 0 when the trace begins.

mod affinity;
mod clock;
#[cfg(test)]
pub mod invariants;
mod loads;
#[cfg(test)]
pub mod picks;
mod population;
pub mod stated;
mod trail;
mod wake_lists;

use placewise_machine::{Machine, MachineError};
use placewise_policy::*;
use placewise_run_queue::{Dequeue, Enqueue, Picked, Scheduler};

use self::clock::Clock;
use self::population::Population;
use self::stated::Stated;
use self::trail::{Trail, Whereabouts};
use self::wake_lists::WakeLists;
use crate::steps::step::{Action, PrevState, Step};
use crate::steps::task::{TaskNumber, Tasks};
use crate::steps::wakeup::{Outcome, Wakeup};
use crate::verdict::NoPlacement;

/// A run time in the trace may be wrong by so much: its clock tells microseconds, and the kernel
/// accounts some way before it prints the switch. Where a sleeper's lag is too small to tell, it is
/// taken to stay queued: a wakeup that moves it will show otherwise.
const CLOCK_RESOLUTION_NS: i64 = 4_000;

/// What a step may have decided.
pub enum Occasion {
    /// It is about no wakeup, or the wakeup is not over.
    Nothing,
    NoPlacement(NoPlacement),
    Wakeup {
        task: TaskNumber,
        wakeup: Wakeup,
    },
    Fork {
        child: TaskNumber,
        cpu: u32,
        target_cpu: u32,
    },
}

/// The state that the steps have led to.
pub struct World {
    pub scheduler: Scheduler,
    pub clock: Clock,
    pub population: Population,
    wake_lists: WakeLists,
    #[cfg(test)]
    pub picks: picks::Picks,
}

impl World {
    pub fn new(machine: &Machine, policy: &Policy, stated: &Stated) -> Result<Self, MachineError> {
        let (groups, group_of) = stated.groups();
        let (mut scheduler, _) = Scheduler::boot(machine, policy, &groups)?;
        for cpu in 0..machine.cpus.len() {
            scheduler.policy.rq[cpu].idle_exit_latency = LATENCY_UNKNOWN;
        }
        Ok(World {
            scheduler,
            clock: Clock::new(),
            population: Population::new(machine, policy, &stated.affinities, group_of),
            wake_lists: WakeLists::new(),
            #[cfg(test)]
            picks: picks::Picks::default(),
        })
    }

    /// Takes the next step of the trace.
    pub fn follow(&mut self, step: &Step, tasks: &Tasks) -> Occasion {
        self.clock.advance(step.time_ns);
        match step.action {
            Action::Begin { tick_phase_ns, complete_from_ns } => {
                let tick_ns = u64::from(self.scheduler.policy.root.tick_ns);
                self.clock.begin(tick_ns, tick_phase_ns, complete_from_ns);
            }
            Action::Running { task } => self.runs(step.cpu, task, tasks),
            Action::Waking { task, prev_cpu, outcome } => {
                return self.waking(step, task, prev_cpu, outcome, tasks);
            }
            Action::Wakeup { task, target_cpu } => return self.wakeup(task, target_cpu, tasks),
            Action::Fork { parent, child } => self.fork(step.cpu, parent, child, tasks),
            Action::WakeupNew { task, target_cpu } => {
                self.meet(task, step.cpu, tasks);
                return Occasion::Fork { child: task, cpu: step.cpu, target_cpu };
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
        Occasion::Nothing
    }

    pub fn trail(&mut self, task: TaskNumber) -> &mut Trail {
        self.population.trail(task)
    }

    fn whereabouts(&self, task: TaskNumber) -> Whereabouts {
        self.population.whereabouts(task)
    }

    fn meet(&mut self, task: TaskNumber, cpu: u32, tasks: &Tasks) {
        self.population.meet(task, cpu, tasks, &mut self.scheduler);
    }

    /// The averages of `cpu` as the kernel has stored them.
    pub fn catch_up_loads(&mut self, cpu: u32) {
        loads::catch_up_loads(&mut self.scheduler, cpu, self.clock.now);
    }

    #[inline]
    fn put_on_queue(&mut self, task: TaskNumber, cpu: u32, why: Enqueue, tasks: &Tasks) {
        let is_queued = self.whereabouts(task) == Whereabouts::Queued;
        if task < FIRST_TASK || is_queued && self.scheduler.cpu_of(task.into()) == cpu.into() {
            return;
        }
        if is_queued {
            self.take_off_queue(task, Dequeue::Balance);
        }
        self.join_queue(task, cpu, why, tasks);
    }

    fn join_queue(&mut self, task: TaskNumber, cpu: u32, why: Enqueue, tasks: &Tasks) {
        self.scheduler.set_task_cpu(task.into(), cpu.into());
        self.scheduler.wake_delayed_group(task.into());
        self.scheduler.account(cpu.into(), self.clock.now);
        self.scheduler.enqueue(task.into(), why, self.clock.now);
        self.population.is_queued(task, cpu, tasks);
    }

    /// Takes a task off the queue it is on, delayed or not.
    fn take_off_queue(&mut self, task: TaskNumber, why: Dequeue) {
        let cpu = self.scheduler.cpu_of(task.into());
        self.scheduler.account(cpu, self.clock.now);
        self.scheduler.dequeue(task.into(), why, self.clock.now);
        self.scheduler.policy.task[task as usize].delayed = 0;
        self.trail(task).whereabouts = Whereabouts::Asleep;
    }

    /// The trace shows `task` on `cpu`, whatever was known of both.
    #[inline]
    fn runs(&mut self, cpu: u32, task: TaskNumber, tasks: &Tasks) {
        if self.scheduler.current(cpu.into()) != task.into() {
            self.came_unseen(cpu, task, tasks);
        }
    }

    #[cold]
    fn came_unseen(&mut self, cpu: u32, task: TaskNumber, tasks: &Tasks) {
        // What it ran before has left unseen.
        let current = self.scheduler.current(cpu.into());
        if current >= FIRST_TASK.into() {
            self.take_off_queue(current.into(), Dequeue::Sleep);
        }
        self.switch_in(cpu, task, tasks);
    }

    fn switch_in(&mut self, cpu: u32, next: TaskNumber, tasks: &Tasks) {
        self.meet(next, cpu, tasks);
        if next >= FIRST_TASK {
            if self.scheduler.is_delayed(next.into()) {
                self.take_off_queue(next, Dequeue::Sleep);
            }
            self.leave_other_cpu(next, cpu);
            self.put_on_queue(next, cpu, Enqueue::Wakeup, tasks);
        }
        // Delayed tasks that the pick came upon before `next` have left the queue.
        while self.scheduler.has_delayed(cpu.into())
            && let Some(Picked::Left(task)) = self.scheduler.pick(cpu.into(), self.clock.now)
        {
            self.trail(task.into()).whereabouts = Whereabouts::Asleep;
        }
        if next < FIRST_TASK {
            self.scheduler.policy.rq[cpu as usize].idle_stamp = self.clock.now;
            loads::refresh_groups(&mut self.scheduler, cpu, self.clock.now);
        }
        self.scheduler.take(cpu.into(), next.into(), self.clock.now);
    }

    /// The kernel has picked `next`; the one before it waits again, or sleeps. An audit asks for the order in queues of
    /// tasks only as far as it tells who is delayed, so that only tests pick at each switch.
    #[cfg(test)]
    fn compare_pick(&mut self, cpu: u32, next: TaskNumber) {
        while let Some(picked) = self.scheduler.pick(cpu.into(), self.clock.now) {
            match picked {
                Picked::Left(task) => self.trail(task.into()).whereabouts = Whereabouts::Asleep,
                Picked::Next(task) => {
                    if self.scheduler.policy.rq[cpu as usize].nr_running > 1 {
                        self.picks.count(task == next.into());
                    }
                    return;
                }
            }
        }
    }

    /// A task that a gap in the trace has left running elsewhere.
    fn leave_other_cpu(&mut self, task: TaskNumber, cpu: u32) {
        let last = self.scheduler.cpu_of(task.into());
        if last != cpu.into() && self.scheduler.current(last) == task.into() {
            self.take_off_queue(task, Dequeue::Balance);
        }
    }

    fn switch(
        &mut self,
        cpu: u32,
        prev: TaskNumber,
        prev_state: PrevState,
        next: TaskNumber,
        tasks: &Tasks,
    ) -> Occasion {
        self.runs(cpu, prev, tasks);
        loads::catch_up_ticks(&mut self.scheduler, cpu, self.clock.now);
        self.scheduler.account(cpu.into(), self.clock.now);
        if prev >= FIRST_TASK {
            match prev_state {
                PrevState::Runnable => self.put_back(cpu, prev),
                _ => self.fall_asleep(cpu, prev, prev_state),
            }
        }
        #[cfg(test)]
        self.compare_pick(cpu, next);
        self.switch_in(cpu, next, tasks);
        if prev < FIRST_TASK {
            return Occasion::Nothing;
        }
        if prev_state == PrevState::Dead {
            self.scheduler.policy.task_dead(prev);
            self.trail(prev).whereabouts = Whereabouts::Unseen;
        }
        match self.trail(prev).spinning.take() {
            Some(wakeup) if prev_state != PrevState::Runnable => {
                Occasion::Wakeup { task: prev, wakeup }
            }
            _ => Occasion::Nothing,
        }
    }

    fn put_back(&mut self, cpu: u32, task: TaskNumber) {
        self.scheduler.policy.task[task as usize].nivcsw += 1;
        self.scheduler.put_back(cpu.into(), self.clock.now);
    }

    fn fall_asleep(&mut self, cpu: u32, task: TaskNumber, state: PrevState) {
        self.trail(task).switched_out_at = self.clock.now;
        self.trail(task).slept_beside_others =
            self.scheduler.policy.rq[cpu as usize].nr_running > 1;
        if state != PrevState::Asleep {
            self.scheduler.deactivate(cpu.into(), self.clock.now);
        } else if self.scheduler.sleep(cpu.into(), CLOCK_RESOLUTION_NS, self.clock.now) {
            return;
        }
        self.trail(task).whereabouts = Whereabouts::Asleep;
    }

    fn forget(&mut self, task: TaskNumber) {
        if self.whereabouts(task) == Whereabouts::Queued {
            self.take_off_queue(task, Dequeue::Balance);
        }
        self.wake_lists.arrive(task, &mut self.scheduler.policy);
        self.population.forget(task);
    }

    fn waking(
        &mut self,
        step: &Step,
        task: TaskNumber,
        prev_cpu: u32,
        outcome: Option<Outcome>,
        tasks: &Tasks,
    ) -> Occasion {
        if task < FIRST_TASK {
            return Occasion::Nothing;
        }
        self.meet(task, prev_cpu, tasks);
        let Some(outcome) = outcome else {
            return Occasion::NoPlacement(NoPlacement::NoEnd);
        };
        let wakeup = Wakeup { waking_cpu: step.cpu, prev_cpu, context: step.context, outcome };
        if self.whereabouts(task) == Whereabouts::Queued && !self.scheduler.is_delayed(task.into())
        {
            return self.wake_queued(task, wakeup);
        }
        Occasion::Wakeup { task, wakeup }
    }

    /// The wakee is running, or waiting to run.
    fn wake_queued(&mut self, task: TaskNumber, wakeup: Wakeup) -> Occasion {
        if self.scheduler.current(wakeup.prev_cpu.into()) != task.into() {
            return Occasion::NoPlacement(NoPlacement::StillQueued);
        }
        if wakeup.queued_by_prev_cpu() {
            return Occasion::NoPlacement(NoPlacement::StillOnCpu);
        }
        self.trail(task).spinning = Some(wakeup);
        Occasion::Nothing
    }

    /// The wakee is awake, and on no queue until its wakeup ends.
    pub fn begin_wakeup(&mut self, task: TaskNumber, prev_cpu: u32) {
        if self.scheduler.is_delayed(task.into()) {
            self.take_off_queue(task, Dequeue::Sleep);
        }
        self.scheduler.set_task_cpu(task.into(), prev_cpu.into());
        self.trail(task).whereabouts = Whereabouts::Waking;
    }

    /// The wakee goes to its CPU; one that moves, at its migration.
    pub fn set_off(&mut self, task: TaskNumber, wakeup: &Wakeup, tasks: &Tasks) {
        let Outcome { cpu, migrated, woken_by } = wakeup.outcome;
        match woken_by {
            None if migrated => self.trail(task).arrives_unseen = true,
            None => self.put_on_queue(task, cpu, Enqueue::Wakeup, tasks),
            Some(by) if !migrated && by == cpu && cpu != wakeup.waking_cpu => {
                self.wake_lists.send(task, cpu, &mut self.scheduler.policy);
            }
            Some(_) => {}
        }
    }

    /// A new task goes to its CPU.
    pub fn start(&mut self, child: TaskNumber, cpu: u32, tasks: &Tasks) {
        if self.whereabouts(child) == Whereabouts::Asleep {
            self.scheduler.policy.place_new_task(child, cpu);
        }
        self.put_on_queue(child, cpu, Enqueue::Fork, tasks);
    }

    fn wakeup(&mut self, task: TaskNumber, target_cpu: u32, tasks: &Tasks) -> Occasion {
        if task < FIRST_TASK {
            return Occasion::Nothing;
        }
        self.meet(task, target_cpu, tasks);
        let still_queued = self.trail(task).spinning.take().is_some();
        if self.scheduler.is_delayed(task.into()) {
            self.requeue_delayed(task);
        }
        self.put_on_queue(task, target_cpu, Enqueue::Wakeup, tasks);
        self.wake_lists.arrive(task, &mut self.scheduler.policy);
        self.scheduler.policy.sample_avg_idle(target_cpu, self.clock.now);
        if still_queued {
            return Occasion::NoPlacement(NoPlacement::StillQueued);
        }
        Occasion::Nothing
    }

    fn requeue_delayed(&mut self, task: TaskNumber) {
        let cpu = self.scheduler.cpu_of(task.into());
        if self.scheduler.policy.profile.requeue_updates_curr {
            self.scheduler.account(cpu, self.clock.now);
        }
        self.scheduler.wake_delayed(task.into(), self.clock.now);
    }

    fn fork(&mut self, cpu: u32, parent: TaskNumber, child: TaskNumber, tasks: &Tasks) {
        self.meet(parent, cpu, tasks);
        self.forget(child);
        self.population.is_born(child, parent, cpu, tasks, &mut self.scheduler);
    }

    fn migrate(
        &mut self,
        cpu: u32,
        task: TaskNumber,
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
            self.wake_lists.send(task, to, &mut self.scheduler.policy);
        }
    }
}
