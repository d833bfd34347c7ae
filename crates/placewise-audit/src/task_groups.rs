//! Which task groups a trace tells of: cgroups, and the autogroups of sessions.
//!
//! The header says in which of them tasks are; a child that it does not name is where its parent is. Sessions have autogroups of those tasks
//! only that are in no cgroup with a `cpu` controller.
//!
//! Limits: as deep and as many as the scheduler's state has, the others are in that above, or in the root.

use std::collections::{BTreeSet, HashMap};

use placewise_policy::weight::weight_of;
use placewise_policy::{NR_TASK_GROUP_LEVELS, NR_TASK_GROUPS};
use placewise_trace::{Header, with_above};

/// Beside the root.
const MOST: usize = NR_TASK_GROUPS as usize - 1;

/// Those that some tasks are in, the ones above them with them, and first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskGroups {
    pub all: Vec<TaskGroup>,
    number: HashMap<String, u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskGroup {
    pub path: String,
    /// The one above it among them; none where that is the root.
    pub parent: Option<u32>,
    /// What it weighs beside others, as `cpu.shares`.
    pub shares: u32,
}

impl TaskGroups {
    /// Those of these paths.
    pub fn of<'p>(paths: impl Iterator<Item = &'p str>, header: &Header) -> Self {
        let all: BTreeSet<&str> = paths.flat_map(with_above).collect();
        let all = || all.iter().copied().take(MOST);
        let number: HashMap<&str, u32> = all().zip(0..).collect();
        let group = |path: &str| TaskGroup {
            path: path.to_owned(),
            parent: path.rfind('/').and_then(|end| number.get(&path[..end]).copied()),
            shares: header.shares.get(path).copied().unwrap_or_else(|| weight_of(0, false)),
        };
        let all = all().map(group).collect();
        let number = number.iter().map(|(path, number)| ((*path).to_owned(), *number)).collect();
        TaskGroups { all, number }
    }

    /// Its place among them.
    pub fn number(&self, path: &str) -> Option<u32> {
        self.number.get(path).copied()
    }
}

/// The path of the group that each task is in that the header names, by pid.
pub fn stated(header: &Header) -> HashMap<u32, &str> {
    // The cgroup itself, or the next above it that has a `cpu` controller; none where that is the root.
    let grouped = |path| with_above(path).find(|path| !header.ungrouped.contains(*path)).map(cut);
    let in_cgroups = header.cgroups.iter().filter_map(|(path, pids)| Some((grouped(path)?, pids)));
    let autogroups = header.autogroups.iter().map(|(name, pids)| (name.as_str(), pids));
    let named = in_cgroups.chain(autogroups);
    named.flat_map(|(path, pids)| pids.iter().map(move |&pid| (pid, path))).collect()
}

/// As far down as the scheduler's state has levels.
fn cut(path: &str) -> &str {
    let below = path.match_indices('/').nth(NR_TASK_GROUP_LEVELS as usize);
    below.map_or(path, |(at, _)| &path[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_above_come_first_and_weigh_what_the_header_says() {
        let header =
            Header { shares: [("/a".to_owned(), 512)].into_iter().collect(), ..Header::default() };
        let groups = TaskGroups::of(["/a/b", "/autogroup-7", "/a/b"].into_iter(), &header);
        let told: Vec<_> =
            groups.all.iter().map(|it| (it.path.as_str(), it.parent, it.shares)).collect();
        assert_eq!(
            told,
            [("/a", None, 512), ("/a/b", Some(0), 1024), ("/autogroup-7", None, 1024)]
        );
        assert_eq!((groups.number("/a/b"), groups.number("/c")), (Some(1), None));
    }

    #[test]
    fn a_cgroup_without_a_controller_is_no_task_group() {
        let mut header = Header::default();
        for line in [
            "cgroup: 1 /a/b",
            "cgroup: 2,3 /c",
            "autogroup: 3,4 /autogroup-7",
            "ungrouped: /a/b",
            "ungrouped: /c",
        ] {
            assert!(header.line(&format!("# {line}")));
        }
        let stated = stated(&header);
        assert_eq!(
            [1, 2, 3, 4].map(|pid| stated.get(&pid).copied()),
            [Some("/a"), None, Some("/autogroup-7"), Some("/autogroup-7")]
        );
    }

    #[test]
    fn what_is_deeper_than_the_state_is_in_the_one_above() {
        let deepest = "/a".repeat(NR_TASK_GROUP_LEVELS as usize);
        assert_eq!(cut(&format!("{deepest}/b/c")), deepest);
        assert_eq!(cut(&deepest), deepest);
    }
}
