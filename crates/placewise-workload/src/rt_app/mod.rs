//! rt-app files: the JSON that rt-app and workgen run, compiled to a workload.
//!
//! [`json`] reads the text into a tree that knows its lines, [`global`], [`task`] and [`event`]
//! turn the tree into what the file says, [`objects`] numbers what events name, and [`compile`]
//! makes programs of it all. What has no counterpart in the model (memory and I/O load, the deadline
//! policy, clamps, task groups, settings that change between phases) is refused by name, never
//! skipped.

mod compile;
mod event;
mod global;
mod json;
mod objects;
mod parts;
mod task;

use std::path::Path;

use crate::error::WorkloadError;
use crate::file::read_text;
use crate::program::Workload;
use global::Global;
use json::Node;

/// Reads an rt-app file.
pub fn from_rt_app(path: &Path) -> Result<Workload, WorkloadError> {
    let text = read_text(path)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    from_rt_app_text(&name, &text).map_err(|error| error.within(&path.display().to_string()))
}

/// Reads the text of an rt-app file; the workload is given this name.
pub fn from_rt_app_text(name: &str, text: &str) -> Result<Workload, WorkloadError> {
    let root = json::parse(text)?;
    let (mut global, mut tasks) = (None, None);
    for member in root.members()? {
        match member.key.as_str() {
            "global" => global = Some(member.only(global)?),
            "tasks" => tasks = Some(member.only(tasks)?),
            "resources" => {
                return Err(member
                    .node
                    .wrong("rt-app makes resources where events name them; remove this section"));
            }
            _ => return Err(member.unknown(&["tasks", "global"])),
        }
    }
    let global = global.map_or(Ok(Global::default()), Global::read)?;
    let tasks: &Node = tasks.ok_or_else(|| root.wrong("expected a `tasks` object"))?;
    let tasks = task::read_all(tasks, &global)?;
    let workload = compile::compile(name, &global, &tasks)?;
    debug_assert_eq!(workload.check(), Ok(()));
    Ok(workload)
}
