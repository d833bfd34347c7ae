//! What a run queue knows of the tasks and task groups that are in it.

use std::fmt::Debug;
use std::ops::{Index, IndexMut};

use placewise_policy::{Profile, Table, TaskId};

/// Weight of a task at nice 0; virtual time is real time at this weight.
pub const NICE_0_WEIGHT: u64 = scale_load(1024);

/// A weight of the policy in finer units, as kernels of 64 bits have it: a task's part of a task group is seldom a
/// whole number.
pub const fn scale_load(weight: u32) -> u64 {
    (weight as u64) << 10
}

/// What a run queue knows of a task, waiting or not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entity {
    /// Virtual runtime; relative to its queue's while `relative`.
    pub vruntime: i64,
    pub relative: bool,
    pub weight: u64,
    pub idle_policy: bool,
    /// CPU time since it was last picked, in ns.
    pub ran: u64,
    /// EEVDF: relative to `vruntime` while `relative`.
    pub deadline: i64,
    /// EEVDF: virtual lag when it was dequeued.
    pub lag: i64,
    /// EEVDF: current is not preempted before it gets here.
    pub protected_until: i64,
    /// Its task group; 0 is the root.
    pub group: u32,
    /// It has come to another CPU since it was queued last.
    pub migrated: bool,
}

/// What stands for an entity: a task, or where there are task groups, one or the other.
pub trait EntityId: Copy + Debug + Eq {
    fn is_group(self) -> bool;
}

impl EntityId for TaskId {
    #[inline]
    fn is_group(self) -> bool {
        false
    }
}

/// The entities of a queue.
pub trait Entities<Id>: Index<Id, Output = Entity> {}
pub trait EntitiesMut<Id>: IndexMut<Id, Output = Entity> {}

impl<Id, T: Index<Id, Output = Entity>> Entities<Id> for T {}
impl<Id, T: IndexMut<Id, Output = Entity>> EntitiesMut<Id> for T {}

/// Those of tasks alone.
pub type Tasks = Table<TaskId, Entity>;

impl Entity {
    /// `ns` of CPU time as virtual time.
    #[inline]
    pub fn virtual_time(&self, ns: u64) -> i64 {
        if self.weight == NICE_0_WEIGHT {
            ns as i64
        } else {
            (ns * NICE_0_WEIGHT / self.weight) as i64
        }
    }

    /// Another weight for what is on no queue: its lag, and what it is to have of its slice, stay so
    /// much real time.
    pub fn reweigh(&mut self, weight: u64) {
        let scaled =
            |time: i64| (i128::from(time) * i128::from(self.weight) / i128::from(weight)) as i64;
        self.lag = scaled(self.lag);
        if self.relative {
            self.deadline = scaled(self.deadline);
        }
        self.weight = weight;
    }

    /// EEVDF: is it not to be preempted yet, while it is eligible?
    #[inline]
    pub fn is_protected(&self) -> bool {
        self.vruntime < self.protected_until
    }

    pub fn start_without_lag(&mut self) {
        let Entity { weight, idle_policy, group, .. } = *self;
        *self = Entity { weight, idle_policy, group, ..Entity::default() };
    }
}

/// Why a task enters a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueue {
    Fork,
    Wakeup,
    Balance,
}

/// Who has enqueued a task that may preempt the one that runs; by default an interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnqueuedBy {
    /// A task, in its own time.
    pub task: bool,
    /// One that is about to sleep (WF_SYNC).
    pub sync: bool,
}

/// Why a task leaves a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue {
    Sleep,
    Balance,
}

/// Time constants, scaled with the number of CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Tunables {
    pub latency: u64,
    pub min_granularity: u64,
    pub wakeup_granularity: u64,
    /// It grows with the tasks that are queued.
    pub wakeup_granularity_scales: bool,
    pub slice_floor: bool,
    pub base_slice: u64,
    /// A lag is no larger, either way.
    pub lag_limit: u64,
    /// It does not fall while its task is delayed.
    pub delayed_keeps_lag: bool,
    pub place_lag: bool,
    /// Wakees are nominated to run next.
    pub next_buddy: bool,
    /// What preempts is picked as at a switch.
    pub wakeup_picks: bool,
    /// Protection of current follows `protected_until` instead of the deadline.
    pub protect_by_slice: bool,
    pub protection: Protection,
}

/// Until when the task that is picked keeps the CPU while it is eligible; at the latest to its deadline.
#[derive(Clone, Copy, Debug)]
pub enum Protection {
    Deadline,
    Ns(u64),
    /// Until it has had its share of what was queued then: of nothing, alone.
    Eligible,
}

impl Tunables {
    /// `profile` is that of a machine that has booted.
    pub fn new(profile: &Profile, tick: u64) -> Self {
        Tunables {
            latency: profile.latency.ns,
            min_granularity: profile.min_gran.ns,
            wakeup_granularity: profile.wakeup_gran.ns,
            wakeup_granularity_scales: profile.wakeup_gran_scales,
            slice_floor: profile.slice_floor,
            base_slice: profile.base_slice.ns,
            lag_limit: match profile.lag_limit_adds_tick {
                true => profile.base_slice.ns + tick,
                false => (2 * profile.base_slice.ns).max(tick),
            },
            delayed_keeps_lag: profile.delayed_keeps_lag,
            place_lag: profile.place_lag,
            next_buddy: profile.next_buddy,
            wakeup_picks: profile.wakeup_picks,
            protect_by_slice: profile.vprot,
            protection: match profile {
                Profile { run_to_parity: true, .. } => Protection::Deadline,
                Profile { protects_eligible: true, .. } => Protection::Eligible,
                _ => Protection::Ns(profile.min_protection),
            },
        }
    }
}
