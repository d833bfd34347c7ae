//! One value for each task; task numbers are dense and used again.

use crate::steps::task::TaskNumber;

#[derive(Default)]
pub struct ByTask<T> {
    values: Vec<T>,
}

impl<T: Clone + Default> ByTask<T> {
    #[inline]
    pub fn of(&mut self, task: TaskNumber) -> &mut T {
        let at = task as usize;
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
    pub fn get(&self, task: TaskNumber) -> Option<&T> {
        self.values.get(task as usize)
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }
}
