//! Vectors with an entry for each CPU or task.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut};

use crate::ids::CpuId;
use crate::state::NR_CPUS;

/// A vector that is indexed by numbers of one type alone.
#[derive(Clone, Debug)]
pub struct Table<Id, T> {
    entries: Vec<T>,
    by: PhantomData<Id>,
}

impl<Id: From<usize>, T> Table<Id, T> {
    /// The numbers of the entries that there are.
    pub fn ids(&self) -> impl Iterator<Item = Id> + Clone + use<Id, T> {
        (0..self.entries.len()).map(Id::from)
    }

    /// Those from one on, at once: `skip` takes a turn for each that it leaves out.
    pub fn ids_from(&self, first: Id) -> impl Iterator<Item = Id> + Clone + use<Id, T>
    where
        usize: From<Id>,
    {
        (usize::from(first)..self.entries.len()).map(Id::from)
    }

    /// Adds an entry, and says its number.
    pub fn push(&mut self, entry: T) -> Id {
        self.entries.push(entry);
        Id::from(self.entries.len() - 1)
    }
}

impl<Id, T: Clone + Default> Table<Id, T>
where
    usize: From<Id>,
{
    /// Adds entries until there is one for `id`.
    pub fn grow_to(&mut self, id: Id) {
        let len = self.entries.len().max(usize::from(id) + 1);
        self.entries.resize(len, T::default());
    }
}

impl<Id, T> Index<Id> for Table<Id, T>
where
    usize: From<Id>,
{
    type Output = T;

    #[inline]
    fn index(&self, id: Id) -> &T {
        &self.entries[usize::from(id)]
    }
}

impl<Id, T> IndexMut<Id> for Table<Id, T>
where
    usize: From<Id>,
{
    #[inline]
    fn index_mut(&mut self, id: Id) -> &mut T {
        &mut self.entries[usize::from(id)]
    }
}

impl<Id, T> Deref for Table<Id, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.entries
    }
}

impl<Id, T> DerefMut for Table<Id, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.entries
    }
}

impl<Id, T> Default for Table<Id, T> {
    fn default() -> Self {
        Table::from(Vec::new())
    }
}

impl<Id, T> From<Vec<T>> for Table<Id, T> {
    fn from(entries: Vec<T>) -> Self {
        Table { entries, by: PhantomData }
    }
}

impl<Id, T> FromIterator<T> for Table<Id, T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Table::from(Vec::from_iter(entries))
    }
}

/// An entry for each CPU, and room for as many as a machine may have: a number is known to be in bounds, which
/// costs who asks for CPUs all the time less than to find it out.
#[derive(Clone, Debug)]
pub struct PerCpu<T> {
    entries: Box<[T; NR_CPUS as usize]>,
    nr_cpus: usize,
}

impl<T> PerCpu<T> {
    /// The numbers of the CPUs that there are.
    pub fn ids(&self) -> impl Iterator<Item = CpuId> + Clone + use<T> {
        (0..self.nr_cpus).map(CpuId::from)
    }
}

impl<T> Index<CpuId> for PerCpu<T> {
    type Output = T;

    #[inline]
    fn index(&self, cpu: CpuId) -> &T {
        debug_assert!(usize::from(cpu) < self.nr_cpus);
        &self.entries[usize::from(cpu) % NR_CPUS as usize]
    }
}

impl<T> IndexMut<CpuId> for PerCpu<T> {
    #[inline]
    fn index_mut(&mut self, cpu: CpuId) -> &mut T {
        debug_assert!(usize::from(cpu) < self.nr_cpus);
        &mut self.entries[usize::from(cpu) % NR_CPUS as usize]
    }
}

impl<T> Deref for PerCpu<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.entries[..self.nr_cpus]
    }
}

impl<T: Default> Default for PerCpu<T> {
    fn default() -> Self {
        std::iter::empty().collect()
    }
}

impl<T: Default> FromIterator<T> for PerCpu<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        let mut entries = Vec::from_iter(entries);
        let nr_cpus = entries.len();
        entries.resize_with(NR_CPUS as usize, T::default);
        let Ok(entries) = entries.try_into() else { unreachable!("it has been made as long") };
        PerCpu { entries, nr_cpus }
    }
}
