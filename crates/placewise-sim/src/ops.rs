//! The interpreter of task programs.
//!
//! A task's time on a CPU is cut into segments. A segment is the computing up
//! to the next operation and the cost of that operation; what the operation
//! does happens at its end, when it may block, wake others, or both, in this
//! order: wake, then block.

use placewise_policy::PIPE_WAKES_ALL;
use placewise_workload::program::{ChannelKind, FOREVER, Object, Op};

use crate::channel::Wake;
use crate::costs::CostModel;
use crate::cpu::{Activity, FULL_SPEED, Speed, Then};
use crate::engine::{Engine, Slot};
use crate::event_queue::Time;
use crate::task::{Resume, TaskState};
use crate::wakeup::WakerContext;

/// Computing ends a segment once it is this long: a task may do nothing else for ever.
const LONG_SEGMENT: Time = 1_000_000;
/// A need to reschedule waits for the end of an operation that is this near.
pub const NEAR_END: Time = 5_000;

/// Which end of a channel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Writer,
    Reader,
}

/// What takes `time` at full speed, at `speed`. Many segments run at full speed, and a division
/// takes longer than to ask.
#[inline]
fn at_speed(time: Time, speed: Speed) -> Time {
    if speed == FULL_SPEED { time } else { time * FULL_SPEED / speed }
}

impl Engine<'_> {
    pub fn op(&self, task: u32) -> Op {
        let task = &self.tasks[task as usize];
        self.workload.programs[task.program as usize].ops[task.pc as usize]
    }

    pub fn object(&self, task: u32, object: Object) -> usize {
        object.index(self.tasks[task as usize].base)
    }

    fn part(&self, task: u32) -> u32 {
        self.tasks[task as usize].part
    }

    /// What `object` means for the task whose message was read last.
    fn object_of_peer(&self, task: u32, object: Object) -> usize {
        object.index(self.tasks[task as usize].peer)
    }

    /// The current task goes on where it is in its program.
    pub fn advance(&mut self, cpu: u32) {
        let task = self.scheduler.current(cpu);
        if self.tasks[task as usize].in_segment {
            return self.start_segment(cpu);
        }
        let mut work = 0;
        loop {
            match self.op(task) {
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
                Op::Repeat { counter, times, to } => {
                    self.repeat(task, counter, times, to);
                    continue;
                }
                Op::Spin { ns } => {
                    self.tasks[task as usize].spin_until = Some(self.now + work + ns);
                    break;
                }
                operation => {
                    work += self.operation_cost(cpu, task, operation, self.now + work);
                    break;
                }
            }
            self.tasks[task as usize].pc += 1;
        }
        let state = &mut self.tasks[task as usize];
        state.in_segment = true;
        state.work_left += work;
        self.start_segment(cpu);
    }

    fn repeat(&mut self, task: u32, counter: u8, times: u32, to: u32) {
        let task = &mut self.tasks[task as usize];
        let done = &mut task.counters[counter as usize];
        *done = done.saturating_add(1);
        if times == FOREVER || *done < times {
            task.pc = to;
        } else {
            *done = 0;
            task.pc += 1;
        }
    }

    /// What an operation that begins at `begin` takes before its effect.
    fn operation_cost(&mut self, cpu: u32, task: u32, op: Op, begin: Time) -> Time {
        let figures = self.costs.figures;
        let figure = match op {
            Op::Send { channel, bytes } => {
                let channel = self.object(task, channel);
                return self.transfer_cost(cpu, channel, Side::Writer, bytes, begin);
            }
            Op::Receive { channel, bytes } => {
                let channel = self.object(task, channel);
                return self.transfer_cost(cpu, channel, Side::Reader, bytes, begin);
            }
            Op::Reply { channel, bytes } => {
                let channel = self.object_of_peer(task, channel);
                return self.transfer_cost(cpu, channel, Side::Writer, bytes, begin);
            }
            Op::Fork { .. } => figures.fork_ns,
            Op::Stream { bytes, .. } => {
                self.tasks[task as usize].stream_left = bytes;
                return 0;
            }
            Op::Barrier { barrier, spin_ns } => {
                return self.barrier_cost(cpu, task, barrier, spin_ns);
            }
            Op::RaiseFlag { flag } | Op::LowerFlag { flag } => {
                return self.flag_cost(cpu, task, flag);
            }
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

    /// The channel's lock is taken in turn, and its lines come from where they were last.
    fn transfer_cost(
        &mut self,
        cpu: u32,
        index: usize,
        side: Side,
        bytes: u32,
        begin: Time,
    ) -> Time {
        let figures = self.costs.figures;
        let channel = &self.channels[index];
        let copy = match channel.kind() {
            ChannelKind::Pipe => figures.pipe_message_ns,
            ChannelKind::UnixSocket | ChannelKind::PolledSockets => figures.socket_message_ns,
            ChannelKind::LoopbackTcp => figures.tcp_message_ns + self.costs.copy(bytes),
            ChannelKind::LoopbackUdp => figures.udp_message_ns + self.costs.copy(bytes),
            ChannelKind::KernelQueue => figures.kernel_queue_ns,
        };
        let transfer = match channel.kind() {
            ChannelKind::Pipe | ChannelKind::UnixSocket => {
                let lines = figures.channel_lines + CostModel::lines_of(bytes);
                self.costs.cache_lines(lines, channel.last_cpu, cpu)
            }
            _ => self.costs.cache_lines(figures.channel_lines, channel.last_cpu, cpu),
        };
        // Long messages stream, and only to the reader: the writer fills new buffers.
        let streamed = match (channel.kind(), side) {
            (ChannelKind::LoopbackTcp | ChannelKind::LoopbackUdp, Side::Reader) => {
                let lines = CostModel::lines_of(bytes).div_ceil(figures.copy_overlap);
                self.costs.cache_lines(lines, channel.written_on, cpu)
            }
            _ => 0,
        };
        let call = self.costs.draw(figures.syscall_ns);
        let inside = self.costs.draw(copy) + transfer + streamed;
        let channel = &mut self.channels[index];
        let mut left = begin + call + inside;
        // Polled sockets have a lock each.
        if channel.kind() != ChannelKind::PolledSockets {
            left = left.max(channel.busy_until + inside);
            channel.busy_until = left;
        }
        channel.last_cpu = cpu;
        if side == Side::Writer {
            channel.written_on = cpu;
        }
        left - begin
    }

    /// Runs what is left of the current task's segment.
    fn start_segment(&mut self, cpu: u32) {
        let task = self.scheduler.current(cpu);
        if self.tasks[task as usize].stream_left > 0 {
            self.begin_stream(cpu, task);
        }
        self.time_segment(cpu);
    }

    /// The rest of the segment takes as long as it does at the speed of this moment.
    pub fn time_segment(&mut self, cpu: u32) {
        let task = self.scheduler.current(cpu);
        let speed = self.speed(cpu);
        if self.tasks[task as usize].stream_left > 0 {
            self.cpus[cpu as usize].stream_mbps = self.stream_rate(cpu, speed);
        }
        let state = &self.tasks[task as usize];
        let end = match state.spin_until {
            Some(until) => until.max(self.now),
            None => self.now + at_speed(state.work_left, speed) + self.stream_time(cpu),
        };
        self.cpus[cpu as usize].speed = speed;
        self.begin(cpu, Activity::Segment, end);
    }

    /// What the kernel does here for `time` at full speed takes longer on a slow core, and beside
    /// busy siblings.
    #[inline]
    pub fn stretched(&self, cpu: u32, time: Time) -> Time {
        at_speed(time, self.speed(cpu))
    }

    /// Speed of one thread of a core whose other threads may be busy.
    fn speed(&self, cpu: u32) -> Speed {
        let core = &self.scheduler.policy.cpu[cpu as usize];
        let siblings = &core.siblings[..core.nr_siblings as usize];
        let busy = siblings.iter().filter(|&&other| self.is_busy(u32::from(other))).count() as u32;
        let thread_pct = match busy {
            0 | 1 => 100,
            2 => self.costs.figures.smt_throughput_pct,
            _ => self.costs.figures.smt_throughput_pct * 2 / busy,
        };
        u64::from(thread_pct) * self.costs.core_speed(cpu)
    }

    fn is_busy(&self, cpu: u32) -> bool {
        self.cpus[cpu as usize].activity != Activity::Idle
    }

    /// A CPU went idle or came back: its siblings' long segments change speed.
    /// Those about to end keep theirs.
    pub fn siblings_change_speed(&mut self, cpu: u32) {
        for sibling in 0..usize::from(self.scheduler.policy.cpu[cpu as usize].nr_siblings) {
            let sibling = u32::from(self.scheduler.policy.cpu[cpu as usize].siblings[sibling]);
            if sibling != cpu && self.cpus[sibling as usize].activity == Activity::Segment {
                self.change_speed(sibling);
            }
        }
    }

    pub fn change_speed(&mut self, cpu: u32) {
        let slot = self.slot(Slot::Activity(cpu));
        let Some(end) = self.queue.due(slot) else { return };
        let spins = self.tasks[self.scheduler.current(cpu) as usize].spin_until.is_some();
        if spins || end < self.now + NEAR_END {
            return;
        }
        self.keep_rest(cpu, end);
        self.time_segment(cpu);
    }

    /// The segment under way is interrupted: what is left of it is kept with the task.
    pub fn save_segment(&mut self, cpu: u32) {
        let slot = self.slot(Slot::Activity(cpu));
        let Some(end) = self.queue.due(slot) else { return };
        self.queue.disarm(slot);
        self.keep_rest(cpu, end);
        if self.tasks[self.scheduler.current(cpu) as usize].stream_left > 0 {
            self.end_stream(cpu);
        }
    }

    /// What is left of a segment that was to end at `end`: at last its stream, before that the rest.
    fn keep_rest(&mut self, cpu: u32, end: Time) {
        let speed = self.cpus[cpu as usize].speed;
        let streams = self.stream_time(cpu);
        let left = end - self.now;
        if left < streams {
            self.keep_stream(cpu, left);
        }
        let task = self.scheduler.current(cpu);
        self.tasks[task as usize].work_left = left.saturating_sub(streams) * speed / FULL_SPEED;
    }

    /// The segment ends in the operation's effect.
    pub fn segment_done(&mut self, cpu: u32) {
        let task = self.scheduler.current(cpu);
        self.last_progress = self.now;
        let state = &mut self.tasks[task as usize];
        state.in_segment = false;
        state.work_left = 0;
        state.spin_until = None;
        if std::mem::take(&mut state.stream_left) > 0 {
            self.end_stream(cpu);
        }
        let op = self.op(task);
        let then = self.effect(cpu, task, op);
        self.wake_all(cpu, then);
    }

    /// What an operation does: it may leave wakees with the CPU, and says how the task goes on.
    fn effect(&mut self, cpu: u32, task: u32, op: Op) -> Then {
        self.cpus[cpu as usize].wake_sync = false;
        self.cpus[cpu as usize].wake_context = WakerContext::Task;
        self.cpus[cpu as usize].wake_call_ns = 0;
        self.tasks[task as usize].woken_early = false;
        match op {
            Op::Send { channel, bytes } => {
                let channel = self.object(task, channel);
                self.send(cpu, task, channel, bytes)
            }
            Op::Receive { channel, bytes } => {
                let channel = self.object(task, channel);
                self.receive(cpu, task, channel, bytes)
            }
            Op::Reply { channel, bytes } => {
                let channel = self.object_of_peer(task, channel);
                self.send(cpu, task, channel, bytes)
            }
            Op::GateWait { gate } => self.gate_wait(task, gate),
            Op::GateOpen { gate } => self.gate_open(cpu, task, gate),
            Op::Enlist { list } => {
                let list = self.object(task, list);
                self.lists[list].push(task);
                Then::Next
            }
            Op::WakeListed { list } => self.wake_listed(cpu, task, list),
            Op::WakeParent => {
                let parent = self.tasks[task as usize].parent;
                self.futex_wake(cpu, parent, self.now);
                Then::Next
            }
            Op::Wait { sample } => self.futex_wait(task, sample),
            Op::Lock { mutex } => {
                let mutex = self.object(task, mutex);
                self.lock(task, mutex)
            }
            Op::Unlock { mutex } => {
                let mutex = self.object(task, mutex);
                self.unlock(cpu, mutex);
                Then::Next
            }
            Op::CondWait { condition, mutex } => self.condition_wait(cpu, task, condition, mutex),
            Op::Signal { condition } => {
                let condition = self.object(task, condition);
                let first = self.conditions[condition].waiters.pop_front();
                self.cpus[cpu as usize].wakees.extend(first);
                Then::Next
            }
            Op::Broadcast { condition } => {
                let condition = self.object(task, condition);
                let all = std::mem::take(&mut self.conditions[condition].waiters);
                self.cpus[cpu as usize].wakees.extend(all);
                Then::Next
            }
            Op::Barrier { barrier, spin_ns } => self.barrier(cpu, task, barrier, spin_ns),
            Op::RaiseFlag { flag } => self.turn_flag(cpu, task, flag, true),
            Op::LowerFlag { flag } => self.turn_flag(cpu, task, flag, false),
            Op::Sleep { ns, random_pct } => {
                let extra = self.costs.random_below(ns * u64::from(random_pct) / 100);
                self.sleep_until(task, self.now + ns + extra)
            }
            Op::Device { ns, random_pct } => {
                let extra = self.costs.random_below(ns * u64::from(random_pct) / 100);
                self.tasks[task as usize].interrupt_cpu = Some(self.next_interrupt_cpu());
                self.arm(Slot::Timer(task), self.now + ns + extra);
                Then::Block(Resume::Next)
            }
            Op::StartTimer { timer } => {
                let timer = self.object(task, timer);
                self.timers[timer].get_or_insert(self.now);
                Then::Next
            }
            Op::Timer { timer, period, absolute } => {
                self.wait_for_timer(task, timer, period, absolute)
            }
            Op::Yield => {
                self.cpus[cpu as usize].counters.yields += 1;
                if self.scheduler.is_rt(task) {
                    self.yield_rt(cpu, task);
                } else {
                    self.cpus[cpu as usize].need_resched = true;
                }
                Then::Next
            }
            Op::Fork { program, count, base, step } => {
                self.fork(cpu, task, program, count, base, step)
            }
            Op::Join => {
                if self.tasks[task as usize].children == 0 {
                    Then::Next
                } else {
                    Then::Block(Resume::Retry)
                }
            }
            Op::Exit => self.exit(cpu, task),
            Op::Spin { .. } | Op::Run { .. } | Op::RunAbout { .. } | Op::Stream { .. } => {
                Then::Next
            }
            Op::Count
            | Op::Start
            | Op::BeginSection { .. }
            | Op::EndSection { .. }
            | Op::Repeat { .. } => unreachable!("they have no effect of their own"),
        }
    }

    fn send(&mut self, cpu: u32, task: u32, index: usize, bytes: u32) -> Then {
        let rule = self.scheduler.policy.profile.pipe_wakes;
        let sender = self.tasks[task as usize].base;
        let channel = &mut self.channels[index];
        let Some(wake) = channel.send(bytes, sender, rule) else {
            channel.writers.push_back(task);
            return Then::Block(Resume::Retry);
        };
        self.wake_channel(cpu, index, wake);
        if rule != PIPE_WAKES_ALL && self.channels[index].next_writer_has_room() {
            self.wake_channel(cpu, index, Wake::OneWriter);
        }
        Then::Next
    }

    fn receive(&mut self, cpu: u32, task: u32, index: usize, bytes: u32) -> Then {
        let rule = self.scheduler.policy.profile.pipe_wakes;
        let channel = &mut self.channels[index];
        if let Some(sender) = channel.next_sender() {
            self.tasks[task as usize].peer = sender;
        }
        let Some(wake) = channel.receive(bytes, rule) else {
            channel.readers.push_back(task);
            return Then::Block(Resume::Retry);
        };
        self.wake_channel(cpu, index, wake);
        if rule != PIPE_WAKES_ALL && self.channels[index].next_reader_has_work() {
            self.wake_channel(cpu, index, Wake::OneReader);
        }
        Then::Next
    }

    fn wake_channel(&mut self, cpu: u32, channel: usize, wake: Wake) {
        let channel = &mut self.channels[channel];
        let cpu = &mut self.cpus[cpu as usize];
        (cpu.wake_sync, cpu.wake_context) = match channel.kind() {
            ChannelKind::Pipe | ChannelKind::UnixSocket | ChannelKind::PolledSockets => {
                (true, WakerContext::Task)
            }
            ChannelKind::LoopbackTcp | ChannelKind::LoopbackUdp => (true, WakerContext::Softirq),
            ChannelKind::KernelQueue => (false, WakerContext::Task),
        };
        if matches!(wake, Wake::OneReader) {
            cpu.wakees.extend(channel.readers.pop_front());
        }
        if matches!(wake, Wake::OneWriter) {
            cpu.wakees.extend(channel.writers.pop_front());
        }
        if matches!(wake, Wake::AllReaders | Wake::Everybody) {
            cpu.wakees.extend(channel.readers.drain(..));
        }
        if matches!(wake, Wake::AllWriters | Wake::Everybody) {
            cpu.wakees.extend(channel.writers.drain(..));
        }
    }

    fn gate_wait(&mut self, task: u32, gate: Object) -> Then {
        let gate = self.object(task, gate);
        if self.gates[gate].open {
            return Then::Next;
        }
        self.gates[gate].waiters.push(task);
        Then::Block(Resume::Next)
    }

    fn gate_open(&mut self, cpu: u32, task: u32, gate: Object) -> Then {
        let gate = self.object(task, gate);
        self.gates[gate].open = true;
        let waiters = std::mem::take(&mut self.gates[gate].waiters);
        self.cpus[cpu as usize].wake_sync = true;
        self.cpus[cpu as usize].wakees.extend(waiters);
        Then::Next
    }

    fn wake_listed(&mut self, cpu: u32, task: u32, list: Object) -> Then {
        let figures = self.costs.figures;
        self.tasks[task as usize].token = false;
        let list = self.object(task, list);
        let listed = std::mem::take(&mut self.lists[list]);
        self.cpus[cpu as usize].wake_call_ns = figures.syscall_ns + figures.futex_ns;
        for wakee in listed.into_iter().rev() {
            self.futex_wake(cpu, wakee, self.now);
        }
        Then::Next
    }

    /// Leaves a token for the wakee, and wakes it if it waits for one.
    fn futex_wake(&mut self, cpu: u32, wakee: u32, stamp: Time) {
        let state = &mut self.tasks[wakee as usize];
        state.token = true;
        state.stamp = stamp;
        let waits = state.state == TaskState::Blocked && matches!(self.op(wakee), Op::Wait { .. });
        if waits {
            self.cpus[cpu as usize].wakees.push_back(wakee);
        }
    }

    fn futex_wait(&mut self, task: u32, sample: bool) -> Then {
        let state = &mut self.tasks[task as usize];
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

    fn lock(&mut self, task: u32, mutex: usize) -> Then {
        let mutex = &mut self.mutexes[mutex];
        if mutex.owner.is_some() {
            mutex.waiters.push_back(task);
            return Then::Block(Resume::Retry);
        }
        mutex.owner = Some(task);
        Then::Next
    }

    fn unlock(&mut self, cpu: u32, mutex: usize) {
        let mutex = &mut self.mutexes[mutex];
        mutex.owner = None;
        self.cpus[cpu as usize].wakees.extend(mutex.waiters.pop_front());
    }

    fn condition_wait(
        &mut self,
        cpu: u32,
        task: u32,
        condition: Object,
        mutex: Option<Object>,
    ) -> Then {
        let mutex = mutex.map(|mutex| self.object(task, mutex));
        if self.tasks[task as usize].stage == 1 {
            return mutex.map_or(Then::Next, |mutex| self.lock(task, mutex));
        }
        let condition = self.object(task, condition);
        self.conditions[condition].waiters.push_back(task);
        self.tasks[task as usize].stage = 1;
        if let Some(mutex) = mutex {
            self.unlock(cpu, mutex);
        }
        Then::Block(Resume::Retry)
    }

    fn sleep_until(&mut self, task: u32, time: Time) -> Then {
        self.arm(Slot::Timer(task), time);
        self.tasks[task as usize].timer_expiry = Some(time);
        Then::Block(Resume::Next)
    }

    fn wait_for_timer(&mut self, task: u32, timer: Object, period: Time, absolute: bool) -> Then {
        let timer = self.object(task, timer);
        let expiry = self.timers[timer].unwrap_or(self.now) + period;
        let missed = expiry <= self.now;
        self.timers[timer] = Some(if missed && !absolute { self.now } else { expiry });
        if missed { Then::Next } else { self.sleep_until(task, expiry) }
    }

    fn exit(&mut self, cpu: u32, task: u32) -> Then {
        self.scheduler.policy.task[task as usize].exiting = 1;
        self.trace_exit(cpu, task);
        let parent = self.tasks[task as usize].parent;
        if parent != task {
            self.tasks[parent as usize].children -= 1;
            let joins = matches!(self.tasks[parent as usize].state, TaskState::Blocked)
                && matches!(self.op(parent), Op::Join)
                && self.tasks[parent as usize].children == 0;
            if joins {
                self.cpus[cpu as usize].wakees.push_back(parent);
            }
        }
        Then::Exit
    }

    /// A task that was woken runs again, or one whose wakeups are done goes on.
    pub fn next_op(&mut self, task: u32) {
        let state = &mut self.tasks[task as usize];
        state.pc += 1;
        state.stage = 0;
    }

    /// A task begins on a CPU: it brings its footprint there.
    pub fn settle(&mut self, cpu: u32, task: u32) {
        let state = &self.tasks[task as usize];
        let refill = self.costs.refill(state.footprint_kib, state.last_cpu, cpu);
        let state = &mut self.tasks[task as usize];
        if let Some(expiry) = state.timer_expiry.take() {
            self.measurement.sample_timer(state.part, self.now, expiry);
        }
        state.work_left += refill;
        state.last_cpu = cpu;
    }
}
