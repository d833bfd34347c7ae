//! What tasks of one process wait on: mutexes, conditions, barriers, gates, flags, futexes.
//!
//! Whoever waits busily computes: the segment that stands for it is as long as
//! the task is willing to spin, and is cut short, wherever the task runs, when
//! what it waits for happens. A task that is preempted meanwhile notices once it
//! runs again.

use placewise_policy::{CpuId, TaskId};
use placewise_workload::program::{Object, Op, Wake};

use crate::engine::Engine;
use crate::state::cpu::Activity;
use crate::state::effect::{Effect, Then, WaitQueue};
use crate::state::event_queue::Time;
use crate::state::events::Slot;
use crate::state::programs::Step;
use crate::state::sync::{Condition, Gate, Mutex, Post, Semaphore};
use crate::state::task::{Resume, TaskState};
use crate::state::waker::WakerContext;

/// The task's `stage` while it waits busily.
const SPINS: u32 = 1;
const LET_GO: u32 = 2;

/// The task's `stage` once its condition was signalled.
const SIGNALLED: u32 = 1;

/// The task's `stage` once it has come to a gate: what it does when it is woken is part of its sleep.
pub(super) const CAME: u32 = 1;

/// For waits without a limit: they are begun anew after this long.
const NO_LIMIT: Time = 600_000_000_000;

impl Engine<'_> {
    pub(super) fn mutex(&mut self, task: TaskId, mutex: Object) -> &mut Mutex {
        let mutex = self.object(task, mutex);
        &mut self.objects.mutexes[mutex]
    }

    pub(super) fn condition(&mut self, task: TaskId, condition: Object) -> &mut Condition {
        let condition = self.object(task, condition);
        &mut self.objects.conditions[condition]
    }

    pub(super) fn wait_at_gate(&mut self, cpu: CpuId, task: TaskId, gate: Object) -> Then {
        let gate = self.object(task, gate);
        self.tasks[task].stage = CAME;
        self.objects.gates[gate].wait(cpu, task)
    }

    pub(super) fn open_gate(&mut self, task: TaskId, gate: Object, effect: &mut Effect) -> Then {
        let gate = self.object(task, gate);
        self.objects.gates[gate].open(effect);
        if !effect.wakees.is_empty() {
            effect.wait_queue = Some(WaitQueue::Gate(gate as u32));
        }
        Then::Next
    }

    /// Its opener, on `cpu`, lets go of the lock of its wait queue: those who want that take it in turn, and go on.
    pub(super) fn release_gate(&mut self, cpu: CpuId, gate: usize) {
        let Gate { lock, spinners, .. } = &mut self.objects.gates[gate];
        lock.take(cpu, self.now, 0);
        for spinner in std::mem::take(spinners) {
            let lock = &mut self.objects.gates[gate].lock;
            let hold = self.costs.lock_lines(lock, 1, self.now, spinner);
            let waits = lock.take(spinner, self.now, hold);
            self.owe_turn(spinner, waits + hold, 0);
            let task = self.scheduler.current(spinner);
            self.tasks[task].next_op();
            self.go_on(spinner, task);
        }
    }

    pub(super) fn semaphore(&mut self, task: TaskId, semaphore: Object) -> &mut Semaphore {
        let semaphore = self.object(task, semaphore);
        &mut self.objects.semaphores[semaphore]
    }

    /// The lines of a post come to `cpu`, once there is one.
    pub(super) fn await_cost(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        semaphore: Object,
        lines: u32,
    ) -> Time {
        let posted_on = self.semaphore(task, semaphore).posted_on();
        posted_on.map_or(0, |from| self.lines(lines, from, cpu))
    }

    /// Posts to the first of `unanswered` in an inbox, else to a semaphore.
    pub(super) fn answer(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        (inbox, otherwise): (Object, Object),
        wake: Wake,
        effect: &mut Effect,
    ) -> Then {
        let otherwise = self.object(task, otherwise);
        let semaphore = self.semaphore(task, inbox).next_unanswered().unwrap_or(otherwise);
        let answered_at = Some(self.object(task, inbox));
        self.post(semaphore, Post { cpu, answered_at }, wake, effect)
    }

    pub(super) fn post(
        &mut self,
        semaphore: usize,
        post: Post,
        wake: Wake,
        effect: &mut Effect,
    ) -> Then {
        (effect.sync, effect.context) = match wake {
            Wake::Plain => (false, WakerContext::Task),
            Wake::Sync => (true, WakerContext::Task),
            Wake::Softirq => (true, WakerContext::Softirq),
        };
        self.objects.semaphores[semaphore].post(post, effect)
    }

    /// What an arrival at a barrier takes, or the busy wait there.
    pub(super) fn barrier_cost(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        barrier: Object,
        spin: Time,
    ) -> Time {
        let figures = self.costs.figures;
        let barrier = self.object(task, barrier);
        match self.tasks[task].stage {
            _ if spin == 0 => self.costs.draw(figures.syscall_ns + figures.futex_ns),
            SPINS => spin,
            LET_GO => 0,
            _ => self.count_cost(cpu, barrier),
        }
    }

    /// What it takes to write how many are at a barrier.
    fn count_cost(&mut self, cpu: CpuId, barrier: usize) -> Time {
        let from = std::mem::replace(&mut self.objects.barriers[barrier].last_cpu, cpu);
        self.lines(1, from, cpu)
    }

    pub(super) fn arrival_cost(&mut self, cpu: CpuId, task: TaskId, barrier: Object) -> Time {
        let barrier = self.object(task, barrier);
        self.count_cost(cpu, barrier)
    }

    /// Counts as one that is here, and goes on.
    pub(super) fn arrive_only(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        barrier: Object,
        effect: &mut Effect,
    ) -> Then {
        let barrier = self.object(task, barrier);
        if self.objects.barriers[barrier].lacks_one() {
            self.call_futex(cpu);
            self.open_barrier(cpu, barrier, effect);
        } else {
            self.objects.barriers[barrier].gone_on += 1;
        }
        Then::Next
    }

    pub(super) fn barrier(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        barrier: Object,
        spin: Time,
        effect: &mut Effect,
    ) -> Then {
        let barrier = self.object(task, barrier);
        match self.tasks[task].stage {
            // It has spun for long enough.
            SPINS => Then::Block(Resume::Next),
            LET_GO => Then::Next,
            _ => self.arrive(cpu, task, barrier, spin, effect),
        }
    }

    fn arrive(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        barrier: usize,
        spin: Time,
        effect: &mut Effect,
    ) -> Then {
        let here = &mut self.objects.barriers[barrier];
        if !here.lacks_one() {
            here.waiters.push(task);
            if spin == 0 {
                return Then::Block(Resume::Next);
            }
            self.tasks[task].stage = SPINS;
            return Then::Again;
        }
        if spin > 0 {
            self.call_futex(cpu);
        }
        self.open_barrier(cpu, barrier, effect);
        Then::Next
    }

    /// Whoever comes last calls futex(FUTEX_WAKE), whether anybody sleeps or not.
    fn call_futex(&mut self, cpu: CpuId) {
        let figures = self.costs.figures;
        self.cpus[cpu].debt += self.costs.draw(figures.syscall_ns + figures.futex_ns);
    }

    fn open_barrier(&mut self, cpu: CpuId, barrier: usize, effect: &mut Effect) {
        let barrier = &mut self.objects.barriers[barrier];
        barrier.gone_on = 0;
        for waiter in std::mem::take(&mut barrier.waiters) {
            match self.tasks[waiter].state {
                TaskState::Blocked => effect.wakees.push(waiter),
                _ => self.let_go(cpu, waiter),
            }
        }
    }

    /// What turning a flag takes, or the busy wait until it can be turned.
    pub(super) fn flag_cost(&mut self, cpu: CpuId, task: TaskId, flag: Object) -> Time {
        let flag = self.object(task, flag);
        match self.tasks[task].stage {
            SPINS => NO_LIMIT,
            LET_GO => 0,
            _ => {
                let from = std::mem::replace(&mut self.objects.flags[flag].last_cpu, cpu);
                self.lines(1, from, cpu)
            }
        }
    }

    /// Turns a flag up or down once it is not there yet.
    pub(super) fn turn_flag(&mut self, cpu: CpuId, task: TaskId, flag: Object, up: bool) -> Then {
        let flag = self.object(task, flag);
        let flag = &mut self.objects.flags[flag];
        if flag.raised == up {
            flag.waiter = Some(task);
            self.tasks[task].stage = SPINS;
            return Then::Again;
        }
        flag.raised = up;
        flag.last_cpu = cpu;
        if let Some(waiter) = flag.waiter.take() {
            self.let_go(cpu, waiter);
        }
        Then::Next
    }

    /// The busy wait for the lock of a CPU; to take it costs nothing to speak of.
    pub(super) fn cpu_lock_cost(&self, task: TaskId) -> Time {
        if self.tasks[task].stage == SPINS { NO_LIMIT } else { 0 }
    }

    /// Whoever was let go looks again, at the lock of the CPU where it is by then.
    pub(super) fn lock_cpu(&mut self, cpu: CpuId, task: TaskId) -> Then {
        let lock = &mut self.objects.cpu_locks[cpu];
        if lock.is_held {
            lock.waiters.push(task);
            self.tasks[task].stage = SPINS;
            return Then::Again;
        }
        lock.is_held = true;
        self.tasks[task].locked_cpu = cpu;
        Then::Next
    }

    pub(super) fn unlock_cpu(&mut self, cpu: CpuId, task: TaskId) -> Then {
        let lock = &mut self.objects.cpu_locks[self.tasks[task].locked_cpu];
        lock.is_held = false;
        for waiter in std::mem::take(&mut lock.waiters) {
            self.let_go(cpu, waiter);
        }
        Then::Next
    }

    /// What `waiter` waits for busily has happened on `cpu`: it goes on once the line has come to
    /// it, or as soon as it runs.
    fn let_go(&mut self, cpu: CpuId, waiter: TaskId) {
        let there = self.tasks[waiter].last_cpu;
        let line = self.costs.cache_lines(1, cpu, there);
        let state = &mut self.tasks[waiter];
        state.stage = LET_GO;
        state.work_left = state.work_left.min(self.cpus[there].pace.share(line));
        let spins_there = self.scheduler.current(there) == waiter
            && self.cpus[there].activity == Activity::Segment;
        if spins_there {
            self.events.arm(Slot::Activity(there), self.now + line);
        }
    }

    pub(super) fn enlist(&mut self, task: TaskId, list: Object) -> Then {
        let list = self.object(task, list);
        self.objects.lists[list].put(task);
        Then::Next
    }

    /// One of those on the list: each wake is a system call, and whoever walks may be preempted after it.
    pub(super) fn wake_listed(&mut self, task: TaskId, list: Object, effect: &mut Effect) -> Then {
        let list = self.object(task, list);
        let list = &mut self.objects.lists[list];
        if !list.is_walked() {
            list.begin_walk(self.now);
            self.tasks[task].token = false;
        }
        let (wakee, stamp, goes_on) = (list.next_of_walk(), list.walk_began, list.is_walked());
        if let Some(wakee) = wakee {
            self.futex_wake(wakee, stamp, effect);
        }
        if goes_on { Then::Again } else { Then::Next }
    }

    pub(super) fn wake_parent(&mut self, task: TaskId, effect: &mut Effect) -> Then {
        self.futex_wake(self.tasks[task].parent, self.now, effect);
        Then::Next
    }

    /// Leaves a token for the wakee, and wakes it if it waits for one.
    fn futex_wake(&mut self, wakee: TaskId, stamp: Time, effect: &mut Effect) {
        let state = &mut self.tasks[wakee];
        state.token = true;
        state.stamp = stamp;
        let waits = state.state == TaskState::Blocked
            && matches!(self.step_of(wakee), Step::Op(Op::Wait { .. }));
        if waits {
            effect.wakees.push(wakee);
        }
    }

    pub(super) fn futex_wait(&mut self, task: TaskId, sample: bool) -> Then {
        let state = &mut self.tasks[task];
        if !state.token {
            return Then::Block(Resume::Retry);
        }
        state.token = false;
        let stamp = state.stamp;
        if sample {
            self.measurement.sample_latency(self.part(task), self.now, stamp);
        }
        Then::Next
    }

    pub(super) fn condition_wait(
        &mut self,
        task: TaskId,
        condition: Object,
        mutex: Option<Object>,
        effect: &mut Effect,
    ) -> Then {
        if self.tasks[task].stage == SIGNALLED {
            return mutex.map_or(Then::Next, |mutex| self.mutex(task, mutex).lock(task));
        }
        self.condition(task, condition).waiters.push_back(task);
        self.tasks[task].stage = SIGNALLED;
        if let Some(mutex) = mutex {
            self.mutex(task, mutex).unlock(effect);
        }
        Then::Block(Resume::Retry)
    }
}
