//! What tasks share, and wait for each other at.

use placewise_policy::{CpuId, PipeWakeRule, Table};
use placewise_workload::program::{ChannelKind, Workload};

use crate::state::channel::Channel;
use crate::state::event_queue::Time;
use crate::state::sync::{Barrier, Condition, CpuLock, Flag, Gate, List, Mutex, Semaphore};

pub struct Objects {
    pub channels: Vec<Channel>,
    pub mutexes: Vec<Mutex>,
    pub conditions: Vec<Condition>,
    pub barriers: Vec<Barrier>,
    pub gates: Vec<Gate>,
    pub semaphores: Vec<Semaphore>,
    pub flags: Vec<Flag>,
    pub cpu_locks: Table<CpuId, CpuLock>,
    pub lists: Vec<List>,
    /// When each timer expired last, or was started.
    pub timers: Vec<Option<Time>>,
}

impl Objects {
    pub fn new(workload: &Workload, nr_cpus: u32, rule: PipeWakeRule) -> Self {
        let channel = |kind: &ChannelKind| Channel::new(*kind, rule);
        Objects {
            channels: workload.channels.iter().map(channel).collect(),
            mutexes: (0..workload.mutexes).map(|_| Mutex::default()).collect(),
            conditions: (0..workload.conditions).map(|_| Condition::default()).collect(),
            barriers: workload.barriers.iter().map(|&parties| Barrier::new(parties)).collect(),
            gates: (0..workload.gates).map(|_| Gate::default()).collect(),
            semaphores: workload.semaphores.iter().map(|posters| Semaphore::of(*posters)).collect(),
            flags: (0..workload.flags).map(|_| Flag::default()).collect(),
            cpu_locks: (0..nr_cpus).map(|_| CpuLock::default()).collect(),
            lists: (0..workload.lists).map(|_| List::default()).collect(),
            timers: vec![None; workload.timers as usize],
        }
    }
}
