//! Reads a trace, twice: once for what an audit believes of its wakeups, once for what its tasks did.

use std::collections::HashMap;
use std::path::Path;

use placewise_audit::task_groups::{self, TaskGroup, TaskGroups};
use placewise_audit::{Options, Timeline};
use placewise_machine::{CpuSet, Machine};
use placewise_policy::Policy;
use placewise_trace::{Header, SchedPolicy as Recorded, TraceReader};
use placewise_workload::program::{Call, SchedPolicy};

use crate::charges::Charges;
use crate::error::ReplayError;
use crate::follow::Follower;
use crate::followed::{Followed, FollowedTask};
use crate::hints::Hints;
use crate::measure::{Measured, Meter};
use crate::recording::{Calls, RecordedCgroup, RecordedTask, Recording, TaskIndex};
use crate::{answers, messages, sleeps};

/// A trace, and what it was recorded on.
pub struct Source<'a> {
    pub trace: &'a Path,
    pub machine: &'a Machine,
    pub kernel: &'a Policy,
}

impl Source<'_> {
    fn charges(&self) -> Charges<'_> {
        Charges::new(self.machine, self.kernel.profile.measured)
    }
}

/// Later times, of some hundred years, are no clock's.
const LATEST_NS: u64 = 1 << 62;

/// A longer one takes too long to simulate.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// What the tasks of a trace did, as if each wakeup were for one message, and how it went.
pub fn read(source: &Source<'_>) -> Result<(Recording, Measured), ReplayError> {
    let mut read = Read::of(source)?;
    answers::add(&mut read.followed, &mut read.posts, &source.charges());
    Ok((read.recording(source)?, read.measured))
}

/// What a trace may be of: not every message wakes its reader.
pub struct Both {
    /// As if each wakeup were for one message.
    pub plain: Recording,
    /// The same, if those that compute for longer after some wakeups have read more messages then, and with answers
    /// that show once these are known.
    pub with_messages: Option<Recording>,
    pub measured: Measured,
}

/// Both that a trace may be of.
pub fn read_both(source: &Source<'_>) -> Result<Both, ReplayError> {
    let mut read = Read::of(source)?;
    let charges = source.charges();
    let without_answers = (read.followed.clone(), read.posts.clone());
    let in_turn = answers::add(&mut read.followed, &mut read.posts, &charges);
    let plain = read.recording(source)?;
    (read.followed, read.posts) = without_answers;
    let Read { followed, posts, .. } = &mut read;
    let readers = messages::add(followed, posts, &charges);
    in_turn.add_under_way(followed, posts, &charges);
    // How long these compute depends on how much there is to read.
    read.lines.retain(|name, _| !readers.contains(name));
    let is_other = in_turn.has_open || !readers.is_empty();
    let with_messages = is_other.then(|| read.recording(source)).transpose()?;
    Ok(Both { plain, with_messages, measured: read.measured })
}

/// A trace that has been read.
struct Read {
    followed: Followed,
    /// Which of its wakeups are posts.
    posts: Vec<bool>,
    /// Cache lines that come with posts to tasks of each name, where it tells.
    lines: HashMap<String, u32>,
    /// What wakeups by tasks of each name take beyond the machine's figures, where it tells.
    calls: HashMap<String, Calls>,
    /// What interrupts that wake these take beyond them.
    arrivals: HashMap<String, Call>,
    /// What leaving idle for these takes beyond them.
    idle_exits: HashMap<String, i32>,
    /// When these preempt tasks of other CPUs at the earliest.
    preemptions: HashMap<String, u32>,
    /// Where the device interrupts that wakes these, if one does, and always there.
    interrupted_on: HashMap<String, u32>,
    header: Header,
    measured: Measured,
}

impl Read {
    /// Reads it twice.
    fn of(source: &Source<'_>) -> Result<Self, ReplayError> {
        let Source { trace, machine, kernel } = *source;
        let options = Options { machine, kernel, others: &[], task: None };
        let hints = Hints::of(&mut TraceReader::open(trace)?, &options)?;
        let mut reader = TraceReader::open(trace)?;
        let mut follower = Follower::new(machine, kernel.profile.measured, &hints);
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
            let problem = "it is longer than an hour; replay a shorter piece of it";
            return Err(unfit(trace, problem.into()));
        }
        let mut measured = meter.end(timeline.tasks());
        measured
            .take_run_times(followed.tasks.iter().map(|task| (task.name.as_str(), task.ran_ns)));
        let posts = sleeps::posts(&followed);
        let lines = sleeps::lines(&followed, &posts, machine);
        let calls = sleeps::calls(&followed, &posts);
        let arrivals = sleeps::arrivals(&followed, &posts);
        let idle_exits = sleeps::idle_exits(&followed, &posts, &calls);
        let preemptions = sleeps::preemptions(&followed, &posts);
        let interrupted_on = sleeps::interrupted_on(&followed, &posts);
        let header = reader.header().clone();
        Ok(Read {
            followed,
            posts,
            lines,
            calls,
            arrivals,
            idle_exits,
            preemptions,
            interrupted_on,
            header,
            measured,
        })
    }

    fn recording(&self, source: &Source<'_>) -> Result<Recording, ReplayError> {
        let Read { followed, posts, header, .. } = self;
        let usual = source.machine.costs.channel_lines;
        let (cgroups, cgroup_of) = cgroups(followed, header);
        let cpus = cpus(followed, header);
        let arrival = |task: &FollowedTask| self.arrivals.get(&task.name).copied();
        let arrivals = followed.tasks.iter().map(|task| arrival(task).unwrap_or_default());
        let arrivals: Vec<Call> = arrivals.collect();
        let per_second = |count: u64| {
            let length_ns = u128::from(followed.length_ns.max(1));
            (u128::from(count) * 1_000_000_000 / length_ns).min(u32::MAX.into()) as u32
        };
        let task = |(((task, &cgroup), &cpus), &arrival): (((&FollowedTask, _), _), _)| {
            let line = header.tasks.get(&task.pid);
            let lines = self.lines.get(task.name.as_str()).copied().unwrap_or(usual);
            let calls = self.calls.get(task.name.as_str()).cloned().unwrap_or_default();
            let charges = (lines, &calls, &arrivals[..]);
            RecordedTask {
                lines,
                arrival,
                idle_exit_ns: self.idle_exits.get(&task.name).copied().unwrap_or(0),
                preempt_ns: self.preemptions.get(&task.name).copied().unwrap_or(0),
                interrupted_on: self.interrupted_on.get(&task.name).copied(),
                wakee_flips: if task.parent.is_none() { per_second(task.flips) } else { 0 },
                name: task.name.clone(),
                pid: task.pid,
                nice: (task.prio - 120).clamp(-20, 19) as i8,
                policy: policy(task.prio, line.map(|line| line.policy)),
                cpus,
                cgroup,
                begins_on: task.begins_on,
                runs_at_once: task.runs_at_once,
                is_forked: task.parent.is_some(),
                forked_ns: task.forked_ns,
                exits: task.exits,
                at_end: task.at_end,
                steps: sleeps::steps(task, &followed.wakeups, posts, charges),
                calls,
            }
        };
        let tasks = followed.tasks.iter().zip(&cgroup_of).zip(&cpus).zip(&arrivals);
        let tasks = tasks.map(task).collect();
        let recording = Recording { length_ns: followed.length_ns, cgroups, tasks };
        if recording.segments() == 0 {
            return Err(unfit(source.trace, "no task of it sleeps; record for longer".into()));
        }
        Ok(recording)
    }
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

/// Where each task may run, if the header names it. What is forked may run where its parent may, unless it ran elsewhere.
fn cpus(followed: &Followed, header: &Header) -> Vec<Option<CpuSet>> {
    let mut cpus: Vec<Option<CpuSet>> = Vec::with_capacity(followed.tasks.len());
    for task in &followed.tasks {
        let stays_in = |cpus: &CpuSet| task.ran_on().all(|cpu| cpus.contains(cpu as usize));
        let inherited = |parent: TaskIndex| cpus[parent as usize].filter(stays_in);
        let stated = header.tasks.get(&task.pid).map(|line| line.cpus);
        cpus.push(stated.or_else(|| task.parent.and_then(inherited)));
    }
    cpus
}

/// The cgroups that tasks are in, and where among them each task is: what is forked, and the header does not name, is
/// where its parent is.
fn cgroups(followed: &Followed, header: &Header) -> (Vec<RecordedCgroup>, Vec<Option<u32>>) {
    let stated = task_groups::stated(header);
    let mut path_of: Vec<Option<&str>> = Vec::with_capacity(followed.tasks.len());
    for task in &followed.tasks {
        let inherited = |parent: TaskIndex| path_of[parent as usize];
        let stated = stated.get(&task.pid).copied();
        path_of.push(stated.or_else(|| task.parent.and_then(inherited)));
    }
    let groups = TaskGroups::of(path_of.iter().flatten().copied(), header);
    let cgroup_of = path_of.iter().map(|path| groups.number((*path)?)).collect();
    let recorded = |group: TaskGroup| RecordedCgroup { path: group.path, shares: group.shares };
    (groups.all.into_iter().map(recorded).collect(), cgroup_of)
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
