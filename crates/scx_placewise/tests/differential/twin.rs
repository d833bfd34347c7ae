//! A [`Placement`] that runs every entry point natively and in the kernel, and
//! panics where the two differ in the answer or in a byte of the state.
//!
//! It has the interface of the native one. Where the kernel cannot be had the
//! twin is native only, and says so once: SKIPPED.

use std::io::Write;
use std::mem::offset_of;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::native::*;
use scx_placewise::{KernelPolicy, LoadError, Walk};

/// Loaded kernels that no twin has at the moment, if the policy can be loaded: as many as there were twins
/// at once, so that tests run side by side.
static SPARE: LazyLock<Option<Mutex<Vec<KernelPolicy>>>> =
    LazyLock::new(|| match KernelPolicy::load() {
        Ok(kernel) => Some(Mutex::new(vec![kernel])),
        Err(LoadError::Unavailable(reason)) => {
            // Not println!(), which a passing test swallows.
            let line = format!("SKIPPED: no comparison with the BPF build: {reason}\n");
            std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
            None
        }
        Err(refused) => panic!("{refused}"),
    });

/// A kernel of one's own, in whatever state the last twin left it.
pub fn kernel() -> Option<KernelPolicy> {
    let spare = SPARE.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).pop();
    Some(spare.unwrap_or_else(|| KernelPolicy::load().expect("it could be loaded before")))
}

/// The native state, and the kernel's with a copy of it.
pub struct Placement {
    native: native::Placement,
    kernel: Option<KernelPolicy>,
    /// The native state has not been touched since the last call, after which the two were equal.
    equal: bool,
}

impl Placement {
    pub fn new(profile: Profile) -> Self {
        Placement { native: native::Placement::new(profile), kernel: kernel(), equal: false }
    }

    /// Calls the kernel's entry point, then the native one.
    fn both<R: Word>(
        &mut self,
        entry_point: &str,
        arguments: &[u64],
        call_native: impl FnOnce(&mut native::Placement) -> R,
    ) -> R {
        self.both_walk(entry_point, arguments, &mut (), |placement, ()| call_native(placement))
    }

    fn both_walk<W: Copy, R: Word>(
        &mut self,
        entry_point: &str,
        arguments: &[u64],
        walk: &mut W,
        call_native: impl FnOnce(&mut native::Placement, &mut W) -> R,
    ) -> R {
        let Some(kernel) = &mut self.kernel else {
            return call_native(&mut self.native, walk);
        };
        let parts = used_parts(&self.native);
        if !self.equal {
            copy(&self.native, kernel.state(), &parts);
        }
        let mut kernel_walk = words(walk);
        let kernel_result = kernel.call(entry_point, arguments, Some(&mut kernel_walk));
        let result = call_native(&mut self.native, walk);

        let call = || format!("{entry_point}{arguments:?}");
        assert_eq!(result.word(), kernel_result, "native and BPF answer of {}", call());
        assert_eq!(words(walk), kernel_walk, "native and BPF walk after {}", call());
        if let Some(difference) = first_difference(&self.native, kernel.state(), &parts) {
            panic!("native and BPF state after {}: {difference}", call());
        }
        // The parts grow with what the call has made.
        self.equal = parts == used_parts(&self.native);
        result
    }
}

impl Drop for Placement {
    fn drop(&mut self) {
        if let (Some(spare), Some(kernel)) = (SPARE.as_ref(), self.kernel.take()) {
            spare.lock().unwrap_or_else(PoisonError::into_inner).push(kernel);
        }
    }
}

impl Deref for Placement {
    type Target = State;

    fn deref(&self) -> &State {
        &self.native
    }
}

impl DerefMut for Placement {
    fn deref_mut(&mut self) -> &mut State {
        self.equal = false;
        &mut self.native
    }
}

/// An argument or a result as a BPF program sees it.
trait Word {
    fn word(&self) -> u64;
}

macro_rules! words {
    ($($kind:ty: $value:ident => $word:expr),*) => {
        $(impl Word for $kind {
            fn word(&self) -> u64 {
                let $value = self;
                $word
            }
        })*
    };
}

words!(u32: value => (*value).into(), u64: value => *value, bool: value => (*value).into(), (): _nothing => 0);

/// The bytes of a walk, which is made of integers, as words.
fn words<W: Copy>(walk: &W) -> Walk {
    let mut words = Walk::default();
    assert!(size_of::<W>() <= size_of::<Walk>(), "a larger walk than the BPF programs take");
    // SAFETY: checked above that the words hold a whole walk.
    unsafe { std::ptr::from_ref(walk).copy_to(words.as_mut_ptr().cast(), 1) };
    words
}

macro_rules! twin {
    ({ $(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)? }) => {
        pub fn $name(&mut self, $($argument: $kind),*) $(-> $result)? {
            let arguments = [$($argument.word()),*];
            self.both(stringify!($name), &arguments, |native| native.$name($($argument),*))
        }
    };
}

macro_rules! walking_twin {
    ({
        $(#[$doc:meta])*
        fn $name:ident(walk: &mut $walk:ty $(, $argument:ident: $kind:ty)*) $(-> $result:ty)?
    }) => {
        pub fn $name(&mut self, walk: &mut $walk $(, $argument: $kind)*) $(-> $result)? {
            let arguments: &[u64] = &[$($argument.word()),*];
            self.both_walk(stringify!($name), arguments, walk, |native, walk| {
                native.$name(walk $(, $argument)*)
            })
        }
    };
}

/// Makes a method of [`Placement`] of each entry point that takes a state.
macro_rules! twins {
    (
        changing { $($changing:tt)* }
        reading { $($reading:tt)* }
        walking { $($walking:tt)* }
        pure { $($pure:tt)* }
    ) => {
        impl Placement {
            $(twin! { $changing })*
            $(twin! { $reading })*
            $(walking_twin! { $walking })*
        }
    };
}

for_each_entry_point!(twins);

/// The used bytes of an array of the state.
#[derive(PartialEq)]
struct Part {
    name: &'static str,
    array: usize, // where it starts
    element: usize,
    bytes: Range<usize>,
}

/// What the machine and the tasks of `state` use of it: arrays up to the first
/// empty element.
fn used_parts(state: &State) -> Vec<Part> {
    let cpus = state.root.nr_cpu_ids as usize;
    let first_task = FIRST_TASK as usize;
    let tasks = state.task[first_task..].iter().take_while(|task| task.weight != 0).count();
    let spans = state.span.iter().take_while(|span| span.end_word != 0).count();
    let groups = state.group.iter().take_while(|group| group.end_word != 0).count();
    macro_rules! part {
        ($field:ident) => {
            part(stringify!($field), offset_of!(State, $field), size_of_val(&state.$field), 0..1)
        };
        ($field:ident[$used:expr]) => {
            part(
                stringify!($field),
                offset_of!(State, $field),
                size_of_val(&state.$field[0]),
                $used,
            )
        };
    }
    let task_groups = state.root.nr_task_groups as usize;
    let row = size_of_val(&state.group_rq[0]);
    let group_rqs = (1..=task_groups).map(|group| {
        let array = offset_of!(State, group_rq) + group * row;
        part("group_rq", array, size_of_val(&state.group_rq[0][0]), 0..cpus)
    });
    // With the one that may be started next.
    let processes = state.root.nr_processes as usize;
    let row = size_of_val(&state.process_rq[0]);
    let process_rqs = (0..cpus).map(|cpu| {
        let array = offset_of!(State, process_rq) + cpu * row;
        part("process_rq", array, size_of_val(&state.process_rq[0][0]), 1..processes + 2)
    });
    let others = [
        part!(profile),
        part!(root),
        part!(decision),
        part!(balance),
        part!(lb_stats),
        part!(cpu[0..cpus]),
        part!(rq[0..cpus]),
        part!(llc[0..cpus]),
        part!(domain[0..cpus]),
        part!(span[0..spans]),
        part!(group[0..groups]),
        part!(task[0..cpus]),
        part!(task[first_task..first_task + tasks]),
        // With the one that may be made next.
        part!(process[0..processes + 2]),
        part!(task_group[0..(task_groups + 2).min(NR_TASK_GROUPS as usize)]),
    ];
    others.into_iter().chain(group_rqs).chain(process_rqs).collect()
}

fn part(name: &'static str, array: usize, element: usize, used: Range<usize>) -> Part {
    let bytes = array + used.start * element..array + used.end * element;
    Part { name, array, element, bytes }
}

fn bytes(state: &State) -> &[u8] {
    // SAFETY: a State is made of integers and bools, all of them initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(state).cast(), size_of::<State>()) }
}

fn copy(from: &State, to: &mut State, parts: &[Part]) {
    let to: *mut u8 = std::ptr::from_mut(to).cast();
    for part in parts {
        let piece = &bytes(from)[part.bytes.clone()];
        // SAFETY: both are whole States, and the bytes come from a valid one.
        unsafe { to.add(part.bytes.start).copy_from_nonoverlapping(piece.as_ptr(), piece.len()) };
    }
}

/// Where two states differ first, in words for a person with the C headers open.
fn first_difference(native: &State, kernel: &State, parts: &[Part]) -> Option<String> {
    let (native, kernel) = (bytes(native), bytes(kernel));
    let part =
        parts.iter().find(|part| native[part.bytes.clone()] != kernel[part.bytes.clone()])?;
    let at = part.bytes.clone().find(|&at| native[at] != kernel[at])?;
    let (index, offset) = ((at - part.array) / part.element, (at - part.array) % part.element);
    let (native, kernel) = (native[at], kernel[at]);
    Some(format!("{}[{index}] differs at byte {offset}: {native} and {kernel}", part.name))
}
