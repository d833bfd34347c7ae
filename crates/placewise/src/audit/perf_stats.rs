//! What `perf sched stats report` prints (perf of Linux 7.3): the counters of /proc/schedstat, already as
//! what was counted, those of each CPU and of each of its domains under a heading of their own.
//!
//! ```text
//! CPU: 0
//! sched_count                                                      :      402267
//! sched_goidle                                                     :      147161  (    36.58% )
//! CPU: 0 | DOMAIN: SMT | DOMAIN_CPUS: 0,64
//! busy_lb_count                                                    :         136  $       17.08 $
//! *busy_lb_success_count                                           :           5
//! ```
//!
//! Counters go by their names, which perf gives the columns of all versions alike, so that their order
//! does not matter; of which version they are, the names tell. What `*` stands before, perf has derived.
//! The sections of `<ALL CPUS SUMMARY>` have means over CPUs, cut to integers, and are passed over.
//!
//! Limits: with `-v` perf prints descriptions for names; such a report is refused. So are the headings of
//! the patches that perf had this from (`CPU 0, DOMAIN SMT CPUS 0,64`).

use std::path::Path;

use super::schedstat::{Counted, CountedOfDomain, Passes};
use crate::input::InputError;

/// In the order of [`Counted::add_cpu`].
const OF_CPU: [&str; 7] = [
    "sched_count",
    "sched_goidle",
    "ttwu_count",
    "ttwu_local",
    "rq_cpu_time",
    "run_delay",
    "pcount",
];

pub fn read(path: &Path) -> Result<Counted, InputError> {
    let name = path.display();
    let text = std::fs::read(path).map_err(|error| InputError(format!("{name}: {error}")))?;
    counted(&String::from_utf8_lossy(&text))
        .map_err(|problem| InputError(format!("{name}: {problem}")))
}

/// The counters of a CPU, or of one of its domains.
struct Section<'a> {
    heading: &'a str,
    /// Of a domain: from the smallest up, and its name.
    domain: Option<(u32, &'a str)>,
    counters: Vec<(&'a str, u64)>,
}

fn counted(text: &str) -> Result<Counted, String> {
    let sections = sections(text)?;
    if sections.is_empty() {
        return Err(
            "it has no section `CPU: 0`; expected the text of `perf sched stats report`".into()
        );
    }
    let mut counted = Counted { version: version(&sections), ..Counted::default() };
    for section in &sections {
        match section.domain {
            None => {
                let numbers: Result<Vec<u64>, _> =
                    OF_CPU.iter().map(|name| section.counter(name)).collect();
                counted.add_cpu(&numbers?);
            }
            Some((level, name)) => counted.add_domain(level, section.counted(level, name)?),
        }
    }
    Ok(counted)
}

fn sections(text: &str) -> Result<Vec<Section<'_>>, String> {
    let mut sections: Vec<Section> = Vec::new();
    let (mut level, mut is_counted) = (0, false);
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(of) = line.strip_prefix("CPU: ") {
            is_counted = !of.starts_with('<');
            if is_counted {
                let name = of.split(" | ").find_map(|part| part.strip_prefix("DOMAIN: "));
                let domain = name.map(|name| (level, name));
                level = if domain.is_some() { level + 1 } else { 0 };
                sections.push(Section { heading: line, domain, counters: Vec::new() });
            }
        } else if let (Some(section), Some((name, value))) =
            (sections.last_mut().filter(|_| is_counted), line.split_once(':'))
        {
            section
                .line(name.trim_end(), value)
                .map_err(|problem| format!("line {}: {problem}", at + 1))?;
        }
    }
    Ok(sections)
}

/// Only version 17 splits the imbalance, and only version 15 has idle CPUs before busy ones; `None`: no
/// CPU has a domain.
fn version(sections: &[Section]) -> Option<u32> {
    let domain = sections.iter().find(|section| section.domain.is_some())?;
    let (first, _) = domain.counters.first()?;
    let is_split = domain.counters.iter().any(|(name, _)| *name == "busy_lb_imbalance_load");
    Some(match first.starts_with("idle") {
        true => 15,
        false if is_split => 17,
        false => 16,
    })
}

impl<'a> Section<'a> {
    fn line(&mut self, name: &'a str, value: &str) -> Result<(), String> {
        if name.starts_with('*') {
            return Ok(());
        }
        if name.is_empty() || name.contains(|c: char| c != '_' && !c.is_ascii_alphanumeric()) {
            return Err(format!(
                "expected the name of a counter, as `perf sched stats report` prints without -v, \
                 found `{}`",
                cut(name)
            ));
        }
        let word = value.split_whitespace().next().unwrap_or_default();
        let number = word.parse().map_err(|_| {
            let found = cut(word);
            format!("expected a number behind `{}:`, found `{found}`; a `diff` has two", cut(name))
        })?;
        if self.counter(name).is_ok() {
            return Err(format!("`{}` stands twice in a section", cut(name)));
        }
        self.counters.push((name, number));
        Ok(())
    }

    fn counter(&self, name: &str) -> Result<u64, String> {
        let counter = self.counters.iter().find(|(of, _)| *of == name).map(|(_, number)| *number);
        counter.ok_or_else(|| format!("`{}` has no counter `{name}`", cut(self.heading)))
    }

    fn counted(&self, level: u32, name: &str) -> Result<CountedOfDomain, String> {
        let passes = |kind: &str| {
            let counter = |of: &str| self.counter(&format!("{kind}_lb_{of}"));
            Ok::<_, String>(Passes {
                passes: counter("count")?,
                balanced: counter("balanced")?,
                failed: counter("failed")?,
                pulled: counter("gained")?,
            })
        };
        // Before version 17 they have numbers.
        let has_name = name.parse::<u32>().is_err();
        Ok(CountedOfDomain {
            name: if has_name { name.to_owned() } else { format!("domain{level}") },
            busy: passes("busy")?,
            idle: passes("idle")?,
            newly_idle: passes("newidle")?,
            active_pushed: self.counter("alb_pushed")?,
            woken_remote: self.counter("ttwu_wake_remote")?,
        })
    }
}

fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [&str; 3] = ["busy", "idle", "newidle"];

    /// Counters count up from `first`; a summary stands before the CPUs.
    fn report(kinds: [&str; 3], split: bool, first: u64) -> String {
        let mut text = "DESC -> Description\nTime elapsed (in jiffies)   :    24537\n".to_owned();
        for cpu in ["<ALL CPUS SUMMARY>", "0", "1"] {
            let mut number = first..;
            let mut counter =
                |name: &str| format!("{name:<65}: {:>11}  (    36.58% )\n", number.next().unwrap());
            text += &format!("-----\nCPU: {cpu}\n----\nDESC      COUNT   PCT_CHANGE\n");
            for name in ["yld_count", "array_exp"].iter().chain(&OF_CPU) {
                text += &counter(name);
            }
            text += &format!("CPU: {cpu} | DOMAIN: MC | DOMAIN_CPUS: 0-1\n");
            for kind in kinds {
                text += &format!("------ <Category {kind}> ------\n");
                let imbalance = if split { "imbalance_load" } else { "imbalance" };
                for of in ["count", "balanced", "failed", imbalance, "gained", "hot_gained"] {
                    text += &counter(&format!("{kind}_lb_{of}"));
                }
                text += &format!("*{kind}_lb_avg_pulled    :        1.40\n");
            }
            for name in ["alb_pushed", "ttwu_wake_remote"] {
                text += &counter(name);
            }
        }
        text
    }

    #[test]
    fn cpus_are_summed_up_without_the_summary() {
        let of = counted(&report(KINDS, true, 1)).unwrap();
        assert_eq!(
            (of.schedules, of.idle_entries, of.wakeups, of.wakeups_same_cpu),
            (6, 8, 10, 12)
        );
        assert_eq!((of.run_ns, of.run_delay_ns, of.switched_in), (14, 16, 18));
        let [domain] = &of.domains[..] else { panic!("{of:?}") };
        assert_eq!(domain.name, "MC");
        let passes = Passes { passes: 32, balanced: 34, failed: 36, pulled: 40 };
        assert_eq!(domain.idle, passes);
        assert_eq!((domain.active_pushed, domain.woken_remote), (2 * 28, 2 * 29));
    }

    /// Whatever their order.
    #[test]
    fn counters_go_by_their_names() {
        let version = |kinds, split| counted(&report(kinds, split, 1)).unwrap().version;
        let idle_first = ["idle", "busy", "newidle"];
        assert_eq!(version(KINDS, true), Some(17));
        assert_eq!(version(KINDS, false), Some(16));
        assert_eq!(version(idle_first, false), Some(15));
        let of = counted(&report(idle_first, false, 0)).unwrap();
        assert_eq!((of.domains[0].idle.passes, of.domains[0].busy.passes), (2 * 9, 2 * 15));
    }

    #[track_caller]
    fn refused(text: &str, part: &str) {
        let problem = counted(text).unwrap_err();
        assert!(problem.contains(part), "`{part}` is not in: {problem}");
        assert!(!problem.contains('\n') && problem.len() < 200, "{problem}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let report = report(KINDS, true, 1);
        refused("", "no section `CPU: 0`");
        refused("CPU: <ALL CPUS SUMMARY>\nsched_count : 1\n", "no section `CPU: 0`");
        refused("CPU: 0\nsched_count : x\n", "line 2: expected a number behind `sched_count:`");
        refused("CPU: 0\nsched_count : 1,  2 | 3 |\n", "found `1,`; a `diff` has two");
        refused("CPU: 0\nschedule() called : 1\n", "without -v, found `schedule() called`");
        refused("CPU: 0\npcount : 1\npcount : 1\n", "line 3: `pcount` stands twice");
        refused("CPU: 0\npcount : 1\n", "`CPU: 0` has no counter `sched_count`");
        let without = report.replace("idle_lb_gained", "idle_lb_won");
        refused(
            &without,
            "`CPU: 0 | DOMAIN: MC | DOMAIN_CPUS: 0-1` has no counter `idle_lb_gained`",
        );
    }
}
