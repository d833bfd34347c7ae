//! What is remembered of a task beside the policy's state.

use crate::steps::wakeup::Wakeup;

/// Where a task is, as far as the trace has told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Whereabouts {
    #[default]
    Unseen,
    Asleep,
    /// On a run queue: running, waiting, or asleep but delayed.
    Queued,
    /// Between sched_waking and sched_wakeup.
    Waking,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Trail {
    pub whereabouts: Whereabouts,
    /// The trace has no sched_wakeup of it: it is taken to arrive when it leaves.
    pub arrives_unseen: bool,
    /// A wakeup that found it on its CPU still.
    pub spinning: Option<Wakeup>,
    /// When it was switched out last.
    pub switched_out_at: u64,
    /// It went to sleep while others were queued on its CPU: it may have stayed there (delayed).
    pub slept_beside_others: bool,
    /// It may run on one CPU only, which is more than inferred.
    pub bound: bool,
    /// The state of the affinities when its own was looked up.
    pub affinity_generation: u64,
}
