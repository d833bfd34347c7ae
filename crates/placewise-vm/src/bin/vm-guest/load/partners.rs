//! Threads or processes that run for a while and sleep for a while, and wake nobody: no wakeup brings
//! them together, only the balancer may.

use std::hint;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

use super::case::Case;
use super::team::{self, Body, Kind, Outcome};
use crate::topology::Topology;

/// How long they ran on each LLC, in ns.
struct Ran {
    topology: Topology,
    on_llc: [AtomicU64; CpuSet::MAX_CPU],
}

/// A message is a turn of one of them. `fuller_llc_pct` is what of their run time was on the LLC that has most. With
/// `start=apart` the second one has its first turn in the last LLC, the others in the first one.
pub fn run(case: &mut Case) -> anyhow::Result<Outcome> {
    let kind = if case.is("tasks", "thread", "process")? { Kind::Process } else { Kind::Thread };
    let threads = case.number("threads", 3)?;
    let run = case.microseconds("run_us", 500)?;
    let sleep = case.microseconds("sleep_us", 1000)?;
    let turns = case.number("turns", 1000)? as u64;
    let apart = case.is("start", "anywhere", "apart")?;
    case.ends_by_itself()?;
    let on_llc = [const { AtomicU64::new(0) }; CpuSet::MAX_CPU];
    let ran = team::shared(Ran { topology: Topology::of_guest()?, on_llc })?;
    let body = |number| -> Body {
        Box::new(move || {
            if apart {
                ran.begin(number == 1)?;
            }
            for _ in 0..turns {
                ran.spin(run);
                thread::sleep(sleep);
            }
            Ok(turns)
        })
    };
    let outcome = team::run(kind, (0..threads).map(body).collect(), || {})?;
    println!("fuller_llc_pct {:.1}", ran.fuller_llc_pct());
    Ok(outcome)
}

impl Ran {
    fn begin(&self, last: bool) -> io::Result<()> {
        let topology = &self.topology;
        let llc = if last { topology.last_llc() } else { topology.first_llc() };
        sched_setaffinity(None, &topology.cpus_of(llc))?;
        Ok(sched_setaffinity(None, &topology.cpus())?)
    }

    fn spin(&self, run: Duration) {
        let start = Instant::now();
        while start.elapsed() < run {
            hint::spin_loop();
        }
        let llc = self.topology.llc(sched_getcpu());
        self.on_llc[llc].fetch_add(run.as_nanos() as u64, Ordering::Relaxed);
    }

    fn fuller_llc_pct(&self) -> f64 {
        let ran: Vec<u64> = self.on_llc.iter().map(|ns| ns.load(Ordering::Relaxed)).collect();
        let most = ran.iter().copied().max().unwrap_or_default();
        100.0 * most as f64 / ran.iter().sum::<u64>() as f64
    }
}
