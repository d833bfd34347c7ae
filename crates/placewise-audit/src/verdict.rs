//! What an audit says of a step: that the kernel placed a task and where the policy would have put
//! it, or why nothing was placed.

use placewise_policy::Decision;
use serde::Serialize;

use crate::steps::task::TaskNumber;

/// What a step was.
#[derive(Clone, Copy, Debug)]
pub enum Verdict {
    Nothing,
    NoPlacement(NoPlacement),
    Placed(Placed),
}

/// Why a wakeup or a fork ran no placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoPlacement {
    /// The wakee had not been switched out.
    StillQueued,
    /// It was switching out, and went over its CPU's wake list.
    StillOnCpu,
    /// It slept, but was still queued (delayed dequeue).
    Delayed,
    /// It may run on one CPU only.
    Bound,
    /// It is no fair task.
    OtherClass,
    /// The trace does not show how it ended.
    NoEnd,
    /// It may have run one, but the events of other CPUs from then were overwritten.
    BeforeComplete,
}

impl NoPlacement {
    pub fn word(self) -> &'static str {
        match self {
            NoPlacement::StillQueued => "still_queued",
            NoPlacement::StillOnCpu => "still_on_cpu",
            NoPlacement::Delayed => "delayed",
            NoPlacement::Bound => "bound",
            NoPlacement::OtherClass => "other_class",
            NoPlacement::NoEnd => "no_end",
            NoPlacement::BeforeComplete => "before_complete",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Wakeup,
    Fork,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Kind::Wakeup => "wakeup",
            Kind::Fork => "fork",
        }
    }
}

/// One decision of the kernel beside that of the policy.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub kind: Kind,
    pub task: TaskNumber,
    pub waker: TaskNumber,
    pub waking_cpu: u32,
    pub prev_cpu: u32,
    /// What the kernel chose.
    pub actual: u32,
    /// What the policy chooses.
    pub predicted: u32,
    /// How the policy came to it.
    pub decision: Decision,
    /// What it was told that the trace does not show.
    pub believed: Hypothesis,
}

/// What may have been the case at a wakeup, and no tracepoint shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hypothesis {
    pub sync: bool,
    pub flips: Flips,
}

/// How often waker and wakee have changed whom they wake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flips {
    /// As often as the trace shows.
    #[default]
    Counted,
    /// So much more often before it that the wakeup is wide.
    Wide,
    /// Both so much more often before it, as who inherits that from who forked them, that it is not.
    Narrow,
}

impl Hypothesis {
    const fn new(sync: bool, flips: Flips) -> Self {
        Hypothesis { sync, flips }
    }

    /// In the order in which equal ones are preferred.
    pub const ALL: [Hypothesis; 6] = [
        Hypothesis::new(false, Flips::Counted),
        Hypothesis::new(true, Flips::Counted),
        Hypothesis::new(false, Flips::Wide),
        Hypothesis::new(true, Flips::Wide),
        Hypothesis::new(false, Flips::Narrow),
        Hypothesis::new(true, Flips::Narrow),
    ];
}
