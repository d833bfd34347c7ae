//! A trace as the steps an auditor takes: tasks are numbers, and a wakeup
//! already knows how it ends.

use placewise_trace::{Context, Decision};

use crate::steps::task::TaskNumber;
use crate::steps::wakeup::Outcome;

/// One event of the trace.
#[derive(Clone, Debug)]
pub struct Step {
    /// Of the trace, less the silences before it.
    pub time_ns: u64,
    /// The CPU that printed it.
    pub cpu: u32,
    pub context: Context,
    pub action: Action,
}

#[derive(Clone, Debug)]
pub enum Action {
    /// The trace begins. Ticks were seen `tick_phase_ns` after multiples of their period; before
    /// `complete_from_ns` the events of some CPUs are missing.
    Begin { tick_phase_ns: Option<u64>, complete_from_ns: u64 },
    /// `task` runs on the step's CPU when the trace begins, or after a gap in it.
    Running { task: TaskNumber },
    /// sched_waking: somebody on the step's CPU wakes `task`, which was last on `prev_cpu`.
    Waking { task: TaskNumber, prev_cpu: u32, outcome: Option<Outcome> },
    /// What the kernel wrote down about the decision that follows, and whom it is about.
    Decided { decision: Box<Decision>, tasks: DecisionTasks },
    /// sched_wakeup.
    Wakeup { task: TaskNumber, target_cpu: u32 },
    /// sched_process_fork.
    Fork { parent: TaskNumber, child: TaskNumber },
    /// sched_wakeup_new.
    WakeupNew { task: TaskNumber, target_cpu: u32 },
    /// sched_migrate_task; `placement`: it carries out the placement of a wakeup or an exec.
    Migrate { task: TaskNumber, from: u32, to: u32, placement: bool },
    /// sched_switch.
    Switch { prev: TaskNumber, prev_state: PrevState, next: TaskNumber },
    /// sched_process_exec.
    Exec { task: TaskNumber },
    /// sched_process_exit.
    Exit { task: TaskNumber },
    /// Events of the step's CPU are missing from the trace.
    Lost { count: u64 },
    /// No CPU had an event for so long, which is left out.
    Silence { ns: u64 },
    /// The task was mentioned longest ago and has made room for another.
    Forgotten { task: TaskNumber },
}

/// Whom a recorded decision is about.
#[derive(Clone, Copy, Debug)]
pub struct DecisionTasks {
    /// The wakee, or the child.
    pub placed: TaskNumber,
    /// The current task of the waking CPU, perhaps its idle task.
    pub waker: TaskNumber,
    /// The current task of the previous CPU, perhaps its idle task.
    pub prev_curr: TaskNumber,
}

/// In what state a task was switched out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrevState {
    /// It wanted to run on.
    Runnable,
    Asleep,
    /// Stopped, traced or parked: off the queue at once, whatever its share.
    Stopped,
    Dead,
}

impl PrevState {
    pub fn parse(text: &str) -> Self {
        match text.as_bytes() {
            [b'R', ..] => PrevState::Runnable,
            // A preempted task stays queued, whatever it was about to do.
            [.., b'+'] => PrevState::Runnable,
            [b'X' | b'Z', ..] => PrevState::Dead,
            [b'S' | b'D' | b'I', ..] => PrevState::Asleep,
            _ => PrevState::Stopped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_what_the_kernel_prints() {
        for (text, state) in [
            ("R", PrevState::Runnable),
            ("R+", PrevState::Runnable),
            // Preempted on its way to sleep, it stays queued.
            ("S+", PrevState::Runnable),
            ("D|K+", PrevState::Runnable),
            ("S", PrevState::Asleep),
            ("D", PrevState::Asleep),
            ("I", PrevState::Asleep),
            ("D|K", PrevState::Asleep),
            ("X", PrevState::Dead),
            ("Z", PrevState::Dead),
            ("T", PrevState::Stopped),
            ("t", PrevState::Stopped),
            ("P", PrevState::Stopped),
            ("", PrevState::Stopped),
        ] {
            assert_eq!(PrevState::parse(text), state, "{text}");
        }
    }
}
