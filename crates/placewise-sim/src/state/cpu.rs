//! A simulated CPU: what it is doing, and what is waiting to be done there.

use std::collections::VecDeque;
use std::ops::Range;

use placewise_policy::{BalanceWalk, CpuId, TaskId};

use crate::state::effect::Effect;
use crate::state::event_queue::Time;
use crate::state::lock::FifoLock;
use crate::state::shared_list::SharedList;
use crate::state::speed::Speed;
use crate::state::waker::Placed;

/// What a CPU is doing. All but `Idle` and `Spinning` end with an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activity {
    /// In an idle state.
    #[default]
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
    /// Its current task is to give way, and waits for the lock of the run queue.
    Schedule,
    /// Looking for work before it idles.
    NewIdle,
    /// The same, and has a task off a list of its LLC.
    TakeOver,
    /// Its idle task is about to pick what was enqueued.
    Pick,
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
    Timer(TaskId),
    /// This CPU was chosen to balance for the tickless idle ones.
    NohzBalance,
    /// Another CPU wants this one to give its current task away.
    ActiveBalance { to: CpuId },
    /// The task may not be here any more.
    Migrate(TaskId),
    /// The task is to go to where its memory is.
    NumaMigrate { task: TaskId, to: CpuId },
    /// This CPU is to go offline.
    Offline,
}

/// What every segment touches comes first, for it then is in one cache line.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Cpu {
    pub activity: Activity,
    pub need_resched: bool,
    /// When the run queue's clock was last brought up to now, if schedule() is not to do so again.
    pub clock_stands_at: Option<Time>,
    /// What its core gives this thread at the moment: less while its siblings are busy.
    pub pace: Speed,
    /// Of the segment under way.
    pub speed: Speed,
    /// Rate of the segment's stream, if it has one.
    pub stream_mbps: u64,
    /// What the kernel has done here, as long as that takes at full speed, and whose time has not passed yet.
    pub debt: Time,
    pub lock: FifoLock,
    /// Switching away from this task, which is still on_cpu.
    pub prev: Option<TaskId>,
    /// When whoever has slept here last was on the run queue still, and the CPU had the lock of that.
    pub dequeues: Range<Time>,
    /// What is left of the effect of the current task's last operation.
    pub effect: Effect,

    pub interrupts: VecDeque<Interrupt>,
    /// Tasks on the wake list, first come first enqueued, and those that were on it and are being
    /// enqueued.
    pub wake_list: Vec<TaskId>,
    pub arriving: Vec<TaskId>,
    /// The wakeups under way, of the current task and in hard interrupt context.
    pub placed: Option<Placed>,
    pub interrupt_placed: Option<Placed>,

    /// Its current task gives way no sooner: until then whoever has told it holds the lock of its run queue.
    pub preempted_from: Time,

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
    /// Of the list of waiting tasks whose first CPU this is (`policy/shared_runq.h`).
    pub list: SharedList,
    /// What it takes over from such a list.
    pub taken: Option<TaskId>,
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
    /// Nothing has come that the current task would have to wait for before it goes on.
    #[inline]
    pub fn is_undisturbed(&self) -> bool {
        !self.need_resched && self.wake_list.is_empty() && self.interrupts.is_empty()
    }

    /// Idle, as its siblings are, on a core of this speed.
    pub fn new(cpu: CpuId, pace: Speed) -> Self {
        Cpu {
            pace,
            speed: pace,
            stream_mbps: 1,
            expected_idle: Time::MAX / 2,
            lock: FifoLock { free_at: 0, last_owner: cpu },
            ..Cpu::default()
        }
    }
}
