//! The event of a line by its name and fields.

use super::compact::{self, Task};
use super::keys::Keys;
use super::losses::Malformed;
use super::scan::{rsplits, skip_spaces, split_last_word, split_once};
use super::skip::Skip;
use crate::decision::Decision;
use crate::event::Event;

/// `name: fields`, in `perf script` `system:name: fields`.
pub(super) fn parse(text: &str) -> Result<Event<'_>, Skip> {
    let mut text = text.strip_prefix("sched:").unwrap_or(text);
    loop {
        // Nearly all are of these.
        if let Some(fields) = text.strip_prefix("sched_switch: ") {
            return switch(skip_spaces(fields));
        } else if let Some(fields) = text.strip_prefix("sched_waking: ") {
            let (Task { comm, pid, prio }, target_cpu) = wakee(skip_spaces(fields))?;
            return Ok(Event::Waking { comm, pid, prio, target_cpu });
        } else if let Some(fields) = text.strip_prefix("sched_wakeup: ") {
            let (Task { comm, pid, prio }, target_cpu) = wakee(skip_spaces(fields))?;
            return Ok(Event::Wakeup { comm, pid, prio, target_cpu });
        }
        let (name, rest) = split_once(text, b':').ok_or(Skip::UnknownEvent)?;
        if rest.starts_with(' ') {
            return parse_other(name, skip_spaces(rest));
        }
        // The name was that of a system.
        text = rest;
    }
}

fn parse_other<'a>(name: &str, fields: &'a str) -> Result<Event<'a>, Skip> {
    match name {
        "sched_wakeup_new" => {
            let (Task { comm, pid, prio }, target_cpu) = wakee(fields)?;
            Ok(Event::WakeupNew { comm, pid, prio, target_cpu })
        }
        "sched_migrate_task" => migrate(fields),
        "sched_process_fork" => fork(fields),
        "sched_process_exec" => exec(fields),
        "sched_process_exit" => exit(fields),
        Decision::EVENT => decision(fields),
        _ => Err(Skip::UnknownEvent),
    }
}

/// From 4.x on without, before with ` success=1` before the target CPU.
fn wakee(fields: &str) -> Result<(Task<'_>, u32), Skip> {
    if compact::is_wakeup(fields) {
        return compact::wakeup(fields);
    }
    let mut keys = Keys(fields);
    let target_cpu = keys.cpu(" target_cpu=")?;
    let prio = keys.number(" prio=")?;
    let pid = keys.number(" pid=")?;
    Ok((Task { comm: keys.first("comm=")?, pid, prio }, target_cpu))
}

fn switch(fields: &str) -> Result<Event<'_>, Skip> {
    if compact::is_switch(fields) {
        let compact::Switch { prev, prev_state, next } = compact::switch(fields)?;
        return Ok(Event::Switch {
            prev_comm: prev.comm,
            prev_pid: prev.pid,
            prev_prio: prev.prio,
            prev_state,
            next_comm: next.comm,
            next_pid: next.pid,
            next_prio: next.prio,
        });
    }
    let mut keys = Keys(fields);
    let next_prio = keys.number(" next_prio=")?;
    let next_pid = keys.number(" next_pid=")?;
    let (mut keys, prev_state, next_comm) = next_comm(keys.0)?;
    let prev_prio = keys.number(" prev_prio=")?;
    let prev_pid = keys.number(" prev_pid=")?;
    let prev_comm = keys.first("prev_comm=")?;
    Ok(Event::Switch { prev_comm, prev_pid, prev_prio, prev_state, next_comm, next_pid, next_prio })
}

/// What stands before prev_state, prev_state, and the next comm. That comm may hold the text
/// that parts them, but not with a state before it.
fn next_comm(text: &str) -> Result<(Keys<'_>, &str, &str), Skip> {
    let parts = rsplits(text, " next_comm=").find_map(|(prev, next_comm)| {
        let (before, last_word) = split_last_word(prev.strip_suffix(" ==>")?)?;
        Some((Keys(before), last_word.strip_prefix("prev_state=")?, next_comm))
    });
    parts.ok_or(Malformed::Field("prev_state=S ==> next_comm=").into())
}

fn migrate(fields: &str) -> Result<Event<'_>, Skip> {
    let mut keys = Keys(fields);
    let to = keys.cpu(" dest_cpu=")?;
    let from = keys.cpu(" orig_cpu=")?;
    let prio = keys.number(" prio=")?;
    let pid = keys.number(" pid=")?;
    Ok(Event::Migrate { comm: keys.first("comm=")?, pid, prio, from, to })
}

fn fork(fields: &str) -> Result<Event<'_>, Skip> {
    let mut keys = Keys(fields);
    let child_pid = keys.number(" child_pid=")?;
    let (keys, pid, child_comm) = child_comm(keys.0)?;
    Ok(Event::Fork { comm: keys.first("comm=")?, pid, child_comm, child_pid })
}

/// What stands before the parent's pid, that pid, and the child's comm. That comm may hold the
/// text that parts them, but not with a pid before it.
fn child_comm(text: &str) -> Result<(Keys<'_>, u32, &str), Skip> {
    let parts = rsplits(text, " child_comm=").find_map(|(parent, child_comm)| {
        let (before, last_word) = split_last_word(parent)?;
        Some((Keys(before), last_word.strip_prefix("pid=")?.parse().ok()?, child_comm))
    });
    parts.ok_or(Malformed::Field("pid=N child_comm=").into())
}

fn exec(fields: &str) -> Result<Event<'_>, Skip> {
    let mut keys = Keys(fields);
    let old_pid = keys.number(" old_pid=")?;
    let pid = keys.number(" pid=")?;
    keys.first("filename=")?;
    Ok(Event::Exec { pid, old_pid })
}

/// From 6.14 on with ` group_dead=`, which is not used.
fn exit(fields: &str) -> Result<Event<'_>, Skip> {
    let mut keys = Keys(fields);
    let prio = keys.number(" prio=")?;
    let pid = keys.number(" pid=")?;
    Ok(Event::Exit { comm: keys.first("comm=")?, pid, prio })
}

fn decision(fields: &str) -> Result<Event<'_>, Skip> {
    let decision = Decision::parse(fields).map_err(Malformed::from)?;
    Ok(Event::Decision(Box::new(decision)))
}
