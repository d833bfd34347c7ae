//! What the kernel's primitives take on this machine, pinned: times for a machine file. On an emulated
//! machine a ns is an instruction.

use std::fs;
use std::hint::black_box;
use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Instant;

use anyhow::Context;
use rustix::pipe::pipe;
use rustix::thread::{CpuSet, futex, sched_setaffinity, sched_yield};
use rustix::time::{ClockId, clock_gettime};

use crate::topology::Distances;

/// Times of primitives, in ns each: `syscall_ns`, `pipe_pair_ns` ...
#[derive(clap::Args)]
pub struct CostsArgs {
    #[arg(long, default_value_t = 500)]
    rounds: u32,
}

/// From which all else is measured.
const HOME: usize = 0;

pub fn run(args: &CostsArgs) -> anyhow::Result<()> {
    let rounds = args.rounds;
    stay(HOME)?;
    print("syscall_ns", rounds, || {
        black_box(rustix::process::getppid());
        Ok(())
    })?;
    let (reader, writer) = pipe().context("pipe")?;
    print("pipe_pair_ns", rounds, || {
        put(&writer)?;
        take(&reader)
    })?;
    let word = std::sync::atomic::AtomicU32::new(0);
    print("futex_wake_nobody_ns", rounds, || {
        futex::wake(&word, futex::Flags::PRIVATE, 1)?;
        Ok(())
    })?;
    print("fork_and_wait_ns", rounds / 10, fork_and_wait)?;
    threads(rounds / 10)?;
    yields(rounds)?;
    round_trip("same_cpu", HOME, rounds)?;
    for (distance, cpu) in Distances::of_guest()?.nearest(HOME) {
        round_trip(distance.name(), cpu, rounds)?;
    }
    Ok(())
}

/// CPU time, median, that it takes to create a thread, and that the thread then takes until it would tell
/// a load that it is ready.
fn threads(rounds: u32) -> anyhow::Result<()> {
    let (mut creations, mut starts) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let begin = cpu_time();
        let ready = || fs::read_to_string("/proc/thread-self/sched").map(|_| cpu_time());
        let thread = thread::spawn(ready);
        creations.push(cpu_time() - begin);
        let ready = thread.join().expect("it does not panic");
        starts.push(ready.context("/proc/thread-self/sched")?);
    }
    for (name, times) in [("thread_create_ns", &mut creations), ("thread_start_ns", &mut starts)] {
        times.sort_unstable();
        println!("{name} {}", times[times.len() / 2]);
    }
    Ok(())
}

/// Of this thread, in ns.
fn cpu_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn stay(cpu: usize) -> anyhow::Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    sched_setaffinity(None, &cpus).context("sched_setaffinity")
}

/// The mean, after some for warming up.
fn print(name: &str, rounds: u32, mut each: impl FnMut() -> io::Result<()>) -> anyhow::Result<()> {
    let mut start = Instant::now();
    for round in 0..rounds + rounds / 5 {
        if round == rounds / 5 {
            start = Instant::now();
        }
        each().with_context(|| name.to_owned())?;
    }
    println!("{name} {}", start.elapsed().as_nanos() / u128::from(rounds));
    Ok(())
}

fn take(from: &OwnedFd) -> io::Result<()> {
    rustix::io::read(from, &mut [0; 100])?;
    Ok(())
}

fn put(to: &OwnedFd) -> io::Result<()> {
    rustix::io::write(to, &[0; 100])?;
    Ok(())
}

fn fork_and_wait() -> io::Result<()> {
    // SAFETY: the child does nothing but exit.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: _exit() runs nothing of this program.
        0 => unsafe { libc::_exit(0) },
        // SAFETY: waitpid() may be told that nobody wants the status.
        child => match unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        },
    }
}

/// Two tasks that yield to each other: a system call and a switch each.
fn yields(rounds: u32) -> anyhow::Result<()> {
    let other = thread::spawn(move || (0..2 * rounds).for_each(|_| sched_yield()));
    print("yield_ns", rounds, || {
        sched_yield();
        Ok(())
    })?;
    other.join().map_err(|_| anyhow::anyhow!("it panicked"))
}

/// To a partner on `cpu` and back: two wakeups.
fn round_trip(name: &str, cpu: usize, rounds: u32) -> anyhow::Result<()> {
    let ((here, there), (hence, thence)) = (pipe().context("pipe")?, pipe().context("pipe")?);
    let partner = thread::spawn(move || -> anyhow::Result<()> {
        stay(cpu)?;
        while rustix::io::read(&hence, &mut [0; 100])? > 0 {
            put(&there)?;
        }
        Ok(())
    });
    print(&format!("round_trip_{name}_ns"), rounds, || {
        put(&thence)?;
        take(&here)
    })?;
    drop(thence);
    partner.join().map_err(|_| anyhow::anyhow!("it panicked"))?
}
