//! The small task program that every workload compiles to.
//!
//! A program is a flat list of [`Op`]s that the simulator interprets: compute,
//! send and receive, wait and wake, sleep, fork, loop. A benchmark model or an
//! rt-app file decides *what* tasks do; what an operation costs and which CPU
//! a woken task gets is the simulator's business.
//!
//! Limits: four loop counters per task; a message has a fixed size per op; no
//! data-dependent control flow beyond counted loops.

use std::ops::RangeInclusive;

use placewise_hint::Hint;
use placewise_machine::{CpuSet, Machine};

/// Nanoseconds.
pub type Nanos = u64;

/// Index into [`Workload::programs`].
pub type ProgramId = u32;

/// Names a channel, mutex, barrier and so on: one of the task's own range, so
/// that many instances share one program, or one that all tasks share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object(u32);

impl Object {
    const SHARED: u32 = 1 << 31;

    /// The `n`th object after the task's base.
    pub const fn own(n: u32) -> Self {
        Object(n)
    }

    /// Object `n`, whoever asks.
    pub const fn shared(n: u32) -> Self {
        Object(n | Self::SHARED)
    }

    /// The index it means for a task with this base.
    #[inline]
    pub const fn index(self, base: u32) -> usize {
        if self.0 & Self::SHARED != 0 {
            (self.0 & !Self::SHARED) as usize
        } else {
            (self.0 + base) as usize
        }
    }

    /// The same object where `offset` others of its kind stand before it.
    pub(crate) const fn behind(self, offset: u32) -> Self {
        Object(self.0 + offset)
    }

    /// As [`Object::index`], for a base that may not fit.
    pub(crate) const fn highest_index(self, base: u64) -> u64 {
        if self.0 & Self::SHARED != 0 {
            (self.0 & !Self::SHARED) as u64
        } else {
            self.0 as u64 + base
        }
    }
}

/// One step of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Compute in user space for this much CPU time at full speed.
    Run { ns: Nanos },
    /// Compute for about this much CPU time: at random up to `spread_pct` percent more or less.
    RunAbout { ns: Nanos, spread_pct: u8 },
    /// Compute until this much wall time has passed, whoever else ran meanwhile.
    Spin { ns: Nanos },
    /// Sleep on a timer; up to `random_pct` percent are added at random.
    Sleep { ns: Nanos, random_pct: u8 },
    /// Sleep until a device has done what it was asked for; up to `random_pct` percent are added at
    /// random. Its interrupts go to the CPUs in turn.
    Device { ns: Nanos, random_pct: u8 },
    /// Start the timer, unless it runs already: periods count from now.
    StartTimer { timer: Object },
    /// Sleep until the timer's next expiry, one `period` after the last (or
    /// after its start). An expiry that has passed already is not waited for;
    /// the next one then counts from now, or, with `absolute`, from the missed one.
    Timer { timer: Object, period: Nanos, absolute: bool },
    /// Write one message; blocks while the channel is full.
    Send { channel: Object, bytes: u32 },
    /// Read one message; blocks while the channel is empty (on TCP: while it holds fewer bytes).
    Receive { channel: Object, bytes: u32 },
    /// Write one message to the task whose message this one read last, which was not on a pipe,
    /// TCP or UDP: to the channel that `channel` means for that task.
    Reply { channel: Object, bytes: u32 },
    /// Block until the gate is open.
    GateWait { gate: Object },
    /// Open the gate for good and wake all who wait there, last come first, by one sync wakeup each.
    GateOpen { gate: Object },
    /// Put the task on a list, for [`Op::WakeListed`].
    Enlist { list: Object },
    /// Take all tasks off the list, last come first, and futex-wake each by a
    /// system call, after which this task may be preempted; the time before the
    /// first is the stamp their wakeup latency counts from. A wake of this task
    /// itself that has come before is forgotten.
    WakeListed { list: Object },
    /// Futex-wake the task that forked this one.
    WakeParent,
    /// Futex-wait for a wake; returns at once if one has come since the last
    /// wait. With `sample` the time since the waker's stamp is recorded as
    /// wakeup latency.
    Wait { sample: bool },
    /// Lock a pthread mutex (futex when contended).
    Lock { mutex: Object },
    /// Unlock it, waking the next waiter.
    Unlock { mutex: Object },
    /// Wait on a condition; releases and retakes the mutex if one is named.
    CondWait { condition: Object, mutex: Option<Object> },
    /// Wake one waiter of a condition.
    Signal { condition: Object },
    /// Wake all waiters of a condition.
    Broadcast { condition: Object },
    /// Stream `bytes` through memory as fast as others leave bandwidth. The memory is on the NUMA
    /// node where the task streamed first.
    Stream { access: Access, bytes: u64 },
    /// Wait until as many tasks as the barrier has parties are here: busily for `spin_ns` of CPU
    /// time, then asleep.
    Barrier { barrier: Object, spin_ns: Nanos },
    /// Count as one of the barrier's parties that is here, without waiting.
    Arrive { barrier: Object },
    /// Take the lock of the CPU that the task is on, after waiting busily until it is free: there is
    /// one for each CPU of the machine.
    LockCpu,
    /// Let go of the lock that [`Op::LockCpu`] took, wherever the task is now.
    UnlockCpu,
    /// Raise a flag in memory, after waiting busily until it is down.
    RaiseFlag { flag: Object },
    /// Lower a flag in memory, after waiting busily until it is up.
    LowerFlag { flag: Object },
    /// Add one to a semaphore, and wake the first who waits there, in this way. It takes no time
    /// of its own: what a recorded call took is in the computing before it, but for what it takes around the wakeup.
    /// What answers it is posted to another one, if it has any.
    Post { semaphore: Object, wake: Wake, call: Call, answered_at: Option<Object> },
    /// Post to where the answer is awaited of the post that was taken from `inbox` longest ago and is not answered
    /// yet; to `otherwise` if there is none. The answer to this comes to `inbox`.
    Answer { inbox: Object, otherwise: Object, wake: Wake, call: Call },
    /// Take one from a semaphore, asleep until there is one. So many cache lines come with it from
    /// where it was posted.
    Await { semaphore: Object, lines: u32 },
    /// Post no more to a semaphore: once all have closed it that post there, nobody waits for more.
    Close { semaphore: Object },
    /// Give the CPU away without sleeping.
    Yield,
    /// Create `count` tasks, one after the other. The `i`th runs `program`
    /// with base `base + i * step`, counted from the base of the task that forks.
    Fork { program: ProgramId, count: u32, base: u32, step: u32 },
    /// Wait until all tasks forked by this one have exited.
    Join,
    /// Add one to the units of work the workload counts.
    Count,
    /// Go back to op `to` until it has been done `times` times ([`FOREVER`] =
    /// always); the counter is then 0 again, so that loops can nest.
    Repeat { counter: u8, times: u32, to: u32 },
    /// The measured part begins here (the first task to arrive counts).
    Start,
    /// A request that the task serves begins here, for [`Metric::RequestLatency`].
    BeginRequest,
    /// It is served.
    EndRequest,
    /// A timed section of the program begins here, for [`Metric::BestRate`].
    BeginSection { section: u8 },
    /// It ends here.
    EndSection { section: u8 },
    /// End the task. Every program ends with it.
    Exit,
}

/// What a call, or an interrupt, that wakes takes beyond the machine's figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Until its wakee is on a run queue.
    pub queue_ns: u32,
    /// From then on, while the kernel gives the CPU to nobody else.
    pub rest_ns: u32,
}

/// In what way a task wakes another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake {
    /// It goes on meanwhile: futexes, queues.
    #[default]
    Plain,
    /// It is about to sleep (WF_SYNC): pipes, sockets.
    Sync,
    /// A sync wakeup in the softirq that its call ends in: loopback.
    Softirq,
}

/// For [`Op::Repeat`]: no end.
pub const FOREVER: u32 = u32::MAX;

/// What a stream does to memory: the loops of the STREAM benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Copy,
    Scale,
    Add,
    Triad,
}

/// Timed sections of a workload.
pub const SECTIONS: usize = 4;

/// Loop counters a task has.
pub const COUNTERS: usize = 4;

/// When tasks run, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedPolicy {
    /// SCHED_OTHER: a fair share by nice value.
    #[default]
    Other,
    /// SCHED_IDLE: hardly any share.
    Idle,
    /// SCHED_FIFO with a priority of 1 to 99: before all others, until it sleeps or yields.
    Fifo(u8),
    /// SCHED_RR: as SCHED_FIFO, but taking turns with tasks of the same priority.
    RoundRobin(u8),
}

impl SchedPolicy {
    /// 1 to 99; 0 for a task that is not of the real-time class.
    pub fn rt_priority(self) -> u8 {
        match self {
            SchedPolicy::Fifo(priority) | SchedPolicy::RoundRobin(priority) => priority,
            SchedPolicy::Other | SchedPolicy::Idle => 0,
        }
    }
}

/// What the tasks of one kind do, and what they are.
#[derive(Clone, Debug)]
pub struct Program {
    /// The task's comm: at most 15 bytes are kept.
    pub name: String,
    pub ops: Vec<Op>,
    /// -20 to 19.
    pub nice: i8,
    pub policy: SchedPolicy,
    /// CPUs it may run on; all if none is named.
    pub cpus: Option<CpuSet>,
    /// The CPU that its tasks begin on, and go on from behind a gate; the policy chooses one if none is named.
    pub begins_on: Option<u32>,
    /// What interrupts that wake its tasks take beyond the machine's figures.
    pub arrival: Call,
    /// How much longer than by the machine's figures a CPU that idles takes to run its tasks, once another CPU has woken
    /// them, in ns.
    pub idle_exit_ns: i32,
    /// Its tasks preempt those of another CPU no sooner than so long after that CPU was sent the interrupt, in ns. Only
    /// kernels that send one at once go by it.
    pub preempt_ns: u32,
    /// The CPU that these interrupts come to; where none is named, the one that its task ran on last.
    pub interrupted_on: Option<u32>,
    /// How often its tasks had woken another than the time before, by the count that decays: `wakee_flips`.
    pub wakee_flips: u32,
    /// Its tasks are processes, with page tables of their own, and not threads of whom forks them.
    pub process: bool,
    /// The numbers of NUMA nodes whose CPUs it may run on; all if none is named.
    pub nodes: Option<CpuSet>,
    /// Bytes of cache it wants back after a migration, in KiB.
    pub footprint_kib: u32,
    /// Memory of a process that begins with it, in KiB.
    pub memory_kib: u64,
    /// The cgroup its tasks are in; where none is named, that of the task that forks them. The
    /// first task is in the root.
    pub cgroup: Option<CgroupId>,
    /// What its tasks are hinted; where nothing is named, what the task that forks them is.
    pub hint: Option<Hint>,
    /// The part of the workload that its units, latencies and sections count for.
    pub part: Option<PartId>,
    /// The `i`th task of one fork counts for the part that is `i * part_step` behind that.
    pub part_step: u32,
}

/// Index into [`Workload::parts`].
pub type PartId = u32;

/// A part of a workload that has figures of its own, in the window that all parts share.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub name: String,
    pub metrics: Vec<Metric>,
    /// The part that its latencies count for as well, which stands before it; where none is named,
    /// the workload itself.
    pub within: Option<PartId>,
}

/// Index into [`Workload::cgroups`].
pub type CgroupId = u32;

/// A cgroup with a cpu and a cpuset controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    pub name: String,
    /// The cgroup it is in, which stands before it; the root if none is named.
    pub parent: Option<CgroupId>,
    /// 1024 by default, which is a cpu.weight of 100; one of [`Cgroup::SHARES`].
    pub shares: u32,
    /// cpuset.cpus; those of the parent if none is named.
    pub cpus: Option<CpuSet>,
    /// cpu.max, if it is not `max`.
    pub quota: Option<Quota>,
}

/// How much CPU time a cgroup may have in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub quota: Nanos,
    pub period: Nanos,
}

/// What changes from outside while the tasks run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Simulated time since the run began, warm-up included.
    pub at: Nanos,
    pub to: Setting,
}

/// What a [`Change`] sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    Offline {
        cpu: u32,
    },
    /// A CPU that went offline before comes back.
    Online {
        cpu: u32,
    },
    /// cpuset.cpus of a cgroup; none: those of its parent.
    Cpuset {
        cgroup: CgroupId,
        cpus: Option<CpuSet>,
    },
    /// cpu.max of a cgroup.
    Quota {
        cgroup: CgroupId,
        quota: Option<Quota>,
    },
    /// sched_setaffinity of all tasks of that name, those that are still to come too.
    Affinity {
        task: String,
        cpus: CpuSet,
    },
}

/// What carries messages, with its capacity rule and its wakeups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// A pipe: 16 pages, small writes merge into the last page.
    Pipe,
    /// An AF_UNIX stream socket pair, one direction.
    UnixSocket,
    /// The AF_UNIX stream sockets of many senders that one reader polls, without limit.
    PolledSockets,
    /// A TCP connection over loopback, one direction: a stream of bytes, read in any portions.
    LoopbackTcp,
    /// A UDP socket over loopback: datagrams, dropped when the receiver's buffer is full.
    LoopbackUdp,
    /// A queue inside the kernel, of work items or completions: unlimited, wakes one waiter, not
    /// sync.
    KernelQueue,
}

/// When measuring begins and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Simulated time after [`Op::Start`] (or after time 0) that is not measured; where there are
    /// parts, after the last of them has started.
    pub warm_up: Nanos,
    /// A workload that has not settled by the end of its window goes on once, for as long as it has lasted, and
    /// that is its window.
    pub until_steady: bool,
    /// Simulated time measured; the run also ends when task 0 has exited.
    pub measure: Nanos,
}

/// A figure the workload reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// Seconds until `units` are done: measured directly when the workload
    /// finishes inside the window, else the rest goes on at the rate in the window.
    Time { units: u64 },
    /// Units per second, times `scale`.
    Throughput { unit: &'static str, scale: f64 },
    /// The same, of one of `pairs` pairs of tasks on average.
    ThroughputPerPair { unit: &'static str, pairs: u32 },
    /// Of the fastest pass through a timed section, which moves `bytes`: MB/s.
    BestRate { name: &'static str, section: u8, bytes: u64 },
    /// Quantile of the recorded wakeup latencies: 0.5, 0.9, 0.99, 0.999.
    WakeupLatency { quantile: f64 },
    /// The same of wakeups by other tasks: from the wakeup until the task runs.
    WokenLatency { quantile: f64 },
    /// Quantile of the time that requests took: 0.5, 0.9, 0.99, 0.999.
    RequestLatency { quantile: f64 },
    /// Share of the machine's non-idle CPU time spent waiting for run-queue locks, in percent.
    RunQueueLockShare,
}

/// A whole workload: task 0 runs program 0 and forks the rest; what still runs when it exits is
/// killed.
#[derive(Clone, Debug)]
pub struct Workload {
    pub name: String,
    pub programs: Vec<Program>,
    pub channels: Vec<ChannelKind>,
    pub mutexes: u32,
    pub conditions: u32,
    /// Parties of each barrier.
    pub barriers: Vec<u32>,
    pub gates: u32,
    /// Flags in memory that tasks wait for busily: down at first, each with one task that raises
    /// it and one that lowers it.
    pub flags: u32,
    pub lists: u32,
    /// How many tasks post to each, and close it once they post no more; 0 is never closed. All are at 0 at first.
    pub semaphores: Vec<u32>,
    pub timers: u32,
    pub cgroups: Vec<Cgroup>,
    /// What tasks compute includes how long CPUs waited for the load of their cgroups, as recorded tasks did.
    pub has_waits_for_load: bool,
    /// In the order of their times.
    pub changes: Vec<Change>,
    pub window: Window,
    /// Of the programs that are in no part.
    pub metrics: Vec<Metric>,
    pub parts: Vec<Part>,
}

impl Program {
    /// What the kernel keeps of a task that touches next to nothing of its own, in KiB: its `task_struct` and stack. Measured
    /// on a virtual machine of a Xeon (model 207, Linux 6.18) by what one of a pair takes more once it was woken on another
    /// CPU: 1.6 us through a futex and 1.7 through pipes, thread or process, as much as 30 KiB take there.
    pub const TASK_KIB: u32 = 30;

    /// What a C program has in memory once it runs, with its libraries (assumed).
    pub const SMALL_PROCESS_KIB: u64 = 2048;

    /// A program of threads at nice 0 that may run anywhere and have no footprint to speak of.
    pub fn new(name: impl Into<String>, ops: Vec<Op>) -> Self {
        Self {
            name: name.into(),
            ops,
            nice: 0,
            policy: SchedPolicy::Other,
            cpus: None,
            begins_on: None,
            arrival: Call::default(),
            idle_exit_ns: 0,
            preempt_ns: 0,
            interrupted_on: None,
            wakee_flips: 0,
            process: false,
            nodes: None,
            footprint_kib: 0,
            memory_kib: Self::SMALL_PROCESS_KIB,
            cgroup: None,
            hint: None,
            part: None,
            part_step: 0,
        }
    }

    /// Of processes.
    pub fn of_processes(self) -> Self {
        Self { process: true, ..self }
    }

    /// The CPUs of `machine` that it asks for: those it names, as far as they are on its nodes.
    /// `None`: it asks for nothing.
    pub fn asks_for(&self, machine: &Machine) -> Option<CpuSet> {
        let on = |nodes: CpuSet| machine.cpus_where(|cpu| nodes.contains(cpu.node.into()));
        match (self.cpus, self.nodes.map(on)) {
            (Some(cpus), Some(of_nodes)) => Some(cpus & of_nodes),
            (cpus, of_nodes) => cpus.or(of_nodes),
        }
    }

    pub fn with_footprint(self, footprint_kib: u32) -> Self {
        Self { footprint_kib, ..self }
    }

    /// Of processes that allocate so much, beside what every small one has.
    pub fn with_memory(self, kib: u64) -> Self {
        Self { memory_kib: Self::SMALL_PROCESS_KIB + kib, ..self }
    }

    pub fn with_policy(self, policy: SchedPolicy) -> Self {
        Self { policy, ..self }
    }

    pub fn in_cgroup(self, cgroup: CgroupId) -> Self {
        Self { cgroup: Some(cgroup), ..self }
    }
}

impl Cgroup {
    /// A cpu.weight of 100.
    pub const DEFAULT_SHARES: u32 = 1024;
    /// What cpu.shares may be.
    pub const SHARES: RangeInclusive<u32> = 2..=262_144;
    /// What cpu.weight may be.
    pub const WEIGHTS: RangeInclusive<u32> = 1..=10_000;

    /// The shares of a cpu.weight, as sched_weight_from_cgroup() has it.
    pub const fn shares_of(weight: u32) -> u32 {
        (weight * Self::DEFAULT_SHARES + 50) / 100
    }

    /// The cpu.weight of shares, as sched_weight_to_cgroup() has it.
    pub fn weight_of(shares: u32) -> u32 {
        let weight = (shares * 100 + Self::DEFAULT_SHARES / 2) / Self::DEFAULT_SHARES;
        weight.clamp(*Self::WEIGHTS.start(), *Self::WEIGHTS.end())
    }

    /// A cgroup below `parent` without limits.
    pub fn new(name: impl Into<String>, parent: Option<CgroupId>, shares: u32) -> Self {
        Self { name: name.into(), parent, shares, cpus: None, quota: None }
    }
}

impl Metric {
    /// What reports call the figure; that of a part is called after the part.
    pub fn name_in(&self, part: &str) -> String {
        let name = match *self {
            Self::Time { .. } => "time",
            Self::Throughput { .. } => "throughput",
            Self::ThroughputPerPair { .. } => "throughput_per_pair",
            Self::BestRate { name, .. } => name,
            Self::WakeupLatency { quantile: 0.5 } => "p50_wakeup_latency",
            Self::WakeupLatency { quantile: 0.9 } => "p90_wakeup_latency",
            Self::WakeupLatency { quantile: 0.99 } => "p99_wakeup_latency",
            Self::WakeupLatency { .. } => "p999_wakeup_latency",
            Self::WokenLatency { quantile: 0.5 } => "p50_woken_latency",
            Self::WokenLatency { quantile: 0.99 } => "p99_woken_latency",
            Self::WokenLatency { .. } => "p999_woken_latency",
            Self::RequestLatency { quantile: 0.5 } => "p50_request_latency",
            Self::RequestLatency { quantile: 0.9 } => "p90_request_latency",
            Self::RequestLatency { quantile: 0.99 } => "p99_request_latency",
            Self::RequestLatency { .. } => "p999_request_latency",
            Self::RunQueueLockShare => "rq_lock_share",
        };
        if part.is_empty() { name.to_owned() } else { format!("{part}: {name}") }
    }

    /// What reports give the figure in.
    pub fn unit(&self) -> &'static str {
        match *self {
            Self::Time { .. } => "s",
            Self::Throughput { unit, .. } | Self::ThroughputPerPair { unit, .. } => unit,
            Self::BestRate { .. } => "MB/s",
            Self::WakeupLatency { .. }
            | Self::WokenLatency { .. }
            | Self::RequestLatency { .. } => "us",
            Self::RunQueueLockShare => "%",
        }
    }
}

impl Workload {
    /// As a login session runs it: in a cgroup of its own, be it of autogroup or of systemd, unless it brings some along.
    pub fn in_session(mut self) -> Self {
        if self.cgroups.is_empty() {
            self.cgroups.push(Cgroup::new("session", None, Cgroup::DEFAULT_SHARES));
            self.programs[0].cgroup = Some(0);
        }
        self
    }

    /// A workload without objects and metrics.
    pub fn new(name: impl Into<String>, programs: Vec<Program>, window: Window) -> Self {
        Self {
            name: name.into(),
            programs,
            channels: Vec::new(),
            mutexes: 0,
            conditions: 0,
            barriers: Vec::new(),
            gates: 0,
            flags: 0,
            lists: 0,
            semaphores: Vec::new(),
            timers: 0,
            cgroups: Vec::new(),
            has_waits_for_load: false,
            changes: Vec::new(),
            window,
            metrics: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// What the figure of this name is given in; `None` if the workload reports no such figure.
    pub fn unit_of(&self, figure: &str) -> Option<&'static str> {
        let of_parts = self.parts.iter().map(|part| (part.name.as_str(), &part.metrics));
        let all = std::iter::once(("", &self.metrics)).chain(of_parts);
        let mut metrics = all.flat_map(|(part, metrics)| metrics.iter().map(move |it| (part, it)));
        metrics.find(|(part, metric)| metric.name_in(part) == figure).map(|(_, it)| it.unit())
    }
}
