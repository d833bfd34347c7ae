//! A simulated CPU: what it is doing, and what is waiting to be done there.

use std::collections::VecDeque;

use crate::event_queue::Time;
use crate::task::Resume;
use crate::wakeup::{Placed, WakerContext};
use placewise_policy::BalanceWalk;

/// No visit under way.
pub const BALANCE_WALK: BalanceWalk = BalanceWalk {
    next_balance: 0,
    cost: 0,
    cpu: 0,
    level: 0,
    idle: 0,
    not_my_job: 0,
    need_decay: 0,
    pulled: 0,
};

/// What a CPU is doing. All but `Idle` and `Spinning` end with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// In an idle state.
    Idle,
    /// Leaving an idle state.
    IdleExit,
    /// Switching to its current task, perhaps the idle task.
    Switch,
    /// Its current task runs a segment of its program.
    Segment,
    /// Its current task is inside a wakeup.
    Wakeup,
    /// Its current task waits: until a wakee has switched out elsewhere, or for an interrupt.
    Spinning,
    /// Looking for work before it idles.
    NewIdle,
    /// The idle task enqueues what was on the wake list.
    WakeList,
    /// Balancing on behalf of the tickless idle CPUs.
    NohzBalance,
    /// The idle task handles interrupts.
    IdleInterrupt,
}

/// What an interrupt has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// A task's timer expired.
    Timer(u32),
    /// This CPU was chosen to balance for the tickless idle ones.
    NohzBalance,
    /// Another CPU wants this one to give its current task away.
    ActiveBalance { to: u32 },
    /// The task may not be here any more.
    Migrate(u32),
    /// This CPU is to go offline.
    Offline,
}

/// What the current task does once all its wakeups are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Its next operation.
    Next,
    /// The same operation again.
    Again,
    Block(Resume),
    Exit,
}

/// How fast a CPU computes: percent of what its core gives to one thread alone, times the speed of
/// that core, of 1,024.
pub type Speed = u64;

/// Of the fastest core, with a thread alone on it.
pub const FULL_SPEED: Speed = 100 * 1024;

/// What every segment touches comes first, for it then is in one cache line.
#[repr(C, align(64))]
pub struct Cpu {
    pub activity: Activity,
    pub need_resched: bool,
    pub wake_sync: bool,
    pub wake_context: WakerContext,
    /// Of the segment under way.
    pub speed: Speed,
    /// Rate of the segment's stream, if it has one.
    pub stream_mbps: u64,
    /// Time that the kernel has spent here and that has not passed yet.
    pub debt: Time,
    /// What each wakeup costs beside itself, when each is a system call of its own.
    pub wake_call_ns: Time,
    pub lock: RunQueueLock,
    /// Switching away from this task, which is still on_cpu.
    pub prev: Option<u32>,
    pub then: Then,

    /// The waking that the current task has left to do.
    pub wakees: VecDeque<u32>,
    pub interrupts: VecDeque<Interrupt>,
    /// Tasks on the wake list, first come first enqueued, and those that were on it and are being
    /// enqueued.
    pub wake_list: Vec<u32>,
    pub arriving: Vec<u32>,
    /// The wakeups under way, of the current task and in hard interrupt context.
    pub placed: Option<Placed>,
    pub interrupt_placed: Option<Placed>,

    /// When the idle task became current, and when it began to rest.
    pub idle_task_since: Time,
    pub idle_since: Time,
    /// When it began to rest for good, unless it comes online again.
    pub offline_since: Option<Time>,
    /// Average of recent idle times: what the idle governor expects.
    pub expected_idle: Time,
    pub idle_state: usize,
    pub counters: CpuCounters,

    /// The newly-idle pass under way.
    pub newidle: BalanceWalk,
    pub newidle_began: Time,
}

/// A FIFO lock: a time from which it is free.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunQueueLock {
    pub free_at: Time,
    pub last_owner: u32,
}

/// The counters of a CPU line of /proc/schedstat, and a few more.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuCounters {
    pub yields: u64,
    pub schedules: u64,
    pub schedules_idle: u64,
    pub wakeups: u64,
    pub wakeups_local: u64,
    pub run_ns: Time,
    pub wait_ns: Time,
    pub timeslices: u64,
    pub idle_ns: Time,
    pub lock_ns: Time,
}

impl Cpu {
    pub fn new(cpu: u32) -> Self {
        Cpu {
            activity: Activity::Idle,
            speed: FULL_SPEED,
            stream_mbps: 1,
            need_resched: false,
            prev: None,
            wakees: VecDeque::new(),
            wake_sync: false,
            wake_context: WakerContext::Task,
            wake_call_ns: 0,
            then: Then::Next,
            placed: None,
            interrupt_placed: None,
            debt: 0,
            interrupts: VecDeque::new(),
            wake_list: Vec::new(),
            arriving: Vec::new(),
            newidle: BALANCE_WALK,
            newidle_began: 0,
            idle_task_since: 0,
            idle_since: 0,
            offline_since: None,
            expected_idle: Time::MAX / 2,
            idle_state: 0,
            lock: RunQueueLock { free_at: 0, last_owner: cpu },
            counters: CpuCounters::default(),
        }
    }
}
