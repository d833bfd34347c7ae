//! The policy's state and entry points.
//!
//! Both are translated from `policy/*.h` when the crate is built, so structs are
//! documented there, and entry points in `policy/entry_points.h`.

#![allow(missing_docs)]

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
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
pub struct Placement(Box<State>);

impl Placement {
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
        Placement(state)
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

macro_rules! method {
    (
        [$($receiver:tt)*] $state:tt
        { $(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)? }
    ) => {
        $(#[$doc])*
        #[inline]
        pub fn $name($($receiver)*, $($argument: $kind),*) $(-> $result)? {
            unsafe extern "C" {
                #[link_name = concat!("placewise_", stringify!($name))]
                fn $name(st: *mut State, $($argument: $kind),*) $(-> $result)?;
            }
            // SAFETY: the state is ours for the call, exclusively if it is changed, and the policy
            // masks every index to the size of its array.
            unsafe { $name($state, $($argument),*) }
        }
    };
}

macro_rules! pure_function {
    ({ $(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty }) => {
        $(#[$doc])*
        pub fn $name($($argument: $kind),*) -> $result {
            unsafe extern "C" {
                #[link_name = concat!("placewise_", stringify!($name))]
                fn $name($($argument: $kind),*) -> $result;
            }
            // SAFETY: a pure function of numbers.
            unsafe { $name($($argument),*) }
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
        impl Placement {
            $(method! { [&mut self] (&raw mut *self.0) $changing })*
            $(method! { [&mut self] (&raw mut *self.0) $walking })*
        }

        impl State {
            $(method! { [&self] (std::ptr::from_ref(self).cast_mut()) $reading })*
        }

        $(pure_function! { $pure })*
    };
}

for_each_entry_point!(entry_points);

impl Deref for Placement {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

impl DerefMut for Placement {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    include!(concat!(env!("OUT_DIR"), "/rust_layout.rs"));

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
