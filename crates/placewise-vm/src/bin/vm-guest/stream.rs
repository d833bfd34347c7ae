//! Threads that stream through memory, as STREAM does, and note where they run: first, which tells
//! of fork placement, and most of the time, which tells of balancing too. As with OpenMP the parent
//! works like the others.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::sched_getcpu;

use crate::topology::Topology;

/// Of each of three arrays: caches are not emulated, so that their size means nothing.
const LENGTH: usize = 8 << 10;

/// Time for kthreads that woke meanwhile to be over: emulated CPUs run one after another, so that what
/// takes a moment can occupy its CPU for milliseconds.
const PAUSE: Duration = Duration::from_millis(5);

/// Threads that stream through memory: `threads`, `first_llcs` and `llcs` that they took
#[derive(clap::Args)]
pub struct StreamArgs {
    /// The parent is one of them
    #[arg(long)]
    threads: usize,
    /// How long each runs
    #[arg(long, default_value_t = 500)]
    milliseconds: u64,
}

/// The CPUs on which a thread was seen.
struct Seen {
    first: usize,
    times: BTreeMap<usize, u32>,
}

impl Seen {
    fn usual_llc(&self, topology: &Topology) -> Option<usize> {
        let mut llcs = BTreeMap::<usize, u32>::new();
        for (&cpu, times) in &self.times {
            *llcs.entry(topology.llc(cpu)).or_default() += times;
        }
        llcs.into_iter().max_by_key(|(_, times)| *times).map(|(llc, _)| llc)
    }
}

pub fn run(args: &StreamArgs) -> anyhow::Result<()> {
    let topology = Topology::of_guest()?;
    let duration = Duration::from_millis(args.milliseconds);
    let create = |_| {
        thread::sleep(PAUSE);
        thread::spawn(move || stream(duration))
    };
    let children: Vec<JoinHandle<Seen>> = (1..args.threads).map(create).collect();
    let mut threads = vec![stream(duration)];
    for child in children {
        threads.push(child.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?);
    }
    for thread in &threads {
        eprintln!("began on CPU {}, seen on {:?}", thread.first, thread.times);
    }
    let first_llcs: BTreeSet<usize> = threads.iter().map(|seen| topology.llc(seen.first)).collect();
    let llcs: BTreeSet<usize> =
        threads.iter().filter_map(|seen| seen.usual_llc(&topology)).collect();
    println!("threads {}", threads.len());
    println!("first_llcs {}", first_llcs.len());
    println!("llcs {}", llcs.len());
    Ok(())
}

fn stream(duration: Duration) -> Seen {
    let mut seen = Seen { first: sched_getcpu(), times: BTreeMap::new() };
    let (mut sums, factors, terms) = (vec![0.0; LENGTH], vec![2.0; LENGTH], vec![1.0; LENGTH]);
    let start = Instant::now();
    while start.elapsed() < duration {
        for (sum, (factor, term)) in sums.iter_mut().zip(factors.iter().zip(&terms)) {
            *sum = factor + 3.0 * term;
        }
        std::hint::black_box(&sums);
        *seen.times.entry(sched_getcpu()).or_default() += 1;
    }
    seen
}
