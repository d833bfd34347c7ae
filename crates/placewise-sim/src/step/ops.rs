//! The interpreter of task programs.
//!
//! A task's time on a CPU is cut into segments. A segment is the computing up
//! to the next operation and the cost of that operation; what the operation
//! does happens at its end, when it may block, wake others, or both, in this
//! order: wake, then block.

use placewise_policy::{CpuId, TaskId};
use placewise_workload::program::{FOREVER, Object, Op};

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
        self.programs.op(self.tasks[task].pc)
    }

    pub(super) fn object(&self, task: TaskId, object: Object) -> usize {
        object.index(self.tasks[task].base)
    }

    pub(super) fn part(&self, task: TaskId) -> u32 {
        self.tasks[task].part
    }

    /// What `object` means for the task whose message was read last.
    fn object_of_peer(&self, task: TaskId, object: Object) -> usize {
        object.index(self.tasks[task].peer)
    }

    #[inline]
    fn transfer_of(&self, task: TaskId, op: Op) -> Transfer {
        let (channel, side, bytes) = match op {
            Op::Send { channel, bytes } => (self.object(task, channel), Side::Writer, bytes),
            Op::Reply { channel, bytes } => {
                (self.object_of_peer(task, channel), Side::Writer, bytes)
            }
            Op::Receive { channel, bytes } => (self.object(task, channel), Side::Reader, bytes),
            _ => unreachable!("{op:?} transfers nothing"),
        };
        Transfer { channel, side, bytes }
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
        let mut work = 0;
        let mut pc = self.tasks[task].pc;
        loop {
            match self.programs.op(pc) {
                Op::Run { ns } => {
                    work += self.costs.draw(ns);
                    if work >= LONG_SEGMENT {
                        break;
                    }
                }
                Op::RunAbout { ns, spread_pct } => {
                    let spread = ns * Time::from(spread_pct) / 100;
                    work += ns - spread + self.costs.random_below(2 * spread + 1);
                }
                Op::Count => self.measurement.count(self.part(task)),
                Op::Start => self.measurement.start(self.part(task), self.now),
                Op::BeginSection { section } => {
                    let part = self.part(task);
                    self.measurement.begin_section(part, section, self.now + work);
                }
                Op::EndSection { section } => {
                    let part = self.part(task);
                    self.measurement.end_section(part, section, self.now + work);
                }
                Op::BeginRequest => self.tasks[task].request_began = self.now + work,
                Op::EndRequest => {
                    let (part, began) = (self.part(task), self.tasks[task].request_began);
                    self.measurement.sample_request(part, self.now + work, began);
                }
                Op::Repeat { counter, times, to } => {
                    if self.repeats(task, counter, times) {
                        pc = to;
                        continue;
                    }
                }
                Op::Spin { ns } => {
                    self.tasks[task].spin_until = Some(self.now + work + ns);
                    break;
                }
                operation => {
                    work += self.operation_cost(cpu, task, operation, work);
                    break;
                }
            }
            pc += 1;
        }
        let state = &mut self.tasks[task];
        state.pc = pc;
        state.in_segment = true;
        state.work_left += work;
    }

    /// A pass of a loop is over: is there another?
    fn repeats(&mut self, task: TaskId, counter: u8, times: u32) -> bool {
        let done = &mut self.tasks[task].counters[counter as usize];
        *done = done.saturating_add(1);
        let again = times == FOREVER || *done < times;
        if !again {
            *done = 0;
        }
        again
    }

    /// What an operation takes before its effect, before which the program computes for `work`.
    fn operation_cost(&mut self, cpu: CpuId, task: TaskId, op: Op, work: Time) -> Time {
        let figures = self.costs.figures;
        let figure = match op {
            Op::Send { .. } | Op::Receive { .. } | Op::Reply { .. } => {
                let before = self.tasks[task].work_left + work;
                return self.transfer_cost(cpu, task, self.transfer_of(task, op), before);
            }
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
        let mut effect = self.cpus[cpu].effect.renew();
        effect.then = self.perform(cpu, task, self.op(task), &mut effect);
        self.wake_all(cpu, task, effect);
    }

    /// What an operation does, but for those that only compute or count.
    #[inline]
    fn perform(&mut self, cpu: CpuId, task: TaskId, op: Op, effect: &mut Effect) -> Then {
        match op {
            Op::Send { .. } | Op::Receive { .. } | Op::Reply { .. } => {
                self.transfer(task, self.transfer_of(task, op), effect)
            }
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
