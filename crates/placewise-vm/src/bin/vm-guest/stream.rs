//! Threads that stream through memory, as STREAM does, and note where they run: first, which tells
//! of fork placement, and most of the time, which tells of balancing too.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::sched_getcpu;

use crate::topology::Topology;

/// Of each of three arrays: caches are not emulated, so that their size means nothing.
const LENGTH: usize = 8 << 10;

/// Threads that stream through memory: `threads`, `first_llcs` and `llcs` that they took,
/// `first_in_parent_llc_pct`
#[derive(clap::Args)]
pub struct StreamArgs {
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
    let threads: Vec<(usize, JoinHandle<Seen>)> = (0..args.threads)
        .map(|_| (sched_getcpu(), thread::spawn(move || stream(duration))))
        .collect();
    let mut first_llcs = BTreeSet::new();
    let mut llcs = BTreeSet::new();
    let mut in_parent_llc = 0;
    for (parent, thread) in threads {
        let seen = thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?;
        let first_llc = topology.llc(seen.first);
        in_parent_llc += usize::from(first_llc == topology.llc(parent));
        first_llcs.insert(first_llc);
        llcs.extend(seen.usual_llc(&topology));
        eprintln!("forked on CPU {parent}, began on {}, seen {:?}", seen.first, seen.times);
    }
    println!("threads {}", args.threads);
    println!("first_llcs {}", first_llcs.len());
    println!("llcs {}", llcs.len());
    println!("first_in_parent_llc_pct {}", in_parent_llc * 100 / args.threads.max(1));
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
