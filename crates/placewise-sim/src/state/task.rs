//! A simulated task: where it is in its program, and what it waits for.

use placewise_policy::{CpuId, TaskId};
use placewise_workload::program::{COUNTERS, FOREVER};

use crate::state::event_queue::Time;
use crate::state::numa_balancing::TaskMemory;
use crate::state::waker::WakerContext;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskState {
    /// Not created yet, or the idle task of a CPU.
    #[default]
    Unused,
    /// On a run queue or running.
    Runnable,
    /// Asleep; delayed tasks, which stay queued, too.
    Blocked,
    /// A waker has claimed it and is looking for a CPU, or it is on a wake list.
    Waking,
    Exited,
}

/// How a task goes on once it has been woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resume {
    /// The operation it slept in is to be tried again.
    #[default]
    Retry,
    /// The operation is done.
    Next,
}

/// What every segment touches comes first, for it then is in one cache line.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Task {
    /// How much work the operation's segment, if it is under way, has left.
    pub work_left: Time,
    /// After the work: bytes still to be streamed.
    pub stream_left: u64,
    /// A spin ends at this wall time.
    pub spin_until: Option<Time>,
    /// The part of the workload that it counts for.
    pub part: u32,
    pub pc: u32,
    /// Added to the numbers of its own objects.
    pub base: u32,
    /// Progress within an operation of several steps.
    pub stage: u32,
    pub last_cpu: CpuId,
    pub state: TaskState,
    pub resume: Resume,
    /// The operation's segment is under way.
    pub in_segment: bool,
    /// Current somewhere, or still switching out.
    pub on_cpu: bool,
    /// The wakeup that claimed it is sync.
    pub woken_sync: bool,
    /// It was moved between waking and enqueueing.
    pub woken_migrated: bool,
    /// Its call has slept, and has more to do for that.
    pub slept: bool,
    /// It was woken between deciding to sleep and sleeping: it does not sleep.
    pub woken_early: bool,
    /// The base of the task whose message it read last.
    pub peer: u32,

    pub counters: [u32; COUNTERS],
    /// When it began to wait on a run queue.
    pub queued_since: Time,
    /// The CPU that has its lines: one that has put it on the run queue of another.
    pub lines_on: Option<CpuId>,
    /// A waker that waits until it has switched out.
    pub spinner: Option<(CpuId, WakerContext)>,
    pub footprint_kib: u32,
    /// The timer it sleeps on.
    pub timer_expiry: Option<Time>,
    /// When another task woke it, if that is sampled.
    pub woken_at: Option<Time>,
    /// Where the interrupt of the device that it waits for will arrive.
    pub interrupt_cpu: Option<CpuId>,

    pub program: u32,
    pub parent: TaskId,
    pub children: u32,
    pub pid: u32,
    /// Whom its process began with.
    pub leader: TaskId,
    /// What it streams, once it has begun to.
    pub memory: Option<Box<TaskMemory>>,
    /// A futex wake that has come and was not waited for yet.
    pub token: bool,
    /// When the wake that its latency counts from was stamped.
    pub stamp: Time,
    /// When the request began that it serves, and whose lock it took last.
    pub request_began: Time,
    pub locked_cpu: CpuId,
    /// SCHED_RR: ticks of its timeslice that it has had.
    pub rr_ticks: u64,
    pub statistics: TaskStatistics,
}

impl Task {
    /// Its operation is done.
    #[inline]
    pub fn next_op(&mut self) {
        self.pc += 1;
        self.stage = 0;
    }

    /// A waker has claimed it, which slept: it goes on from here once it runs.
    pub fn claim(&mut self) {
        self.state = TaskState::Waking;
        self.woken_migrated = false;
        if self.resume == Resume::Next {
            self.next_op();
        }
    }

    /// A pass of a loop is over: is there another?
    #[inline]
    pub fn repeats(&mut self, counter: u8, times: u32) -> bool {
        let done = &mut self.counters[usize::from(counter)];
        *done = done.saturating_add(1);
        let again = times == FOREVER || *done < times;
        if !again {
            *done = 0;
        }
        again
    }
}

/// The counters of /proc/PID/sched that the policy's state does not hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskStatistics {
    pub wakeups: u64,
    pub wakeups_sync: u64,
    pub wakeups_migrate: u64,
    pub wakeups_local: u64,
    pub wakeups_remote: u64,
    pub wakeups_affine: u64,
    pub wakeups_affine_attempts: u64,
    pub migrations: u64,
    pub wait_sum: Time,
    pub wait_count: u64,
    pub wait_max: Time,
}
