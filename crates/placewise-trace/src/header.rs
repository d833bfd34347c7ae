//! What a trace says about the run it was recorded in: comment lines before the events, and after
//! them the lost events, which nobody knows earlier.
//!
//! ```text
//! # kernel: 6.12.0
//! # policy: short-task
//! # command: hackbench -g 4
//! # cpu 0 core=0-1 llc=0-3 package=0
//! # node/node0 cpus=0-3 distance=10
//! # vendor: AuthenticAMD 25
//! # hz: 250
//! # base_slice_ns: 2800000
//! # features: PLACE_LAG NO_HRTICK
//! # preempt: voluntary
//! # clock: mono
//! # recorder: 4711
//! # task 15 comm=migration/0 policy=SCHED_FIFO cpus=0
//! # cgroup: 310,312 /system.slice/web.service
//! # overrun: 12
//! # lost: cpu 3 events 12
//! ```
//!
//! Every line may be missing. Limit: one line per fact, so line breaks within a command or a task's
//! name are written as spaces.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use placewise_machine::{CpuSet, TraceTopology};

use crate::read::losses::Losses;

/// What the kernel takes for `cpu.shares`.
const SHARES: RangeInclusive<u32> = 2..=262_144;

/// The header of a trace. `Display` writes the lines that [`line`](Self::line) reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// `uname -r`
    pub kernel: Option<String>,
    /// What a simulated kernel was changed by: patches and hints.
    pub policy: Option<String>,
    /// The program that was run for the trace.
    pub command: Option<String>,
    pub topology: TraceTopology,
    /// Scheduling slice of EEVDF.
    pub base_slice_ns: Option<u64>,
    /// Sched features, those that are off with `NO_` in front.
    pub features: Vec<String>,
    /// How the kernel preempts, as debugfs names it: none, voluntary, full or lazy.
    pub preempt: Option<String>,
    /// `trace_clock`, which the times of the events are of.
    pub clock: Option<String>,
    /// The process that recorded the trace: it is part of the load.
    pub recorder: Option<u32>,
    /// Tasks that may not run everywhere or are not SCHED_OTHER, by thread id.
    pub tasks: BTreeMap<u32, TaskLine>,
    /// Tasks that are not in the root cgroup, by its path: thread ids.
    pub cgroups: BTreeMap<String, BTreeSet<u32>>,
    /// Those of these cgroups, and of the ones above them, that have no `cpu` controller: their tasks are in the task
    /// group of the next one above that has.
    pub ungrouped: BTreeSet<String>,
    /// Tasks that share CPUs as their session's autogroup, by its name.
    pub autogroups: BTreeMap<String, BTreeSet<u32>>,
    /// What cgroups and autogroups weigh against others beside them, where it is not the default, by
    /// path: as `cpu.shares`, of which 1024 are a `cpu.weight` of 100.
    pub shares: BTreeMap<String, u32>,
    /// Lost events on all CPUs.
    pub overrun: Option<u64>,
    /// Lost events by CPU, where there are any.
    pub lost: BTreeMap<usize, u64>,
    /// Lines that look like the header's but cannot be read, each with the reason.
    pub problems: Vec<String>,
}

/// A task as it was before the first event, or as it was seen last if it came later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLine {
    pub comm: String,
    pub policy: SchedPolicy,
    /// Online CPUs that it may run on.
    pub cpus: CpuSet,
}

/// `sched_getscheduler`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedPolicy {
    Other,
    Fifo,
    RoundRobin,
    Batch,
    Idle,
    Deadline,
    Ext,
}

/// With the kernel's numbers and names.
const POLICIES: [(SchedPolicy, u32, &str); 7] = [
    (SchedPolicy::Other, 0, "SCHED_OTHER"),
    (SchedPolicy::Fifo, 1, "SCHED_FIFO"),
    (SchedPolicy::RoundRobin, 2, "SCHED_RR"),
    (SchedPolicy::Batch, 3, "SCHED_BATCH"),
    (SchedPolicy::Idle, 5, "SCHED_IDLE"),
    (SchedPolicy::Deadline, 6, "SCHED_DEADLINE"),
    (SchedPolicy::Ext, 7, "SCHED_EXT"),
];

impl SchedPolicy {
    /// The policy with the kernel's number, as /proc/PID/stat has it.
    pub fn from_number(number: u32) -> Option<Self> {
        POLICIES.iter().find(|policy| policy.1 == number).map(|policy| policy.0)
    }
}

impl fmt::Display for SchedPolicy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = POLICIES.iter().find(|policy| policy.0 == *self).map_or("", |policy| policy.2);
        out.write_str(name)
    }
}

impl FromStr for SchedPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let policy = POLICIES.iter().find(|policy| policy.2 == text);
        let names = || POLICIES.map(|policy| policy.2).join(", ");
        policy.map(|policy| policy.0).ok_or_else(|| format!("`{text}`: expected {}", names()))
    }
}

impl Header {
    /// Takes one line of a trace, and says whether it was one of the header's. One that cannot be
    /// read goes to [`problems`](Self::problems).
    pub fn line(&mut self, text: &str) -> bool {
        let text = text.trim_end_matches(['\n', '\r']);
        self.parse(text).unwrap_or_else(|problem| {
            self.problems.push(format!("`{}`: {problem}", shortened(text)));
            true
        })
    }

    /// Whether a line is one of those before the events. Lost events stand behind them.
    pub fn stands_before_events(text: &str) -> bool {
        match comment(text) {
            Some(("overrun" | "lost", _)) => false,
            // ftrace's own.
            Some(("tracer", _)) => true,
            _ => Header::default().line(text),
        }
    }

    /// How many events the trace lacks; None if it does not say.
    pub fn lost_events(&self) -> Option<u64> {
        let by_cpu = self.lost.values().fold(0u64, |sum, events| sum.saturating_add(*events));
        self.overrun.or((!self.lost.is_empty()).then_some(by_cpu))
    }

    fn parse(&mut self, text: &str) -> Result<bool, String> {
        let Some((keyword, value)) = comment(text) else {
            return self.topology.line(text).map_err(|error| error.to_string());
        };
        match keyword {
            "kernel" => self.kernel = Some(value.to_string()),
            "policy" => self.policy = Some(value.to_string()),
            "command" => self.command = Some(value.to_string()),
            "features" => self.features = value.split_whitespace().map(str::to_string).collect(),
            "preempt" => self.preempt = Some(value.to_string()),
            "clock" => self.clock = Some(value.to_string()),
            "base_slice_ns" => self.base_slice_ns = Some(number(value)?),
            "recorder" => self.recorder = Some(number(value)?),
            "overrun" => self.overrun = Some(number(value)?),
            "lost" => {
                let (cpu, events) = parse_lost(value)?;
                self.lost.insert(cpu, events);
            }
            "cgroup" => {
                let (path, pids) = parse_group(value, "cgroup: PID,PID,... PATH")?;
                self.cgroups.entry(path).or_default().extend(pids);
            }
            "autogroup" => {
                let (name, pids) = parse_group(value, "autogroup: PID,PID,... NAME")?;
                self.autogroups.entry(name).or_default().extend(pids);
            }
            "ungrouped" => _ = self.ungrouped.insert(value.to_string()),
            "shares" => {
                let (path, shares) = parse_shares(value)?;
                self.shares.insert(path, shares);
            }
            "task" => {
                let (pid, task) = parse_task(value)?;
                self.tasks.insert(pid, task);
            }
            _ => return self.topology.line(text).map_err(|error| error.to_string()),
        }
        Ok(true)
    }
}

/// A cgroup and those above it, but for the root: `/a/b` and `/a`.
pub fn with_above<'p>(path: &'p str) -> impl Iterator<Item = &'p str> {
    let above = |path: &&'p str| Some(&path[..path.rfind('/')?]).filter(|it| !it.is_empty());
    std::iter::successors(Some(path), above)
}

/// `# keyword: value`, and `# task 15 ...`, which has no colon.
fn comment(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix("# ")?;
    match text.strip_prefix("task ") {
        Some(task) if task.starts_with(|first: char| first.is_ascii_digit()) => {
            Some(("task", task))
        }
        _ => text.split_once(':').map(|(keyword, value)| (keyword, value.trim())),
    }
}

/// `cpu 3 events 12`
fn parse_lost(text: &str) -> Result<(usize, u64), String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let ["cpu", cpu, "events", events] = words[..] else {
        return Err("expected `cpu N events M`".to_string());
    };
    let cpu = number(cpu)?;
    let nr_cpus = Losses::NR_CPUS as usize;
    match cpu < nr_cpus {
        true => Ok((cpu, number(events)?)),
        false => Err(format!("CPU {cpu} is beyond the {nr_cpus} there can be")),
    }
}

/// `15 comm=migration/0 policy=SCHED_FIFO cpus=0`. A name may hold anything, so the fields behind
/// it are split off from the end.
fn parse_task(text: &str) -> Result<(u32, TaskLine), String> {
    let expected = || "expected `task PID comm=NAME policy=POLICY cpus=LIST`".to_string();
    let (pid, rest) = text.split_once(" comm=").ok_or_else(expected)?;
    let (rest, cpus) = rest.rsplit_once(" cpus=").ok_or_else(expected)?;
    let (comm, policy) = rest.rsplit_once(" policy=").ok_or_else(expected)?;
    let task = TaskLine {
        comm: comm.to_string(),
        policy: policy.parse()?,
        cpus: CpuSet::parse_list(cpus).map_err(|error| error.to_string())?,
    };
    Ok((number(pid)?, task))
}

/// `310,312 /system.slice/web.service`
fn parse_group(text: &str, expected: &str) -> Result<(String, Vec<u32>), String> {
    let (pids, path) = text.split_once(' ').ok_or_else(|| format!("expected `{expected}`"))?;
    let pids: Result<Vec<u32>, String> = pids.split(',').map(number).collect();
    Ok((path.to_string(), pids?))
}

/// `2048 /system.slice`
fn parse_shares(text: &str) -> Result<(String, u32), String> {
    let (shares, path) = text.split_once(' ').ok_or("expected `shares: N PATH`")?;
    let number: u32 = number(shares)?;
    match SHARES.contains(&number) {
        true => Ok((path.to_string(), number)),
        false => Err(format!("`{shares}`: expected {} to {}", SHARES.start(), SHARES.end())),
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number in range"))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(80) {
        None => text.to_string(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

impl fmt::Display for Header {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_line(out, "kernel", &self.kernel)?;
        write_line(out, "policy", &self.policy)?;
        write_line(out, "command", &self.command)?;
        write!(out, "{}", self.topology)?;
        write_line(out, "base_slice_ns", &self.base_slice_ns)?;
        let features = (!self.features.is_empty()).then(|| self.features.join(" "));
        write_line(out, "features", &features)?;
        write_line(out, "preempt", &self.preempt)?;
        write_line(out, "clock", &self.clock)?;
        write_line(out, "recorder", &self.recorder)?;
        for (pid, TaskLine { comm, policy, cpus }) in &self.tasks {
            let comm = one_line(comm);
            writeln!(out, "# task {pid} comm={comm} policy={policy} cpus={cpus}")?;
        }
        for (keyword, groups) in [("cgroup", &self.cgroups), ("autogroup", &self.autogroups)] {
            for (path, pids) in groups {
                let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
                writeln!(out, "# {keyword}: {} {}", pids.join(","), one_line(path))?;
            }
        }
        for path in &self.ungrouped {
            writeln!(out, "# ungrouped: {}", one_line(path))?;
        }
        for (path, shares) in &self.shares {
            writeln!(out, "# shares: {shares} {}", one_line(path))?;
        }
        write_line(out, "overrun", &self.overrun)?;
        for (cpu, events) in &self.lost {
            writeln!(out, "# lost: cpu {cpu} events {events}")?;
        }
        Ok(())
    }
}

fn write_line<T: fmt::Display>(
    out: &mut fmt::Formatter<'_>,
    keyword: &str,
    value: &Option<T>,
) -> fmt::Result {
    let Some(value) = value else { return Ok(()) };
    writeln!(out, "# {keyword}: {}", one_line(&value.to_string()))
}

pub(crate) fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use placewise_machine::load;
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Header {
        let mut header = Header::default();
        for line in text.lines() {
            assert!(header.line(line), "{line}");
        }
        header
    }

    #[test]
    fn every_line_is_understood() {
        let header = read(
            "\
# kernel: 6.18.15+deb13-cloud-amd64
# command: pp 6 1 6
# cpu 0 core=0-1 llc=0-3 package=0
# node/node0 cpus=0 distance=10
# overrun: 3
# clock: mono
# features: PLACE_LAG NO_HRTICK
# preempt: none
# base_slice_ns: 2800000
# hz: 250
# vendor: AuthenticAMD 25
# recorder: 4711
# task 15 comm=a cpus=1 policy=x policy=SCHED_FIFO cpus=0,2
# cgroup: 310,312 /user.slice/a b
# autogroup: 7,9 /autogroup-3
# ungrouped: /user.slice/a b
# shares: 512 /user.slice/a b
# lost: cpu 3 events 12
",
        );
        assert_eq!(header.problems, [""; 0]);
        assert_eq!(header.kernel.as_deref(), Some("6.18.15+deb13-cloud-amd64"));
        assert_eq!(header.command.as_deref(), Some("pp 6 1 6"));
        assert_eq!(header.topology.cpus.len(), 1);
        assert_eq!(header.topology.hz, Some(250));
        assert_eq!(header.features, ["PLACE_LAG", "NO_HRTICK"]);
        assert_eq!(header.preempt.as_deref(), Some("none"));
        assert_eq!((header.base_slice_ns, header.recorder), (Some(2_800_000), Some(4711)));
        let task = &header.tasks[&15];
        assert_eq!((task.comm.as_str(), task.policy), ("a cpus=1 policy=x", SchedPolicy::Fifo));
        assert_eq!(task.cpus.to_string(), "0,2");
        assert_eq!(header.cgroups["/user.slice/a b"], BTreeSet::from([310, 312]));
        assert_eq!(header.autogroups["/autogroup-3"], BTreeSet::from([7, 9]));
        assert_eq!(header.ungrouped, BTreeSet::from(["/user.slice/a b".to_owned()]));
        assert_eq!(header.shares["/user.slice/a b"], 512);
        assert_eq!((header.overrun, header.lost[&3]), (Some(3), 12));
        assert_eq!(header.lost_events(), Some(3));
    }

    #[test]
    fn other_comments_and_events_are_left_alone() {
        let mut header = Header::default();
        for line in [
            "# tracer: nop",
            "#",
            "# entries-in-buffer/entries-written: 32784/32784   #P:16",
            "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION",
            "# hostname : epyc",
            "# tasks: many",
            "          <idle>-0       [006] dNh2.     5.541742: sched_wakeup: comm=kernel: pid=15",
            "CPU:3 [LOST 12 EVENTS]",
            "",
        ] {
            assert!(!header.line(line), "{line}");
        }
        assert_eq!(header, Header::default());
    }

    #[test]
    fn lines_that_cannot_be_read_are_remembered() {
        for (line, reason) in [
            ("# overrun: many", "`many` is not a number"),
            ("# base_slice_ns: -1", "`-1` is not a number"),
            ("# lost: 12", "expected `cpu N events M`"),
            ("# lost: cpu 1024 events 12", "CPU 1024 is beyond the 1024"),
            ("# task 15 comm=x cpus=0", "expected `task PID comm=NAME"),
            ("# task 15 comm=x policy=FIFO cpus=0", "`FIFO`: expected SCHED_OTHER, SCHED_FIFO"),
            ("# task 15 comm=x policy=SCHED_FIFO cpus=z", "`z` is not a CPU"),
            ("# cgroup: 310", "expected `cgroup: PID,PID,... PATH`"),
            ("# cgroup: 310,x /a", "`x` is not a number"),
            ("# shares: 1024", "expected `shares: N PATH`"),
            ("# shares: 1 /a", "`1`: expected 2 to 262144"),
            ("# autogroup: 310", "expected `autogroup: PID,PID,... NAME`"),
            ("# cpu 0 core=z package=0", "cpu 0: CPU list `z`"),
        ] {
            let mut header = Header::default();
            assert!(header.line(line));
            assert_eq!(header.problems.len(), 1, "{line}");
            assert!(header.problems[0].starts_with(&format!("`{line}`: ")));
            assert!(header.problems[0].contains(reason), "{}", header.problems[0]);
        }
    }

    #[test]
    fn a_line_break_in_a_name_does_not_forge_a_line() {
        let command = Some("sh -c 'a\n# hz: 1'".to_string());
        let text = Header { command, ..Header::default() }.to_string();
        assert_eq!(text, "# command: sh -c 'a # hz: 1'\n");
    }

    fn word() -> impl Strategy<Value = String> {
        "[!-~]{1,12}"
    }

    /// Anything printable, without spaces at the ends.
    fn words() -> impl Strategy<Value = String> {
        prop::collection::vec(word(), 1..4).prop_map(|words| words.join(" "))
    }

    fn task() -> impl Strategy<Value = TaskLine> {
        let policy = prop::sample::select(POLICIES.map(|policy| policy.0).to_vec());
        let cpus = prop::collection::vec(0usize..1024, 0..9);
        ("[ -~]{0,15}", policy, cpus).prop_map(|(comm, policy, cpus)| TaskLine {
            comm,
            policy,
            cpus: cpus.into_iter().collect(),
        })
    }

    fn cgroup() -> impl Strategy<Value = BTreeSet<u32>> {
        prop::collection::btree_set(any::<u32>(), 1..4)
    }

    prop_compose! {
        fn header()(
            (kernel, policy, command, clock, preempt) in (
                prop::option::of(word()),
                prop::option::of(word()),
                prop::option::of(words()),
                prop::option::of(word()),
                prop::option::of(word()),
            ),
            machine in prop::sample::select(&["uma-8", "arm64-8", "zen3-2s-nps1"][..]),
            features in prop::collection::vec(word(), 0..4),
            (base_slice_ns, recorder, overrun) in any::<(Option<u64>, Option<u32>, Option<u64>)>(),
            tasks in prop::collection::btree_map(any::<u32>(), task(), 0..4),
            lost in prop::collection::btree_map(0usize..1024, any::<u64>(), 0..4),
            cgroups in prop::collection::btree_map(words(), cgroup(), 0..4),
            autogroups in prop::collection::btree_map(words(), cgroup(), 0..4),
            shares in prop::collection::btree_map(words(), SHARES, 0..4),
            ungrouped in prop::collection::btree_set(words(), 0..4),
        ) -> Header {
            let topology = TraceTopology::of(&load(machine).unwrap());
            let problems = Vec::new();
            Header {
                kernel, policy, command, topology, base_slice_ns, features, preempt, clock, recorder,
                tasks, cgroups, autogroups, ungrouped, shares, overrun, lost, problems,
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_written_is_read_back(header in header()) {
            prop_assert_eq!(read(&header.to_string()), header);
        }

        #[test]
        fn any_text_is_taken_or_left(
            line in "\\PC{0,60}",
            keyword in "(kernel|lost|task|cgroup|autogroup|ungrouped|shares|cpu|node/node|hz|overrun):?",
            value in "[ -~]{0,40}",
        ) {
            let mut header = Header::default();
            header.line(&line);
            header.line(&format!("# {keyword} {value}"));
            let _ = header.to_string();
        }
    }
}
