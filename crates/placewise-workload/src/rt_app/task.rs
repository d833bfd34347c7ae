//! The `tasks` section: tasks, their properties and their phases.

use std::collections::BTreeMap;

use placewise_machine::CpuSet;

use super::event::{self, Event, LONGEST_US};
use super::global::{Global, read_policy};
use super::json::{Member, Node, Place};
use crate::error::WorkloadError;
use crate::program::{FOREVER, Nanos, SchedPolicy};

/// A task object: `instances` tasks do the same.
#[derive(Debug)]
pub(super) struct Task {
    pub place: Place,
    pub name: String,
    pub instances: u32,
    /// Before the first phase.
    pub delay: Option<Nanos>,
    pub policy: SchedPolicy,
    /// Of SCHED_OTHER and SCHED_IDLE.
    pub nice: i8,
    pub cpus: Option<CpuSet>,
    /// How often all phases are gone through; [`FOREVER`] for -1.
    pub times: u32,
    pub phases: Vec<Phase>,
}

/// Events that are gone through `times` times.
#[derive(Debug)]
pub(super) struct Phase {
    pub place: Place,
    pub times: u32,
    pub events: Vec<Event>,
}

/// All tasks a file may start, so that a slip of the finger does not fill the memory.
const MOST_TASKS: u64 = 100_000;

const MOST_INSTANCES: i64 = 10_000;

pub(super) fn read_all(section: &Node, global: &Global) -> Result<Vec<Task>, WorkloadError> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut by_name: BTreeMap<&str, &Node> = BTreeMap::new();
    for member in section.members()? {
        member.only(by_name.insert(&member.key, &member.node))?;
        tasks.push(read_task(member, global)?);
    }
    match tasks.iter().map(|task| u64::from(task.instances)).sum() {
        0 => Err(section.wrong("expected at least one task with an instance to start")),
        1..=MOST_TASKS => Ok(tasks),
        _ => Err(section.wrong(format!("more than {MOST_TASKS} instances in all"))),
    }
}

/// Keys of a task that are not events, and keys of a phase.
const PROPERTIES: [&str; 7] = ["instance", "delay", "loop", "phases", "cpus", "policy", "priority"];

/// Keys of rt-app that would change placement in ways the model does not have.
const REFUSED: [(&str, &str); 14] = [
    ("util_min", "utilisation clamps are not modelled"),
    ("util_max", "utilisation clamps are not modelled"),
    ("membind_nodes", "memory binding is not modelled"),
    ("nodes_membind", "memory binding is not modelled"),
    ("numa_nodes_membind", "memory binding is not modelled"),
    ("taskgroup", "task groups are not modelled"),
    ("dl-runtime", "the deadline class is not modelled"),
    ("dl-period", "the deadline class is not modelled"),
    ("dl-deadline", "the deadline class is not modelled"),
    ("period", "the deadline class is not modelled"),
    ("deadline", "the deadline class is not modelled"),
    ("exec", "the format without events is not read"),
    ("lock_order", "the format without events is not read"),
    ("resources", "rt-app makes resources where events name them"),
];

fn read_task(member: &Member, global: &Global) -> Result<Task, WorkloadError> {
    let node = &member.node;
    if member.key.is_empty() {
        return Err(node.wrong("expected a task name as the key"));
    }
    let mut task = Task {
        place: node.place().clone(),
        name: member.key.clone(),
        instances: 1,
        delay: None,
        policy: SchedPolicy::Other,
        nice: 0,
        cpus: None,
        times: FOREVER,
        phases: Vec::new(),
    };
    let (properties, events) = split(node, |member| read_property(&mut task, member))?;
    let policy = properties.get("policy").map_or(Ok(global.policy), |node| read_policy(node))?;
    (task.policy, task.nice) = with_priority(policy, properties.get("priority").copied())?;
    match (properties.get("phases"), events.is_empty()) {
        (Some(phases), true) => task.phases = read_phases(phases)?,
        (Some(phases), false) => {
            return Err(
                phases.wrong("the task has events beside its phases; put them into a phase")
            );
        }
        (None, _) => task.phases.push(Phase::new(node, 1, events)?),
    }
    Ok(task)
}

fn read_property(task: &mut Task, member: &Member) -> Result<(), WorkloadError> {
    let node = &member.node;
    match member.key.as_str() {
        "instance" => task.instances = node.integer(0..=MOST_INSTANCES, "")? as u32,
        "delay" => {
            let delay = node.integer(0..=LONGEST_US, "microseconds")? as Nanos * 1_000;
            task.delay = Some(delay).filter(|delay| *delay > 0);
        }
        "loop" => task.times = read_times(node)?,
        "cpus" => task.cpus = Some(read_cpus(node)?),
        "policy" | "priority" | "phases" => {}
        _ => return Err(unknown(member)),
    }
    Ok(())
}

/// A priority is a nice value where the policy has one; rt-app gives a real-time task 10 if it is
/// not told.
fn with_priority(
    policy: SchedPolicy,
    priority: Option<&Node>,
) -> Result<(SchedPolicy, i8), WorkloadError> {
    const RT_DEFAULT: i64 = 10;
    let real_time = || match priority {
        Some(node) => node.integer(1..=99, "(the real-time priority)"),
        None => Ok(RT_DEFAULT),
    };
    match policy {
        SchedPolicy::Fifo(_) => Ok((SchedPolicy::Fifo(real_time()? as u8), 0)),
        SchedPolicy::RoundRobin(_) => Ok((SchedPolicy::RoundRobin(real_time()? as u8), 0)),
        fair => match priority {
            Some(node) => Ok((fair, node.integer(-20..=19, "(the nice value)")? as i8)),
            None => Ok((fair, 0)),
        },
    }
}

fn read_phases(section: &Node) -> Result<Vec<Phase>, WorkloadError> {
    let phases = section.members()?;
    if phases.is_empty() {
        return Err(section.wrong("expected at least one phase"));
    }
    phases.iter().map(|member| read_phase(&member.node)).collect()
}

fn read_phase(node: &Node) -> Result<Phase, WorkloadError> {
    let mut times = 1;
    let (_, events) = split(node, |member| match member.key.as_str() {
        "loop" => {
            times = read_times(&member.node)?;
            Ok(())
        }
        key if PROPERTIES.contains(&key) => {
            let problem =
                "a task keeps its properties for life here; set this on the task, not on a phase";
            Err(member.node.wrong(problem))
        }
        _ => Err(unknown(member)),
    })?;
    Phase::new(node, times, events)
}

impl Phase {
    fn new(node: &Node, times: u32, events: Vec<Event>) -> Result<Self, WorkloadError> {
        if events.is_empty() {
            return Err(node.wrong("expected at least one event, such as \"run\": 1000"));
        }
        Ok(Self { place: node.place().clone(), times, events })
    }

    pub fn takes_time(&self) -> bool {
        self.events.iter().any(|event| event.action.takes_time())
    }
}

/// Separates the events of an object from its properties, which `property` reads. A property may
/// stand there once.
fn split<'a>(
    node: &'a Node,
    mut property: impl FnMut(&'a Member) -> Result<(), WorkloadError>,
) -> Result<(BTreeMap<&'a str, &'a Node>, Vec<Event>), WorkloadError> {
    let mut properties = BTreeMap::new();
    let mut events = Vec::new();
    for member in node.members()? {
        let key = member.key.as_str();
        if let Some((_, reason)) = REFUSED.into_iter().find(|(refused, _)| *refused == key) {
            return Err(member.node.wrong(format!("{reason}; remove this key")));
        }
        match event::read(member) {
            Some(event) => events.push(event?),
            None => {
                member.only(properties.insert(key, &member.node))?;
                property(member)?;
            }
        }
    }
    Ok((properties, events))
}

fn unknown(member: &Member) -> WorkloadError {
    let known: Vec<&str> = PROPERTIES.into_iter().chain(event::kinds()).collect();
    member.unknown(&known)
}

fn read_times(node: &Node) -> Result<u32, WorkloadError> {
    match node.integer(-1..=1_000_000_000, "(-1: for ever)")? {
        -1 => Ok(FOREVER),
        0 => Err(node.wrong("expected at least 1, or -1 for ever")),
        times => Ok(times as u32),
    }
}

fn read_cpus(node: &Node) -> Result<CpuSet, WorkloadError> {
    let mut cpus = CpuSet::EMPTY;
    for element in node.elements()? {
        let cpu = element.integer(0..=CpuSet::MAX_CPUS as i64 - 1, "(a CPU number)")?;
        cpus.insert(cpu as usize);
    }
    match cpus.is_empty() {
        true => Err(node.wrong("expected at least one CPU number; leave the key out for all CPUs")),
        false => Ok(cpus),
    }
}
