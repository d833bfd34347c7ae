//! The mutexes, conditions, barriers and timers of an rt-app file, numbered.
//!
//! rt-app makes a resource where an event names it, by kind and name; so does this. Timers whose
//! name begins with `unique` belong to one instance of a task and are numbered per task.

use std::collections::BTreeMap;

use super::event::{Action, Event};
use super::task::Task;
use crate::error::WorkloadError;
use crate::program::Object;

pub(super) fn events(task: &Task) -> impl Iterator<Item = &Event> {
    task.phases.iter().flat_map(|phase| &phase.events)
}

/// Names of one kind of object, numbered as they come.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, u32>);

impl Names {
    pub fn add(&mut self, name: &str) {
        let next = self.0.len() as u32;
        self.0.entry(name.to_string()).or_insert(next);
    }

    pub fn shared(&self, name: &str) -> Object {
        Object::shared(self.0[name])
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// The timers that each instance of a task has to itself, numbered as they come.
pub(super) fn unique_timers(task: &Task) -> Names {
    let mut names = Names::default();
    timers(task).filter(|name| Action::is_unique(name)).for_each(|name| names.add(name));
    names
}

pub(super) fn timers(task: &Task) -> impl Iterator<Item = &str> {
    events(task).filter_map(|event| match &event.action {
        Action::Timer { name, .. } => Some(name.as_str()),
        _ => None,
    })
}

/// What all events of a file name.
#[derive(Default)]
pub(super) struct Objects {
    pub mutexes: Names,
    pub conditions: Names,
    /// Each with its parties: as many as instances reach an event that names it.
    barriers: BTreeMap<String, (u32, u32)>,
    pub shared_timers: Names,
    /// Shared ones and those of all instances.
    pub all_timers: u32,
}

impl Objects {
    pub fn add(&mut self, task: &Task, forked: bool) -> Result<(), WorkloadError> {
        let shared_timers = self.shared_timers.len();
        for event in events(task) {
            self.add_event(event, task, forked)?;
        }
        let new_shared = (self.shared_timers.len() - shared_timers) as u64;
        let unique = unique_timers(task).len() as u64 * u64::from(task.instances);
        self.all_timers = u32::try_from(u64::from(self.all_timers) + new_shared + unique)
            .ok()
            .filter(|timers| *timers <= MOST_TIMERS)
            .ok_or_else(|| {
                task.place.wrong(format!("more than {MOST_TIMERS} timers up to here"))
            })?;
        Ok(())
    }

    fn add_event(&mut self, event: &Event, task: &Task, forked: bool) -> Result<(), WorkloadError> {
        match &event.action {
            Action::Lock(mutex) | Action::Unlock(mutex) => self.mutexes.add(mutex),
            Action::Wait { condition, mutex } | Action::Sync { condition, mutex } => {
                self.conditions.add(condition);
                self.mutexes.add(mutex);
            }
            Action::Signal(condition) | Action::Broadcast(condition) => {
                self.conditions.add(condition)
            }
            Action::Suspend(_) | Action::Resume(_) => {
                let name = suspended_name(&event.action, task);
                self.conditions.add(name);
                self.mutexes.add(name);
            }
            Action::Timer { name, .. } if !Action::is_unique(name) => self.shared_timers.add(name),
            Action::Timer { .. } if forked => {
                let problem = "a forked task cannot have a `unique` timer here; use sleep, or another name for the timer";
                return Err(event.place.wrong(problem));
            }
            Action::Barrier(_) if forked => {
                let problem =
                    "a forked task cannot use a barrier, whose parties are counted beforehand";
                return Err(event.place.wrong(problem));
            }
            Action::Barrier(name) => {
                let next = self.barriers.len() as u32 + 1;
                self.barriers.entry(name.clone()).or_insert((next, 0)).1 += task.instances;
            }
            _ => {}
        }
        Ok(())
    }

    pub fn barrier(&self, name: &str) -> Object {
        Object::shared(self.barriers[name].0)
    }

    /// In the order of their numbers. A barrier only tasks without instances name has one, for form.
    pub fn barrier_parties(&self) -> Vec<u32> {
        let mut numbered: Vec<(u32, u32)> = self.barriers.values().copied().collect();
        numbered.sort_unstable();
        numbered.into_iter().map(|(_, parties)| parties.max(1)).collect()
    }

    /// A timer by its name in a task.
    pub fn timer(&self, unique: &Names, name: &str) -> Object {
        match unique.0.get(name) {
            Some(number) => Object::own(*number),
            None => self.shared_timers.shared(name),
        }
    }
}

/// More timers than this are a slip of the finger.
const MOST_TIMERS: u32 = 1_000_000;

/// What a suspend waits for and a resume wakes.
pub(super) fn suspended_name<'a>(action: &'a Action, task: &'a Task) -> &'a str {
    match action {
        Action::Suspend(Some(name)) | Action::Resume(name) => name,
        _ => &task.name,
    }
}
