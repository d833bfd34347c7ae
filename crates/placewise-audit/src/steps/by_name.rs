//! One value for each name of a task; [`Tasks`] bounds how many names there are.

use crate::steps::by_number::ByNumber;
use crate::steps::task::{NameId, Tasks};

#[derive(Default)]
pub struct ByName<T> {
    values: ByNumber<T>,
}

impl<T: Clone + Default> ByName<T> {
    #[inline]
    pub fn of(&mut self, name: NameId) -> &mut T {
        self.values.of(name)
    }

    /// `None`: nobody has asked for it yet.
    pub fn get(&self, name: NameId) -> Option<&T> {
        self.values.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (NameId, &T)> {
        (0..).zip(self.values.iter())
    }

    /// The names whose values count for something, the greatest first, equal ones by name.
    pub fn most_first<'a>(
        &'a self,
        tasks: &'a Tasks,
        key: impl Fn(&T) -> u64,
    ) -> Vec<(&'a str, &'a T)> {
        let named = self.iter().map(|(name, value)| (tasks.name(name), value));
        let mut counted: Vec<_> = named.filter(|(_, value)| key(value) > 0).collect();
        counted.sort_by_key(|&(name, value)| (std::cmp::Reverse(key(value)), name));
        counted
    }
}
