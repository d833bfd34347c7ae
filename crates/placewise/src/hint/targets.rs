//! Whose threads a hint is for, read from /proc and the cgroup file system.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::input::InputError;

const CGROUPS: &str = "/sys/fs/cgroup";

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub struct TargetChoice {
    /// All threads of a process
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,

    /// One thread
    #[arg(long, value_name = "TID", value_parser = clap::value_parser!(i32).range(1..))]
    tid: Option<i32>,

    /// All threads in a cgroup and below, such as system.slice/nginx.service
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,

    /// Program to run with the hint, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

pub enum Target {
    Thread(i32),
    Process(i32),
    Cgroup(PathBuf),
}

impl Target {
    /// None where it is a command that is still to be started.
    pub fn chosen(choice: &TargetChoice) -> Result<Option<Self>, InputError> {
        let thread = choice.tid.map(Self::Thread);
        let process = choice.pid.map(Self::Process);
        let cgroup = choice.cgroup.as_deref().map(cgroup).transpose()?;
        Ok(thread.or(process).or(cgroup))
    }

    pub fn is_one_thread(&self) -> bool {
        matches!(self, Self::Thread(_))
    }

    pub fn threads(&self) -> Result<Vec<i32>, InputError> {
        let fault = |error: io::Error| InputError(format!("{self}: {}", reason(&error)));
        match self {
            Self::Thread(tid) => Ok(vec![*tid]),
            Self::Process(pid) => threads_of_process(*pid).map_err(fault),
            Self::Cgroup(path) => threads_of_cgroup(path).map_err(fault),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(tid) => write!(f, "thread {tid}"),
            Self::Process(pid) => write!(f, "process {pid}"),
            Self::Cgroup(path) => write!(f, "cgroup {}", path.display()),
        }
    }
}

/// Absolute, or from the root of the cgroup file system on.
fn cgroup(path: &Path) -> Result<Target, InputError> {
    let inside = path.strip_prefix(CGROUPS).unwrap_or(path);
    let path = Path::new(CGROUPS).join(inside.strip_prefix("/").unwrap_or(inside));
    if !path.join("cgroup.threads").exists() {
        let problem = "no such cgroup; expected a directory of cgroup v2";
        return Err(InputError(format!("cgroup {}: {problem}", path.display())));
    }
    Ok(Target::Cgroup(path))
}

fn threads_of_process(pid: i32) -> io::Result<Vec<i32>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        threads.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    threads.sort_unstable();
    Ok(threads)
}

fn threads_of_cgroup(path: &Path) -> io::Result<Vec<i32>> {
    let text = fs::read_to_string(path.join("cgroup.threads"))?;
    let mut threads: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            threads.extend(threads_of_cgroup(&entry.path())?);
        }
    }
    Ok(threads)
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such process".into(),
        _ => error.to_string(),
    }
}

/// The name of a thread; a dash when it has ended.
pub fn command_of(tid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{tid}/comm"));
    name.map_or_else(|_| "-".into(), |name| name.trim_end().to_owned())
}
