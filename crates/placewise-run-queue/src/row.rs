//! Entries in a row, which may be long: few are moved where one comes or goes near either end.
//!
//! As a `VecDeque`, but all in one slice, where a search takes fewer steps and a move is one. What leaves
//! near the front leaves a gap there, which the next that comes near the front may have.

use std::ops::Deref;

#[derive(Clone, Debug)]
pub struct Row<T> {
    /// The first `gap` of them are gone.
    entries: Vec<T>,
    gap: usize,
}

impl<T> Row<T> {
    pub const fn new() -> Self {
        Row { entries: Vec::new(), gap: 0 }
    }
}

impl<T: Copy> Row<T> {
    pub fn push(&mut self, entry: T) {
        self.entries.push(entry);
    }

    #[inline]
    pub fn insert(&mut self, at: usize, entry: T) {
        let to = self.gap + at;
        if self.gap == 0 || at >= self.len() / 2 {
            self.entries.insert(to, entry);
            return;
        }
        self.entries.copy_within(self.gap..to, self.gap - 1);
        self.entries[to - 1] = entry;
        self.gap -= 1;
    }

    #[inline]
    pub fn remove(&mut self, at: usize) {
        let (from, last) = (self.gap + at, self.entries.len() - 1);
        if from == last {
            self.entries.pop();
        } else if at >= self.len() / 2 {
            self.entries.remove(from);
        } else {
            self.entries.copy_within(self.gap..from, self.gap + 1);
            self.gap += 1;
        }
        if self.gap > self.len() {
            self.entries.drain(..self.gap);
            self.gap = 0;
        }
    }
}

impl<T> Deref for Row<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.entries[self.gap..]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Where it is to come or go, as a part of the length; true: it comes.
        #[test]
        fn it_is_as_a_deque(changes in prop::collection::vec((any::<bool>(), 0..=100usize), 0..200)) {
            let (mut row, mut deque) = (Row::new(), VecDeque::new());
            for (number, (comes, part)) in changes.into_iter().enumerate() {
                let at = part * deque.len() / 100;
                if comes {
                    row.insert(at, number);
                    deque.insert(at, number);
                } else if at < deque.len() {
                    row.remove(at);
                    deque.remove(at);
                }
                prop_assert!(deque.iter().eq(row.iter()));
            }
        }
    }

    /// Else a row from whose front all are taken keeps the memory of all that ever were in it.
    #[test]
    fn a_gap_is_never_longer_than_what_is_left() {
        let mut row = Row::new();
        (0..100).for_each(|entry| row.push(entry));
        for entry in 0..10_000 {
            row.remove(0);
            row.push(entry);
            assert!(row.entries.len() <= 2 * row.len());
        }
    }
}
