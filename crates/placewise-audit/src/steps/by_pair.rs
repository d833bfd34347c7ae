//! One value for each pair of keys, such as names of tasks, up to a limit: first come.
//!
//! The pairs that come again and again, and these are most, need no look into the map.

use std::collections::HashMap;
use std::hash::Hash;

use crate::steps::task::NameId;

/// Pairs that are told apart.
const PAIRS_MAX: usize = 1 << 16;
/// Pairs that are found at once.
const RECENT: usize = 1 << 12;

pub struct ByPair<K, V> {
    values: Vec<((K, K), V)>,
    ids: HashMap<(K, K), usize>,
    recent: Vec<usize>,
}

impl<K, V> Default for ByPair<K, V> {
    fn default() -> Self {
        ByPair { values: Vec::new(), ids: HashMap::new(), recent: vec![0; RECENT] }
    }
}

/// A key tells in what place of a small table it is looked for.
pub trait Place {
    fn place(&self) -> usize;
}

impl Place for NameId {
    fn place(&self) -> usize {
        *self as usize
    }
}

impl<K: Copy + Eq + Hash + Place, V: Default> ByPair<K, V> {
    /// The number of a pair; `None`: it is one too many.
    #[inline]
    pub fn id(&mut self, one: K, other: K) -> Option<usize> {
        let place = (one.place() * 61 + other.place()) % RECENT;
        let recent = self.recent[place];
        match self.values.get(recent) {
            Some((key, _)) if *key == (one, other) => Some(recent),
            _ => {
                let id = self.look_up((one, other))?;
                self.recent[place] = id;
                Some(id)
            }
        }
    }

    #[cold]
    fn look_up(&mut self, key: (K, K)) -> Option<usize> {
        if let Some(&id) = self.ids.get(&key) {
            return Some(id);
        }
        let id = self.values.len();
        if id == PAIRS_MAX {
            return None;
        }
        self.values.push((key, V::default()));
        self.ids.insert(key, id);
        Some(id)
    }

    pub fn of(&mut self, id: usize) -> &mut V {
        &mut self.values[id].1
    }

    /// As they came.
    pub fn iter(&self) -> impl Iterator<Item = (K, K, &V)> {
        self.values.iter().map(|((one, other), value)| (*one, *other, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_in_order_and_keeps_its_number() {
        let mut pairs: ByPair<NameId, u64> = ByPair::default();
        let (first, second) = (pairs.id(1, 2).unwrap(), pairs.id(2, 1).unwrap());
        assert_ne!(first, second);
        *pairs.of(first) += 5;
        // It has the place of the first among the recent ones.
        pairs.id(1, 2 + RECENT as NameId).unwrap();
        assert_eq!(pairs.id(1, 2), Some(first));
        assert_eq!(pairs.iter().map(|(a, b, &n)| (a, b, n)).next(), Some((1, 2, 5)));
    }

    #[test]
    fn pairs_beyond_the_limit_have_none() {
        let mut pairs: ByPair<NameId, u64> = ByPair::default();
        for one in 0..PAIRS_MAX {
            assert_eq!(pairs.id(one as NameId, 0), Some(one));
        }
        assert_eq!(pairs.id(PAIRS_MAX as NameId, 0), None);
        assert_eq!(pairs.id(7, 0), Some(7));
    }
}
