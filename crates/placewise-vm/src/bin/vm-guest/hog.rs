//! A hog of another scheduling class keeps a CPU to itself, and the tick of that CPU is the only one
//! that could see to the others': does it?

use std::fs;
use std::hint;
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::thread::{CpuSet, Pid, gettid, sched_setaffinity};

use crate::topology::Topology;

/// Time for everybody to get where they are to start from.
const PAUSE: Duration = Duration::from_millis(500);
/// Time for the balancer, on a host that may be busy with much else.
const PATIENCE: Duration = Duration::from_secs(3);
const WAITERS: usize = 3;
const CROWD_PER_CPU: usize = 2;

/// Spinners that wait behind a hog, free to leave from now on: `least_ran_ms` in the next seconds
#[derive(clap::Args)]
pub struct BehindHogArgs {
    #[arg(long)]
    hog: Class,
}

/// A crowd in one LLC, free to go to another, whose first CPU has a hog: `spinners`, `moved`
#[derive(clap::Args)]
pub struct BesideHogArgs {
    #[arg(long)]
    hog: Class,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Class {
    Fifo,
    Other,
    #[value(skip)]
    Ext,
    #[value(skip)]
    Supervisor,
}

impl Class {
    /// Policy and priority, of linux/sched.h.
    fn parameters(self) -> (libc::c_int, libc::c_int) {
        match self {
            Self::Fifo => (libc::SCHED_FIFO, 50),
            Self::Other => (libc::SCHED_OTHER, 0),
            Self::Ext => (7, 0),
            Self::Supervisor => (libc::SCHED_FIFO, 60),
        }
    }

    fn take(self) -> io::Result<()> {
        let (policy, sched_priority) = self.parameters();
        let parameters = libc::sched_param { sched_priority };
        // SAFETY: the kernel only reads the parameters.
        match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Runs until this program ends. All but hogs are of the class SCHED_EXT: a scheduler which takes no
/// other tasks has them too.
struct Spinner(Pid);

impl Spinner {
    fn start(cpus: CpuSet, class: Class) -> anyhow::Result<Self> {
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let placed = sched_setaffinity(None, &cpus).map_err(io::Error::from);
            let ready = placed.and_then(|()| class.take()).map(|()| gettid());
            tell.send(ready).expect("who started it waits");
            loop {
                hint::spin_loop();
            }
        });
        Ok(Self(told.recv().context("the spinner is gone")?.context("the spinner's class")?))
    }

    /// How long it has run, by the kernel's account.
    fn ran(&self) -> anyhow::Result<Duration> {
        Ok(Duration::from_nanos(self.word("schedstat", 0)? as u64))
    }

    /// Where it ran last.
    fn cpu(&self) -> anyhow::Result<usize> {
        self.word("stat", 38)
    }

    fn word(&self, file: &str, index: usize) -> anyhow::Result<usize> {
        let path = format!("/proc/self/task/{}/{file}", self.0.as_raw_nonzero());
        let line = fs::read_to_string(&path).context(path)?;
        let word = line.split(' ').nth(index).and_then(|word| word.parse().ok());
        word.with_context(|| format!("no number at {index}: {line}"))
    }
}

/// All are in the last LLC, and this program in the first: what it does wakes nobody there.
pub fn run_behind(args: &BehindHogArgs) -> anyhow::Result<()> {
    let topology = Topology::of_guest()?;
    let (own_llc, hog_llc) = two_llcs(&topology)?;
    sched_setaffinity(None, &only(own_llc)).context("sched_setaffinity")?;
    let spinners = start((0..WAITERS).map(|_| only(hog_llc)))?;
    Spinner::start(only(hog_llc), args.hog)?;
    thread::sleep(PAUSE);
    let ran = || spinners.iter().map(Spinner::ran).collect::<anyhow::Result<Vec<_>>>();
    let before = ran()?;
    allow(&spinners, &topology.cpus_of(hog_llc))?;
    thread::sleep(PATIENCE);
    let since = ran()?.into_iter().zip(before).map(|(after, before)| after - before);
    println!("least_ran_ms {}", since.min().unwrap_or_default().as_millis());
    Ok(())
}

/// Every other CPU has a spinner of its own, so none ever idles. This program runs where the hog
/// does, before it.
pub fn run_beside(args: &BesideHogArgs) -> anyhow::Result<()> {
    let topology = Topology::of_guest()?;
    let (hog_llc, crowded_llc) = two_llcs(&topology)?;
    sched_setaffinity(None, &only(hog_llc)).context("sched_setaffinity")?;
    Class::Supervisor.take().context("sched_setscheduler")?;
    let cpus = topology.cpus();
    start((0..CpuSet::MAX_CPU).filter(|&cpu| cpu != hog_llc && cpus.is_set(cpu)).map(only))?;
    let crowded = topology.cpus_of(crowded_llc);
    let crowd = start((0..crowded.count() as usize * CROWD_PER_CPU).map(|_| crowded))?;
    Spinner::start(only(hog_llc), args.hog)?;
    thread::sleep(PAUSE);
    allow(&crowd, &cpus)?;
    thread::sleep(PATIENCE);
    let cpus = crowd.iter().map(Spinner::cpu).collect::<anyhow::Result<Vec<_>>>()?;
    println!("spinners {}", crowd.len());
    println!("moved {}", cpus.iter().filter(|&&cpu| topology.llc(cpu) == hog_llc).count());
    Ok(())
}

/// The first and the last, each named by its first CPU.
fn two_llcs(topology: &Topology) -> anyhow::Result<(usize, usize)> {
    let (first, last) = (topology.first_llc(), topology.last_llc());
    ensure!(first != last, "this machine has one LLC");
    Ok((first, last))
}

fn start(places: impl Iterator<Item = CpuSet>) -> anyhow::Result<Vec<Spinner>> {
    places.map(|cpus| Spinner::start(cpus, Class::Ext)).collect()
}

fn allow(spinners: &[Spinner], cpus: &CpuSet) -> anyhow::Result<()> {
    spinners
        .iter()
        .try_for_each(|spinner| sched_setaffinity(Some(spinner.0), cpus))
        .context("sched_setaffinity")
}

fn only(cpu: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(cpu);
    set
}
