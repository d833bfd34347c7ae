//! Tasks that do next to nothing, often: when one of them stops, the scheduler has lost it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

const PERIOD: Duration = Duration::from_millis(100);
/// A task that was silent for so long is lost: sched_ext itself takes 30 s for a stall.
const PATIENCE: Duration = Duration::from_secs(10);

/// Two tasks per CPU that wake ten times a second: `tasks`, `longest_gap_ms`; fails when one stops
#[derive(clap::Args)]
pub struct HeartbeatArgs {
    #[arg(long)]
    seconds: u64,
}

/// Of one task, in ms since the start.
#[derive(Default)]
struct Beats {
    last: AtomicU64,
    longest_gap: AtomicU64,
}

impl Beats {
    fn beat(&self, now: u64) {
        let gap = now - self.last.swap(now, Ordering::Relaxed);
        self.longest_gap.fetch_max(gap, Ordering::Relaxed);
    }
}

pub fn run(args: &HeartbeatArgs) -> anyhow::Result<()> {
    let start = Instant::now();
    let ms = move || start.elapsed().as_millis() as u64;
    let cpus = thread::available_parallelism().context("no CPUs")?.get();
    let tasks: Vec<Arc<Beats>> = (0..cpus * 2).map(|_| Arc::default()).collect();
    for beats in tasks.clone() {
        thread::spawn(move || {
            loop {
                thread::sleep(PERIOD);
                beats.beat(ms());
            }
        });
    }
    thread::sleep(Duration::from_secs(args.seconds));
    let patience = PATIENCE.as_millis() as u64;
    let now = ms();
    let lost =
        tasks.iter().filter(|beats| now - beats.last.load(Ordering::Relaxed).min(now) > patience);
    let lost = lost.count();
    let gaps = tasks.iter().map(|beats| beats.longest_gap.load(Ordering::Relaxed));
    println!("tasks {}", tasks.len());
    println!("longest_gap_ms {}", gaps.max().unwrap_or_default());
    ensure!(lost == 0, "{lost} of {} tasks did not run for {} s", tasks.len(), PATIENCE.as_secs());
    Ok(())
}
