//! A tiny reference interpreter of task programs, for tests of what programs do.
//!
//! It has as many CPUs as tasks and no costs: time passes only in compute and sleep operations.
//! Everything that can block does, so a program that would lock up here would lock up anywhere.

use std::collections::VecDeque;

use placewise_workload::program::*;

/// Something a task did, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub time: Nanos,
    pub task: usize,
    pub op: Op,
    /// The channel, list, timer or program the operation meant, if it means one.
    pub index: usize,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    AllExited,
    TimeUp,
    Deadlock,
}

pub struct Task {
    pub program: usize,
    pub base: u32,
    pub parent: Option<usize>,
    pub exited: bool,
    pc: usize,
    counters: [u32; COUNTERS],
    until: Option<Nanos>,
    woken: bool,
    /// The task whose message it read last.
    peer: usize,
    /// In a condition or at a barrier: not there, waiting, let go.
    stage: u8,
}

#[derive(Default, Clone)]
struct Timer {
    last: Option<Nanos>,
}

pub struct Interpreter<'a> {
    workload: &'a Workload,
    pub tasks: Vec<Task>,
    pub steps: Vec<Step>,
    pub count: u64,
    time: Nanos,
    /// Messages by sender, and what is left of those that may be read in portions.
    queues: Vec<VecDeque<(usize, Option<u32>)>>,
    gates: Vec<bool>,
    flags: Vec<bool>,
    lists: Vec<Vec<usize>>,
    owners: Vec<Option<usize>>,
    waiters: Vec<VecDeque<usize>>,
    arrived: Vec<Vec<Option<usize>>>,
    timers: Vec<Timer>,
}

/// Messages a channel holds.
const CAPACITY: usize = 16;

impl<'a> Interpreter<'a> {
    pub fn new(workload: &'a Workload) -> Self {
        let mut interpreter = Self {
            workload,
            tasks: Vec::new(),
            steps: Vec::new(),
            count: 0,
            time: 0,
            queues: vec![VecDeque::new(); workload.channels.len()],
            gates: vec![false; workload.gates as usize],
            flags: vec![false; workload.flags as usize],
            lists: vec![Vec::new(); workload.lists as usize],
            owners: vec![None; workload.mutexes as usize],
            waiters: vec![VecDeque::new(); workload.conditions as usize],
            arrived: vec![Vec::new(); workload.barriers.len()],
            timers: vec![Timer::default(); workload.timers as usize],
        };
        interpreter.spawn(0, 0, None);
        interpreter
    }

    /// Runs until nothing can move any more or the time is up.
    pub fn run(&mut self, limit: Nanos) -> End {
        loop {
            let mut moved = false;
            let mut task = 0;
            while task < self.tasks.len() {
                while !self.tasks[task].exited && self.step(task) {
                    moved = true;
                }
                task += 1;
            }
            if self.tasks.iter().all(|task| task.exited) {
                return End::AllExited;
            }
            if moved {
                continue;
            }
            match self.tasks.iter().filter_map(|task| task.until).min() {
                None => return End::Deadlock,
                Some(next) if next > limit => return End::TimeUp,
                Some(next) => self.time = next,
            }
        }
    }

    /// The steps that a test asks for.
    pub fn steps_where(&self, wanted: impl Fn(&Step) -> bool) -> Vec<Step> {
        self.steps.iter().copied().filter(|step| wanted(step)).collect()
    }

    fn spawn(&mut self, program: usize, base: u32, parent: Option<usize>) {
        self.tasks.push(Task {
            program,
            base,
            parent,
            exited: false,
            pc: 0,
            counters: [0; COUNTERS],
            until: None,
            woken: false,
            peer: 0,
            stage: 0,
        });
    }

    /// Does the task's next operation; false if it blocks.
    fn step(&mut self, task: usize) -> bool {
        let program = &self.workload.programs[self.tasks[task].program];
        let op = program.ops[self.tasks[task].pc];
        let Some(index) = self.execute(task, op) else {
            return false;
        };
        if !matches!(op, Op::Repeat { .. }) {
            self.tasks[task].pc += 1;
        }
        self.steps.push(Step { time: self.time, task, op, index });
        true
    }

    /// The index of the object the operation meant, or `None` if it blocks.
    fn execute(&mut self, task: usize, op: Op) -> Option<usize> {
        let base = self.tasks[task].base;
        match op {
            Op::Run { ns }
            | Op::RunAbout { ns, .. }
            | Op::Spin { ns }
            | Op::Sleep { ns, .. }
            | Op::Device { ns, .. } => self.pass(task, self.time + ns),
            Op::StartTimer { timer } => {
                self.timers[timer.index(base)].last.get_or_insert(self.time);
                Some(timer.index(base))
            }
            Op::Timer { timer, period, absolute } => {
                self.wait_timer(task, timer.index(base), period, absolute)
            }
            Op::Send { channel, bytes } => self.send(task, channel.index(base), bytes),
            Op::Receive { channel, bytes } => self.receive(task, channel.index(base), bytes),
            Op::Reply { channel, .. } => {
                let channel = channel.index(self.tasks[self.tasks[task].peer].base);
                self.queues[channel].push_back((task, None));
                Some(channel)
            }
            Op::GateWait { gate } => self.gates[gate.index(base)].then_some(gate.index(base)),
            Op::GateOpen { gate } => {
                self.gates[gate.index(base)] = true;
                Some(gate.index(base))
            }
            Op::Enlist { list } => {
                self.lists[list.index(base)].push(task);
                Some(list.index(base))
            }
            Op::WakeListed { list } => self.wake_listed(task, list.index(base)),
            Op::WakeParent => self.wake_parent(task),
            Op::Wait { .. } => std::mem::take(&mut self.tasks[task].woken).then_some(0),
            Op::Lock { mutex } => self.lock(task, mutex.index(base)),
            Op::Unlock { mutex } => self.unlock(task, mutex.index(base)),
            Op::CondWait { condition, mutex } => {
                let mutex = mutex.expect("with a mutex").index(base);
                self.wait_condition(task, condition.index(base), mutex)
            }
            Op::Signal { condition } => self.let_go(condition.index(base), 1),
            Op::Broadcast { condition } => self.let_go(condition.index(base), usize::MAX),
            Op::Barrier { barrier, .. } => self.barrier(task, barrier.index(base)),
            Op::Arrive { barrier } => self.arrive(None, barrier.index(base)),
            Op::Fork { program, count, base: offset, step } => {
                for number in 0..count {
                    self.spawn(program as usize, base + offset + number * step, Some(task));
                }
                Some(program as usize)
            }
            Op::Join => self.children_of(task).all(|child| child.exited).then_some(0),
            Op::Repeat { counter, times, to } => self.repeat(task, counter as usize, times, to),
            Op::RaiseFlag { flag } => self.turn_flag(flag.index(base), false),
            Op::LowerFlag { flag } => self.turn_flag(flag.index(base), true),
            Op::Count => {
                self.count += 1;
                Some(0)
            }
            Op::Exit => {
                self.tasks[task].exited = true;
                Some(0)
            }
            // What the rest does shows in time and on CPUs only.
            _ => Some(0),
        }
    }

    fn wait_timer(
        &mut self,
        task: usize,
        timer: usize,
        period: Nanos,
        absolute: bool,
    ) -> Option<usize> {
        let expiry = self.timers[timer].last.expect("started") + period;
        if self.tasks[task].until.is_none() && expiry <= self.time {
            self.timers[timer].last = Some(if absolute { expiry } else { self.time });
            return Some(timer);
        }
        self.pass(task, expiry)?;
        self.timers[timer].last = Some(expiry);
        Some(timer)
    }

    fn wake_listed(&mut self, task: usize, list: usize) -> Option<usize> {
        self.tasks[task].woken = false;
        for listed in std::mem::take(&mut self.lists[list]) {
            self.tasks[listed].woken = true;
        }
        Some(list)
    }

    fn wake_parent(&mut self, task: usize) -> Option<usize> {
        let parent = self.tasks[task].parent.expect("main wakes nobody");
        self.tasks[parent].woken = true;
        Some(parent)
    }

    fn children_of(&self, task: usize) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(move |child| child.parent == Some(task))
    }

    fn repeat(&mut self, task: usize, counter: usize, times: u32, to: u32) -> Option<usize> {
        let state = &mut self.tasks[task];
        let done = &mut state.counters[counter];
        *done += 1;
        if times == FOREVER || *done < times {
            state.pc = to as usize;
        } else {
            *done = 0;
            state.pc += 1;
        }
        Some(0)
    }

    fn send(&mut self, task: usize, channel: usize, bytes: u32) -> Option<usize> {
        let stream = self.workload.channels[channel] == ChannelKind::LoopbackTcp;
        (self.queues[channel].len() < CAPACITY)
            .then(|| self.queues[channel].push_back((task, stream.then_some(bytes))))?;
        Some(channel)
    }

    /// A portion never spans two messages here.
    fn receive(&mut self, task: usize, channel: usize, bytes: u32) -> Option<usize> {
        let (sender, left) = self.queues[channel].front_mut()?;
        self.tasks[task].peer = *sender;
        match left {
            Some(left) if *left > bytes => *left -= bytes,
            Some(left) => {
                assert_eq!(*left, bytes, "reads more than was written");
                self.queues[channel].pop_front();
            }
            None => {
                self.queues[channel].pop_front();
            }
        }
        Some(channel)
    }

    fn pass(&mut self, task: usize, until: Nanos) -> Option<usize> {
        let until = *self.tasks[task].until.get_or_insert(until);
        (until <= self.time).then(|| self.tasks[task].until = None)?;
        Some(0)
    }

    fn lock(&mut self, task: usize, mutex: usize) -> Option<usize> {
        self.owners[mutex].is_none().then(|| self.owners[mutex] = Some(task))?;
        Some(mutex)
    }

    fn unlock(&mut self, task: usize, mutex: usize) -> Option<usize> {
        assert_eq!(self.owners[mutex].take(), Some(task), "unlocks what it does not hold");
        Some(mutex)
    }

    /// As many waiters as there are, at most `count`.
    fn let_go(&mut self, condition: usize, count: usize) -> Option<usize> {
        let count = count.min(self.waiters[condition].len());
        for waiter in self.waiters[condition].drain(..count) {
            self.tasks[waiter].stage = 2;
        }
        Some(condition)
    }

    fn turn_flag(&mut self, flag: usize, from: bool) -> Option<usize> {
        (self.flags[flag] == from).then(|| self.flags[flag] = !from)?;
        Some(flag)
    }

    fn wait_condition(&mut self, task: usize, condition: usize, mutex: usize) -> Option<usize> {
        match self.tasks[task].stage {
            0 => {
                assert_eq!(self.owners[mutex].take(), Some(task), "waits without its mutex");
                self.waiters[condition].push_back(task);
                self.tasks[task].stage = 1;
                None
            }
            1 => None,
            _ => {
                self.lock(task, mutex)?;
                self.tasks[task].stage = 0;
                Some(condition)
            }
        }
    }

    /// One more is here, who may wait; those who do may go on once all are here.
    fn arrive(&mut self, waiter: Option<usize>, barrier: usize) -> Option<usize> {
        self.arrived[barrier].push(waiter);
        if self.arrived[barrier].len() == self.workload.barriers[barrier] as usize {
            for waiter in std::mem::take(&mut self.arrived[barrier]).into_iter().flatten() {
                self.tasks[waiter].stage = 2;
            }
        }
        Some(barrier)
    }

    fn barrier(&mut self, task: usize, barrier: usize) -> Option<usize> {
        match self.tasks[task].stage {
            0 => {
                self.tasks[task].stage = 1;
                self.arrive(Some(task), barrier);
                let all_are_here = self.tasks[task].stage == 2;
                if all_are_here {
                    self.tasks[task].stage = 0;
                }
                all_are_here.then_some(barrier)
            }
            1 => None,
            _ => {
                self.tasks[task].stage = 0;
                Some(barrier)
            }
        }
    }
}
