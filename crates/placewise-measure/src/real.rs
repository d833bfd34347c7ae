//! Small real loads that the simulator has models of, for checking what it says of this host: a pair that
//! passes a byte to and fro, and hackbench's groups on pipes.
//!
//! Each runs for a slice of a fifth of a second at a time, all in turn, until enough slices were quiet or
//! the time is over: a host that is busy now and then has been quiet during some. A slice is disturbed by
//! what others took of the CPUs meanwhile; the quarter of the slices that was disturbed least counts,
//! and all that were disturbed no more than those.
//!
//! Times are taken by clocks that stand still while others run, where there are such: on one CPU, and
//! where many tasks share all CPUs, by the CPU time of this process. Where both may run anywhere, others
//! decide where they do, so that is told, too.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::pipe::pipe;
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use rustix::time::ClockId;

use crate::batches::sample;
use crate::load::clock::cpu_time;
use crate::load::wakeups::{round_trips, round_trips_here, wait_beside_a_spinner};
use crate::others::CpuTimes;
use crate::place::stay_on;
use crate::quantity::{Sample, middle};

/// The user-space part of a message on either side, in ns: a loop.
pub const USER_NS: u64 = 20;

const MESSAGE: [u8; 100] = [0; 100];
/// Senders, and as many receivers, in a group of hackbench.
pub const FDS: usize = 20;
const SLICE: Duration = Duration::from_millis(200);
/// In which hackbench's threads start.
const START: Duration = Duration::from_millis(200);
/// So many quiet slices are enough.
const ENOUGH: usize = 10;
/// An interrupt is there sooner on any machine, a tick seldom is.
const AT_ONCE_NS: f64 = 200_000.0;
/// Others take less on a host that does nothing else, or what they take is lost in the ticks.
const QUIET_PCT: f64 = 5.0;

/// Where the two of a pair may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    On(usize),
    Between(usize, usize),
    Anywhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    PingPong(Pair),
    /// So many groups of threads on pipes.
    Hackbench(usize),
}

/// What the slices say of a load.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// In ns: of a round trip, or the CPU time per message of hackbench on both sides together.
    pub time: Sample,
    /// How often a pair that may run anywhere was on one CPU.
    pub on_one_cpu_pct: Option<f64>,
}

/// Does a wakee on `cpu`, woken from elsewhere, preempt a task that stays in user space at once, or only at its next
/// tick, as where the kernel preempts lazily?
pub fn preempts_at_once(cpu: usize) -> io::Result<bool> {
    Ok(wait_beside_a_spinner(cpu)? < AT_ONCE_NS)
}

/// Runs all loads in turn, each for no longer than `limit` in all; `tell` is told how much of that is
/// done.
pub fn run(loads: &[Load], limit: Duration, mut tell: impl FnMut(f64)) -> io::Result<Vec<Told>> {
    let mut all: Vec<Watched> = loads.iter().map(|_| Watched::default()).collect();
    let mut done = 0;
    while all.iter().any(|one| one.goes_on(limit)) {
        for (load, one) in loads.iter().zip(&mut all).filter(|(_, one)| one.goes_on(limit)) {
            one.add(load)?;
            done += 1;
            let most = limit.as_secs_f64() / SLICE.as_secs_f64() * loads.len() as f64;
            tell(f64::from(done) / most);
        }
    }
    Ok(all.iter().map(Watched::told).collect())
}

/// The slices of a load so far.
#[derive(Default)]
struct Watched {
    slices: Vec<Slice>,
    taken: Duration,
}

struct Slice {
    time: f64,
    on_one_cpu_pct: Option<f64>,
    /// In steps of what is quiet.
    disturbed: u64,
}

impl Watched {
    /// At least one slice is taken.
    fn goes_on(&self, limit: Duration) -> bool {
        let quiet = self.slices.iter().filter(|slice| slice.disturbed == 0).count();
        self.slices.is_empty() || (quiet < ENOUGH && self.taken < limit)
    }

    fn add(&mut self, load: &Load) -> io::Result<()> {
        let start = Instant::now();
        self.slices.push(match *load {
            Load::PingPong(pair) => ping_pong(pair)?,
            Load::Hackbench(groups) => hackbench(groups)?,
        });
        self.taken += start.elapsed();
        Ok(())
    }

    fn told(&self) -> Told {
        let of = |figure: fn(&Slice) -> Option<f64>| {
            let figures = self.slices.iter().filter_map(|it| Some((figure(it)?, it.disturbed)));
            figures.collect::<Vec<_>>()
        };
        let shares = of(|slice| slice.on_one_cpu_pct);
        Told {
            time: sample(&of(|slice| Some(slice.time))),
            on_one_cpu_pct: (!shares.is_empty()).then(|| sample(&shares).median),
        }
    }
}

/// What was found in a slice of `body`, which says a time and how often a pair was on one CPU.
fn slice(body: impl FnOnce() -> io::Result<(f64, Option<f64>)>) -> io::Result<Slice> {
    let before = CpuTimes::so_far();
    let (time, on_one_cpu_pct) = body()?;
    let others = before.zip(CpuTimes::so_far());
    let others = others.and_then(|(before, after)| after.others_pct_since(&before));
    Ok(Slice { time, on_one_cpu_pct, disturbed: (others.unwrap_or(0.0) / QUIET_PCT) as u64 })
}

/// The time of a round trip: CPU time on one CPU.
fn ping_pong(pair: Pair) -> io::Result<Slice> {
    let run = move || match pair {
        Pair::On(cpu) => {
            stay_on(cpu)?;
            let batch = round_trips_here(cpu)?;
            slice(|| Ok((batches(batch)?, None)))
        }
        Pair::Between(here, there) => {
            stay_on(here)?;
            let (batch, _) = round_trips(Some(there))?;
            slice(|| Ok((batches(batch)?, None)))
        }
        Pair::Anywhere => {
            let (mut batch, partner) = round_trips(None)?;
            slice(|| {
                let mut together = Vec::new();
                let time = batches(|| {
                    let time = batch()?;
                    let is_here = last_cpu_of(partner) == Some(sched_getcpu());
                    together.push(if is_here { 100.0 } else { 0.0 });
                    Ok(time)
                })?;
                let share = together.iter().sum::<f64>() / together.len() as f64;
                Ok((time, Some(share)))
            })
        }
    };
    // Whatever CPU the caller stays on, it is not the pair's.
    thread::spawn(move || go_anywhere().and_then(|()| run())).join().map_err(|_| panicked())?
}

/// The median of batches for the length of a slice; the first warms up.
fn batches(mut batch: impl FnMut() -> io::Result<f64>) -> io::Result<f64> {
    batch()?;
    let start = Instant::now();
    let mut times = vec![batch()?];
    while start.elapsed() < SLICE {
        times.push(batch()?);
    }
    Ok(middle(&mut times))
}

/// Where a thread of this process ran last.
fn last_cpu_of(thread: i32) -> Option<usize> {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
    // The fields after the name begin with the third; `processor` is the 39th.
    stat.rsplit(')').next()?.split_whitespace().nth(36)?.parse().ok()
}

fn go_anywhere() -> io::Result<()> {
    let mut cpus = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| cpus.set(cpu));
    Ok(sched_setaffinity(None, &cpus)?)
}

fn panicked() -> io::Error {
    io::Error::other("a thread of the load panicked")
}

fn hackbench(groups: usize) -> io::Result<Slice> {
    let crowd = Crowd::start(groups)?;
    thread::sleep(START);
    let told = slice(|| {
        let (messages, time) = (crowd.received(), cpu_time(ClockId::ProcessCPUTime));
        thread::sleep(SLICE);
        let messages = (crowd.received() - messages).max(1) as f64;
        Ok(((cpu_time(ClockId::ProcessCPUTime) - time) / messages, None))
    });
    crowd.end()?;
    told
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
    fn each_load_says_a_time_and_a_pair_where_it_was() {
        let cpu = sched_getcpu();
        let pairs = [Pair::On(cpu), Pair::Anywhere].map(Load::PingPong);
        let loads = [pairs[0], pairs[1], Load::Hackbench(1)];
        let mut done = Vec::new();
        let told = run(&loads, Duration::from_millis(1), |part| done.push(part)).unwrap();
        assert!(told.iter().all(|one| one.time.median > 0.0 && one.time.batches == 1), "{told:?}");
        let shares: Vec<bool> = told.iter().map(|one| one.on_one_cpu_pct.is_some()).collect();
        assert_eq!(shares, [false, true, false]);
        assert!(done.is_sorted() && done.len() == 3);
    }

    #[test]
    fn slices_end_once_enough_were_quiet() {
        let slices = |quiet: usize, disturbed: usize| {
            let slice = |disturbed| Slice { time: 1.0, on_one_cpu_pct: None, disturbed };
            let slices = (0..quiet).map(|_| slice(0)).chain((0..disturbed).map(|_| slice(3)));
            Watched { slices: slices.collect(), taken: Duration::from_secs(1) }
        };
        let limit = Duration::from_secs(2);
        assert!(Watched::default().goes_on(Duration::ZERO));
        assert!(!slices(ENOUGH, 5).goes_on(limit) && slices(ENOUGH - 1, 50).goes_on(limit));
        assert!(!slices(0, 5).goes_on(Duration::from_millis(500)));
        assert!(slices(0, 5).told().time.disturbed && !slices(5, 15).told().time.disturbed);
    }

    #[test]
    fn where_a_thread_ran_last_is_where_this_one_runs() {
        stay_on(sched_getcpu()).unwrap();
        let thread = rustix::thread::gettid().as_raw_pid();
        assert_eq!(last_cpu_of(thread), Some(sched_getcpu()));
    }
}
