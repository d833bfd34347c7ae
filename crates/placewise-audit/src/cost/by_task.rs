//! One value for each task; task numbers are dense and used again.

use crate::task::TaskId;

#[derive(Default)]
pub struct ByTask<T> {
    values: Vec<T>,
}

impl<T: Clone + Default> ByTask<T> {
    pub fn of(&mut self, task: TaskId) -> &mut T {
        let at = task as usize;
        if self.values.len() <= at {
            self.values.resize(at + 1, T::default());
        }
        &mut self.values[at]
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }
}
