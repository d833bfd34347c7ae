//! A replay as a file: a recording that has been fitted, and whether it was like its trace.
//!
//! JSON, an object with `"placewise_replay": 2`. The number grows when a key is renamed, goes or means
//! something else. `docs/replay.md` has the keys. A file is not trusted: what it names must be there.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use placewise_machine::{CpuSet, Machine};
use placewise_workload::program::{Call, Cgroup, Nanos, SchedPolicy, Workload};
use serde::{Deserialize, Serialize};

use crate::error::ReplayError;
use crate::programs::Begins;
use crate::recording::{
    AtEnd, Calls, MOST_OF_CALL_NS, RecordedCgroup, RecordedTask, Recording, Step, TaskIndex,
};

const VERSION: u32 = 2;

/// The key that tells such a file from other JSON.
const KEY: &str = "\"placewise_replay\"";

const LARGEST_MIB: u64 = 1024;
const MOST_TASKS: usize = 16_384;
const MOST_LINES: u32 = 1_000_000;
/// A day: no recording in memory is longer.
const LONGEST_NS: Nanos = 86_400_000_000_000;

/// A recording, where it is at home, and how far it is to be trusted.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    pub recording: Recording,
    pub home: Home,
    /// What it was recorded under, by the name that it has here; not in older files.
    pub kernel: Option<String>,
    /// How that preempted, as debugfs names it, where its trace says so.
    pub preempt: Option<String>,
    /// It was like its trace.
    pub is_trusted: bool,
    /// Whose tasks were not.
    pub blamed: Option<String>,
}

/// The shape of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Home {
    cpus: usize,
    cores: usize,
    llcs: usize,
    nodes: usize,
    packages: usize,
}

impl Home {
    pub fn of(machine: &Machine) -> Self {
        Home {
            cpus: machine.online().len(),
            cores: machine.nr_cores(),
            llcs: machine.nr_llcs(),
            nodes: machine.nr_nodes(),
            packages: machine.nr_packages(),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplayFile {
    placewise_replay: u32,
    recorded_on: Home,
    #[serde(default)]
    kernel: Option<String>,
    #[serde(default)]
    preempt: Option<String>,
    is_trusted: bool,
    blamed: Option<String>,
    length_ns: Nanos,
    #[serde(default)]
    cgroups: Vec<CgroupEntry>,
    tasks: Vec<TaskEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum CgroupEntry {
    /// Of the default weight.
    Path(String),
    Weighted(String, u32),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskEntry {
    name: String,
    #[serde(default)]
    pid: u32,
    nice: i8,
    policy: PolicyEntry,
    cpus: Option<String>,
    #[serde(default)]
    cgroup: Option<u32>,
    lines: u32,
    #[serde(default)]
    queue_ns: Vec<u32>,
    #[serde(default)]
    rest_ns: Vec<u32>,
    #[serde(default)]
    arrival_queue_ns: u32,
    #[serde(default)]
    arrival_rest_ns: u32,
    #[serde(default)]
    idle_exit_ns: i32,
    #[serde(default)]
    preempt_ns: u32,
    #[serde(default)]
    interrupted_on: Option<u32>,
    #[serde(default)]
    wakee_flips: u32,
    begins_on: u32,
    runs_at_once: bool,
    is_forked: bool,
    exits: bool,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PolicyEntry {
    Other,
    Idle,
    Fifo(u8),
    RoundRobin(u8),
}

impl Replay {
    /// On `machine`.
    pub fn workload(&self, name: &str, machine: &Machine) -> Workload {
        let is_home = Home::of(machine) == self.home;
        let begins = if is_home { Begins::WhereTheyWere } else { Begins::Anywhere };
        self.recording.workload(name, machine, begins)
    }

    /// Is this the beginning of such a file, and not of an rt-app file or a trace?
    pub fn is_in(path: &Path) -> bool {
        let mut head = Vec::new();
        let read = File::open(path).and_then(|file| file.take(256).read_to_end(&mut head));
        read.is_ok() && String::from_utf8_lossy(&head).contains(KEY)
    }

    pub fn read(path: &Path) -> Result<Self, ReplayError> {
        let wrong =
            |problem: String| ReplayError::Unfit { file: path.display().to_string(), problem };
        let cannot = |error: std::io::Error| wrong(format!("cannot be read: {error}"));
        let file = File::open(path).map_err(cannot)?;
        if file.metadata().map_err(cannot)?.len() > LARGEST_MIB << 20 {
            return Err(wrong(format!("is larger than {LARGEST_MIB} MiB")));
        }
        Self::from_reader(BufReader::new(file)).map_err(wrong)
    }

    /// What is wrong with the text, in one line.
    pub fn from_reader(reader: impl Read) -> Result<Self, String> {
        // An unknown key may hold anything.
        let one_line = |error: serde_json::Error| error.to_string().replace(char::is_control, " ");
        let file: ReplayFile = serde_json::from_reader(reader).map_err(one_line)?;
        if file.placewise_replay != VERSION {
            let other = file.placewise_replay;
            return Err(format!("placewise_replay: {other}: expected {VERSION}; write it anew"));
        }
        if !(1..=LONGEST_NS).contains(&file.length_ns) {
            return Err(format!("length_ns: expected 1 to {LONGEST_NS}"));
        }
        check_tasks(&file.tasks)?;
        let ReplayFile { recorded_on: home, kernel, preempt, is_trusted, blamed, .. } = file;
        let ReplayFile { length_ns, cgroups, tasks, .. } = file;
        let tasks = tasks.into_iter().zip(0..).map(|(task, index)| task.recorded(index));
        let cgroups = cgroups.into_iter().map(CgroupEntry::recorded).collect();
        let recording = Recording { length_ns, cgroups, tasks: tasks.collect::<Result<_, _>>()? };
        check_cgroups(&recording)?;
        Ok(Replay { recording, home, kernel, preempt, is_trusted, blamed })
    }

    pub fn write(&self, to: impl Write) -> serde_json::Result<()> {
        let Replay { recording, home, kernel, preempt, is_trusted, blamed } = self;
        let file = ReplayFile {
            placewise_replay: VERSION,
            recorded_on: *home,
            kernel: kernel.clone(),
            preempt: preempt.clone(),
            is_trusted: *is_trusted,
            blamed: blamed.clone(),
            length_ns: recording.length_ns,
            cgroups: recording.cgroups.iter().map(CgroupEntry::of).collect(),
            tasks: recording.tasks.iter().map(TaskEntry::of).collect(),
        };
        serde_json::to_writer(to, &file)
    }
}

/// Each stands behind the one that it is in, and each task is in one of them.
fn check_cgroups(recording: &Recording) -> Result<(), String> {
    let paths: Vec<&str> = recording.cgroups.iter().map(|it| it.path.as_str()).collect();
    for (at, path) in paths.iter().enumerate() {
        let wrong = |what: &str| Err(format!("cgroups[{at}]: expected {what}"));
        let Some((above, name)) = path.rsplit_once('/') else { return wrong("a path") };
        if name.is_empty() || paths[..at].contains(path) {
            return wrong("a path that no other has");
        }
        if !above.is_empty() && !paths[..at].contains(&above) {
            return wrong("the cgroup above it before it");
        }
        if !Cgroup::SHARES.contains(&recording.cgroups[at].shares) {
            let (least, most) = Cgroup::SHARES.into_inner();
            return wrong(&format!("shares from {least} to {most}"));
        }
    }
    let lost = |task: &RecordedTask| task.cgroup.is_some_and(|at| at as usize >= paths.len());
    match recording.tasks.iter().position(lost) {
        Some(index) => Err(format!("tasks[{index}]: cgroup: no such cgroup")),
        None => Ok(()),
    }
}

/// Each task that is named is there, and is forked once at most, by one before it: so nobody forks
/// itself.
fn check_tasks(tasks: &[TaskEntry]) -> Result<(), String> {
    if tasks.is_empty() || tasks.len() > MOST_TASKS {
        return Err(format!("tasks: expected 1 to {MOST_TASKS} of them"));
    }
    let mut forked = vec![false; tasks.len()];
    for (task, index) in tasks.iter().zip(0..) {
        let mut last = 0;
        for step in &task.steps {
            let at = |problem: String| Err(format!("tasks[{index}]: {step:?}: {problem}"));
            let known = |other: TaskIndex| (other as usize) < tasks.len();
            match *step {
                Step::Post(other, _) | Step::Answer(other, _) | Step::Await(other)
                    if !known(other) =>
                {
                    return at("there is no such task".into());
                }
                Step::Fork(child) if !known(child) || child <= index => {
                    return at("expected the number of a later task".into());
                }
                Step::Fork(child) if std::mem::replace(&mut forked[child as usize], true) => {
                    return at("is forked already".into());
                }
                Step::Run(ns) | Step::Sleep(ns) if ns > LONGEST_NS => {
                    return at(format!("expected up to {LONGEST_NS} ns"));
                }
                Step::Until(time) if time < last || time > LONGEST_NS => {
                    return at("expected a time that is not before the last one".into());
                }
                Step::Until(time) => last = time,
                _ => {}
            }
        }
    }
    match tasks.iter().zip(&forked).position(|(task, forked)| task.is_forked != *forked) {
        Some(index) => Err(format!("tasks[{index}]: is_forked: expected whether a step forks it")),
        None => Ok(()),
    }
}

impl CgroupEntry {
    fn of(cgroup: &RecordedCgroup) -> Self {
        let path = cgroup.path.clone();
        match cgroup.shares {
            Cgroup::DEFAULT_SHARES => CgroupEntry::Path(path),
            shares => CgroupEntry::Weighted(path, shares),
        }
    }

    fn recorded(self) -> RecordedCgroup {
        let (path, shares) = match self {
            CgroupEntry::Path(path) => (path, Cgroup::DEFAULT_SHARES),
            CgroupEntry::Weighted(path, shares) => (path, shares),
        };
        RecordedCgroup { path, shares }
    }
}

impl TaskEntry {
    fn of(task: &RecordedTask) -> Self {
        TaskEntry {
            name: task.name.clone(),
            pid: task.pid,
            nice: task.nice,
            policy: match task.policy {
                SchedPolicy::Other => PolicyEntry::Other,
                SchedPolicy::Idle => PolicyEntry::Idle,
                SchedPolicy::Fifo(priority) => PolicyEntry::Fifo(priority),
                SchedPolicy::RoundRobin(priority) => PolicyEntry::RoundRobin(priority),
            },
            cpus: task.cpus.map(|cpus| cpus.to_string()),
            cgroup: task.cgroup,
            lines: task.lines,
            queue_ns: task.calls.queue_ns.clone(),
            rest_ns: task.calls.rest_ns.clone(),
            arrival_queue_ns: task.arrival.queue_ns,
            arrival_rest_ns: task.arrival.rest_ns,
            idle_exit_ns: task.idle_exit_ns,
            preempt_ns: task.preempt_ns,
            interrupted_on: task.interrupted_on,
            wakee_flips: task.wakee_flips,
            begins_on: task.begins_on,
            runs_at_once: task.runs_at_once,
            is_forked: task.is_forked,
            exits: task.exits,
            steps: task.steps.clone(),
        }
    }

    fn recorded(self, index: TaskIndex) -> Result<RecordedTask, String> {
        let wrong = |what: &str| Err(format!("tasks[{index}]: {what}"));
        let policy = match self.policy {
            PolicyEntry::Other => SchedPolicy::Other,
            PolicyEntry::Idle => SchedPolicy::Idle,
            PolicyEntry::Fifo(priority) => SchedPolicy::Fifo(priority),
            PolicyEntry::RoundRobin(priority) => SchedPolicy::RoundRobin(priority),
        };
        let is_rt = matches!(policy, SchedPolicy::Fifo(_) | SchedPolicy::RoundRobin(_));
        if is_rt && !(1..=99).contains(&policy.rt_priority()) {
            return wrong("policy: expected a priority from 1 to 99");
        }
        if self.lines > MOST_LINES {
            return wrong(&format!("lines: expected up to {MOST_LINES}"));
        }
        let calls = Calls { queue_ns: self.queue_ns, rest_ns: self.rest_ns };
        let arrival = Call { queue_ns: self.arrival_queue_ns, rest_ns: self.arrival_rest_ns };
        for (names, [queue_ns, rest_ns]) in [
            ("queue_ns, rest_ns", [&calls.queue_ns[..], &calls.rest_ns]),
            ("arrival_queue_ns, arrival_rest_ns", [&[arrival.queue_ns], &[arrival.rest_ns]]),
            ("preempt_ns", [&[self.preempt_ns], &[]]),
        ] {
            if queue_ns.iter().chain(rest_ns).any(|ns| *ns > MOST_OF_CALL_NS) {
                return wrong(&format!("{names}: expected up to {MOST_OF_CALL_NS}"));
            }
        }
        if self.idle_exit_ns.unsigned_abs() > MOST_OF_CALL_NS {
            return wrong(&format!(
                "idle_exit_ns: expected no more than {MOST_OF_CALL_NS} either way"
            ));
        }
        if !(-20..=19).contains(&self.nice) {
            return wrong("nice: expected -20 to 19");
        }
        let cpus = self.cpus.as_deref().map(CpuSet::parse_list).transpose();
        let Ok(cpus) = cpus else { return wrong("cpus: expected a list such as 0-3,8") };
        Ok(RecordedTask {
            name: self.name,
            pid: self.pid,
            nice: self.nice,
            policy,
            cpus,
            cgroup: self.cgroup,
            lines: self.lines,
            calls,
            arrival,
            idle_exit_ns: self.idle_exit_ns,
            preempt_ns: self.preempt_ns,
            interrupted_on: self.interrupted_on,
            wakee_flips: self.wakee_flips,
            begins_on: self.begins_on,
            runs_at_once: self.runs_at_once,
            is_forked: self.is_forked,
            forked_ns: 0,
            at_end: AtEnd::default(),
            exits: self.exits,
            steps: self.steps,
        })
    }
}

#[cfg(test)]
mod tests {
    use placewise_workload::program::Wake;
    use proptest::prelude::*;

    use super::*;

    fn task(name: &str, steps: Vec<Step>) -> RecordedTask {
        RecordedTask {
            name: name.into(),
            pid: 7,
            nice: 0,
            policy: SchedPolicy::Fifo(3),
            cpus: Some(CpuSet::single(1)),
            cgroup: Some(1),
            lines: 4,
            calls: Calls { queue_ns: vec![1_000, 2_000], rest_ns: vec![3_000] },
            arrival: Call { queue_ns: 4_000, rest_ns: 5_000 },
            idle_exit_ns: -600,
            preempt_ns: 800,
            interrupted_on: Some(1),
            wakee_flips: 700,
            begins_on: 1,
            runs_at_once: true,
            is_forked: false,
            forked_ns: 0,
            at_end: AtEnd::default(),
            exits: false,
            steps,
        }
    }

    fn replay() -> Replay {
        let child = RecordedTask { is_forked: true, ..task("b", vec![Step::Await(0)]) };
        let steps = vec![
            Step::Run(5),
            Step::Fork(1),
            Step::Post(1, Wake::Sync),
            Step::Until(9),
            Step::Sleep(3),
        ];
        Replay {
            recording: Recording {
                length_ns: 100,
                cgroups: vec![
                    RecordedCgroup { path: "/a".into(), shares: 1024 },
                    RecordedCgroup { path: "/a/b".into(), shares: 2048 },
                ],
                tasks: vec![task("a", steps), child],
            },
            home: Home { cpus: 2, cores: 2, llcs: 1, nodes: 1, packages: 1 },
            kernel: Some("v6.12".into()),
            preempt: Some("none".into()),
            is_trusted: false,
            blamed: Some("a".into()),
        }
    }

    fn written(replay: &Replay) -> String {
        let mut text = Vec::new();
        replay.write(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = written(&replay());
        assert_eq!(Replay::from_reader(text.as_bytes()), Ok(replay()));
        assert!(text.contains(KEY) && text.contains("{\"post\":[1,\"sync\"]}"), "{text}");
    }

    #[test]
    fn what_cannot_be_is_refused_in_one_line() {
        let good = written(&replay());
        for (from, to, expected) in [
            ("\"placewise_replay\":2", "\"placewise_replay\":1", "expected 2"),
            ("{\"fork\":1}", "{\"fork\":0}", "a later task"),
            ("{\"fork\":1}", "{\"run\":1}", "is_forked"),
            ("[1,\"sync\"]", "[7,\"sync\"]", "no such task"),
            ("{\"fifo\":3}", "{\"fifo\":0}", "1 to 99"),
            ("\"nice\":0", "\"nice\":99", "-20 to 19"),
            ("\"cpus\":\"1\"", "\"cpus\":\"x\"", "a list"),
            ("\"cgroup\":1", "\"cgroup\":2", "no such cgroup"),
            ("\"/a\",", "", "the cgroup above"),
            ("\"/a/b\",2048", "\"/a/b\",1", "shares from 2"),
            ("\"length_ns\":100", "\"length_ns\":0", "length_ns"),
        ] {
            assert!(good.contains(from), "{from}");
            let error = Replay::from_reader(good.replacen(from, to, 1).as_bytes()).unwrap_err();
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_change_of_a_byte_is_read_or_refused(at in 0..1000usize, byte in any::<u8>()) {
            let mut text = written(&replay()).into_bytes();
            let at = at % text.len();
            text[at] = byte;
            if let Err(error) = Replay::from_reader(&text[..]) {
                prop_assert!(!error.contains('\n'));
            }
        }
    }
}
