//! The numbers of CPUs and tasks, each of its own type.
//!
//! The policy's state and entry points hold plain integers, which mean the same in C and BPF; what
//! comes from there is converted, and so is what goes there. The state's tables are indexed by the
//! number that they are made for, and not by another:
//!
//! ```compile_fail,E0277
//! # use placewise_policy::{CpuId, Placement};
//! fn delayed(state: &Placement, cpu: CpuId) -> bool {
//!     state.task[cpu].delayed != 0
//! }
//! ```

use std::fmt::{Display, Formatter, Result};
use std::ops::{Index, IndexMut};

use crate::state::{Cpu, FIRST_TASK, GroupRq, NR_LEVELS, Rq, SchedDomain, Task};

macro_rules! ids {
    ($($(#[$doc:meta])* $id:ident)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct $id(u32);

            impl $id {
                pub const fn new(number: u32) -> Self {
                    $id(number)
                }
            }

            impl From<u32> for $id {
                #[inline]
                fn from(number: u32) -> Self {
                    $id(number)
                }
            }

            impl From<usize> for $id {
                #[inline]
                fn from(number: usize) -> Self {
                    $id(number as u32)
                }
            }

            impl From<$id> for u32 {
                #[inline]
                fn from(id: $id) -> u32 {
                    id.0
                }
            }

            impl From<$id> for usize {
                #[inline]
                fn from(id: $id) -> usize {
                    id.0 as usize
                }
            }

            impl Display for $id {
                fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                    self.0.fmt(f)
                }
            }
        )*
    };
}

ids! {
    CpuId
    /// The idle task of a CPU has the CPU's number, all others have numbers from [`FIRST_TASK`] on.
    TaskId
}

impl From<u16> for CpuId {
    #[inline]
    fn from(number: u16) -> Self {
        CpuId(number.into())
    }
}

/// There are fewer than [`NR_CPUS`](crate::NR_CPUS) of them.
impl From<CpuId> for u16 {
    #[inline]
    fn from(cpu: CpuId) -> u16 {
        cpu.0 as u16
    }
}

impl TaskId {
    /// The first that is no idle task.
    pub const FIRST: TaskId = TaskId(FIRST_TASK);

    #[inline]
    pub fn idle(cpu: CpuId) -> TaskId {
        TaskId(cpu.0)
    }

    #[inline]
    pub fn is_idle(self) -> bool {
        self < TaskId::FIRST
    }
}

/// Indexes the state's tables of `$entry`.
macro_rules! indexed {
    ($($entry:ty, by $id:ty;)*) => {
        $(
            impl Index<$id> for [$entry] {
                type Output = $entry;

                #[inline]
                fn index(&self, id: $id) -> &$entry {
                    &self[usize::from(id)]
                }
            }

            impl IndexMut<$id> for [$entry] {
                #[inline]
                fn index_mut(&mut self, id: $id) -> &mut $entry {
                    &mut self[usize::from(id)]
                }
            }
        )*
    };
}

indexed! {
    Cpu, by CpuId;
    Rq, by CpuId;
    [SchedDomain; NR_LEVELS as usize], by CpuId;
    GroupRq, by CpuId;
    Task, by TaskId;
}
