//! Segments: how long what a task computes takes, at the speed of its CPU, and what is left of it
//! when it is interrupted.

use placewise_policy::{CpuId, TaskId};

use crate::engine::Engine;
use crate::state::cpu::{Activity, FULL_SPEED, Speed};
use crate::state::event_queue::Time;
use crate::state::events::Slot;

/// An operation ends soon.
const NEAR_END: Time = 5_000;

/// What takes `time` at full speed, at `speed`. Many segments run at full speed, and a division
/// takes longer than to ask.
#[inline]
fn at_speed(time: Time, speed: Speed) -> Time {
    if speed == FULL_SPEED { time } else { time * FULL_SPEED / speed }
}

impl Engine<'_> {
    /// Runs what is left of the current task's segment.
    pub(super) fn start_segment(&mut self, cpu: CpuId) {
        let task = self.scheduler.current(cpu);
        if self.tasks[task].stream_left > 0 {
            self.begin_stream(cpu, task);
        }
        self.time_segment(cpu);
    }

    /// The rest of the segment takes as long as it does at the speed of this moment.
    fn time_segment(&mut self, cpu: CpuId) {
        let task = self.scheduler.current(cpu);
        let speed = self.speed(cpu);
        if self.tasks[task].stream_left > 0 {
            self.cpus[cpu].stream_mbps = self.stream_rate(cpu, speed);
        }
        let state = &self.tasks[task];
        let end = match state.spin_until {
            Some(until) => until.max(self.now),
            None => self.now + at_speed(state.work_left, speed) + self.stream_time(cpu),
        };
        self.cpus[cpu].speed = speed;
        self.begin(cpu, Activity::Segment, end);
    }

    /// What the kernel does here for `time` at full speed takes longer on a slow core, and beside
    /// busy siblings.
    #[inline]
    pub(super) fn stretched(&self, cpu: CpuId, time: Time) -> Time {
        at_speed(time, self.speed(cpu))
    }

    /// Speed of one thread of a core whose other threads may be busy.
    fn speed(&self, cpu: CpuId) -> Speed {
        let core = &self.scheduler.policy.cpu[cpu];
        let siblings = &core.siblings[..core.nr_siblings as usize];
        let busy = siblings.iter().filter(|&&other| self.is_busy(other.into())).count() as u32;
        let thread_pct = match busy {
            0 | 1 => 100,
            2 => self.costs.figures.smt_throughput_pct,
            _ => self.costs.figures.smt_throughput_pct * 2 / busy,
        };
        u64::from(thread_pct) * self.costs.core_speed(cpu)
    }

    fn is_busy(&self, cpu: CpuId) -> bool {
        self.cpus[cpu].activity != Activity::Idle
    }

    /// A CPU went idle or came back: its siblings' long segments change speed.
    /// Those about to end keep theirs.
    pub(super) fn siblings_change_speed(&mut self, cpu: CpuId) {
        for sibling in 0..usize::from(self.scheduler.policy.cpu[cpu].nr_siblings) {
            let sibling = CpuId::from(self.scheduler.policy.cpu[cpu].siblings[sibling]);
            if sibling != cpu && self.cpus[sibling].activity == Activity::Segment {
                self.change_speed(sibling);
            }
        }
    }

    /// Its need to reschedule waits for that.
    pub(super) fn segment_ends_soon(&self, cpu: CpuId) -> bool {
        self.events.due(Slot::Activity(cpu)).is_some_and(|end| end < self.now + NEAR_END)
    }

    pub(super) fn change_speed(&mut self, cpu: CpuId) {
        let Some(end) = self.events.due(Slot::Activity(cpu)) else { return };
        let spins = self.tasks[self.scheduler.current(cpu)].spin_until.is_some();
        if spins || end < self.now + NEAR_END {
            return;
        }
        self.keep_rest(cpu, end);
        self.time_segment(cpu);
    }

    /// The segment under way is interrupted: what is left of it is kept with the task.
    pub(super) fn save_segment(&mut self, cpu: CpuId) {
        let slot = Slot::Activity(cpu);
        let Some(end) = self.events.due(slot) else { return };
        self.events.disarm(slot);
        self.keep_rest(cpu, end);
        if self.tasks[self.scheduler.current(cpu)].stream_left > 0 {
            self.end_stream(cpu);
        }
    }

    /// What is left of a segment that was to end at `end`: at last its stream, before that the rest.
    fn keep_rest(&mut self, cpu: CpuId, end: Time) {
        let speed = self.cpus[cpu].speed;
        let streams = self.stream_time(cpu);
        let left = end - self.now;
        if left < streams {
            self.keep_stream(cpu, left);
        }
        let task = self.scheduler.current(cpu);
        self.tasks[task].work_left = left.saturating_sub(streams) * speed / FULL_SPEED;
    }

    /// A task begins on a CPU: it brings its footprint there.
    pub(super) fn settle(&mut self, cpu: CpuId, task: TaskId) {
        let state = &self.tasks[task];
        let refill = self.costs.refill(state.footprint_kib, state.last_cpu, cpu);
        let state = &mut self.tasks[task];
        if let Some(expiry) = state.timer_expiry.take() {
            self.measurement.sample_timer(state.part, self.now, expiry);
        }
        if let Some(woken) = state.woken_at.take() {
            self.measurement.sample_woken(state.part, self.now, woken);
        }
        state.work_left += refill;
        state.last_cpu = cpu;
    }
}
