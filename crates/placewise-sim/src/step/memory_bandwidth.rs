//! Memory bandwidth: what each of the running streams gets of it, and when that changes.
//!
//! A stream draws on the memory of one NUMA node, where numa_balancing.rs has it, over
//! the link of the LLC that its CPU is on. The streams of a node share
//! what its memory carries for their number, those of an LLC what its link carries;
//! a stream gets the less of its two shares, and less again if its memory is remote.
//! When a stream begins or ends, those it shared with go on at another rate from
//! there: the rest of their segments is timed anew.
//!
//! Limits: streams of different kinds count alike where they share; what one stream
//! leaves of its share because another limit binds it, no other gets; links between
//! packages have no capacity of their own; caches hold nothing of what is streamed.

use placewise_policy::{CpuId, TaskId};

use crate::engine::Engine;
use crate::state::event_queue::Time;
use crate::state::memory_bandwidth::Stream;

impl Engine<'_> {
    /// The stream of the current task begins, or goes on.
    pub(super) fn begin_stream(&mut self, cpu: CpuId, task: TaskId) {
        let memory = self.tasks[task].memory.as_ref();
        let Some((stream, _)) = memory.and_then(|memory| memory.piece()) else { return };
        self.hardware.memory.begin(cpu, stream);
        self.retime_sharers(cpu, stream);
    }

    /// The stream on `cpu` is over, or interrupted.
    pub(super) fn end_stream(&mut self, cpu: CpuId) {
        if let Some(stream) = self.hardware.memory.end(cpu) {
            self.retime_sharers(cpu, stream);
        }
    }

    /// Those that share with a stream that began or ended on `cpu` go on at another rate.
    fn retime_sharers(&mut self, cpu: CpuId, stream: Stream) {
        let cache = usize::from(self.hardware.memory.places[cpu].cache);
        let node = usize::from(stream.node);
        for at in 0..self.hardware.memory.on_node[node].len() {
            let other = self.hardware.memory.on_node[node][at];
            if other != cpu {
                self.change_speed(other);
            }
        }
        for at in 0..self.hardware.memory.on_cache[cache].len() {
            let other = self.hardware.memory.on_cache[cache][at];
            let elsewhere = self.hardware.memory.streams[other]
                .is_some_and(|stream| usize::from(stream.node) != node);
            if other != cpu && elsewhere {
                self.change_speed(other);
            }
        }
    }

    /// What is left of the stream on `cpu` is timed with its rate of this moment, in MB/s: busy
    /// siblings share a core's misses too, and a slow core has as many fewer.
    pub(super) fn time_stream(&mut self, cpu: CpuId, task: TaskId) -> Time {
        let rate = self.cpus[cpu].speed.share(self.hardware.memory.rate(cpu));
        self.cpus[cpu].stream_mbps = rate.max(1);
        self.stream_time(cpu, task)
    }

    /// How long what is left of the stream on `cpu` takes at the rate it was timed with.
    pub(super) fn stream_time(&self, cpu: CpuId, task: TaskId) -> Time {
        self.tasks[task].stream_left * 1000 / self.cpus[cpu].stream_mbps
    }

    /// The stream on `cpu` was to end after `left`: that is what is left of it.
    pub(super) fn keep_stream(&mut self, cpu: CpuId, left: Time) {
        let task = self.scheduler.current(cpu);
        let bytes = left * self.cpus[cpu].stream_mbps / 1000;
        self.tasks[task].stream_left = bytes.max(1);
    }
}
