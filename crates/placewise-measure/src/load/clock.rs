//! What time is taken by, and switches against one's will.

use std::io;
use std::time::Instant;

use rustix::time::{ClockId, clock_getres, clock_gettime};

/// A clock that stands still while others run, in ns: that of this thread, or of all threads of this
/// process, of which one at a time runs where all are on one CPU.
pub fn cpu_time(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Scheduler ticks per second: the coarse clock goes by them.
pub fn hz() -> u32 {
    let tick = clock_getres(ClockId::MonotonicCoarse);
    (1_000_000_000 / tick.tv_nsec.max(1)) as u32
}

/// The CPU time of each of `rounds`, in ns.
pub fn time_each(
    clock: ClockId,
    rounds: u32,
    mut each: impl FnMut() -> io::Result<()>,
) -> io::Result<f64> {
    let start = cpu_time(clock);
    for _ in 0..rounds {
        each()?;
    }
    Ok((cpu_time(clock) - start) / f64::from(rounds))
}

/// The median of the times of single rounds, in ns: where several CPUs take part, no clock stands
/// still when one of them is taken away.
pub fn median_time(rounds: u32, mut each: impl FnMut() -> io::Result<Instant>) -> io::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..rounds {
        times.push(each()?.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2].as_nanos() as f64)
}

/// How often threads of this process were switched out against their will so far.
pub fn preemptions() -> io::Result<u64> {
    preemptions_of(libc::RUSAGE_SELF)
}

/// The same of the others.
pub fn preemptions_of_others() -> io::Result<u64> {
    Ok(preemptions()? - preemptions_of(libc::RUSAGE_THREAD)?)
}

fn preemptions_of(who: libc::c_int) -> io::Result<u64> {
    // SAFETY: zeroes are a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills in the struct that it is given.
    match unsafe { libc::getrusage(who, &raw mut usage) } {
        0 => Ok(usage.ru_nivcsw as u64),
        _ => Err(io::Error::last_os_error()),
    }
}
