//! What an event does: methods of the engine, a file for each kind of event or change. Those that
//! another folder calls are `pub(crate)`, those that another step calls `pub(super)`.

mod affinity;
mod balance;
mod cfs_bandwidth;
mod changes;
mod clock;
mod fork;
mod hotplug;
mod idle;
mod interrupt;
mod memory_bandwidth;
mod messages;
mod numa_balancing;
mod numa_migrate;
mod ops;
mod running;
mod schedule;
mod segment;
mod select;
mod shared_runq;
mod stopper;
mod sync;
mod task_groups;
mod timers;
mod wake_list;
mod wakeup;
