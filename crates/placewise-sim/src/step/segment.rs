//! Segments: how long what a task computes takes, at the speed of its CPU, and what is left of it
//! when it is interrupted.

use placewise_policy::{CpuId, TaskId};

use crate::engine::Engine;
use crate::state::cpu::Activity;
use crate::state::event_queue::Time;
use crate::state::events::Slot;
use crate::state::speed::Speed;

/// An operation ends soon.
const NEAR_END: Time = 5_000;

impl Engine<'_> {
    /// The stream of the current task's segment begins, or goes on, and with it what is left of the segment.
    pub(super) fn start_stream(&mut self, cpu: CpuId, task: TaskId) {
        self.begin_stream(cpu, task);
        self.time_segment(cpu, task);
    }

    /// The rest of the segment takes as long as it does at the speed of this moment.
    #[inline]
    pub(super) fn time_segment(&mut self, cpu: CpuId, task: TaskId) {
        let mut running = self.running(cpu, task);
        let mut end = running.time_work();
        if running.state.stream_left > 0 {
            end += self.time_stream(cpu, task);
        }
        self.events.arm(Slot::Activity(cpu), end);
    }

    /// What the kernel does here for `time` at full speed takes longer on a slow core, and beside
    /// busy siblings.
    #[inline]
    pub(super) fn stretched(&self, cpu: CpuId, time: Time) -> Time {
        self.cpus[cpu].pace.time_for(time)
    }

    /// When the CPU is through with what it owes.
    #[inline]
    pub(super) fn owes_until(&self, cpu: CpuId) -> Time {
        self.now + self.stretched(cpu, self.cpus[cpu].debt)
    }

    /// It does what it owes, and `more`: when that is over.
    #[inline]
    pub(super) fn pay(&mut self, cpu: CpuId, more: Time) -> Time {
        let owed = std::mem::take(&mut self.cpus[cpu].debt);
        self.now + self.stretched(cpu, owed + more)
    }

    /// It owes a turn at a lock: to wait for that long, whatever its speed, and then to do `work`.
    #[inline]
    pub(super) fn owe_turn(&mut self, cpu: CpuId, waits: Time, work: Time) {
        let here = &mut self.cpus[cpu];
        here.debt += here.pace.share(waits) + work;
    }

    /// Cache lines come to `to` in their own time, whatever its speed: what that is in work of it.
    #[inline]
    pub(super) fn lines(&self, lines: u32, from: CpuId, to: CpuId) -> Time {
        self.cpus[to].pace.share(self.costs.cache_lines(lines, from, to))
    }

    /// So do those that the search of the last decision, on `cpu`, has read of other CPUs.
    pub(super) fn scan(&self, cpu: CpuId) -> Time {
        let scanned = Time::from(self.scheduler.policy.decision.scanned);
        self.cpus[cpu].pace.share(scanned * self.costs.figures.scan_cpu_ns)
    }

    /// What the core of `cpu` gives it while those of its siblings are busy that are.
    pub(crate) fn pace(&self, cpu: CpuId) -> Speed {
        let core = &self.scheduler.policy.cpu[cpu];
        let siblings = &core.siblings[..core.nr_siblings as usize];
        let busy = siblings.iter().filter(|&&other| self.is_busy(other.into())).count();
        self.costs.thread_speed(cpu, busy)
    }

    fn is_busy(&self, cpu: CpuId) -> bool {
        self.cpus[cpu].activity != Activity::Idle
    }

    /// A CPU went idle or came back: the threads of its core change speed, and with them its
    /// siblings' long segments. Those about to end keep theirs.
    pub(super) fn siblings_change_speed(&mut self, cpu: CpuId) {
        for sibling in 0..usize::from(self.scheduler.policy.cpu[cpu].nr_siblings) {
            self.change_pace(self.scheduler.policy.cpu[cpu].siblings[sibling].into());
        }
    }

    /// The busy threads of the core of `cpu` may be others than before.
    pub(super) fn change_pace(&mut self, cpu: CpuId) {
        self.cpus[cpu].pace = self.pace(cpu);
        if self.cpus[cpu].activity == Activity::Segment {
            self.change_speed(cpu);
        }
    }

    /// Its need to reschedule waits for that.
    pub(super) fn segment_ends_soon(&self, cpu: CpuId) -> bool {
        self.events.due(Slot::Activity(cpu)).is_some_and(|end| end < self.now + NEAR_END)
    }

    pub(super) fn change_speed(&mut self, cpu: CpuId) {
        let Some(end) = self.events.due(Slot::Activity(cpu)) else { return };
        let task = self.scheduler.current(cpu);
        let spins = self.tasks[task].spin_until.is_some();
        if spins || end < self.now + NEAR_END {
            return;
        }
        self.keep_rest(cpu, end);
        self.time_segment(cpu, task);
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
        let task = self.scheduler.current(cpu);
        let streams = self.stream_time(cpu, task);
        let left = end - self.now;
        if left < streams {
            self.keep_stream(cpu, left);
        }
        self.tasks[task].work_left = speed.share(left.saturating_sub(streams));
    }

    /// A task begins on a CPU: it brings its footprint there.
    pub(super) fn settle(&mut self, cpu: CpuId, task: TaskId) {
        let state = &mut self.tasks[task];
        if let Some(expiry) = state.timer_expiry.take() {
            self.measurement.sample_timer(state.part, self.now, expiry);
        }
        if let Some(woken) = state.woken_at.take() {
            self.measurement.sample_woken(state.part, self.now, woken);
        }
        if std::mem::take(&mut state.slept) {
            state.work_left += self.costs.draw(self.costs.scheduler.half_a_sleep());
        }
        let refill = self.costs.refill(state.footprint_kib, state.last_cpu, cpu);
        state.work_left += self.cpus[cpu].pace.share(refill);
        state.last_cpu = cpu;
    }
}
