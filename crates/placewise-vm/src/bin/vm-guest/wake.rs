//! A waker that stays in one LLC and a wakee that is put back into another one before each wakeup:
//! how often did the wakeup bring it to the waker's?
//!
//! Linux takes a futex wakeup as one that leaves the wakee where it was, and a pipe's as one that
//! brings it to the waker, for the waker is about to sleep (a sync wakeup).

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, Thread};
use std::time::Duration;

use anyhow::Context;
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

use crate::topology::Topology;

/// Time for the wakee to fall asleep.
const PAUSE: Duration = Duration::from_millis(5);

/// A waker and a wakee in two LLCs: `rounds`, `in_waker_llc_pct`, `in_wakee_llc_pct`
#[derive(clap::Args)]
pub struct WakeArgs {
    #[arg(long)]
    by: By,
    #[arg(long, default_value_t = 50)]
    rounds: usize,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum By {
    Futex,
    Pipe,
}

/// How the wakee is woken: parked threads wait on a futex.
enum Bell {
    Futex(Thread),
    Pipe(PipeWriter),
}

pub fn run(args: &WakeArgs) -> anyhow::Result<()> {
    let topology = Topology::of_guest()?;
    let (waker_llc, wakee_llc) = (topology.first_llc(), topology.last_llc());
    anyhow::ensure!(waker_llc != wakee_llc, "this machine has one LLC");
    let wakee = Wakee { home: topology.cpus_of(wakee_llc), all: topology.cpus() };
    let (tell_asleep, asleep) = mpsc::channel();
    let (tell_cpu, cpus) = mpsc::channel();
    let (reader, writer) = pipe().context("pipe")?;
    let by = args.by;
    let wakee = thread::spawn(move || wakee.run(by, reader, &tell_asleep, &tell_cpu));
    let bell = match by {
        By::Futex => Bell::Futex(wakee.thread().clone()),
        By::Pipe => Bell::Pipe(writer),
    };
    let mut first_of_llc = CpuSet::new();
    first_of_llc.set(waker_llc);
    sched_setaffinity(None, &first_of_llc).context("sched_setaffinity")?;
    let woken = wake(bell, args.rounds, &asleep, &cpus)?;
    let pct = |llc| {
        let there = woken.iter().filter(|&&cpu| topology.llc(cpu) == llc);
        there.count() * 100 / woken.len().max(1)
    };
    println!("rounds {}", woken.len());
    println!("in_waker_llc_pct {}", pct(waker_llc));
    println!("in_wakee_llc_pct {}", pct(wakee_llc));
    Ok(())
}

/// The CPUs on which the wakee awoke.
fn wake(
    mut bell: Bell,
    rounds: usize,
    asleep: &Receiver<()>,
    cpus: &Receiver<usize>,
) -> anyhow::Result<Vec<usize>> {
    let gone = "the wakee is gone";
    let mut woken = Vec::new();
    for _ in 0..rounds {
        asleep.recv().context(gone)?;
        thread::sleep(PAUSE);
        match &mut bell {
            Bell::Futex(wakee) => wakee.unpark(),
            Bell::Pipe(writer) => writer.write_all(&[0]).context("the pipe")?,
        }
        woken.push(cpus.recv().context(gone)?);
    }
    Ok(woken)
}

struct Wakee {
    home: CpuSet,
    all: CpuSet,
}

impl Wakee {
    /// Until the waker has gone.
    fn run(
        &self,
        by: By,
        mut bell: PipeReader,
        tell_asleep: &Sender<()>,
        tell_cpu: &Sender<usize>,
    ) -> anyhow::Result<()> {
        loop {
            for cpus in [&self.home, &self.all] {
                sched_setaffinity(None, cpus).context("sched_setaffinity")?;
            }
            if tell_asleep.send(()).is_err() {
                return Ok(());
            }
            match by {
                By::Futex => thread::park(),
                By::Pipe => bell.read_exact(&mut [0]).context("the pipe")?,
            }
            if tell_cpu.send(sched_getcpu()).is_err() {
                return Ok(());
            }
        }
    }
}
