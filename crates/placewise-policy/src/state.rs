//! The policy's state and entry points.
//!
//! The structs are translated from `policy/*.h` when the crate is built, so
//! their fields are documented there.

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

/// Makes a method of [`Placement`] of each entry point of `native.c`.
macro_rules! entry_points {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {
        mod native {
            use super::{BalanceWalk, NohzWalk, State};
            unsafe extern "C" {
                $(
                    #[link_name = concat!("placewise_", stringify!($name))]
                    pub fn $name(st: *mut State, $($argument: $kind),*) $(-> $result)?;
                )*
            }
        }

        impl Placement {
            $(
                $(#[$doc])*
                #[inline]
                pub fn $name(&mut self, $($argument: $kind),*) $(-> $result)? {
                    // SAFETY: the state is exclusively ours for the call, and
                    // the policy masks every index to the size of its array.
                    unsafe { native::$name(&mut *self.0, $($argument),*) }
                }
            )*
        }
    };
}

entry_points! {
    /// Marks that a wakeup is on its way over the wake list of `cpu`, or that all have arrived.
    fn set_ttwu_pending(cpu: u32, pending: bool);
    /// Accounts the time the current task has run; returns it in ns.
    fn update_curr(cpu: u32, now: u64) -> u64;
    /// Makes a task that is on no run queue belong to `cpu`.
    fn set_task_cpu(task: u32, cpu: u32);
    /// Puts a task on the run queue of its CPU.
    fn enqueue_task(task: u32, flags: u32, now: u64);
    /// Takes a task off its run queue.
    fn dequeue_task(task: u32, flags: u32, now: u64);
    /// Puts a task to sleep that stays queued.
    fn delay_dequeue(task: u32, now: u64);
    /// Wakes a delayed task where it is.
    fn requeue_delayed(task: u32, now: u64);
    /// Starts running a task; the CPU's own number stands for its idle task.
    fn set_next_task(cpu: u32, task: u32, now: u64);
    /// Stops running the current task, which stays queued.
    fn put_prev_task(cpu: u32, now: u64);
    fn task_tick(cpu: u32, now: u64);
    /// Puts an RT task behind those of its priority.
    fn requeue_task_rt(task: u32);
    /// Accounts how long `cpu` had been idle when a wakeup was enqueued on it.
    fn sample_avg_idle(cpu: u32, now: u64);
    /// Makes a new task a copy of its creator, which runs on `cpu`.
    fn copy_task(child: u32, parent: u32, cpu: u32);
    /// Takes the averages of a task that has ended off its CPU.
    fn task_dead(task: u32);
    /// Gives a new task its first utilisation on the CPU that was chosen.
    fn place_new_task(child: u32, cpu: u32);
    /// Answers with the CPU for a task that last ran on `prev` and is woken, created or exec'ing
    /// on `cpu`; how it came to it stands in `decision`.
    fn select_task_rq(task: u32, prev: u32, cpu: u32, wake_flags: u32, now: u64) -> u32;
    /// Answers with the CPU for a task that may not be where it is, or where it was to go.
    fn select_fallback_rq(task: u32) -> u32;
    /// Does a wakee go over the wake list of `cpu`? With `on_cpu`, while it is still leaving it?
    fn ttwu_queue_wakelist(task: u32, waking_cpu: u32, cpu: u32, on_cpu: bool) -> bool;
    /// Accounts the time that looking at `decision.timed_scan` CPUs took.
    fn record_scan_cost(waking_cpu: u32, scan_ns: u64);

    /// Brings the averages of a CPU up to date.
    fn update_blocked_averages(cpu: u32, now: u64);
    /// Tries to even out a level for `cpu`; what is to be done stands in `balance`. True if tasks
    /// are to move.
    fn load_balance(cpu: u32, level: u32, idle: u32, now: u64) -> bool;
    /// The task that the stopper of `src` is to push to `dst`, or `NO_TASK`.
    fn active_balance_task(src: u32, dst: u32, now: u64) -> u32;
    /// Is the periodic balance of `cpu` due at its tick?
    fn trigger_load_balance(cpu: u32, now: u64) -> bool;
    /// Begins a periodic visit of the levels of `cpu`.
    fn rebalance_domains_start(walk: &mut BalanceWalk, cpu: u32, idle: u32, now: u64);
    /// The next level that is due, or `NR_LEVELS`.
    fn rebalance_domains_next(walk: &mut BalanceWalk, now: u64) -> u32;
    /// Ends a level once what `load_balance` decided is carried out.
    fn rebalance_domains_level_done(walk: &mut BalanceWalk, moved: bool, continue_balancing: bool, now: u64);
    fn rebalance_domains_end(walk: &mut BalanceWalk);
    /// `cpu` has nothing to run: is it to look for tasks? If not, nothing more is to be done.
    fn newidle_balance_start(walk: &mut BalanceWalk, cpu: u32, now: u64) -> bool;
    /// The next level to balance, or `NR_LEVELS`.
    fn newidle_balance_next(walk: &mut BalanceWalk) -> u32;
    /// Ends a level that took `cost` ns.
    fn newidle_balance_level_done(walk: &mut BalanceWalk, cost: u64, pulled: bool, now: u64);
    fn newidle_balance_end(walk: &mut BalanceWalk);
    /// The tick of an idle CPU stops.
    fn nohz_balance_enter_idle(cpu: u32);
    /// A CPU is about to go offline, or the first busy tick after its tick was stopped.
    fn nohz_balance_exit_idle(cpu: u32);
    /// The CPU that a busy CPU interrupts at its tick, or `NO_CPU`.
    fn nohz_balancer_kick(cpu: u32, now: u64) -> u32;
    /// `cpu` was interrupted: is there something to do for it?
    fn nohz_balance_start(walk: &mut NohzWalk, cpu: u32, now: u64) -> bool;
    /// The next tickless CPU whose levels are due, or `NO_CPU`.
    fn nohz_balance_next(walk: &mut NohzWalk, now: u64) -> u32;
    fn nohz_balance_end(walk: &mut NohzWalk, now: u64);

    /// Makes a cgroup below `parent`; answers with its number, or with `ROOT_TASK_GROUP` if there
    /// are too many already, or too many levels.
    fn create_task_group(parent: u32, shares: u32) -> u32;
    /// All tasks have left the cgroup, and none is below it: its number is free again.
    fn destroy_task_group(group: u32);
    /// The cgroup weighs more or less from the next tick, enqueue or dequeue of a task of it.
    fn set_task_group_shares(group: u32, shares: u32);
    /// Puts a task that is on no run queue into a cgroup.
    fn task_change_group(task: u32, group: u32, now: u64);
    /// A cgroup is out of runtime on `cpu`, where none of its tasks is current: it leaves.
    fn throttle_cfs_rq(group: u32, cpu: u32, now: u64);
    /// It has got some, and is back.
    fn unthrottle_cfs_rq(group: u32, cpu: u32, now: u64);
    /// The load that a task adds to its CPU: its share of the hierarchy.
    fn task_h_load(task: u32) -> u64;
    /// How much of a CPU a task is taken to use.
    fn task_util_est(task: u32) -> u64;
    /// How much of `cpu` is used, of its capacity.
    fn cpu_util(cpu: u32) -> u64;
    /// The load of what is queued on a CPU, without what sleepers left behind.
    fn cpu_runnable_load(cpu: u32) -> u64;
}

/// How many CPUs a search may look at in an LLC whose CPUs' utilisation adds up to `util`.
pub fn nr_idle_scan_of(util: u64, llc_size: u32, imbalance_pct: u32) -> u32 {
    // SAFETY: a pure function of numbers.
    unsafe { pure::placewise_nr_idle_scan_of(util, llc_size, imbalance_pct) }
}

/// `HINT_VALID`, or what is wrong with a hint mask.
pub fn hint_check(value: u32) -> HintError {
    // SAFETY: a pure function of a number.
    unsafe { pure::placewise_hint_check(value) }
}

mod pure {
    unsafe extern "C" {
        pub fn placewise_nr_idle_scan_of(util: u64, llc_size: u32, imbalance_pct: u32) -> u32;
        pub fn placewise_hint_check(value: u32) -> u32;
    }
}

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
    use super::declarations::RUST_LAYOUT;

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
