//! Fields as libtraceevent prints them for `perf script` and `trace-cmd report`:
//! `sshd:123 [120] S ==> swapper/3:0 [120]` and `sshd:123 [120] success=1 CPU:003`.

use super::keys::{self, Keys};
use super::losses::Malformed;
use super::scan::{last_number, rsplits, split_last_word};
use super::skip::Skip;

/// The kernel's `TASK_COMM_LEN` less the end of the string.
const LONGEST_COMM: usize = 15;

pub(super) struct Task<'a> {
    pub comm: &'a str,
    pub pid: u32,
    pub prio: i32,
}

pub(super) struct Switch<'a> {
    pub prev: Task<'a>,
    pub prev_state: &'a str,
    pub next: Task<'a>,
}

/// Told from the other layout by their ends, since a comm comes first.
pub(super) fn is_wakeup(fields: &str) -> bool {
    last_number(fields).is_some_and(|(before, _)| before.ends_with(" CPU:"))
}

pub(super) fn is_switch(fields: &str) -> bool {
    fields.ends_with(']')
}

/// The wakee and its target CPU.
pub(super) fn wakeup(fields: &str) -> Result<(Task<'_>, u32), Skip> {
    let mut rest = Keys(fields);
    let cpu = rest.cpu(" CPU:")?;
    let fields = rest.0;
    let fields = match split_last_word(fields) {
        Some((before, word)) if word.starts_with("success=") => before,
        _ => fields,
    };
    Ok((task(fields)?, cpu))
}

/// Either comm may hold ` ==> `: the last one that leaves a task of the right length before it is
/// the one between the tasks.
pub(super) fn switch(fields: &str) -> Result<Switch<'_>, Skip> {
    let switch = rsplits(fields, " ==> ").find_map(|(prev, next)| {
        let (prev, prev_state) = split_last_word(prev)?;
        let (prev, next) = (task(prev).ok()?, task(next).ok()?);
        (prev.comm.len() <= LONGEST_COMM).then_some(Switch { prev, prev_state, next })
    });
    switch.ok_or(Malformed::Field("prev:pid [prio] state ==> next:pid [prio]").into())
}

/// `comm:pid [prio]`
fn task(text: &str) -> Result<Task<'_>, Skip> {
    const SHAPE: &str = "comm:pid [prio]";
    let (task, prio) = text
        .strip_suffix(']')
        .and_then(split_last_word)
        .and_then(|(task, prio)| Some((task, prio.strip_prefix('[')?)))
        .ok_or(Malformed::Field(SHAPE))?;
    let (comm, pid) = task.rsplit_once(':').ok_or(Malformed::Field(SHAPE))?;
    Ok(Task { comm, pid: keys::number(pid, SHAPE)?, prio: keys::number(prio, SHAPE)? })
}
