//! Which tasks an audit is about.

use glob::Pattern;

/// A comm has so many bytes at most.
const COMM_MAX: usize = 15;

/// Tasks by their name or pid; by default all.
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
}

impl Selection {
    /// A name of any length, a pattern with `*`, `?` and `[...]`, or a pid.
    pub fn of(text: &str) -> Self {
        let mut end = text.len().min(COMM_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let comm = text[..end].to_owned();
        let wanted = Wanted { comm, pattern: Pattern::new(text).ok(), pid: text.parse().ok() };
        Selection { wanted: Some(wanted) }
    }

    pub fn has(&self, pid: u32, comm: &str) -> bool {
        let Some(wanted) = &self.wanted else { return true };
        wanted.pid == Some(pid)
            || wanted.comm == comm
            || wanted.pattern.as_ref().is_some_and(|pattern| pattern.matches(comm))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fifteen_bytes_that_the_kernel_has_of_a_name_will_do() {
        let selection = Selection::of("stress-ng-switch");
        assert!(selection.has(7, "stress-ng-switc"));
        assert!(!selection.has(7, "stress-ng-swit"));
        let cut = Selection::of("fourteen bytes\u{e9}");
        assert!(cut.has(7, "fourteen bytes"), "no half of a character");
    }

    #[test]
    fn patterns_are_those_of_a_shell() {
        let selection = Selection::of("kworker/*:1[HI]");
        assert!(selection.has(7, "kworker/12:1H"));
        assert!(!selection.has(7, "kworker/12:1"));
        assert!(Selection::of("[odd").has(7, "[odd"), "what is no pattern is a name");
        assert!(Selection::of("web?").has(7, "web1"));
    }

    #[test]
    fn a_number_is_a_pid_or_a_name() {
        let selection = Selection::of("4711");
        assert!(selection.has(4711, "server"));
        assert!(selection.has(1, "4711"));
        assert!(!selection.has(471, "server"));
    }

    #[test]
    fn by_default_all_count() {
        assert!(Selection::default().has(1, "init"));
    }
}
