//! Reads a trace, twice: once for what an audit believes of its wakeups, once for what its tasks did.

use std::path::Path;

use placewise_audit::{Options, Timeline};
use placewise_machine::Machine;
use placewise_policy::Policy;
use placewise_trace::{Header, SchedPolicy as Recorded, TraceReader};
use placewise_workload::program::SchedPolicy;

use crate::error::ReplayError;
use crate::follow::{Followed, FollowedTask, Follower};
use crate::hints::Hints;
use crate::measure::{Measured, Meter};
use crate::recording::{RecordedTask, Recording};
use crate::sleeps;

/// A trace, and what it was recorded on.
pub struct Source<'a> {
    pub trace: &'a Path,
    pub machine: &'a Machine,
    pub kernel: &'a Policy,
}

/// Later times, of some hundred years, are no clock's.
const LATEST_NS: u64 = 1 << 62;

/// A longer one takes too long to simulate.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// What the tasks of a trace did, and how it went.
pub fn read(source: &Source<'_>) -> Result<(Recording, Measured), ReplayError> {
    let Source { trace, machine, kernel } = *source;
    let options = Options { machine, kernel, others: &[], task: None };
    let hints = Hints::of(&mut TraceReader::open(trace)?, &options)?;
    let mut reader = TraceReader::open(trace)?;
    let mut follower = Follower::new(machine, &hints);
    let mut meter = Meter::new(machine, kernel, None)?;
    let mut timeline = timeline(machine);
    while let Some(record) = reader.next_record()? {
        if record.time_ns > LATEST_NS {
            let problem = "its clock does not count from boot".to_owned();
            return Err(unfit(trace, problem));
        }
        timeline.push(&record);
        drain(&mut timeline, &mut follower, &mut meter).map_err(|error| named(error, trace))?;
    }
    timeline.end();
    drain(&mut timeline, &mut follower, &mut meter).map_err(|error| named(error, trace))?;
    let followed = follower.end(timeline.tasks());
    if followed.length_ns > LONGEST_NS {
        return Err(unfit(trace, "it is longer than an hour; replay a shorter piece of it".into()));
    }
    let recording = recording(&followed, reader.header(), machine);
    if recording.segments() == 0 {
        return Err(unfit(trace, "no task of it sleeps; record for longer".into()));
    }
    Ok((recording, meter.end(timeline.tasks())))
}

pub fn timeline(machine: &Machine) -> Timeline {
    let tick_ns = 1_000_000_000 / u64::from(machine.costs.hz);
    Timeline::new(machine.cpus.len() as u32, tick_ns, false)
}

fn drain(
    timeline: &mut Timeline,
    follower: &mut Follower<'_>,
    meter: &mut Meter,
) -> Result<(), ReplayError> {
    while let Some(step) = timeline.pop() {
        follower.step(&step, timeline.tasks())?;
        meter.step(&step, timeline.tasks());
    }
    Ok(())
}

fn unfit(trace: &Path, problem: String) -> ReplayError {
    ReplayError::Unfit { file: trace.display().to_string(), problem }
}

/// What is wrong with what was read from `trace`.
fn named(error: ReplayError, trace: &Path) -> ReplayError {
    match error {
        ReplayError::Unfit { problem, .. } => unfit(trace, problem),
        other => other,
    }
}

fn recording(followed: &Followed, header: &Header, machine: &Machine) -> Recording {
    let posts = sleeps::posts(followed);
    let told = sleeps::lines(followed, &posts, machine);
    let usual = machine.costs.channel_lines;
    let task = |task: &FollowedTask| {
        let line = header.tasks.get(&task.pid).filter(|_| !task.is_forked);
        let lines = told.get(task.name.as_str()).copied().unwrap_or(usual);
        RecordedTask {
            lines,
            name: task.name.clone(),
            pid: task.pid,
            nice: (task.prio - 120).clamp(-20, 19) as i8,
            policy: policy(task.prio, line.map(|line| line.policy)),
            cpus: line.map(|line| line.cpus),
            begins_on: task.begins_on,
            runs_at_once: task.runs_at_once,
            is_forked: task.is_forked,
            exits: task.exits,
            steps: sleeps::steps(task, &followed.wakeups, &posts, lines),
        }
    };
    let tasks = followed.tasks.iter().map(task).collect();
    Recording { length_ns: followed.length_ns, tasks }
}

/// The kernel's priority tells real-time tasks; the header which of them take turns.
fn policy(prio: i32, stated: Option<Recorded>) -> SchedPolicy {
    let rt_priority = (99 - prio).clamp(1, 99) as u8;
    match stated {
        Some(Recorded::Idle) => SchedPolicy::Idle,
        Some(Recorded::RoundRobin) if prio < 100 => SchedPolicy::RoundRobin(rt_priority),
        _ if prio < 100 => SchedPolicy::Fifo(rt_priority),
        _ => SchedPolicy::Other,
    }
}
