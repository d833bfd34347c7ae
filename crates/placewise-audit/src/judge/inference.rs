//! What the auditor had to infer, by name and count.

/// Each inference and how often it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InferenceCounts {
    /// Wakeups taken for sync, by what explained earlier ones between tasks of these names.
    pub believed_sync: u64,
    /// Wakeups taken for wide: wake flips from before the trace.
    pub believed_wide: u64,
    /// Wakeups taken for not wide: both had flipped before the trace, or whoever forked them.
    pub believed_narrow: u64,
    /// Wakees that had stayed queued (delayed), by the lag they went to sleep with.
    pub delayed_by_lag: u64,
    /// Wakees that must have: the waker enqueued them where a wake list was due.
    pub delayed_by_wake_list: u64,
    /// Wakees that had just been switched out, and were taken to be on their CPU still.
    pub still_switching_out: u64,
    /// Wakees that stayed where the policy would have moved them, and may have been delayed. They
    /// count as disagreements.
    pub perhaps_delayed: u64,
    /// Tasks held to the CPUs where they were seen, because they refused all others.
    pub held_to_seen_cpus: usize,
    /// Scan limits that an outcome has shown to be other than reckoned, for what comes after.
    pub scan_limits: u64,
    /// Where in its period the tick was seen; `None`: not seen.
    pub tick_phase_ns: Option<u64>,
}

impl InferenceCounts {
    /// Each by the word that reports have for it.
    pub fn by_word(&self) -> [(&'static str, u64); 10] {
        [
            ("believed_sync", self.believed_sync),
            ("believed_wide", self.believed_wide),
            ("believed_narrow", self.believed_narrow),
            ("delayed_by_lag", self.delayed_by_lag),
            ("delayed_by_wake_list", self.delayed_by_wake_list),
            ("still_switching_out", self.still_switching_out),
            ("perhaps_delayed", self.perhaps_delayed),
            ("held_to_seen_cpus", self.held_to_seen_cpus as u64),
            ("scan_limits", self.scan_limits),
            ("tick_phase", self.tick_phase_ns.is_some().into()),
        ]
    }
}
