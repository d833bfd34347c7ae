//! What happens next: a tournament of (time, slot) keys.
//!
//! Everything that can happen has a slot of its own: what a CPU is doing, its
//! tick, its interrupt, a task's timer. A slot waits for one time at most, so
//! the slots are the leaves of a tree whose inner nodes hold the least key
//! below them. Most of what happens is that a CPU is done with one thing and
//! begins the next; those slots have a half of the tree to themselves, which is
//! not as deep as the other:
//!
//! ```text
//!                     1: least of all
//!            2                      3
//!        4       5              6       7
//!    slot 0   slot STRIDE    12   13  14   15
//!                               slots 1 to 3
//! ```
//!
//! Equal times are served in the order of slots, so the order of events depends
//! on nothing else. A slot that is served usually waits for something else soon;
//! so its old key stays in the tree until it is armed or the next event is due.

/// Simulated time in nanoseconds.
pub type Time = u64;

/// One of so many slots is in the shallow half of the tree, as long as there are any for it.
pub const STRIDE: usize = 4;

const SLOT_BITS: u32 = 20;
const DISARMED: u64 = u64::MAX;
const NO_SLOT: usize = usize::MAX;

pub struct EventQueue {
    /// Inner nodes from 1 on, then the keys of the slots of the deep half; those of the other half
    /// stand among the inner nodes.
    keys: Vec<u64>,
    slots: usize,
    /// Slots before this one may be in the shallow half, which has leaves for so many.
    strides_end: usize,
    shallow_leaves: usize,
    /// The slot whose event was taken last, if its old key is still there.
    served: usize,
}

impl EventQueue {
    /// Of the slots before `strides_end` every [`STRIDE`]th is in the shallow half. Times must stay
    /// below 2^44 ns, almost five hours.
    pub fn new(slots: usize, strides_end: usize) -> Self {
        let leaves = slots.next_power_of_two();
        let mut queue = EventQueue {
            keys: vec![DISARMED; 4 * leaves],
            slots: 0,
            strides_end,
            shallow_leaves: strides_end.div_ceil(STRIDE).next_power_of_two(),
            served: NO_SLOT,
        };
        (0..slots).for_each(|_| queue.add_slot());
        queue
    }

    pub fn add_slot(&mut self) {
        assert!(self.slots < 1 << SLOT_BITS, "too many slots for the keys of the event queue");
        if self.slots == self.deep_leaves() {
            self.grow();
        }
        self.slots += 1;
    }

    /// Those below node 3 are a quarter of all nodes: it has as many above it, or beside these.
    fn deep_leaves(&self) -> usize {
        self.keys.len() / 4
    }

    /// The leaf of a slot.
    #[inline]
    fn leaf(&self, slot: usize) -> usize {
        if slot.is_multiple_of(STRIDE) && slot < self.strides_end {
            2 * self.shallow_leaves + slot / STRIDE
        } else {
            3 * self.deep_leaves() + slot
        }
    }

    /// Twice as many leaves in the deep half.
    fn grow(&mut self) {
        let keys: Vec<u64> = (0..self.slots).map(|slot| self.keys[self.leaf(slot)]).collect();
        self.keys = vec![DISARMED; 2 * self.keys.len()];
        for (slot, key) in keys.into_iter().enumerate() {
            self.set(slot, key);
        }
    }

    #[inline]
    pub fn arm(&mut self, slot: usize, time: Time) {
        if slot == self.served {
            self.served = NO_SLOT;
        }
        self.set(slot, time << SLOT_BITS | slot as u64);
    }

    #[inline]
    pub fn disarm(&mut self, slot: usize) {
        if slot == self.served {
            self.served = NO_SLOT;
        }
        self.set(slot, DISARMED);
    }

    /// When a slot is due, if it is armed.
    #[inline]
    pub fn due(&self, slot: usize) -> Option<Time> {
        let key = self.keys[self.leaf(slot)];
        (key != DISARMED && slot != self.served).then_some(key >> SLOT_BITS)
    }

    /// Takes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, usize)> {
        if self.served != NO_SLOT {
            self.disarm(self.served);
        }
        let key = self.keys[1];
        if key == DISARMED {
            return None;
        }
        let slot = (key & ((1 << SLOT_BITS) - 1)) as usize;
        self.served = slot;
        Some((key >> SLOT_BITS, slot))
    }

    /// The slot has this key, and the nodes above it the least of what is below.
    #[inline]
    fn set(&mut self, slot: usize, key: u64) {
        let mut node = self.leaf(slot);
        let keys = &mut self.keys[..];
        // Says to the compiler what it cannot know: no node is out of bounds.
        let mask = keys.len() - 1;
        let mut least = key;
        keys[node & mask] = key;
        while node > 1 {
            least = least.min(keys[(node ^ 1) & mask]);
            node /= 2;
            keys[node & mask] = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_slot() {
        let mut queue = EventQueue::new(4, 0);
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
        let mut queue = EventQueue::new(2, 0);
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
        let mut queue = EventQueue::new(1, 0);
        queue.arm(0, 10);
        queue.arm(0, 10);
        assert_eq!(queue.pop(), Some((10, 0)));
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn a_served_slot_waits_for_nothing_until_it_is_armed() {
        let mut queue = EventQueue::new(3, 0);
        queue.arm(2, 10);
        queue.arm(0, 20);
        assert_eq!(queue.pop(), Some((10, 2)));
        assert_eq!(queue.due(2), None);
        queue.arm(1, 5);
        queue.arm(2, 15);
        assert_eq!(queue.due(2), Some(15));
        assert_eq!(queue.pop(), Some((5, 1)));
        queue.disarm(1);
        assert_eq!(queue.pop(), Some((15, 2)));
        assert_eq!(queue.pop(), Some((20, 0)));
        assert_eq!(queue.pop(), None);
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn slots_can_be_added_while_others_are_armed() {
        let mut queue = EventQueue::new(2, 0);
        queue.arm(0, 30);
        queue.arm(1, 10);
        assert_eq!(queue.pop(), Some((10, 1)));
        for slot in 2..9 {
            queue.add_slot();
            queue.arm(slot, 40 - slot as Time);
        }
        let order: Vec<usize> = std::iter::from_fn(|| queue.pop()).map(|(_, slot)| slot).collect();
        assert_eq!(order, [0, 8, 7, 6, 5, 4, 3, 2]);
    }

    /// Whatever half they are in, and also once the deep half has grown.
    #[test]
    fn equal_times_come_in_the_order_of_slots() {
        let mut queue = EventQueue::new(9, 9);
        for slot in 9..40 {
            queue.add_slot();
            queue.arm(slot, 10);
        }
        (0..9).rev().for_each(|slot| queue.arm(slot, 10));
        let order: Vec<usize> = std::iter::from_fn(|| queue.pop()).map(|(_, slot)| slot).collect();
        assert_eq!(order, Vec::from_iter(0..40));
    }
}
