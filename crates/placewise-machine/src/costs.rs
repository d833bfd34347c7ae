//! What things cost on a machine. Every figure is data of the machine file, with its source there;
//! the simulator turns each into an effect through one mechanism.
//!
//! Times are nanoseconds unless the name says otherwise.

use serde::{Deserialize, Serialize};

/// The cost figures of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// Direct cost of switching from one task to another on a CPU.
    pub context_switch_ns: u64,
    /// That of switching to the idle task, which has no memory of its own.
    pub switch_to_idle_ns: u64,
    /// What the idle task does from the interrupt that brings a task until that runs, beside holding the lock.
    pub idle_switch_ns: u64,
    /// What a call that sleeps takes longer than one that need not, beside the switch. Before, it queues itself to be
    /// woken; once it runs again, it looks again, and the way back to user space is longer: half of it each.
    pub sleep_ns: u64,
    /// Entering and leaving the kernel for one system call.
    pub syscall_ns: u64,
    /// Copying one small message into or out of a pipe, without the system call and any wakeup.
    pub pipe_message_ns: u64,
    /// The writer's share of that for both sides together, in percent; 50 where a read takes as long.
    pub pipe_writer_pct: u32,
    /// For how much of a side's part the pipe's mutex is held, in percent of its average; for lines that it moves, and
    /// for what a slow call takes longer, it always is.
    pub pipe_locked_pct: u32,
    /// The same for a stream socket.
    pub socket_message_ns: u64,
    /// As for a pipe.
    pub socket_writer_pct: u32,
    /// Of what a side does with a message, on the average of both sides where there is only that, how much comes after
    /// it has woken the other one. Leaving the kernel is not in it.
    pub after_wakeup_pct: ByChannel,
    /// How much such calls differ among each other, in percent of what a side takes: the standard deviation. Few find no
    /// page or object where they look first, and take much longer.
    pub message_spread_pct: ByChannel,
    /// Sending or receiving one message over TCP on loopback, the softirq with it, without the system
    /// call, the copying and any wakeup.
    pub tcp_message_ns: u64,
    /// The same for UDP.
    pub udp_message_ns: u64,
    /// Putting an item on a queue inside the kernel or taking it off, without any wakeup.
    pub kernel_queue_ns: u64,
    /// Copying one KiB between user space and socket buffers that are in the CPU's own cache.
    pub copy_ns_per_kib: u64,
    /// Cache misses that such a copy keeps in flight at once.
    pub copy_overlap: u32,
    /// Hash-bucket work of a futex wait or wake, without the system call and any wakeup.
    pub futex_ns: u64,
    /// Arming or expiring a timer.
    pub timer_ns: u64,
    /// Creating a process, page tables and all, without its placement.
    pub fork_ns: u64,
    /// Creating a thread, without its placement.
    pub thread_create_ns: u64,
    /// Ending a task.
    pub exit_ns: u64,
    /// Fixed part of `try_to_wake_up`: without scanning, locking, and sending the interrupt.
    pub wakeup_ns: u64,
    /// What a wakeup takes longer that moves its wakee to another CPU: its load average goes along.
    pub wake_elsewhere_ns: u64,
    /// Looking at one CPU in the search for an idle one: nearly all of it is the wait for a line.
    pub scan_cpu_ns: u64,
    /// How long one enqueue, dequeue or pick holds the run-queue lock, uncontended; a switch that follows holds it
    /// to its end.
    pub rq_lock_hold_ns: u64,
    /// Sender's side of an inter-processor interrupt or of a write that ends a monitored wait; who preempts holds the
    /// run queue's lock meanwhile.
    pub ipi_send_ns: u64,
    /// From the begin of sending to the handler's first instruction on a CPU that is not in an idle state.
    pub ipi_delivery_ns: ByDistance,
    /// Idle states from shallow to deep.
    pub idle_states: Vec<IdleState>,
    /// Added to the exit of a CPU whose whole LLC has been idle for `llc_idle_residency_ns`.
    pub llc_idle_exit_ns: u64,
    /// An LLC counts as idle when all its CPUs have been idle this long.
    pub llc_idle_residency_ns: u64,
    /// Size of a last-level cache; as the kernel sees it, of the part that a CPU's LLC has.
    pub llc_kib: u64,
    /// Moving one cache line from one core to another, whatever the speed of who waits for it.
    pub cache_line_ns: ByDistance,
    /// Refilling one KiB of a migrated task's footprint, by the distance it moved and whatever the speed of its CPU.
    pub refill_ns_per_kib: ByDistance,
    /// The most that one refill can cost.
    pub refill_cap_ns: u64,
    /// Speed of each of two busy SMT siblings, in percent of a thread alone on the core; of more, see `thread_pct`. Cache
    /// lines come to it as fast as to one alone.
    pub smt_throughput_pct: u32,
    /// Clock of a package all of whose cores are busy, in percent of that of one that is busy alone.
    pub all_busy_clock_pct: u32,
    /// What tasks that stream through the memory of one NUMA node get together.
    pub node_bandwidth_mbps: ByAccess,
    /// The most that the CPUs of one LLC can stream together, in MB/s.
    pub llc_bandwidth_mbps: u64,
    /// What a stream from another node's memory gets, in percent of one from the CPU's own node.
    pub remote_bandwidth_pct: RemoteBandwidth,
    /// CPU time of one scheduler tick.
    pub tick_ns: u64,
    /// Fixed part of a load-balance pass over one domain.
    pub balance_ns: u64,
    /// Part of such a pass that grows with the CPUs of the domain, for each, without cache misses.
    pub balance_cpu_ns: u64,
    /// Taking a waiting task from one run queue to another, without cache misses.
    pub move_task_ns: u64,
    /// What a newly-idle pass takes longer once in a while: an interrupt that nothing masks, a lock that others
    /// want, many cgroups. Each CPU remembers its dearest pass of the last minute (`max_newidle_lb_cost`).
    pub newidle_outlier_ns: u64,
    /// Cache lines of a task and of its run queue that come from where the task was last: to the
    /// waker with a wakeup, and back when it runs if that has enqueued it elsewhere; to the CPU that balances with a
    /// task that it moves.
    pub wakeup_lines: u32,
    /// Cache lines that come along with a run queue's lock.
    pub rq_lock_lines: u32,
    /// Cache lines that the messages of a pipe move.
    pub pipe_lines: ChannelLines,
    /// Those of a stream socket.
    pub socket_lines: ChannelLines,
    /// Those of a message over TCP on loopback, from whoever made the last call on either side: the sender's softirq
    /// goes through the receiver's socket.
    pub tcp_lines: BySide,
    /// The same for UDP.
    pub udp_lines: BySide,
    /// Cache lines that both sides of any other channel write: its lock, counts and wait queue.
    pub channel_lines: u32,
    /// Cache lines read per CPU in a load-balance pass; each costs `cache_line_ns` by distance.
    pub balance_lines_per_cpu: u32,
    /// Cache misses that such a pass keeps in flight at once: its reads do not depend on each other.
    pub balance_overlap: u32,
    /// Scheduler ticks per second (CONFIG_HZ).
    pub hz: u32,
    /// Half width, in percent, of the uniform distribution every cost is drawn from.
    pub jitter_pct: u32,
}

impl Costs {
    /// How fast each of so many busy threads of a core is, in percent of one alone. Each time that they double, the
    /// core does as many times more (assumed).
    pub fn thread_pct(&self, busy: u32) -> u32 {
        let share_of_two = f64::from(self.smt_throughput_pct) / 100.0;
        let doublings = f64::from(busy.max(1)).log2();
        (100.0 * share_of_two.powf(doublings)).round() as u32
    }
}

/// Cache misses that copying a short message out of a pipe or a stream socket keeps in flight at once: of 100 bytes,
/// two lines, which another CPU has just written as one of a row, a reader waits 48 ns where a line takes 70.
pub const SHORT_COPY_OVERLAP: u32 = 3;

/// Cache lines that a call takes along which transfers a message, beside those of the message itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelLines {
    /// From whoever made the last such call, on either side: the lock, the counts, the wait queues.
    pub channel: u32,
    /// From whoever made the last one on the same side: the open file, and what else only that side writes.
    pub side: u32,
    /// From the last one on the other side, each time: the buffers of messages, which go to and fro.
    pub message: u32,
    /// The same, but only with the first message that a writer puts into a page, and the last that a reader takes out.
    pub page: u32,
}

/// Shares of what the two sides of a channel do with a message, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByChannel {
    pub pipe: BySide,
    pub socket: BySide,
    pub tcp: BySide,
    pub udp: BySide,
}

/// A figure of a writer and one of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BySide {
    pub write: u32,
    pub read: u32,
}

/// A cost that depends on how far apart two CPUs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByDistance {
    /// Two SMT siblings of a core.
    pub smt: u64,
    /// Two cores of a cluster, where that is nearer than the rest of the LLC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<u64>,
    /// Two cores of an LLC.
    pub llc: u64,
    /// Two LLCs of a package.
    pub package: u64,
    /// Two packages.
    pub remote: u64,
}

/// A CPU and where it sits, for distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub cpu: u16,
    pub core: u16,
    pub cluster: u16,
    pub cache: u16,
    pub package: u16,
}

impl ByDistance {
    /// The figure for two CPUs; 0 if they are one.
    #[inline]
    pub fn between(&self, here: Place, there: Place) -> u64 {
        if here.cpu == there.cpu {
            0
        } else if here.core == there.core {
            self.smt
        } else if here.cache == there.cache {
            let within_cluster = self.cluster.filter(|_| here.cluster == there.cluster);
            within_cluster.unwrap_or(self.llc)
        } else if here.package == there.package {
            self.package
        } else {
            self.remote
        }
    }
}

/// Bandwidth by what is done to memory: the four loops of the STREAM benchmark, counted in the
/// bytes that the benchmark counts. It does not count the reads of lines that are only written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByAccess {
    pub copy: BandwidthCurve,
    pub scale: BandwidthCurve,
    pub add: BandwidthCurve,
    pub triad: BandwidthCurve,
}

/// How bandwidth grows with the number of streams, in MB/s: each further stream takes the same
/// share of what is left below the peak, so that `k` streams get `peak * (1 - (1 - one / peak)^k)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BandwidthCurve {
    /// What one stream gets alone.
    pub one: u64,
    /// What any number of streams get together.
    pub peak: u64,
}

/// A share, in percent, that depends on where memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteBandwidth {
    /// On another node of the package.
    pub package: u32,
    /// On another package.
    pub remote: u32,
}

/// A state an idle CPU can rest in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdleState {
    pub name: String,
    /// From the interrupt, or the store that takes its place, to the first instruction.
    pub exit_ns: u64,
    /// The CPU watches its need-resched flag there (mwait), so a store to it is enough.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polling: bool,
    /// The idle governor chooses the state when it expects at least this much idle time.
    pub residency_ns: u64,
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_doubling_of_busy_threads_brings_as_much() {
        let costs = crate::load("zen3-2s-nps1").unwrap().costs;
        assert_eq!([0, 1, 2, 4, 8].map(|busy| costs.thread_pct(busy)), [100, 100, 60, 36, 22]);
    }
}
