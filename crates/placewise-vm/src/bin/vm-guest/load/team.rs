//! Tasks that are created, wait until all are there and are let go at once, or begin as they come; and what
//! became of them.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::pipe::pipe;

use super::schedstat::Schedstat;

/// What a task does once it is let go; returns the messages that it counts.
pub type Body = Box<dyn FnOnce() -> io::Result<u64> + Send>;

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Thread,
    Process,
}

pub struct Outcome {
    pub messages: u64,
    pub duration: Duration,
    pub tasks: Usage,
    /// Of all CPUs meanwhile, with all that ran there.
    pub machine: Schedstat,
    /// In ns, of loads that take samples.
    pub latencies: Vec<u64>,
}

/// By the kernel's account, of one task or the sum of several.
#[derive(Default)]
pub struct Usage {
    tasks: u64,
    sleeps: u64,
    preemptions: u64,
    migrations: u64,
    /// Of the sleeps and preemptions, those of tasks that count messages.
    receiver_sleeps: u64,
    receiver_preemptions: u64,
}

impl Usage {
    pub fn figures(&self) -> [(&'static str, u64); 6] {
        [
            ("tasks", self.tasks),
            ("sleeps", self.sleeps),
            ("preemptions", self.preemptions),
            ("migrations", self.migrations),
            ("receiver_sleeps", self.receiver_sleeps),
            ("receiver_preemptions", self.receiver_preemptions),
        ]
    }
}

/// What all tasks add to, in memory that processes share.
#[derive(Default)]
struct Tally {
    messages: AtomicU64,
    sleeps: AtomicU64,
    preemptions: AtomicU64,
    migrations: AtomicU64,
    receiver_sleeps: AtomicU64,
    receiver_preemptions: AtomicU64,
    /// When the last one was done, in ns since `start`.
    end: AtomicU64,
    failures: AtomicU64,
    tasks: AtomicU64,
}

/// This program is one run.
static TEAM: OnceLock<Team> = OnceLock::new();

struct Team {
    start: Instant,
    tally: &'static Tally,
    ready: (OwnedFd, OwnedFd),
    gate: (OwnedFd, OwnedFd),
}

/// Runs a task for each body, once all are there; `meanwhile` is what this one does between start and end.
pub fn run(kind: Kind, bodies: Vec<Body>, meanwhile: impl FnOnce()) -> anyhow::Result<Outcome> {
    let (tasks, team) = (bodies.len(), Team::gather()?);
    let members = bodies.into_iter().map(|body| Member::start(kind, team, body));
    let members = members.collect::<io::Result<Vec<_>>>()?;
    for _ in 0..tasks {
        rustix::io::read(&team.ready.0, &mut [0; 1]).context("the pipe")?;
    }
    let before = (Schedstat::read()?, team.now());
    team.open_gate()?;
    meanwhile();
    team.end(members, before)
}

/// Runs a process for each body, which begins when it is forked; `meanwhile` as above.
pub fn run_as_they_come(bodies: Vec<Body>, meanwhile: impl FnOnce()) -> anyhow::Result<Outcome> {
    let team = Team::gather()?;
    team.open_gate()?;
    let before = (Schedstat::read()?, team.now());
    let members = bodies.into_iter().map(|body| Member::start(Kind::Process, team, body));
    let members = members.collect::<io::Result<Vec<_>>>()?;
    meanwhile();
    team.end(members, before)
}

/// A member of the team that one of its members forks.
pub fn fork(body: Body) -> io::Result<Member> {
    Member::start(Kind::Process, TEAM.get().expect("a member forks"), body)
}

/// For the life of this program, in memory that its processes share.
pub fn shared<T: Sync>(value: T) -> anyhow::Result<&'static T> {
    let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: it asks for new memory, which is aligned to pages, and never unmapped.
    unsafe {
        let memory = mmap_anonymous(std::ptr::null_mut(), size_of::<T>(), rights, flags);
        let memory = memory.context("mmap")?.cast::<T>();
        memory.write(value);
        Ok(&*memory)
    }
}

impl Team {
    fn gather() -> anyhow::Result<&'static Self> {
        let team = Team {
            start: Instant::now(),
            tally: shared(Tally::default())?,
            ready: pipe().context("pipe")?,
            gate: pipe().context("pipe")?,
        };
        Ok(TEAM.get_or_init(|| team))
    }

    fn open_gate(&self) -> anyhow::Result<()> {
        rustix::io::write(&self.gate.1, &[0]).context("the pipe")?;
        Ok(())
    }

    fn end(
        &self,
        members: Vec<Member>,
        (before, start): (Schedstat, u64),
    ) -> anyhow::Result<Outcome> {
        for member in members {
            member.join()?;
        }
        let machine = Schedstat::read()?.since(&before);
        let tally = self.tally;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ensure!(get(&tally.failures) == 0, "{} tasks failed", get(&tally.failures));
        Ok(Outcome {
            messages: get(&tally.messages),
            duration: Duration::from_nanos(get(&tally.end) - start),
            tasks: Usage {
                tasks: get(&tally.tasks),
                sleeps: get(&tally.sleeps),
                preemptions: get(&tally.preemptions),
                migrations: get(&tally.migrations),
                receiver_sleeps: get(&tally.receiver_sleeps),
                receiver_preemptions: get(&tally.receiver_preemptions),
            },
            machine,
            latencies: Vec::new(),
        })
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// The life of one member. Waking up at the gate is no part of its switches, but of its migrations.
    fn take_part(&self, body: Body) -> io::Result<()> {
        let migrations = migrations()?;
        rustix::io::write(&self.ready.1, &[0])?;
        poll(&mut [PollFd::new(&self.gate.0, PollFlags::IN)], None)?;
        let before = switches()?;
        let messages = body()?;
        self.tally.end.fetch_max(self.now(), Ordering::Relaxed);
        let after = switches()?;
        let (sleeps, preemptions) = (after.0 - before.0, after.1 - before.1);
        let add = |counter: &AtomicU64, number| counter.fetch_add(number, Ordering::Relaxed);
        add(&self.tally.tasks, 1);
        add(&self.tally.messages, messages);
        add(&self.tally.sleeps, sleeps);
        add(&self.tally.preemptions, preemptions);
        if messages > 0 {
            add(&self.tally.receiver_sleeps, sleeps);
            add(&self.tally.receiver_preemptions, preemptions);
        }
        add(&self.tally.migrations, self::migrations()? - migrations);
        Ok(())
    }

    fn run_member(&self, body: Body) {
        if let Err(error) = self.take_part(body) {
            eprintln!("vm-guest: a task: {error}");
            self.tally.failures.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Of this task: voluntary and involuntary.
fn switches() -> io::Result<(u64, u64)> {
    // SAFETY: zeroes are a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills in the struct that it is given.
    match unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) } {
        0 => Ok((usage.ru_nvcsw as u64, usage.ru_nivcsw as u64)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How often this task has changed its CPU.
fn migrations() -> io::Result<u64> {
    let account = fs::read_to_string("/proc/thread-self/sched")?;
    let line = account.lines().find(|line| line.starts_with("se.nr_migrations"));
    let number = line.and_then(|line| line.rsplit(':').next()?.trim().parse().ok());
    number.ok_or_else(|| io::Error::other("no se.nr_migrations in /proc/thread-self/sched"))
}

pub enum Member {
    Thread(thread::JoinHandle<()>),
    Process(libc::pid_t),
}

impl Member {
    fn start(kind: Kind, team: &'static Team, body: Body) -> io::Result<Self> {
        if kind == Kind::Thread {
            return Ok(Self::Thread(thread::spawn(move || team.run_member(body))));
        }
        // SAFETY: a team of processes has no threads whose locks the child could miss.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                team.run_member(body);
                // SAFETY: _exit() runs nothing of this program.
                unsafe { libc::_exit(0) }
            }
            child => Ok(Self::Process(child)),
        }
    }

    pub fn join(self) -> io::Result<()> {
        match self {
            Self::Thread(handle) => {
                handle.join().map_err(|_| io::Error::other("a task panicked"))?;
            }
            Self::Process(child) => {
                // SAFETY: waitpid() may be told that nobody wants the status.
                let waited = unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
                if waited != child {
                    return Err(io::Error::last_os_error());
                }
            }
        }
        Ok(())
    }
}
