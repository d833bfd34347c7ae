//! One value for each name of a task; [`Tasks`] bounds how many names there are.

use crate::steps::task::{NameId, Tasks};

#[derive(Default)]
pub struct ByName<T> {
    values: Vec<T>,
}

impl<T: Clone + Default> ByName<T> {
    #[inline]
    pub fn of(&mut self, name: NameId) -> &mut T {
        let at = name as usize;
        if self.values.len() <= at {
            self.grow_to(at);
        }
        &mut self.values[at]
    }

    #[cold]
    fn grow_to(&mut self, at: usize) {
        self.values.resize(at + 1, T::default());
    }

    /// `None`: nobody has asked for it yet.
    pub fn get(&self, name: NameId) -> Option<&T> {
        self.values.get(name as usize)
    }

    pub fn iter(&self) -> impl Iterator<Item = (NameId, &T)> {
        self.values.iter().enumerate().map(|(name, value)| (name as NameId, value))
    }

    /// The names whose values count for something, the greatest first, equal ones by name.
    pub fn most_first<'a>(
        &'a self,
        tasks: &'a Tasks,
        key: impl Fn(&T) -> u64,
    ) -> Vec<(&'a str, &'a T)> {
        let named = self.values.iter().enumerate();
        let named = named.map(|(name, value)| (tasks.name(name as NameId), value));
        let mut counted: Vec<_> = named.filter(|(_, value)| key(value) > 0).collect();
        counted.sort_by_key(|&(name, value)| (std::cmp::Reverse(key(value)), name));
        counted
    }
}
