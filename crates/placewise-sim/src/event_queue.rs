//! What happens next: a heap of (time, slot) keys.
//!
//! Everything that can happen has a slot of its own: what a CPU is doing, its
//! tick, its interrupt, a task's timer. A slot waits for one time at most;
//! arming it again or disarming it leaves the old entry in the heap, to be
//! dropped when it comes up. Equal times are served in the order of slots, so
//! the order of events depends on nothing else.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Simulated time in nanoseconds.
pub type Time = u64;

const SLOT_BITS: u32 = 20;
const DISARMED: Time = Time::MAX;

pub struct EventQueue {
    heap: BinaryHeap<Reverse<u64>>,
    armed: Vec<Time>,
}

impl EventQueue {
    /// Times must stay below 2^44 ns, almost five hours.
    pub fn new(slots: usize) -> Self {
        assert!(slots < 1 << SLOT_BITS, "too many slots for the keys of the event queue");
        EventQueue { heap: BinaryHeap::with_capacity(slots), armed: vec![DISARMED; slots] }
    }

    pub fn add_slot(&mut self) {
        assert!(
            self.armed.len() < 1 << SLOT_BITS,
            "too many slots for the keys of the event queue"
        );
        self.armed.push(DISARMED);
    }

    #[inline]
    pub fn arm(&mut self, slot: usize, time: Time) {
        self.armed[slot] = time;
        self.heap.push(Reverse(time << SLOT_BITS | slot as u64));
    }

    #[inline]
    pub fn disarm(&mut self, slot: usize) {
        self.armed[slot] = DISARMED;
    }

    /// When a slot is due, if it is armed.
    #[inline]
    pub fn due(&self, slot: usize) -> Option<Time> {
        (self.armed[slot] != DISARMED).then_some(self.armed[slot])
    }

    /// Takes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, usize)> {
        while let Some(Reverse(key)) = self.heap.pop() {
            let (time, slot) = (key >> SLOT_BITS, (key & ((1 << SLOT_BITS) - 1)) as usize);
            if self.armed[slot] == time {
                self.armed[slot] = DISARMED;
                return Some((time, slot));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_slot() {
        let mut queue = EventQueue::new(4);
        queue.arm(3, 10);
        queue.arm(1, 10);
        queue.arm(0, 20);
        assert_eq!(queue.pop(), Some((10, 1)));
        assert_eq!(queue.pop(), Some((10, 3)));
        assert_eq!(queue.pop(), Some((20, 0)));
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn rearming_and_disarming_drop_the_old_time() {
        let mut queue = EventQueue::new(2);
        queue.arm(0, 10);
        queue.arm(0, 30);
        queue.arm(1, 20);
        queue.disarm(1);
        assert_eq!(queue.due(0), Some(30));
        assert_eq!(queue.pop(), Some((30, 0)));
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn a_slot_armed_twice_for_one_time_fires_once() {
        let mut queue = EventQueue::new(1);
        queue.arm(0, 10);
        queue.arm(0, 10);
        assert_eq!(queue.pop(), Some((10, 0)));
        assert_eq!(queue.pop(), None);
    }
}
