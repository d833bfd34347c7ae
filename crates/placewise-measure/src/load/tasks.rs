//! Switches between tasks, and tasks that come and go.

use std::io;
use std::thread;

use rustix::thread::sched_yield;
use rustix::time::ClockId;

use super::clock::cpu_time;
use crate::batches::{Batch, Load};
use crate::partner::Partner;
use crate::place::Places;
use crate::quantity::{Distance, Quantity};

const YIELDS: u32 = 200;
const THREADS: u32 = 10;
const FORKS: u32 = 10;
/// Of a computing loop: about 100 us.
const STEPS: u64 = 100_000;

pub fn loads(places: &Places) -> io::Result<Vec<Load>> {
    let mut loads = vec![
        yields(places.home)?,
        Load::new(Quantity::Fork, forks),
        Load::new(Quantity::ThreadCreate, || threads().map(|(create, _)| create)),
        Load::new(Quantity::ThreadLife, || threads().map(|(_, life)| life)),
    ];
    let sibling = places.partners.iter().find(|(distance, _)| *distance == Distance::Smt);
    if let Some((_, sibling)) = sibling {
        loads.push(smt_share(*sibling)?);
    }
    Ok(loads)
}

/// Two tasks that yield to each other: the time by the switches that it took.
fn yields(home: usize) -> io::Result<Load> {
    let partner = Partner::start(home, |_| {
        (0..YIELDS).for_each(|_| sched_yield());
        Ok(())
    })?;
    let batch = move || {
        partner.begin()?;
        let start = cpu_time(ClockId::ProcessCPUTime);
        (0..YIELDS).for_each(|_| sched_yield());
        partner.wait()?;
        let elapsed = cpu_time(ClockId::ProcessCPUTime) - start;
        Ok(Batch { figure: elapsed / f64::from(2 * YIELDS), yields: u64::from(2 * YIELDS) })
    };
    Ok(Load { quantity: Quantity::Yield, batch: Box::new(batch) })
}

/// What creating a thread takes, and creating and joining it.
fn threads() -> io::Result<(f64, f64)> {
    let (mut create, start) = (0.0, cpu_time(ClockId::ProcessCPUTime));
    for _ in 0..THREADS {
        let before = cpu_time(ClockId::ThreadCPUTime);
        let thread = thread::Builder::new().spawn(|| ())?;
        create += cpu_time(ClockId::ThreadCPUTime) - before;
        thread.join().map_err(|_| io::Error::other("a thread panicked"))?;
    }
    let life = cpu_time(ClockId::ProcessCPUTime) - start;
    Ok((create / f64::from(THREADS), life / f64::from(THREADS)))
}

/// What a fork of this process takes, of children that end at once.
fn forks() -> io::Result<f64> {
    let mut forking = 0.0;
    for _ in 0..FORKS {
        let before = cpu_time(ClockId::ThreadCPUTime);
        // SAFETY: the child does nothing but exit.
        let child = match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            // SAFETY: _exit() runs nothing of this program.
            0 => unsafe { libc::_exit(0) },
            child => child,
        };
        forking += cpu_time(ClockId::ThreadCPUTime) - before;
        // SAFETY: waitpid() may be told that nobody wants the status.
        if unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } != child {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(forking / f64::from(FORKS))
}

fn smt_share(sibling: usize) -> io::Result<Load> {
    let mut partner = Partner::start(sibling, |stop| {
        while !stop.is_set() {
            compute();
        }
        Ok(())
    })?;
    Ok(Load::new(Quantity::SmtShare, move || {
        let alone = compute();
        partner.begin()?;
        partner.wait_until_busy();
        let beside = compute();
        partner.stop()?;
        Ok(100.0 * alone / beside)
    }))
}

/// A chain of multiplications and independent additions; the time in ns.
fn compute() -> f64 {
    let start = cpu_time(ClockId::ThreadCPUTime);
    let (mut chain, mut sum) = (1u64, 0u64);
    for step in 0..STEPS {
        chain = chain.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step);
        sum = sum.wrapping_add(step ^ (step << 3));
    }
    std::hint::black_box((chain, sum));
    cpu_time(ClockId::ThreadCPUTime) - start
}
