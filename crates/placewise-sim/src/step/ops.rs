//! The interpreter of task programs.
//!
//! A task's time on a CPU is cut into segments. A segment is the computing up
//! to the next operation and the cost of that operation; what the operation
//! does happens at its end, when it may block, wake others, or both, in this
//! order: wake, then block.

use placewise_policy::{CpuId, TaskId};
use placewise_workload::program::{Object, Op};

use super::messages::Transfer;
use crate::engine::Engine;
use crate::state::channel::Side;
use crate::state::effect::{Effect, Then};
use crate::state::event_queue::Time;

/// Computing ends a segment once it is this long: a task may do nothing else for ever.
const LONG_SEGMENT: Time = 1_000_000;

impl Engine<'_> {
    #[inline]
    pub(super) fn op(&self, task: TaskId) -> Op {
        *self.programs.op(self.tasks[task].pc)
    }

    pub(super) fn object(&self, task: TaskId, object: Object) -> usize {
        object.index(self.tasks[task].base)
    }

    pub(super) fn part(&self, task: TaskId) -> u32 {
        self.tasks[task].part
    }

    #[inline]
    fn transfer_of(&self, task: TaskId) -> Option<Transfer> {
        let state = &self.tasks[task];
        let (channel, base, side, bytes) = match *self.programs.op(state.pc) {
            Op::Send { channel, bytes } => (channel, state.base, Side::Writer, bytes),
            // What the channel means for the task whose message was read last.
            Op::Reply { channel, bytes } => (channel, state.peer, Side::Writer, bytes),
            Op::Receive { channel, bytes } => (channel, state.base, Side::Reader, bytes),
            _ => return None,
        };
        Some(Transfer { channel: channel.index(base), side, bytes })
    }

    /// The current task goes on where it is in its program. What the kernel did on its time is added
    /// to its next segment.
    #[inline]
    pub(super) fn advance(&mut self, cpu: CpuId) {
        let task = self.scheduler.current(cpu);
        let state = &mut self.tasks[task];
        state.work_left += std::mem::take(&mut self.cpus[cpu].debt);
        if !state.in_segment {
            self.begin_operation(cpu, task);
        }
        self.start_segment(cpu, task);
    }

    /// Goes through the program up to the next operation that takes time, or to a long segment.
    #[inline]
    fn begin_operation(&mut self, cpu: CpuId, task: TaskId) {
        let (mut work, costs) = self.compute(task);
        if costs {
            work += self.operation_cost(cpu, task, work);
        }
        let state = &mut self.tasks[task];
        state.in_segment = true;
        state.work_left += work;
    }

    /// How long the program computes before the next operation, and whether that has a cost.
    #[inline]
    fn compute(&mut self, task: TaskId) -> (Time, bool) {
        let Engine { programs, costs, measurement, .. } = self;
        let (now, state) = (self.now, &mut self.tasks[task]);
        let (mut work, part) = (0, state.part);
        loop {
            match *programs.op(state.pc) {
                Op::Run { ns } => {
                    work += costs.draw(ns);
                    if work >= LONG_SEGMENT {
                        return (work, false);
                    }
                }
                Op::RunAbout { ns, spread_pct } => {
                    let spread = ns * Time::from(spread_pct) / 100;
                    work += ns - spread + costs.random_below(2 * spread + 1);
                }
                Op::Count => measurement.count(part),
                Op::Start => measurement.start(part, now),
                Op::BeginSection { section } => {
                    measurement.begin_section(part, section, now + work);
                }
                Op::EndSection { section } => measurement.end_section(part, section, now + work),
                Op::BeginRequest => state.request_began = now + work,
                Op::EndRequest => {
                    measurement.sample_request(part, now + work, state.request_began);
                }
                Op::Repeat { counter, times, to } => {
                    if state.repeats(counter, times) {
                        state.pc = to;
                        continue;
                    }
                }
                Op::Spin { ns } => {
                    state.spin_until = Some(now + work + ns);
                    return (work, false);
                }
                _ => return (work, true),
            }
            state.pc += 1;
        }
    }

    /// What an operation takes before its effect, before which the program computes for `work`.
    #[inline]
    fn operation_cost(&mut self, cpu: CpuId, task: TaskId, work: Time) -> Time {
        match self.transfer_of(task) {
            Some(transfer) => {
                let before = self.tasks[task].work_left + work;
                self.transfer_cost(cpu, task, transfer, before)
            }
            None => self.other_cost(cpu, task),
        }
    }

    /// The same of one that transfers no message.
    fn other_cost(&mut self, cpu: CpuId, task: TaskId) -> Time {
        let figures = self.costs.figures;
        let figure = match self.op(task) {
            Op::Fork { program, .. } => match self.workload.programs[program as usize].process {
                true => figures.fork_ns,
                false => figures.thread_create_ns,
            },
            Op::Stream { bytes, .. } => {
                self.tasks[task].stream_left = bytes;
                return 0;
            }
            Op::Barrier { barrier, spin_ns } => {
                return self.barrier_cost(cpu, task, barrier, spin_ns);
            }
            Op::Arrive { barrier } => return self.arrival_cost(cpu, task, barrier),
            Op::RaiseFlag { flag } | Op::LowerFlag { flag } => {
                return self.flag_cost(cpu, task, flag);
            }
            Op::LockCpu => return self.cpu_lock_cost(task),
            Op::Await { semaphore, lines } => {
                return self.await_cost(cpu, task, semaphore, lines);
            }
            Op::UnlockCpu | Op::Post { .. } => 0,
            Op::Exit => figures.exit_ns,
            Op::Sleep { .. } | Op::Timer { .. } => figures.syscall_ns + figures.timer_ns,
            Op::Device { .. } => figures.syscall_ns + figures.kernel_queue_ns,
            Op::Yield => figures.syscall_ns,
            // A mutex that is free is taken in user space.
            Op::Lock { .. } | Op::Unlock { .. } | Op::StartTimer { .. } => 0,
            _ => figures.syscall_ns + figures.futex_ns,
        };
        self.costs.draw(figure)
    }

    /// The segment ends in the operation's effect.
    #[inline]
    pub(crate) fn segment_done(&mut self, cpu: CpuId) {
        let task = self.scheduler.current(cpu);
        self.last_progress = self.now;
        let state = &mut self.tasks[task];
        state.in_segment = false;
        state.work_left = 0;
        state.spin_until = None;
        state.woken_early = false;
        if std::mem::take(&mut state.stream_left) > 0 {
            self.end_stream(cpu);
        }
        let then = match self.transfer_of(task) {
            Some(transfer) => self.transfer(cpu, task, transfer),
            None => {
                let mut effect = std::mem::take(&mut self.cpus[cpu].effect);
                effect.begin();
                let then = self.perform(cpu, task, self.op(task), &mut effect);
                self.cpus[cpu].effect = effect;
                then
            }
        };
        self.wake_all(cpu, task, then);
    }

    /// What an operation does, but for those that only compute or count, or transfer messages.
    fn perform(&mut self, cpu: CpuId, task: TaskId, op: Op, effect: &mut Effect) -> Then {
        match op {
            Op::GateWait { gate } => self.gate(task, gate).wait(task),
            Op::GateOpen { gate } => self.gate(task, gate).open(effect),
            Op::Lock { mutex } => self.mutex(task, mutex).lock(task),
            Op::Unlock { mutex } => self.mutex(task, mutex).unlock(effect),
            Op::CondWait { condition, mutex } => {
                self.condition_wait(task, condition, mutex, effect)
            }
            Op::Signal { condition } => self.condition(task, condition).signal(effect),
            Op::Broadcast { condition } => self.condition(task, condition).broadcast(effect),
            Op::Barrier { barrier, spin_ns } => self.barrier(cpu, task, barrier, spin_ns, effect),
            Op::Arrive { barrier } => self.arrive_only(cpu, task, barrier, effect),
            Op::RaiseFlag { flag } => self.turn_flag(cpu, task, flag, true),
            Op::LowerFlag { flag } => self.turn_flag(cpu, task, flag, false),
            Op::LockCpu => self.lock_cpu(cpu, task),
            Op::UnlockCpu => self.unlock_cpu(cpu, task),
            Op::Post { semaphore, wake } => self.post(cpu, task, semaphore, wake, effect),
            Op::Await { semaphore, .. } => self.semaphore(task, semaphore).take(task),
            Op::Wait { sample } => self.futex_wait(task, sample),
            Op::Enlist { list } => self.enlist(task, list),
            Op::WakeListed { list } => self.wake_listed(task, list, effect),
            Op::WakeParent => self.wake_parent(task, effect),
            Op::Sleep { ns, random_pct } => self.sleep(task, ns, random_pct),
            Op::Device { ns, random_pct } => self.wait_for_device(task, ns, random_pct),
            Op::StartTimer { timer } => self.start_timer(task, timer),
            Op::Timer { timer, period, absolute } => {
                self.wait_for_timer(task, timer, period, absolute)
            }
            Op::Yield => self.sched_yield(cpu, task),
            Op::Fork { program, count, base, step } => {
                self.fork(cpu, task, program, count, base, step)
            }
            Op::Join => self.join(task),
            Op::Exit => self.exit(cpu, task, effect),
            _ => Then::Next,
        }
    }

    /// A task that was woken runs again, or one whose wakeups are done goes on.
    pub(super) fn next_op(&mut self, task: TaskId) {
        let state = &mut self.tasks[task];
        state.pc += 1;
        state.stage = 0;
    }
}
