//! What tasks of one process wait on: mutexes, conditions, barriers, gates, flags.
//!
//! Whoever waits busily computes: the segment that stands for it is as long as
//! the task is willing to spin, and is cut short, wherever the task runs, when
//! what it waits for happens. A task that is preempted meanwhile notices once it
//! runs again.

use std::collections::VecDeque;

use placewise_workload::program::Object;

use crate::cpu::{Activity, Then};
use crate::engine::{Engine, Slot};
use crate::event_queue::Time;
use crate::task::{Resume, TaskState};

/// A pthread mutex: whoever finds it free takes it; a waiter that is woken tries again.
#[derive(Default)]
pub struct Mutex {
    pub owner: Option<u32>,
    pub waiters: VecDeque<u32>,
}

#[derive(Default)]
pub struct Condition {
    pub waiters: VecDeque<u32>,
}

pub struct Barrier {
    pub parties: u32,
    /// Those who sleep and those who spin.
    pub waiters: Vec<u32>,
    /// Where the count was written last.
    last_cpu: u32,
}

impl Barrier {
    pub fn new(parties: u32) -> Self {
        Barrier { parties, waiters: Vec::new(), last_cpu: 0 }
    }
}

/// Closed until somebody opens it, for good.
#[derive(Default)]
pub struct Gate {
    pub open: bool,
    pub waiters: Vec<u32>,
}

/// A word in memory, which one task raises and another lowers.
#[derive(Default)]
pub struct Flag {
    raised: bool,
    /// Waits busily until the flag is turned.
    waiter: Option<u32>,
    last_cpu: u32,
}

/// The task's `stage` while it waits busily.
const SPINS: u32 = 1;
const LET_GO: u32 = 2;

/// For waits without a limit: they are begun anew after this long.
const NO_LIMIT: Time = 600_000_000_000;

impl Engine<'_> {
    /// What an arrival at a barrier takes, or the busy wait there.
    pub fn barrier_cost(&mut self, cpu: u32, task: u32, barrier: Object, spin: Time) -> Time {
        let figures = self.costs.figures;
        let barrier = self.object(task, barrier);
        match self.tasks[task as usize].stage {
            _ if spin == 0 => self.costs.draw(figures.syscall_ns + figures.futex_ns),
            SPINS => spin,
            LET_GO => 0,
            _ => {
                let from = std::mem::replace(&mut self.barriers[barrier].last_cpu, cpu);
                self.costs.cache_lines(1, from, cpu)
            }
        }
    }

    pub fn barrier(&mut self, cpu: u32, task: u32, barrier: Object, spin: Time) -> Then {
        let barrier = self.object(task, barrier);
        match self.tasks[task as usize].stage {
            // It has spun for long enough.
            SPINS => Then::Block(Resume::Next),
            LET_GO => Then::Next,
            _ => self.arrive(cpu, task, barrier, spin),
        }
    }

    fn arrive(&mut self, cpu: u32, task: u32, barrier: usize, spin: Time) -> Then {
        let barrier = &mut self.barriers[barrier];
        if barrier.waiters.len() as u32 + 1 < barrier.parties {
            barrier.waiters.push(task);
            if spin == 0 {
                return Then::Block(Resume::Next);
            }
            self.tasks[task as usize].stage = SPINS;
            return Then::Again;
        }
        let waiters = std::mem::take(&mut barrier.waiters);
        if spin > 0 {
            // Whoever comes last calls futex(FUTEX_WAKE), whether anybody sleeps or not.
            let figures = self.costs.figures;
            self.cpus[cpu as usize].debt += self.costs.draw(figures.syscall_ns + figures.futex_ns);
        }
        for waiter in waiters {
            match self.tasks[waiter as usize].state {
                TaskState::Blocked => self.cpus[cpu as usize].wakees.push_back(waiter),
                _ => self.let_go(cpu, waiter),
            }
        }
        Then::Next
    }

    /// What turning a flag takes, or the busy wait until it can be turned.
    pub fn flag_cost(&mut self, cpu: u32, task: u32, flag: Object) -> Time {
        let flag = self.object(task, flag);
        match self.tasks[task as usize].stage {
            SPINS => NO_LIMIT,
            LET_GO => 0,
            _ => {
                let from = std::mem::replace(&mut self.flags[flag].last_cpu, cpu);
                self.costs.cache_lines(1, from, cpu)
            }
        }
    }

    /// Turns a flag up or down once it is not there yet.
    pub fn turn_flag(&mut self, cpu: u32, task: u32, flag: Object, up: bool) -> Then {
        let flag = self.object(task, flag);
        let flag = &mut self.flags[flag];
        if flag.raised == up {
            flag.waiter = Some(task);
            self.tasks[task as usize].stage = SPINS;
            return Then::Again;
        }
        flag.raised = up;
        flag.last_cpu = cpu;
        if let Some(waiter) = flag.waiter.take() {
            self.let_go(cpu, waiter);
        }
        Then::Next
    }

    /// What `waiter` waits for busily has happened on `cpu`: it goes on once the line has come to
    /// it, or as soon as it runs.
    fn let_go(&mut self, cpu: u32, waiter: u32) {
        let there = self.tasks[waiter as usize].last_cpu;
        let line = self.costs.cache_lines(1, cpu, there);
        let state = &mut self.tasks[waiter as usize];
        state.stage = LET_GO;
        state.work_left = state.work_left.min(line);
        let spins_there = self.scheduler.current(there) == waiter
            && self.cpus[there as usize].activity == Activity::Segment;
        if spins_there {
            self.arm(Slot::Activity(there), self.now + line);
        }
    }
}
