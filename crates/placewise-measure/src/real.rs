//! Small real loads that the simulator has models of, for checking what it says of this host: a pair that
//! passes a byte to and fro, and hackbench's groups on pipes.
//!
//! They are measured by clocks that stand still while others run, where there are such: on one CPU, and
//! where many tasks share all CPUs, by the CPU time of this process.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::pipe::pipe;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::ClockId;

use crate::batches::{Batch, repeat};
use crate::load::clock::cpu_time;
use crate::load::wakeups::{round_trips, round_trips_here};
use crate::place::stay_on;
use crate::quantity::Sample;

/// The user-space part of a message on either side, in ns: a loop.
pub const USER_NS: u64 = 20;

const MESSAGE: [u8; 100] = [0; 100];
/// Senders, and as many receivers, in a group of hackbench.
pub const FDS: usize = 20;
/// Over which hackbench's messages are counted, once it has run for as long as its start lasts.
const BATCH: Duration = Duration::from_millis(40);
const START: Duration = Duration::from_millis(200);

/// Where the two of a pair may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    On(usize),
    Between(usize, usize),
    Anywhere,
}

/// The time of a round trip, in ns: CPU time on one CPU.
pub fn ping_pong(pair: Pair, duration: Duration) -> io::Result<Sample> {
    let run = move || match pair {
        Pair::On(cpu) => {
            stay_on(cpu)?;
            let mut batch = round_trips_here(cpu)?;
            repeat(duration, move || batch().map(Into::into))
        }
        Pair::Between(here, there) => {
            stay_on(here)?;
            let mut batch = round_trips(Some(there))?;
            repeat(duration, move || batch().map(Into::into))
        }
        Pair::Anywhere => {
            let mut batch = round_trips(None)?;
            repeat(duration, move || batch().map(Into::into))
        }
    };
    // Whatever CPU the caller stays on, it is not the pair's.
    thread::spawn(move || go_anywhere().and_then(|()| run())).join().map_err(|_| panicked())?
}

fn go_anywhere() -> io::Result<()> {
    let mut cpus = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| cpus.set(cpu));
    Ok(sched_setaffinity(None, &cpus)?)
}

fn panicked() -> io::Error {
    io::Error::other("a thread of the load panicked")
}

/// What hackbench told of itself.
pub struct Hackbench {
    /// CPU time per message on both sides together, in ns.
    pub message: Sample,
    /// How much of all the CPUs was its own, in percent.
    pub share_pct: f64,
}

/// Groups of threads on pipes.
pub fn hackbench(groups: usize, nr_cpus: usize, duration: Duration) -> io::Result<Hackbench> {
    let crowd = Crowd::start(groups)?;
    thread::sleep(START);
    let (start, own) = (Instant::now(), cpu_time(ClockId::ProcessCPUTime));
    let message = repeat(duration, || {
        let (messages, time) = (crowd.received(), cpu_time(ClockId::ProcessCPUTime));
        thread::sleep(BATCH);
        let messages = (crowd.received() - messages).max(1) as f64;
        // What is switched against its will is its own: the CPUs are full of it.
        let figure = (cpu_time(ClockId::ProcessCPUTime) - time) / messages;
        Ok(Batch { figure, yields: u64::MAX })
    });
    let own = cpu_time(ClockId::ProcessCPUTime) - own;
    let all = start.elapsed().as_nanos() as f64 * nr_cpus as f64;
    crowd.end()?;
    Ok(Hackbench { message: message?, share_pct: 100.0 * own / all })
}

struct Crowd {
    stop: Arc<AtomicBool>,
    received: Vec<Arc<AtomicU64>>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Crowd {
    fn start(groups: usize) -> io::Result<Self> {
        let mut crowd = Self { stop: Arc::default(), received: Vec::new(), threads: Vec::new() };
        for _ in 0..groups {
            let mut inputs = Vec::new();
            for _ in 0..FDS {
                let (from, to) = pipe()?;
                let count = Arc::new(AtomicU64::new(0));
                crowd.received.push(count.clone());
                crowd.threads.push(spawn(move || receive(&from, &count))?);
                inputs.push(to);
            }
            let inputs = Arc::new(inputs);
            for _ in 0..FDS {
                let (inputs, stop) = (inputs.clone(), crowd.stop.clone());
                crowd.threads.push(spawn(move || send(&inputs, &stop))?);
            }
        }
        Ok(crowd)
    }

    fn received(&self) -> u64 {
        self.received.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Receivers end with their pipes, which end with the senders.
    fn end(self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| panicked())?)
    }
}

fn spawn(
    body: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> io::Result<JoinHandle<io::Result<()>>> {
    thread::Builder::new().spawn(move || go_anywhere().and_then(|()| body()))
}

fn receive(from: &OwnedFd, count: &AtomicU64) -> io::Result<()> {
    let mut message = MESSAGE;
    while rustix::io::read(from, &mut message)? > 0 {
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
    Ok(())
}

fn send(to: &[OwnedFd], stop: &AtomicBool) -> io::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        for receiver in to {
            rustix::io::write(receiver, &MESSAGE)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_of_hackbench_end_and_messages_arrive() {
        let told = hackbench(1, 1, Duration::from_millis(1)).unwrap();
        assert!(told.message.median > 0.0 && told.share_pct > 0.0);
    }

    #[test]
    fn a_pair_answers_wherever_it_is() {
        let cpu = rustix::thread::sched_getcpu();
        for pair in [Pair::On(cpu), Pair::Anywhere] {
            assert!(ping_pong(pair, Duration::from_millis(1)).unwrap().median > 0.0, "{pair:?}");
        }
    }
}
