//! The parts of the simulation. None knows the engine, and none what another does; what one event
//! leaves for a later one stands here, too.

pub mod affinity;
pub mod calendar;
pub mod cfs_bandwidth;
pub mod channel;
pub mod confinement;
pub mod costs;
pub mod cpu;
pub mod distance;
pub mod effect;
pub mod event_queue;
pub mod events;
pub mod hardware;
pub mod hotplug;
pub mod idle_searches;
pub mod lock;
pub mod measure;
pub mod memory_bandwidth;
pub mod message_cost;
pub mod newidle_memory;
pub mod numa_balancing;
pub mod objects;
pub mod occupancy;
pub mod programs;
pub mod shared_line;
pub mod shared_list;
pub mod speed;
pub mod sync;
pub mod task;
pub mod tracer;
pub mod transient;
pub mod waker;
