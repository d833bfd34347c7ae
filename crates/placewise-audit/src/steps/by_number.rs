//! One value for each of what is numbered; the numbers are dense.

/// Task numbers are used again.
pub type ByTask<T> = ByNumber<T>;

#[derive(Default)]
pub struct ByNumber<T> {
    values: Vec<T>,
}

impl<T: Clone + Default> ByNumber<T> {
    #[inline]
    pub fn of(&mut self, number: u32) -> &mut T {
        let at = number as usize;
        if at < self.values.len() {
            return &mut self.values[at];
        }
        self.grown_to(at)
    }

    #[cold]
    fn grown_to(&mut self, at: usize) -> &mut T {
        self.values.resize(at + 1, T::default());
        &mut self.values[at]
    }

    /// `None`: nobody has asked for it yet.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize)
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut()
    }
}
