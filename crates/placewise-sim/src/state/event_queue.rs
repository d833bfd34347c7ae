//! Which of many slots is due first: a tournament of keys.
//!
//! Everything that can happen has a slot of its own, and waits for one time at most. So the keys of the
//! slots are the leaves of a tree whose inner nodes hold the least key below them:
//!
//! ```text
//!                1: least of all
//!            2                   3
//!        4       5           6       7
//!      slot 0  slot 1      slot 2  slot 3
//! ```
//!
//! A key is a time and, below it, the number of what is due then: the order of what comes at equal times
//! depends on nothing else.

/// Simulated time in nanoseconds.
pub type Time = u64;

/// Those of a key that number what is due.
pub const NUMBER_BITS: u32 = 20;

/// Greater than the key of anything that is due.
pub const DISARMED: u64 = u64::MAX;

pub struct EventQueue {
    /// Inner nodes from 1 on, then the slots.
    keys: Vec<u64>,
    least: u64,
}

impl EventQueue {
    /// For at least so many slots.
    pub fn new(slots: usize) -> Self {
        EventQueue { keys: vec![DISARMED; 2 * slots.next_power_of_two()], least: DISARMED }
    }

    /// Grows until there are so many slots.
    pub fn grow_to(&mut self, slots: usize) {
        if slots > self.leaves() {
            let mut grown = EventQueue::new(slots);
            let keys = &self.keys[self.leaves()..];
            keys.iter().enumerate().for_each(|(slot, &key)| grown.set(slot, key));
            *self = grown;
        }
    }

    fn leaves(&self) -> usize {
        self.keys.len() / 2
    }

    /// The key of what is due first.
    #[inline]
    pub fn least(&self) -> u64 {
        self.least
    }

    #[inline]
    pub fn key(&self, slot: usize) -> u64 {
        self.keys[self.leaves() + slot]
    }

    /// The slot has this key, and the nodes above it the least of what is below.
    pub fn set(&mut self, slot: usize, key: u64) {
        let mut node = self.leaves() + slot;
        let keys = &mut self.keys[..];
        // Says to the compiler what it cannot know: no node is out of bounds.
        let Some(mask) = keys.len().checked_sub(1) else { return };
        let mut least = key;
        node &= mask;
        keys[node] = key;
        while node > 1 {
            least = least.min(keys[(node ^ 1) & mask]);
            node = (node / 2) & mask;
            keys[node] = least;
        }
        self.least = least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes what is due first, by slots whose number is their key's last digit.
    fn take(queue: &mut EventQueue) -> u64 {
        let least = queue.least();
        queue.set((least % 1000) as usize, DISARMED);
        least
    }

    #[test]
    fn the_least_key_comes_first_however_deep_the_tree_is() {
        for slots in [1, 8, 9, 64, 65, 600] {
            let mut queue = EventQueue::new(slots);
            let key = |slot: usize| (slot * 7919 % 100 * 1000 + slot) as u64;
            (0..slots).for_each(|slot| queue.set(slot, key(slot)));
            let mut keys: Vec<u64> = (0..slots).map(key).collect();
            keys.sort_unstable();
            let taken: Vec<u64> = (0..slots).map(|_| take(&mut queue)).collect();
            assert_eq!((taken, queue.least()), (keys, DISARMED), "{slots} slots");
        }
    }

    #[test]
    fn another_key_takes_the_place_of_the_old_one() {
        let mut queue = EventQueue::new(20);
        queue.set(3, 1003);
        queue.set(17, 2017);
        queue.set(3, 3003);
        assert_eq!((queue.key(3), take(&mut queue), take(&mut queue)), (3003, 2017, 3003));
        assert_eq!((queue.key(3), queue.least()), (DISARMED, DISARMED));
    }

    #[test]
    fn slots_can_be_added_while_others_are_armed() {
        let mut queue = EventQueue::new(2);
        queue.set(0, 1000);
        for slots in 2..100 {
            queue.grow_to(slots);
            queue.set(slots - 1, 2000 - slots as u64);
        }
        assert_eq!((queue.key(0), queue.key(98), queue.least()), (1000, 1901, 1000));
    }
}
