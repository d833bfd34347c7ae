//! One change of the running system: the commands that make it, and the change that takes it back.
//!
//! What threads and settings were before is taken from the trace, or not known, while advice is only
//! printed; where it is carried out, from the host ([`Step::as_it_is`]).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use placewise_hint::{Fork, Hint, Wake};
use serde::{Deserialize, Serialize};

use crate::input::InputError;

/// Where the kernel says whether a sched_ext scheduler is loaded.
pub const SCHED_EXT_STATE: &str = "/sys/kernel/sched_ext/state";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    Threads {
        threads: Vec<Thread>,
        then: Treatment,
        was: Treatment,
    },
    /// What a file of the kernel has; `None`: what it had, which the shell keeps.
    Setting {
        file: PathBuf,
        then: Option<String>,
        was: Option<String>,
    },
    /// `scx_placewise` with this policy is loaded, or unloaded.
    Scheduler {
        policy: String,
        loads: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thread {
    pub tid: u32,
    pub name: String,
    /// In ticks since boot, where it was looked up: another thread can get the number later.
    pub started: Option<u64>,
}

/// How threads are treated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    /// They may run on these CPUs.
    Cpus(String),
    /// SCHED_OTHER, or SCHED_BATCH.
    Other,
    Batch,
    /// SCHED_IDLE: where nobody else would run.
    Idle,
    /// As words of `placewise hint`.
    Hint(String),
}

impl Treatment {
    pub fn hint(hint: Hint) -> Self {
        let fork = hint.fork.map(|fork| match fork {
            Fork::Affine => "--fork affine",
            Fork::Spread => "--fork spread",
        });
        let wake = hint.wake.map(|wake| match wake {
            Wake::Affine => "--wake affine",
            Wake::Hold => "--wake hold",
        });
        let share_cache = hint.share_cache.then_some("--share-cache");
        let words: Vec<&str> = fork.into_iter().chain(wake).chain(share_cache).collect();
        match words.is_empty() {
            true => Treatment::Hint("--clear".into()),
            false => Treatment::Hint(words.join(" ")),
        }
    }

    /// `thread` is a number, or a variable of the shell.
    fn command(&self, thread: &str) -> String {
        match self {
            Treatment::Cpus(cpus) => format!("taskset -pc {cpus} {thread}"),
            Treatment::Other => format!("chrt -o -p 0 {thread}"),
            Treatment::Batch => format!("chrt -b -p 0 {thread}"),
            Treatment::Idle => format!("chrt -i -p 0 {thread}"),
            Treatment::Hint(words) => format!("placewise hint {words} --tid {thread}"),
        }
    }

    /// The one of the same kind that a thread has now; `None` where it cannot have this one.
    fn of(&self, status: &Status) -> Option<Treatment> {
        match (self, status.policy) {
            (Treatment::Cpus(_), _) => Some(Treatment::Cpus(status.cpus.clone())),
            // Hints are gone with the scheduler, which is not loaded yet.
            (Treatment::Hint(_), _) => Some(Treatment::hint(Hint::NONE)),
            (_, 0) => Some(Treatment::Other),
            (_, 3) => Some(Treatment::Batch),
            _ => None,
        }
    }
}

/// What /proc says of a thread.
struct Status {
    name: String,
    cpus: String,
    policy: u32,
    started: u64,
}

impl Status {
    /// `None` where there is no such thread.
    fn of(tid: u32) -> Option<Self> {
        let read = |file: &str| fs::read_to_string(format!("/proc/{tid}/{file}")).ok();
        let (stat, status) = (read("stat")?, read("status")?);
        let (before, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some(Status {
            name: before.split_once('(')?.1.to_owned(),
            cpus: cpus.trim().to_owned(),
            policy: fields.get(38)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

impl Thread {
    /// The thread that is meant, if it is there.
    fn status(&self) -> Option<Status> {
        let is_meant = |status: &Status| {
            status.name == self.name && self.started.is_none_or(|at| at == status.started)
        };
        Status::of(self.tid).filter(is_meant)
    }
}

impl Step {
    /// What takes it back.
    pub fn undo(&self) -> Step {
        match self.clone() {
            Step::Threads { threads, then, was } => Step::Threads { threads, then: was, was: then },
            Step::Setting { file, then, was } => Step::Setting { file, then: was, was: then },
            Step::Scheduler { policy, loads } => Step::Scheduler { policy, loads: !loads },
        }
    }

    /// For a shell, by root.
    pub fn commands(&self) -> Vec<String> {
        match self {
            Step::Threads { threads, then, .. } => match &threads[..] {
                [only] => vec![then.command(&only.tid.to_string())],
                all => {
                    let all: Vec<String> = all.iter().map(|it| it.tid.to_string()).collect();
                    vec![format!("for t in {}; do {}; done", all.join(" "), then.command("$t"))]
                }
            },
            Step::Setting { file, then: Some(then), was } => {
                let keep = was.is_none().then(|| format!("was=$(cat {})", file.display()));
                let write = format!("echo {then} > {}", file.display());
                keep.into_iter().chain([write]).collect()
            }
            Step::Setting { file, then: None, .. } => {
                vec![format!("echo $was > {}", file.display())]
            }
            Step::Scheduler { policy, loads: true } => {
                let is_loaded = format!("grep -q enabled {SCHED_EXT_STATE}");
                vec![
                    format!("scx_placewise --policy {policy} &"),
                    format!("until {is_loaded}; do sleep 1; done"),
                ]
            }
            Step::Scheduler { loads: false, .. } => {
                vec!["kill -INT $(pidof scx_placewise)".into()]
            }
        }
    }

    /// The same, each for one thread, without waiting.
    pub fn commands_one_by_one(&self) -> Vec<String> {
        match self {
            Step::Threads { threads, then, .. } => {
                threads.iter().map(|it| then.command(&it.tid.to_string())).collect()
            }
            Step::Scheduler { .. } => self.commands().into_iter().take(1).collect(),
            Step::Setting { .. } => self.commands(),
        }
    }

    /// The step with what takes it back to what this host is like now: of the threads that are there
    /// still, those that were alike together.
    pub fn as_it_is(&self) -> anyhow::Result<Vec<Step>> {
        match self {
            Step::Threads { threads, then, .. } => Ok(threads_as_they_are(threads, then)),
            Step::Setting { file, then: Some(then), .. } => {
                let was = setting(file, then)?;
                let (file, then) = (file.clone(), Some(then.clone()));
                Ok(vec![Step::Setting { file, then, was: Some(was) }])
            }
            Step::Setting { then: None, .. } => Ok(vec![self.clone()]),
            Step::Scheduler { .. } => {
                let state = fs::read_to_string(SCHED_EXT_STATE).with_context(|| {
                    format!("{SCHED_EXT_STATE}: this kernel cannot load scx_placewise")
                })?;
                let is_free = state.trim() == "disabled";
                let problem = "another sched_ext scheduler is loaded; stop it first";
                anyhow::ensure!(is_free, InputError(problem.into()));
                Ok(vec![self.clone()])
            }
        }
    }

    /// Without threads that have ended: of those there is nothing to take back.
    pub fn of_who_is_there(mut self) -> Step {
        if let Step::Threads { threads, .. } = &mut self {
            threads.retain(|thread| thread.status().is_some());
        }
        self
    }
}

fn threads_as_they_are(threads: &[Thread], then: &Treatment) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for thread in threads {
        let Some(status) = thread.status() else { continue };
        let Some(now) = then.of(&status) else { continue };
        let thread = Thread { started: Some(status.started), ..thread.clone() };
        let alike = steps.iter_mut().find_map(|step| match step {
            Step::Threads { threads, was, .. } if *was == now => Some(threads),
            _ => None,
        });
        match alike {
            Some(threads) => threads.push(thread),
            None => {
                let (threads, then) = (vec![thread], then.clone());
                steps.push(Step::Threads { threads, then, was: now });
            }
        }
    }
    steps
}

/// What has to be written to make `file` as it is, where `then` is to be written. A feature's file
/// lists all of them, with `NO_` before those that are off.
fn setting(file: &Path, then: &str) -> anyhow::Result<String> {
    let cannot = || format!("{}: cannot be read: are you root?", file.display());
    let text = fs::read_to_string(file).with_context(cannot)?;
    let is_list = file.ends_with("features") || file.ends_with("sched_features");
    if !is_list {
        return Ok(text.trim().to_owned());
    }
    let name = then.trim_start_matches("NO_");
    let now = text.split_whitespace().find(|word| word.trim_start_matches("NO_") == name);
    let problem = || InputError(format!("{}: has no feature {name}", file.display()));
    Ok(now.ok_or_else(problem)?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn myself() -> Thread {
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        Thread { tid, name: Status::of(tid).unwrap().name, started: None }
    }

    #[test]
    fn a_step_is_taken_back_to_what_the_host_was_like() {
        let me = myself();
        let mine = Status::of(me.tid).unwrap();
        let gone = Thread { tid: i32::MAX as u32, ..me.clone() };
        let renamed = Thread { name: "another".into(), ..me.clone() };
        let step = Step::Threads {
            threads: vec![gone, renamed, me.clone()],
            then: Treatment::Cpus("0".into()),
            was: Treatment::Cpus("0-999".into()),
        };
        let [now] = &step.as_it_is().unwrap()[..] else { panic!("one thread is there") };
        assert_eq!(now.commands(), [format!("taskset -pc 0 {}", me.tid)]);
        assert_eq!(now.undo().commands(), [format!("taskset -pc {} {}", mine.cpus, me.tid)]);
        let Step::Threads { threads, .. } = now.undo().of_who_is_there() else { unreachable!() };
        assert_eq!(threads, [Thread { started: Some(mine.started), ..me }]);
    }

    #[test]
    fn of_features_the_one_that_is_turned_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("features");
        fs::write(&file, "GENTLE NO_WA_IDLE WA_BIAS\n").unwrap();
        assert_eq!(setting(&file, "WA_IDLE").unwrap(), "NO_WA_IDLE");
        assert_eq!(setting(&file, "NO_WA_BIAS").unwrap(), "WA_BIAS");
        assert!(setting(&file, "SIS").unwrap_err().to_string().ends_with("has no feature SIS"));
        let number = directory.path().join("base_slice_ns");
        fs::write(&number, "2800000\n").unwrap();
        let step = Step::Setting { file: number.clone(), then: Some("300000".into()), was: None };
        let undo = step.as_it_is().unwrap()[0].undo();
        assert_eq!(undo.commands(), [format!("echo 2800000 > {}", number.display())]);
    }
}
