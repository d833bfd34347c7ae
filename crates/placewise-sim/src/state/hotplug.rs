//! What has become of the machine since it booted.

use placewise_machine::Machine;

use crate::load_balance::LoadBalance;
use crate::state::event_queue::Time;

#[derive(Default)]
pub struct Hotplug {
    /// The machine as it is, once it is not any more what it was at boot.
    pub machine: Option<Machine>,
    /// What was counted in domains that are no more: remote and affine wakeups by the name of the
    /// level, and load balancing.
    pub retired_wakeups: Vec<(String, u64, u64)>,
    pub retired_load_balance: Vec<LoadBalance>,
    /// Time that CPUs have been offline, but for those that are.
    pub offline_ns: Time,
}
