//! Wakeups: round trips, the waker's call, and what idling adds.

use std::hint::spin_loop;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use rustix::pipe::pipe;
use rustix::thread::gettid;
use rustix::time::ClockId;

use super::calls::SHORT;
use super::clock::{cpu_time, median_time, time_each};
use crate::batches::Load;
use crate::partner::Partner;
use crate::place::{Places, stay_on};
use crate::quantity::{Quantity, middle};

/// In a row: CPUs of a virtual machine wake a quarter sooner the first hundreds of times after they were busy.
const ROUND_TRIPS: u32 = 2_000;
const CALLS: u32 = 10;
/// In which a partner has gone to sleep.
const PAUSE: Duration = Duration::from_micros(20);
/// Wakeups beside a spinner, which are to be spread over the time between two ticks.
const WAITS: u64 = 24;
const SLEEPERS: usize = 16;
/// In which each of them has.
const UNTIL_ALL_SLEEP: Duration = Duration::from_micros(500);
/// How long CPUs idle before they are woken, in us.
pub const RESTS_US: [u32; 6] = [5, 20, 100, 500, 2_000, 10_000];
/// MEMBARRIER_CMD_PRIVATE_EXPEDITED and its registration, of linux/membarrier.h.
const MEMBARRIER: libc::c_int = 1 << 3;
const MEMBARRIER_REGISTER: libc::c_int = 1 << 4;

pub fn loads(places: &Places) -> io::Result<Vec<Load>> {
    let woken = Rc::new(Sleepers::start(places.home)?);
    let sleepers = woken.clone();
    let mut loads = vec![
        Load::new(Quantity::WakeCallHere, move || Ok(woken.wake()?.call)),
        Load::new(Quantity::Sleeper, move || Ok(sleepers.wake()?.sleeper)),
    ];
    let interrupts = membarrier(MEMBARRIER_REGISTER).is_ok();
    for &(distance, cpu) in &places.partners {
        loads.push(Load::new(Quantity::RoundTrip(distance), round_trips(Some(cpu))?.0));
        loads.push(Load::new(Quantity::WakeCall(distance), wake_calls(cpu)?));
        if interrupts {
            loads.push(interrupt(Quantity::Interrupt(distance), cpu)?);
        }
    }
    if let Some((distance, cpu)) = places.nearest() {
        loads.push(Load::new(Quantity::BusyWakeCall(distance), busy_wake_calls(cpu)?));
        for rest in RESTS_US {
            loads.push(Load::new(Quantity::WakeAfter(rest), wake_after(cpu, rest)?));
        }
    }
    Ok(loads)
}

/// A partner on `cpu` that answers each byte, and ends with its pipe.
struct Echo {
    from: OwnedFd,
    to: OwnedFd,
    /// When it was last awake again, in ns since `start`.
    awake: Arc<AtomicU64>,
    start: Instant,
    /// Its id.
    thread: i32,
}

impl Echo {
    fn start(cpu: Option<usize>) -> io::Result<Self> {
        Self::start_as(libc::SCHED_OTHER, cpu)
    }

    fn start_as(policy: libc::c_int, cpu: Option<usize>) -> io::Result<Self> {
        let ((from, there), (hence, to)) = (pipe()?, pipe()?);
        let awake = Arc::new(AtomicU64::new(0));
        let (start, stamp) = (Instant::now(), awake.clone());
        let (tell, told) = sync_channel(1);
        thread::Builder::new().spawn(move || -> io::Result<()> {
            cpu.map_or(Ok(()), stay_on)?;
            take_policy(policy)?;
            // Whoever started it waits for that.
            let _ = tell.send(gettid().as_raw_pid());
            while rustix::io::read(&hence, &mut [0; 1])? > 0 {
                stamp.store(start.elapsed().as_nanos() as u64, Ordering::Release);
                rustix::io::write(&there, &[0])?;
            }
            Ok(())
        })?;
        let thread = told.recv().map_err(|_| io::Error::other("a partner thread has ended"))?;
        Ok(Self { from, to, awake, start, thread })
    }

    fn call(&self) -> io::Result<()> {
        rustix::io::write(&self.to, &[0])?;
        Ok(())
    }

    /// From the call until it is awake, in ns.
    fn wait(&self) -> io::Result<f64> {
        let called = self.start.elapsed().as_nanos() as u64;
        self.call()?;
        self.answer()?;
        Ok(self.awake.load(Ordering::Acquire).saturating_sub(called) as f64)
    }

    fn answer(&self) -> io::Result<()> {
        match rustix::io::read(&self.from, &mut [0; 1])? {
            0 => Err(io::Error::other("a partner thread has ended")),
            _ => Ok(()),
        }
    }
}

/// With a partner on the CPU of the calling thread, which stays there: CPU time.
pub fn round_trips_here(home: usize) -> io::Result<impl FnMut() -> io::Result<f64>> {
    let echo = Echo::start(Some(home))?;
    Ok(move || {
        time_each(ClockId::ProcessCPUTime, ROUND_TRIPS, || {
            echo.call()?;
            echo.answer()
        })
    })
}

/// Many sleep on the CPU of the calling thread, which stays there, each on a pipe of its own, which it ends with.
struct Sleepers {
    writers: Vec<OwnedFd>,
}

/// CPU time of each of their wakeups, in ns.
struct Told {
    call: f64,
    sleeper: f64,
}

impl Sleepers {
    fn start(home: usize) -> io::Result<Self> {
        let mut writers = Vec::new();
        for _ in 0..SLEEPERS {
            let (reader, writer) = pipe()?;
            writers.push(writer);
            thread::Builder::new().spawn(move || -> io::Result<()> {
                stay_on(home)?;
                take_policy(libc::SCHED_BATCH)?;
                while rustix::io::read(&reader, &mut [0; SHORT])? > 0 {}
                Ok(())
            })?;
        }
        Ok(Self { writers })
    }

    /// Wakes them all, none of which preempts, and sleeps while each reads its message and sleeps again.
    fn wake(&self) -> io::Result<Told> {
        let of_others = || cpu_time(ClockId::ProcessCPUTime) - cpu_time(ClockId::ThreadCPUTime);
        // They may have to go to sleep for the first time.
        thread::sleep(UNTIL_ALL_SLEEP);
        let (before, begin) = (of_others(), cpu_time(ClockId::ThreadCPUTime));
        self.writers.iter().try_for_each(|to| rustix::io::write(to, &[0; SHORT]).map(drop))?;
        let calls = cpu_time(ClockId::ThreadCPUTime) - begin;
        thread::sleep(UNTIL_ALL_SLEEP);
        let each = |time: f64| time / SLEEPERS as f64;
        Ok(Told { call: each(calls), sleeper: each(of_others() - before) })
    }
}

/// With a partner on `cpu`, or anywhere, and the thread id of the partner.
pub fn round_trips(
    cpu: Option<usize>,
) -> io::Result<(impl FnMut() -> io::Result<f64> + 'static, i32)> {
    let echo = Echo::start(cpu)?;
    let partner = echo.thread;
    let batch = move || {
        median_time(ROUND_TRIPS, || {
            let start = Instant::now();
            echo.call()?;
            echo.answer()?;
            Ok(start)
        })
    };
    Ok((batch, partner))
}

/// The time that the waker's own call takes.
fn wake_calls(cpu: usize) -> io::Result<impl FnMut() -> io::Result<f64>> {
    let echo = Echo::start(Some(cpu))?;
    Ok(move || {
        let mut calls = Vec::new();
        for _ in 0..CALLS {
            busy_for(PAUSE);
            let start = Instant::now();
            echo.call()?;
            calls.push(start.elapsed());
            echo.answer()?;
        }
        calls.sort_unstable();
        Ok(calls[calls.len() / 2].as_nanos() as f64)
    })
}

/// The same while a task spins on the partner's CPU: batch tasks preempt nobody, so that no interrupt is
/// sent, and what is left is what comes over with the wakee and its run queue.
fn busy_wake_calls(cpu: usize) -> io::Result<impl FnMut() -> io::Result<f64>> {
    let echo = Echo::start_as(libc::SCHED_BATCH, Some(cpu))?;
    let mut spinner = spinner(cpu)?;
    Ok(move || {
        let mut calls = Vec::new();
        for _ in 0..CALLS {
            spinner.begin()?;
            spinner.wait_until_busy();
            busy_for(PAUSE);
            let start = Instant::now();
            echo.call()?;
            calls.push(start.elapsed());
            spinner.stop()?;
            echo.answer()?;
        }
        calls.sort_unstable();
        Ok(calls[calls.len() / 2].as_nanos() as f64)
    })
}

/// How long a wakee on `cpu` waits beside a task that stays in user space, in ns: the median.
pub fn wait_beside_a_spinner(cpu: usize) -> io::Result<f64> {
    let echo = Echo::start(Some(cpu))?;
    let mut spinner = spinner(cpu)?;
    spinner.begin()?;
    spinner.wait_until_busy();
    let waits = (0..WAITS).map(|wakeup| {
        busy_for(Duration::from_micros(1_000 + 130 * wakeup));
        echo.wait()
    });
    let waits: io::Result<Vec<f64>> = waits.collect();
    spinner.stop()?;
    Ok(middle(&mut waits?))
}

fn spinner(cpu: usize) -> io::Result<Partner> {
    Partner::start(cpu, |stop| {
        while !stop.is_set() {
            spin_loop();
        }
        Ok(())
    })
}

/// Of the calling thread.
fn take_policy(policy: libc::c_int) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel only reads the parameters.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// This CPU is busy meanwhile: only the wakee's idles.
fn wake_after(cpu: usize, rest_us: u32) -> io::Result<impl FnMut() -> io::Result<f64>> {
    let echo = Echo::start(Some(cpu))?;
    let rest = Duration::from_micros(rest_us.into());
    // Short rests are over soon.
    let wakeups = if rest_us < 1_000 { CALLS } else { 1 };
    Ok(move || {
        let mut latencies = Vec::new();
        for _ in 0..wakeups {
            busy_for(rest);
            latencies.push(echo.wait()?);
        }
        Ok(middle(&mut latencies))
    })
}

fn busy_for(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        spin_loop();
    }
}

/// A barrier on all CPUs that run this process interrupts the one on which its partner is busy.
fn interrupt(quantity: Quantity, cpu: usize) -> io::Result<Load> {
    let mut partner = spinner(cpu)?;
    Ok(Load::new(quantity, move || {
        partner.begin()?;
        partner.wait_until_busy();
        let each = median_time(CALLS, || {
            let start = Instant::now();
            membarrier(MEMBARRIER)?;
            Ok(start)
        });
        partner.stop()?;
        each
    }))
}

fn membarrier(command: libc::c_int) -> io::Result<()> {
    // SAFETY: membarrier() takes numbers only.
    match unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
