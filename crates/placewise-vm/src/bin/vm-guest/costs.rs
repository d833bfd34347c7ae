//! What the kernel's primitives take on this machine, pinned: times for a machine file. On an emulated
//! machine a ns is an instruction.

use std::fs;
use std::hint::black_box;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

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
    /// What wakeups take a waker, and nothing else
    #[arg(long)]
    wakes: bool,
}

/// From which all else is measured.
const HOME: usize = 0;
/// How often a bulk of messages passes.
const BULKS: usize = 21;
/// How many CPUs use one channel at a time, and how many bytes it holds then.
const SIDE_BY_SIDE: usize = 4;
const ROOM: usize = 1 << 20;
/// So many calls of a thousand: a tick interrupts one of 3,000 that take 1.2 us.
const INTERRUPTED: usize = 2;
const LONG_ENOUGH_TO_SLEEP: Duration = Duration::from_micros(300);
/// How many sleep on the waker's CPU, each on a pipe of its own.
const SLEEPERS: u32 = 16;

pub fn run(args: &CostsArgs) -> anyhow::Result<()> {
    stay(HOME)?;
    if !args.wakes {
        alone(args.rounds)?;
    }
    let elsewhere = Distances::of_guest()?.nearest(HOME);
    let partners = elsewhere.into_iter().map(|(distance, cpu)| (distance.name(), cpu));
    for (name, cpu) in std::iter::once(("same_cpu", HOME)).chain(partners) {
        if !args.wakes {
            round_trip(name, cpu, args.rounds)?;
        }
        wakes(name, cpu, args.rounds / 10)?;
    }
    Ok(())
}

/// What takes no partner elsewhere.
fn alone(rounds: u32) -> anyhow::Result<()> {
    print("syscall_ns", rounds, || {
        black_box(rustix::process::getppid());
        Ok(())
    })?;
    // Half of what a pipe and a socket hold if nobody changes that.
    let channels = [("pipe", 320, roomy_pipe()?), ("socket", 138, roomy_sockets()?)];
    for (name, half, (reader, writer)) in channels {
        in_bulk(name, half, &writer, &reader)?;
        one_by_one(name, half, &writer, &reader)?;
        side_by_side(name, half, &writer, &reader)?;
    }
    let word = AtomicU32::new(0);
    print("futex_wake_nobody_ns", rounds, || {
        futex::wake(&word, futex::Flags::PRIVATE, 1)?;
        Ok(())
    })?;
    print("fork_and_wait_ns", rounds / 10, fork_and_wait)?;
    processes(rounds / 10)?;
    threads(rounds / 10)?;
    yields(rounds)?;
    sleepers(rounds / 10)?;
    futex_round_trip(rounds)
}

/// It holds what all of [`side_by_side`] write.
fn roomy_pipe() -> anyhow::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe().context("pipe")?;
    rustix::pipe::fcntl_setpipe_size(&writer, ROOM).context("F_SETPIPE_SZ")?;
    Ok((reader, writer))
}

/// So do these, of AF_UNIX.
fn roomy_sockets() -> anyhow::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = UnixStream::pair().context("socketpair")?;
    let room = ROOM as libc::c_int;
    // SAFETY: the kernel only reads the number.
    let failed = unsafe {
        let (number, size) = (&raw const room, size_of_val(&room) as libc::socklen_t);
        libc::setsockopt(
            writer.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_SNDBUFFORCE,
            number.cast(),
            size,
        )
    };
    anyhow::ensure!(failed == 0, "SO_SNDBUFFORCE: {}", io::Error::last_os_error());
    Ok((reader.into(), writer.into()))
}

/// What a side takes of a message where one writes a while, and then reads that.
fn in_bulk(name: &str, bulk: u32, writer: &OwnedFd, reader: &OwnedFd) -> anyhow::Result<()> {
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for _ in 0..BULKS {
        let begin = Instant::now();
        (0..bulk).try_for_each(|_| put(writer))?;
        let written = Instant::now();
        (0..bulk).try_for_each(|_| take(reader))?;
        reads.push(written.elapsed().as_nanos() as u64 / u64::from(bulk));
        writes.push((written - begin).as_nanos() as u64 / u64::from(bulk));
    }
    print_median(&format!("{name}_write_ns"), writes);
    print_median(&format!("{name}_read_ns"), reads);
    Ok(())
}

/// How much calls of a side differ, in percent of what they take: the standard deviation. Some find no page, or no
/// free object, where they look first. Those that are interrupted do not count.
fn one_by_one(name: &str, bulk: u32, writer: &OwnedFd, reader: &OwnedFd) -> anyhow::Result<()> {
    let timed = |call: &dyn Fn() -> io::Result<()>| -> io::Result<f64> {
        let begin = Instant::now();
        call()?;
        Ok(begin.elapsed().as_nanos() as f64)
    };
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for _ in 0..BULKS {
        for _ in 0..bulk {
            writes.push(timed(&|| put(writer))?);
        }
        for _ in 0..bulk {
            reads.push(timed(&|| take(reader))?);
        }
    }
    for (side, times) in [("write", writes), ("read", reads)] {
        println!("{name}_{side}_spread_pct {}", spread_pct(times));
    }
    Ok(())
}

fn spread_pct(mut times: Vec<f64>) -> u64 {
    times.sort_by(f64::total_cmp);
    times.truncate(times.len() - times.len() * INTERRUPTED / 1_000);
    let count = times.len() as f64;
    let mean = times.iter().sum::<f64>() / count;
    let squares = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>();
    (100.0 * (squares / count).sqrt() / mean).round() as u64
}

/// How often a message passes where several CPUs send, and where several receive, through one channel: for so
/// long each holds its lock.
fn side_by_side(name: &str, bulk: u32, writer: &OwnedFd, reader: &OwnedFd) -> anyhow::Result<()> {
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for _ in 0..BULKS {
        writes.push(all_at_once(bulk, || put(writer))?);
        reads.push(all_at_once(bulk, || take(reader))?);
    }
    print_median(&format!("{name}_writers_ns"), writes);
    print_median(&format!("{name}_readers_ns"), reads);
    Ok(())
}

fn all_at_once(rounds: u32, pass: impl Fn() -> io::Result<()> + Sync) -> anyhow::Result<u64> {
    let barrier = Barrier::new(SIDE_BY_SIDE);
    let passes = |cpu: usize| -> anyhow::Result<(Instant, Instant)> {
        stay(cpu)?;
        barrier.wait();
        let begin = Instant::now();
        (0..rounds).try_for_each(|_| pass())?;
        Ok((begin, Instant::now()))
    };
    let times = thread::scope(|scope| {
        let passes = &passes;
        let threads: Vec<_> =
            (0..SIDE_BY_SIDE).map(|cpu| scope.spawn(move || passes(cpu))).collect();
        let times = threads.into_iter().map(|thread| thread.join().expect("it does not panic"));
        times.collect::<anyhow::Result<Vec<_>>>()
    })?;
    let (begins, ends): (Vec<_>, Vec<_>) = times.into_iter().unzip();
    let elapsed = ends.into_iter().max().zip(begins.into_iter().min());
    let elapsed = elapsed.map_or(0, |(end, begin)| (end - begin).as_nanos() as u64);
    Ok(elapsed / u64::from(SIDE_BY_SIDE as u32 * rounds))
}

/// CPU time that it takes to create a thread, and that the thread then takes until it would tell a load
/// that it is ready.
fn threads(rounds: u32) -> anyhow::Result<()> {
    let (mut creations, mut starts) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let begin = cpu_time();
        let thread = thread::spawn(until_ready);
        creations.push(cpu_time() - begin);
        starts.push(thread.join().expect("it does not panic")?);
    }
    print_median("thread_create_ns", creations);
    print_median("thread_start_ns", starts);
    Ok(())
}

/// The same of processes.
fn processes(rounds: u32) -> anyhow::Result<()> {
    let (reader, writer) = pipe().context("pipe")?;
    let (mut forks, mut starts) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let begin = cpu_time();
        // SAFETY: this program has one thread now; the child reads a file, writes to a pipe and exits.
        match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()).context("fork"),
            0 => {
                let told =
                    until_ready().map(|time| rustix::io::write(&writer, &time.to_ne_bytes()));
                // SAFETY: _exit() runs nothing of this program.
                unsafe { libc::_exit(i32::from(!matches!(told, Ok(Ok(_))))) }
            }
            child => {
                forks.push(cpu_time() - begin);
                reap(child)?;
            }
        }
        let mut time = [0; size_of::<u64>()];
        rustix::io::read(&reader, &mut time).context("the pipe")?;
        starts.push(u64::from_ne_bytes(time));
    }
    print_median("fork_ns", forks);
    print_median("process_start_ns", starts);
    Ok(())
}

fn reap(child: libc::pid_t) -> io::Result<()> {
    // SAFETY: waitpid() may be told that nobody wants the status.
    match unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// What a member of a load does first.
fn until_ready() -> anyhow::Result<u64> {
    fs::read_to_string("/proc/thread-self/sched").context("/proc/thread-self/sched")?;
    Ok(cpu_time())
}

fn print_median(name: &str, mut times: Vec<u64>) {
    times.sort_unstable();
    println!("{name} {}", times[times.len() / 2]);
}

/// Of this thread, in ns.
fn cpu_time() -> u64 {
    time_of(ClockId::ThreadCPUTime)
}

fn time_of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
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
        child => reap(child),
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

/// CPU time of a call that wakes one who sleeps here and does not preempt, and of whom it wakes: switched to
/// from another, it reads a message, finds no second one, and sleeps.
fn sleepers(rounds: u32) -> anyhow::Result<()> {
    let sleep = |reader: OwnedFd| -> anyhow::Result<()> {
        never_preempt()?;
        while rustix::io::read(&reader, &mut [0; 100])? > 0 {}
        Ok(())
    };
    let (mut writers, mut threads) = (Vec::new(), Vec::new());
    for _ in 0..SLEEPERS {
        let (reader, writer) = pipe().context("pipe")?;
        writers.push(writer);
        threads.push(thread::spawn(move || sleep(reader)));
    }
    let (mut calls, mut sleepers) = (Vec::new(), Vec::new());
    let others = || time_of(ClockId::ProcessCPUTime) - cpu_time();
    for _ in 0..rounds {
        thread::sleep(10 * LONG_ENOUGH_TO_SLEEP);
        let (before, begin) = (others(), cpu_time());
        writers.iter().try_for_each(put)?;
        calls.push((cpu_time() - begin) / u64::from(SLEEPERS));
        thread::sleep(10 * LONG_ENOUGH_TO_SLEEP);
        sleepers.push((others() - before) / u64::from(SLEEPERS));
    }
    print_median("sleeper_wake_call_ns", calls);
    print_median("sleeper_ns", sleepers);
    drop(writers);
    for thread in threads {
        thread.join().map_err(|_| anyhow::anyhow!("it panicked"))??;
    }
    Ok(())
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

/// Of one sleeper on `cpu`, and of two there, by futex: what the waker's call takes, and no other.
fn wakes(name: &str, cpu: usize, rounds: u32) -> anyhow::Result<()> {
    for sleepers in 1..=2 {
        print_median(&format!("futex_wake_{sleepers}_{name}_ns"), wake(sleepers, cpu, rounds)?);
    }
    Ok(())
}

fn wake(sleepers: u32, cpu: usize, rounds: u32) -> anyhow::Result<Vec<u64>> {
    static ROUND: AtomicU32 = AtomicU32::new(0);
    let first = ROUND.load(Ordering::Relaxed);
    let sleep = move || -> anyhow::Result<()> {
        stay(cpu)?;
        never_preempt()?;
        let mut seen = first;
        while seen < first + rounds {
            // What it returns is why it did: the word says which round it is.
            let _ = futex::wait(&ROUND, futex::Flags::PRIVATE, seen, None);
            seen = ROUND.load(Ordering::Acquire);
        }
        Ok(())
    };
    let threads: Vec<_> = (0..sleepers).map(|_| thread::spawn(sleep)).collect();
    let mut times = Vec::new();
    for _ in 0..rounds {
        thread::sleep(LONG_ENOUGH_TO_SLEEP);
        ROUND.fetch_add(1, Ordering::Release);
        let begin = Instant::now();
        let woken = futex::wake(&ROUND, futex::Flags::PRIVATE, sleepers)?;
        times.push(begin.elapsed().as_nanos() as u64);
        anyhow::ensure!(woken == sleepers as usize, "not all slept");
    }
    for thread in threads {
        thread.join().map_err(|_| anyhow::anyhow!("it panicked"))??;
    }
    Ok(times)
}

/// A wakee of SCHED_BATCH waits until its waker sleeps.
fn never_preempt() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel only reads the struct.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The same by futexes, on one CPU, and how often the two slept in each.
fn futex_round_trip(rounds: u32) -> anyhow::Result<()> {
    static TURN: AtomicU32 = AtomicU32::new(0);
    let total = rounds + rounds / 5;
    let wait_for = |turn: u32| loop {
        let now = TURN.load(Ordering::Acquire);
        if now == turn {
            break;
        }
        // What it returns is why it did: the word says whose turn it is.
        let _ = futex::wait(&TURN, futex::Flags::PRIVATE, now, None);
    };
    let pass_to = |turn: u32| {
        TURN.store(turn, Ordering::Release);
        futex::wake(&TURN, futex::Flags::PRIVATE, 1)
    };
    let partner = thread::spawn(move || {
        (0..total).try_for_each(|round| {
            wait_for(2 * round + 1);
            pass_to(2 * round + 2).map(|_| ())
        })
    });
    let (mut round, before) = (0, sleeps());
    print("futex_round_trip_ns", rounds, || {
        pass_to(2 * round + 1)?;
        wait_for(2 * round + 2);
        round += 1;
        Ok(())
    })?;
    println!("futex_round_trip_sleeps_pct {}", (sleeps() - before) * 100 / u64::from(total));
    Ok(partner.join().map_err(|_| anyhow::anyhow!("it panicked"))??)
}

/// Voluntary switches of all threads.
fn sleeps() -> u64 {
    // SAFETY: zeroes are a valid rusage, and the kernel fills in the struct that it is given.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage.ru_nvcsw as u64
    }
}

#[cfg(test)]
mod tests {
    use super::spread_pct;

    #[test]
    fn a_spread_is_the_standard_deviation_in_percent_of_the_mean() {
        assert_eq!(spread_pct(vec![100.0, 100.0]), 0);
        assert_eq!(spread_pct(vec![50.0, 150.0, 50.0, 150.0]), 50);
        let interrupted = [vec![100.0; 998], vec![90_000.0; 2]].concat();
        assert_eq!(spread_pct(interrupted), 0);
    }
}
