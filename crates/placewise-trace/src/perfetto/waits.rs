//! What is known of each task: its name, its process, and the wait from its last wakeup until it ran.
//!
//! A wait is told once its task is seen to run, for only then a trace says of which process it is.
//! Tasks that are dead make room.

use std::collections::HashMap;

use super::packets::TrackId;

/// From a wakeup, or the first of a new task, to the switch to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// As the trace has it, and in the order of all events.
    pub woken_ns: u64,
    pub since: u64,
    /// None: it goes on.
    pub until: Option<u64>,
}

#[derive(Default)]
pub struct Task {
    pub comm: String,
    /// None: not told so far.
    pub tgid: Option<u32>,
    pub track: Option<TrackId>,
    pub wait: Option<Wait>,
}

/// By pid.
#[derive(Default)]
pub struct Tasks(HashMap<u32, Task>);

impl Tasks {
    /// The task that has this pid now.
    pub fn of(&mut self, pid: u32) -> &mut Task {
        self.0.entry(pid).or_default()
    }

    pub fn named(&mut self, pid: u32, comm: &str) -> &mut Task {
        let task = self.of(pid);
        if task.comm != comm && comm != "<...>" {
            comm.clone_into(&mut task.comm);
        }
        task
    }

    pub fn name(&self, pid: u32) -> &str {
        self.0.get(&pid).map_or("", |task| &task.comm)
    }

    /// Its pid stands for another task from now on.
    pub fn forget(&mut self, pid: u32) {
        self.0.remove(&pid);
    }

    /// Those whose wait is not told yet, in the order of their pids.
    pub fn waiting(&self) -> Vec<u32> {
        let waiting = self.0.iter().filter(|(_, task)| task.wait.is_some());
        let mut pids: Vec<u32> = waiting.map(|(&pid, _)| pid).collect();
        pids.sort_unstable();
        pids
    }
}

impl Task {
    pub fn woken(&mut self, woken_ns: u64, since: u64) {
        self.wait = Some(Wait { woken_ns, since, until: None });
    }

    pub fn runs(&mut self, now: u64) {
        if let Some(wait) = &mut self.wait {
            wait.until.get_or_insert(now);
        }
    }

    /// The wait, if it is over. Else it is none: whoever asks knows that the task runs, or is woken
    /// again, so it had not slept yet when it was woken, or a gap of the trace hides when it ran.
    pub fn take_wait(&mut self) -> Option<Wait> {
        self.wait.take().filter(|wait| wait.until.is_some())
    }
}
