//! The policy's state and entry points.
//!
//! Both are translated from `policy/*.h` when the crate is built, so structs are
//! documented there, and entry points in `policy/entry_points.h`.
//!
//! Those that change a state are called through a table, [`Code`]: one is built in, others are
//! compiled of trees of somebody's own (`own`). Those that only read one, for reports, and those of
//! numbers alone are always the built-in ones.

#![allow(missing_docs)]

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::ffi::c_void;
use std::fmt;
use std::mem::transmute;
use std::ops::{Deref, DerefMut};

mod declarations {
    #![allow(unused_parens)]
    include!(concat!(env!("OUT_DIR"), "/declarations.rs"));
}

pub use declarations::*;

/// An owned [`declarations::State`], with the policy's entry points as methods.
///
/// It starts as all zeros, so pages of CPUs and tasks that are never used cost
/// no memory.
pub struct Placement {
    state: Box<State>,
    code: &'static Code,
}

impl Placement {
    /// The built-in code decides.
    pub fn new(profile: Profile) -> Self {
        let layout = Layout::new::<State>();
        // SAFETY: the layout is not empty, and all-zero bytes are a valid State:
        // it is made of integers and bools only.
        let mut state = unsafe {
            let memory = alloc_zeroed(layout).cast::<State>();
            if memory.is_null() {
                handle_alloc_error(layout);
            }
            Box::from_raw(memory)
        };
        state.profile = profile;
        Placement { state, code: &Code::BUILT_IN }
    }

    /// From now on `code` decides.
    pub fn decide_by(&mut self, code: &'static Code) {
        self.code = code;
    }
}

/// Starts a struct of the policy as all zeros.
macro_rules! zero_by_default {
    ($($name:ty),*) => {
        $(impl Default for $name {
            fn default() -> Self {
                // SAFETY: it is made of integers only, for which all-zero bytes are valid.
                unsafe { std::mem::zeroed() }
            }
        })*
    };
}

zero_by_default!(SchedAvg, Task, GroupRq, SchedDomain, Llc, BalanceWalk, NohzWalk);

include!(concat!(env!("OUT_DIR"), "/entry_points.rs"));

/// The table of the entry points that change a state.
macro_rules! code {
    ($({ $(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)? })*) => {
        /// What decides: the entry points that change a state.
        pub struct Code {
            /// 0 for what is built in; else no other code has it.
            identity: u64,
            $($name: unsafe extern "C" fn(st: *mut State, $($argument: $kind),*) $(-> $result)?,)*
        }

        impl Code {
            /// That of this build.
            pub const BUILT_IN: Code = {
                unsafe extern "C" {
                    $(
                        #[link_name = concat!("placewise_", stringify!($name))]
                        fn $name(st: *mut State, $($argument: $kind),*) $(-> $result)?;
                    )*
                }
                Code { identity: 0, $($name,)* }
            };

            /// Of a library, whose symbols `find` finds.
            ///
            /// # Safety
            /// They are the functions that the native build makes, of a tree with our layout.
            pub(crate) unsafe fn of_library<E>(
                identity: u64,
                find: impl Fn(&str) -> Result<*mut c_void, E>,
            ) -> Result<Code, E> {
                $(
                    let $name = find(concat!("placewise_", stringify!($name)))?;
                    // SAFETY: as the caller says.
                    let $name = unsafe {
                        transmute::<
                            *mut c_void,
                            unsafe extern "C" fn(*mut State, $($kind),*) $(-> $result)?,
                        >($name)
                    };
                )*
                Ok(Code { identity, $($name,)* })
            }
        }
    };
}

/// Where its functions are is another place each time.
impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({:016x})", self.identity)
    }
}

macro_rules! method {
    ({ $(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)? }) => {
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self, $($argument: $kind),*) $(-> $result)? {
            // SAFETY: the state is ours for the call, exclusively, and the policy masks every index
            // to the size of its array.
            unsafe { (self.code.$name)(&raw mut *self.state, $($argument),*) }
        }
    };
}

macro_rules! function {
    ([$($receiver:tt)*] [$($state:tt)*] [$($state_type:tt)*] {
        $(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty
    }) => {
        $(#[$doc])*
        pub fn $name($($receiver)* $($argument: $kind),*) -> $result {
            unsafe extern "C" {
                #[link_name = concat!("placewise_", stringify!($name))]
                fn $name($($state_type)* $($argument: $kind),*) -> $result;
            }
            // SAFETY: a function of numbers, and of a state that it only reads, masking every index
            // to the size of its array.
            unsafe { $name($($state)* $($argument),*) }
        }
    };
}

macro_rules! entry_points {
    (
        changing { $($changing:tt)* }
        reading { $($reading:tt)* }
        walking { $($walking:tt)* }
        pure { $($pure:tt)* }
    ) => {
        code! { $($changing)* $($walking)* }

        impl Placement {
            $(method! { $changing })*
            $(method! { $walking })*
        }

        impl State {
            $(function! { [&self,] [std::ptr::from_ref(self),] [st: *const State,] $reading })*
        }

        $(function! { [] [] [] $pure })*
    };
}

for_each_entry_point!(entry_points);

impl Deref for Placement {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Placement {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

include!(concat!(env!("OUT_DIR"), "/rust_layout.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        fn placewise_layout(entries: *mut usize) -> *const usize;
    }

    #[test]
    fn rust_and_c_agree_on_every_offset() {
        let mut entries = 0;
        // SAFETY: the function returns a static table of `entries` numbers.
        let c_layout = unsafe {
            let table = placewise_layout(&mut entries);
            std::slice::from_raw_parts(table, entries)
        };
        let rust_layout: Vec<usize> = RUST_LAYOUT.iter().map(|&(_, at)| at).collect();
        assert_eq!(c_layout.len(), rust_layout.len());
        for (&(name, rust), &c) in RUST_LAYOUT.iter().zip(c_layout) {
            assert_eq!(rust, c, "{name}");
        }
    }
}
