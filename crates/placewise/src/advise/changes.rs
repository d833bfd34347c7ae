//! What advice has changed on this host: made step by step, and taken back.
//!
//! A file says it before the first command runs, so that it can be taken back whatever becomes of this
//! process. It is where it is gone after a reboot, as the changes are. Taking back what was not made
//! yet does no harm.
//!
//! Limits: threads that were created meanwhile have inherited affinities, and keep them; a change that
//! somebody else has made meanwhile is taken back too.

use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use tempfile::{NamedTempFile, PersistError};

use super::step::{SCHED_EXT_STATE, Step};
use crate::input::InputError;

/// Unless systemd names another.
const DIRECTORY: &str = "/run";
const FILE: &str = "placewise-advice.json";

/// How long a scheduler may take to be loaded or unloaded.
const PATIENCE: Duration = Duration::from_secs(60);

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    what: String,
    steps: Vec<Step>,
}

/// Advice that is carried out on this host.
pub struct Changes {
    path: PathBuf,
    said: Said,
}

impl Changes {
    /// Says what will be changed; refuses to while other advice is carried out.
    pub fn begin(what: &str, steps: Vec<Step>) -> anyhow::Result<Self> {
        let path = path();
        let cannot = || format!("cannot write {}", path.display());
        let directory = path.parent().expect("it is in a directory");
        let mut file = NamedTempFile::new_in(directory).with_context(cannot)?;
        let changes = Changes { said: Said { what: what.to_owned(), steps }, path: path.clone() };
        serde_json::to_writer_pretty(&mut file, &changes.said).with_context(cannot)?;
        if let Err(PersistError { error, .. }) = file.persist_noclobber(&path) {
            if error.kind() == ErrorKind::AlreadyExists {
                let problem =
                    "other advice is carried out; `placewise advise --undo` takes it back";
                return Err(InputError(problem.into()).into());
            }
            return Err(error).with_context(cannot);
        }
        Ok(changes)
    }

    /// Those that an earlier process has said.
    pub fn of_file() -> anyhow::Result<Self> {
        let path = path();
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => anyhow::Error::new(InputError(
                "--undo: no advice is carried out here, or it has been taken back".into(),
            )),
            _ => anyhow::Error::new(error).context(format!("cannot read {}", path.display())),
        })?;
        let said = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        Ok(Changes { path, said })
    }

    pub fn what(&self) -> &str {
        &self.said.what
    }

    /// Stops at the first command that fails, or once `is_told_to_stop`.
    pub fn make(&self, is_told_to_stop: impl Fn() -> bool) -> anyhow::Result<()> {
        for step in &self.said.steps {
            for command in step.commands_one_by_one() {
                ensure!(!is_told_to_stop(), "stopped by a signal");
                run(&command)?;
            }
            if let Step::Scheduler { .. } = step {
                await_scheduler("enabled")?;
            }
        }
        Ok(())
    }

    /// Goes on where something cannot be taken back, and then keeps the file that says it.
    pub fn take_back(self) -> anyhow::Result<()> {
        let mut failures = Vec::new();
        for step in self.said.steps.iter().rev().map(Step::undo).map(Step::of_who_is_there) {
            if matches!(step, Step::Scheduler { .. }) && scheduler_state() == "disabled" {
                continue;
            }
            for command in step.commands_one_by_one() {
                failures.extend(run(&command).err());
            }
            if let Step::Scheduler { .. } = step {
                failures.extend(await_scheduler("disabled").err());
            }
        }
        let Some(failure) = failures.into_iter().next() else {
            return fs::remove_file(&self.path)
                .with_context(|| format!("cannot remove {}", self.path.display()));
        };
        let kept = self.path.display();
        Err(failure.context(format!("not all is taken back; {kept} says what was changed")))
    }
}

fn path() -> PathBuf {
    let directory = std::env::var_os("RUNTIME_DIRECTORY").unwrap_or_else(|| DIRECTORY.into());
    Path::new(&directory).join(FILE)
}

/// By a shell, in a process group of its own: what ends us from a terminal does not end it half way.
fn run(command: &str) -> anyhow::Result<()> {
    let log = tempfile::tempfile().context("cannot keep what a command says")?;
    let copy = || log.try_clone().map(Stdio::from);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-ec", command]).env("PATH", search_path()).process_group(0);
    shell.stdin(Stdio::null()).stdout(copy()?).stderr(copy()?);
    let status = shell.status().context("/bin/sh cannot be started")?;
    if status.success() {
        return Ok(());
    }
    let said = last_line(log);
    bail!("`{command}` failed ({status}){said}")
}

fn last_line(mut log: fs::File) -> String {
    let mut text = String::new();
    let read = log.rewind().and_then(|()| log.read_to_string(&mut text));
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    line.filter(|_| read.is_ok()).map_or_else(String::new, |line| format!(": {line}"))
}

/// This program, and what is installed beside it, come first.
fn search_path() -> OsString {
    let beside = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = beside.into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(all).unwrap_or(path)
}

fn scheduler_state() -> String {
    fs::read_to_string(SCHED_EXT_STATE).unwrap_or_default().trim().to_owned()
}

fn await_scheduler(state: &str) -> anyhow::Result<()> {
    let asked = Instant::now();
    while scheduler_state() != state {
        ensure!(
            asked.elapsed() < PATIENCE,
            "scx_placewise: sched_ext is {} after {} s, expected {state}",
            scheduler_state(),
            PATIENCE.as_secs()
        );
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings in files, the second of which is not there.
    fn steps(directory: &Path) -> Vec<Step> {
        let step = |name: &str| Step::Setting {
            file: directory.join(name),
            then: Some("2".into()),
            was: Some("1".into()),
        };
        vec![step("there"), step("missing/file")]
    }

    #[test]
    fn what_was_made_before_a_failure_is_taken_back_and_told() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("there"), "1\n").unwrap();
        let path = directory.path().join(FILE);
        let changes =
            |steps| Changes { path: path.clone(), said: Said { what: "w".into(), steps } };
        let read = || fs::read_to_string(directory.path().join("there")).unwrap();

        let both = changes(steps(directory.path()));
        let error = both.make(|| false).unwrap_err().to_string();
        assert!(error.contains("missing/file") && error.contains("failed"), "{error}");
        assert_eq!(read(), "2\n");
        fs::write(&path, "").unwrap();
        let error = format!("{:#}", both.take_back().unwrap_err());
        assert!(error.contains("not all is taken back"), "{error}");
        assert_eq!((read().as_str(), path.exists()), ("1\n", true));

        let mut one = steps(directory.path());
        one.truncate(1);
        let one = changes(one);
        assert_eq!(one.make(|| true).unwrap_err().to_string(), "stopped by a signal");
        assert_eq!(read(), "1\n");
        one.make(|| false).unwrap();
        assert_eq!(read(), "2\n");
        one.take_back().unwrap();
        assert_eq!((read().as_str(), path.exists()), ("1\n", false));
    }
}
