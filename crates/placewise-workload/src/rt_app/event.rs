//! Events: what a task does, one after the other.
//!
//! As in rt-app the kind of an event is the prefix of its key (`run0`, `run_long`), so that a
//! phase can hold several of a kind without equal keys; equal keys, as workgen allows, work too.

use super::json::{Member, Node, Place};
use crate::error::WorkloadError;
use crate::program::Nanos;

/// One event and where it stands.
#[derive(Debug)]
pub(super) struct Event {
    pub place: Place,
    pub action: Action,
}

#[derive(Debug)]
pub(super) enum Action {
    Run(Nanos),
    Runtime(Nanos),
    Sleep(Nanos),
    Timer {
        name: String,
        period: Nanos,
        absolute: bool,
    },
    Lock(String),
    Unlock(String),
    Wait {
        condition: String,
        mutex: String,
    },
    Sync {
        condition: String,
        mutex: String,
    },
    Signal(String),
    Broadcast(String),
    Barrier(String),
    /// `None`: until someone resumes the task's own name.
    Suspend(Option<String>),
    Resume(String),
    Yield,
    Fork(String),
}

impl Action {
    /// Whether simulated time passes for certain, so that an endless loop around it gets on.
    pub fn takes_time(&self) -> bool {
        matches!(
            self,
            Action::Run(_) | Action::Runtime(_) | Action::Sleep(_) | Action::Timer { .. }
        )
    }

    /// A timer each instance of a task has to itself.
    pub fn is_unique(timer: &str) -> bool {
        timer.starts_with("unique")
    }
}

type ReadAction = fn(&Node) -> Result<Action, WorkloadError>;

/// Prefixes of keys. A prefix that begins another stands after it.
const KINDS: [(&str, ReadAction); 17] = [
    ("runtime", |node| Ok(Action::Runtime(microseconds(node)?))),
    ("run", |node| Ok(Action::Run(microseconds(node)?))),
    ("sleep", |node| Ok(Action::Sleep(microseconds(node)?))),
    ("mem", |node| Err(node.wrong("memory load is not modelled; use run instead"))),
    ("iorun", |node| Err(node.wrong("I/O is not modelled; use run and sleep instead"))),
    ("lock", |node| Ok(Action::Lock(node.name()?.to_string()))),
    ("unlock", |node| Ok(Action::Unlock(node.name()?.to_string()))),
    ("signal", |node| Ok(Action::Signal(node.name()?.to_string()))),
    ("broad", |node| Ok(Action::Broadcast(node.name()?.to_string()))),
    ("wait", |node| condition(node).map(|(condition, mutex)| Action::Wait { condition, mutex })),
    ("sync", |node| condition(node).map(|(condition, mutex)| Action::Sync { condition, mutex })),
    ("barrier", |node| Ok(Action::Barrier(node.name()?.to_string()))),
    ("timer", timer),
    ("resume", |node| Ok(Action::Resume(node.name()?.to_string()))),
    ("suspend", suspend),
    ("yield", |node| node.text().map(|_| Action::Yield)),
    ("fork", |node| Ok(Action::Fork(node.name()?.to_string()))),
];

/// The prefixes, for messages.
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.into_iter().map(|(prefix, _)| prefix)
}

/// Reads a member of a phase as an event; `None` if its key is not one of an event.
pub(super) fn read(member: &Member) -> Option<Result<Event, WorkloadError>> {
    let (_, read_action) = KINDS.into_iter().find(|(prefix, _)| member.key.starts_with(prefix))?;
    let place = member.node.place().clone();
    Some(read_action(&member.node).map(|action| Event { place, action }))
}

/// The longest time of one event: an hour.
pub(super) const LONGEST_US: i64 = 3_600_000_000;

fn microseconds(node: &Node) -> Result<Nanos, WorkloadError> {
    Ok(node.integer(1..=LONGEST_US, "microseconds")? as Nanos * 1_000)
}

/// `{ "ref": condition, "mutex": mutex }`
fn condition(node: &Node) -> Result<(String, String), WorkloadError> {
    let (mut condition, mut mutex) = (None, None);
    for member in node.members()? {
        match member.key.as_str() {
            "ref" => condition = Some(member.only(condition)?),
            "mutex" => mutex = Some(member.only(mutex)?),
            _ => return Err(member.unknown(&["ref", "mutex"])),
        }
    }
    match (condition, mutex) {
        (Some(condition), Some(mutex)) => {
            Ok((condition.name()?.to_string(), mutex.name()?.to_string()))
        }
        _ => Err(node.wrong("expected { \"ref\": condition, \"mutex\": mutex }")),
    }
}

/// `{ "ref": timer, "period": microseconds, "mode": "relative" or "absolute" }`
fn timer(node: &Node) -> Result<Action, WorkloadError> {
    let (mut name, mut period, mut mode) = (None, None, None);
    for member in node.members()? {
        match member.key.as_str() {
            "ref" => name = Some(member.only(name)?),
            "period" => period = Some(member.only(period)?),
            "mode" => mode = Some(member.only(mode)?),
            _ => return Err(member.unknown(&["ref", "period", "mode"])),
        }
    }
    let (Some(name), Some(period)) = (name, period) else {
        return Err(node.wrong("expected { \"ref\": timer, \"period\": microseconds }"));
    };
    let absolute = match mode {
        None => false,
        Some(mode) => match mode.text()? {
            "relative" => false,
            "absolute" => true,
            _ => return Err(mode.wrong("expected relative or absolute")),
        },
    };
    Ok(Action::Timer { name: name.name()?.to_string(), period: microseconds(period)?, absolute })
}

fn suspend(node: &Node) -> Result<Action, WorkloadError> {
    let name = Some(node.text()?).filter(|name| !name.is_empty());
    Ok(Action::Suspend(name.map(str::to_string)))
}
