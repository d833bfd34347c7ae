//! The interpreter of task programs.
//!
//! A task's time on a CPU is cut into segments. A segment is the computing up
//! to the next operation and the cost of that operation; what the operation
//! does happens at its end, when it may block, wake others, or both, in this
//! order: wake, then block.

use placewise_policy::{CpuId, TaskId};
use placewise_workload::program::{Object, Op};

use super::running::Segment;
use super::sync::CAME;
use crate::engine::Engine;
use crate::state::effect::{Effect, Then};
use crate::state::event_queue::Time;
use crate::state::events::Slot;
use crate::state::programs::Step;
use crate::state::sync::Post;

impl Engine<'_> {
    pub(super) fn step_of(&self, task: TaskId) -> Step {
        *self.programs.step(self.tasks[task].pc)
    }

    pub(super) fn object(&self, task: TaskId, object: Object) -> usize {
        object.index(self.tasks[task].base)
    }

    pub(super) fn part(&self, task: TaskId) -> u32 {
        self.tasks[task].part
    }

    /// The current task of a CPU goes on where it is in its program.
    pub(super) fn advance(&mut self, cpu: CpuId, task: TaskId) {
        let segment = self.running(cpu, task).go_on();
        self.begin_segment(cpu, task, segment);
    }

    #[inline(always)]
    fn begin_segment(&mut self, cpu: CpuId, task: TaskId, segment: Segment) {
        match segment {
            Segment::Ends(end) => self.events.arm(Slot::Activity(cpu), end),
            Segment::Costs(op) => self.begin_other(cpu, task, op),
            Segment::Streams => self.start_stream(cpu, task),
        }
    }

    /// The segment of an operation that is no transfer.
    #[inline(never)]
    fn begin_other(&mut self, cpu: CpuId, task: TaskId, op: Op) {
        self.tasks[task].work_left += self.other_cost(cpu, task, op);
        match self.tasks[task].stream_left {
            0 => self.time_segment(cpu, task),
            _ => self.start_stream(cpu, task),
        }
    }

    /// What an operation takes before its effect that is no transfer.
    fn other_cost(&mut self, cpu: CpuId, task: TaskId, op: Op) -> Time {
        let figures = self.costs.figures;
        let figure = match op {
            Op::Fork { program, .. } => match self.workload.programs[program as usize].process {
                true => figures.fork_ns,
                false => figures.thread_create_ns,
            },
            Op::Stream { access, bytes } => {
                self.tasks[task].stream_left = self.next_piece(cpu, task, access, bytes);
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
            Op::GateWait { .. } if self.tasks[task].stage == CAME => 0,
            Op::Await { semaphore, lines } => {
                return self.await_cost(cpu, task, semaphore, lines);
            }
            Op::UnlockCpu | Op::Post { .. } | Op::Answer { .. } | Op::Close { .. } => 0,
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

    /// The segment ends in the operation's effect. Most are transfers that wake nobody and let the task go
    /// on at once.
    #[inline]
    pub(crate) fn segment_done(&mut self, cpu: CpuId) {
        let task = self.scheduler.current(cpu);
        self.last_progress = self.now;
        let mut running = self.running(cpu, task);
        if running.state.stream_left > 0 {
            running.state.stream_left = 0;
            self.end_stream(cpu);
            running = self.running(cpu, task);
        }
        running.end_segment();
        let then = match running.end_operation() {
            Some(then) if running.goes_on(then) => {
                let segment = running.go_on();
                return self.begin_segment(cpu, task, segment);
            }
            Some(then) => then,
            None => self.end_other(cpu, task),
        };
        self.wake_all(cpu, task, then);
    }

    /// The effect of an operation that is no transfer.
    fn end_other(&mut self, cpu: CpuId, task: TaskId) -> Then {
        let mut effect = std::mem::take(&mut self.cpus[cpu].effect);
        effect.begin();
        let then = match self.step_of(task) {
            Step::Op(op) => self.perform(cpu, task, op, &mut effect),
            // It has computed for long.
            _ => Then::Next,
        };
        self.cpus[cpu].effect = effect;
        then
    }

    /// What an operation does, but for those that only compute or count, or transfer messages.
    fn perform(&mut self, cpu: CpuId, task: TaskId, op: Op, effect: &mut Effect) -> Then {
        match op {
            Op::GateWait { gate } => self.wait_at_gate(cpu, task, gate),
            Op::GateOpen { gate } => self.open_gate(task, gate, effect),
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
            Op::Stream { .. } => self.end_piece(task),
            Op::LockCpu => self.lock_cpu(cpu, task),
            Op::UnlockCpu => self.unlock_cpu(cpu, task),
            Op::Post { semaphore, wake, call, answered_at } => {
                effect.call = call;
                let semaphore = self.object(task, semaphore);
                let answered_at = answered_at.map(|at| self.object(task, at));
                self.post(semaphore, Post { cpu, answered_at }, wake, effect)
            }
            Op::Answer { inbox, otherwise, wake, call } => {
                effect.call = call;
                self.answer(cpu, task, (inbox, otherwise), wake, effect)
            }
            Op::Await { semaphore, .. } => self.semaphore(task, semaphore).take(task),
            Op::Close { semaphore } => self.semaphore(task, semaphore).close(effect),
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
}
