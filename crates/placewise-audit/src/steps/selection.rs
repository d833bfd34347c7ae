//! Which tasks an audit is about.
//!
//! Limits: of the cgroups, those at the start are known, and a child is in that of its parent. To
//! which process a thread belongs is known once it has run.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use glob::Pattern;

/// A comm has so many bytes at most.
const COMM_MAX: usize = 15;

/// Tasks by their name, pid, process or cgroup; by default all.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    wanted: Option<Wanted>,
}

#[derive(Clone, Debug)]
struct Wanted {
    /// As the kernel has it, cut.
    comm: String,
    /// None: it is no well-formed pattern, and so only a name.
    pattern: Option<Pattern>,
    pid: Option<u32>,
    /// Who is in the cgroup.
    members: HashSet<u32>,
}

impl Selection {
    /// A name of any length, a pattern with `*`, `?` and `[...]`, the pid of a thread or a process,
    /// or the path or pattern of a cgroup.
    pub fn of(text: &str, cgroups: &BTreeMap<String, BTreeSet<u32>>) -> Self {
        let mut end = text.len().min(COMM_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let comm = text[..end].to_owned();
        let pattern = Pattern::new(text).ok();
        let is_wanted = |path: &str| {
            path == text || pattern.as_ref().is_some_and(|pattern| pattern.matches(path))
        };
        // A cgroup has all that is in those below.
        let has = |path: &str| {
            let mut ancestors = Path::new(path).ancestors().filter_map(Path::to_str);
            text.starts_with('/') && ancestors.any(is_wanted)
        };
        let members = cgroups.iter().filter(|(path, _)| has(path)).flat_map(|(_, pids)| pids);
        let members = members.copied().collect();
        let wanted = Wanted { comm, pid: text.parse().ok(), members, pattern };
        Selection { wanted: Some(wanted) }
    }

    pub fn has(&self, pid: u32, tgid: Option<u32>, comm: &str) -> bool {
        let Some(wanted) = &self.wanted else { return true };
        wanted.pid.is_some_and(|wanted| wanted == pid || Some(wanted) == tgid)
            || wanted.comm == comm
            || wanted.pattern.as_ref().is_some_and(|pattern| pattern.matches(comm))
            || wanted.members.contains(&pid)
    }

    /// The child, whose pid may have been another's, is in the cgroup of its parent.
    pub fn forked(&mut self, parent: u32, child: u32) {
        let Some(Wanted { members, .. }) = &mut self.wanted else { return };
        match members.contains(&parent) {
            true => members.insert(child),
            false => members.remove(&child),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Selection {
        let cgroups = [("/web", [7, 8]), ("/web/cache", [9, 10]), ("/webmail", [11, 12])];
        let cgroups = cgroups.map(|(path, pids)| (path.to_owned(), BTreeSet::from(pids)));
        Selection::of(text, &BTreeMap::from(cgroups))
    }

    fn has(selection: &Selection, pid: u32, comm: &str) -> bool {
        selection.has(pid, None, comm)
    }

    #[test]
    fn a_process_has_its_threads() {
        let selection = of("4711");
        assert!(selection.has(4712, Some(4711), "worker"));
        assert!(!selection.has(4712, Some(4700), "worker"));
        assert!(!selection.has(4712, None, "worker"));
    }

    #[test]
    fn a_cgroup_has_those_below_and_what_its_tasks_start() {
        let mut web = of("/web");
        assert!([7, 8, 9, 10].into_iter().all(|pid| has(&web, pid, "x")));
        assert!(!has(&web, 11, "x"), "another that begins alike");
        assert!(!has(&web, 20, "x"));
        web.forked(9, 20);
        assert!(has(&web, 20, "x"));
        web.forked(11, 20);
        assert!(!has(&web, 20, "x"), "the pid is another's now");
        assert!(has(&of("/*mail"), 11, "x"));
        assert!(!has(&of("/*mail"), 7, "x"));
        assert!(!has(&of("*mail"), 11, "x"), "a pattern of names");
    }

    #[test]
    fn the_fifteen_bytes_that_the_kernel_has_of_a_name_will_do() {
        let selection = of("stress-ng-switch");
        assert!(has(&selection, 7, "stress-ng-switc"));
        assert!(!has(&selection, 7, "stress-ng-swit"));
        let cut = of("fourteen bytes\u{e9}");
        assert!(has(&cut, 7, "fourteen bytes"), "no half of a character");
    }

    #[test]
    fn patterns_are_those_of_a_shell() {
        let selection = of("kworker/*:1[HI]");
        assert!(has(&selection, 7, "kworker/12:1H"));
        assert!(!has(&selection, 7, "kworker/12:1"));
        assert!(has(&of("[odd"), 7, "[odd"), "what is no pattern is a name");
        assert!(has(&of("web?"), 7, "web1"));
    }

    #[test]
    fn a_number_is_a_pid_or_a_name() {
        let selection = of("4711");
        assert!(has(&selection, 4711, "server"));
        assert!(has(&selection, 1, "4711"));
        assert!(!has(&selection, 471, "server"));
    }

    #[test]
    fn by_default_all_count() {
        assert!(has(&Selection::default(), 1, "init"));
    }
}
