//! What tasks of one process wait on: mutexes, conditions, barriers, gates.

use std::collections::VecDeque;

/// A pthread mutex: whoever finds it free takes it; a waiter that is woken tries again.
#[derive(Default)]
pub struct Mutex {
    pub owner: Option<u32>,
    pub waiters: VecDeque<u32>,
}

#[derive(Default)]
pub struct Condition {
    pub waiters: VecDeque<u32>,
}

pub struct Barrier {
    pub parties: u32,
    pub waiters: Vec<u32>,
}

impl Barrier {
    pub fn new(parties: u32) -> Self {
        Barrier { parties, waiters: Vec::new() }
    }
}

/// Closed until somebody opens it, for good.
#[derive(Default)]
pub struct Gate {
    pub open: bool,
    pub waiters: Vec<u32>,
}
