//! Processes that work on the items of a list, first come, first served, so that an item that crashes or
//! never ends takes no other with it.
//!
//! They are forks of this process and see what it has loaded. All see one page, where each worker says
//! which item it is at and since when; the parent looks there, ends one that takes longer than the
//! `limit`, and starts another in the place of each that has died.
//!
//! Limit: time counts by the wall clock, whether or not the machine had a CPU for the worker.

use std::io;
use std::mem::size_of;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, kill_process, pidfd_open,
    set_parent_process_death_signal, waitpid,
};

use crate::supervised::{Text, name_of};

/// A look is taken so often.
const INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Of a worker that is at no item.
const NONE: u32 = u32::MAX;

/// What the parent hears.
#[derive(Debug)]
pub enum Heard {
    Done {
        item: usize,
        took: Duration,
    },
    /// The worker is gone, and why.
    Lost {
        item: usize,
        why: String,
    },
    /// Time goes on.
    Nothing,
}

/// What all see, in one mapping: this, a seat per worker, and how long each item took in ns, 0 as long as
/// it is not done.
struct Page {
    start: NonNull<u8>,
    bytes: usize,
    seats: usize,
    items: usize,
}

struct Head {
    /// The first item that nobody has taken.
    next: AtomicU32,
    /// Of a worker that cannot go on.
    error: Text,
}

/// Of a worker, and of the one that takes its place.
struct Seat {
    /// That the worker is at.
    item: AtomicU32,
    /// Since when, in ns from the start of all.
    since: AtomicU64,
}

impl Page {
    fn new(seats: usize, items: usize) -> anyhow::Result<Self> {
        let bytes = size_of::<Head>().next_multiple_of(8)
            + seats * size_of::<Seat>()
            + items * size_of::<AtomicU64>();
        let (read_write, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, read_write, shared) };
        let start = start.context("cannot share memory with workers")?.cast();
        Ok(Self { start: NonNull::new(start).context("mapped at 0")?, bytes, seats, items })
    }

    fn head(&self) -> &Head {
        // SAFETY: the mapping begins with it, zeros are valid for it, and it lives as long as we do.
        unsafe { self.start.cast().as_ref() }
    }

    fn seats(&self) -> &[Seat] {
        // SAFETY: they come behind the head, aligned; zeros are valid.
        unsafe {
            let first = self.start.add(size_of::<Head>().next_multiple_of(8)).cast::<Seat>();
            std::slice::from_raw_parts(first.as_ptr(), self.seats)
        }
    }

    fn took(&self) -> &[AtomicU64] {
        // SAFETY: they come behind the seats, aligned; zeros are valid.
        unsafe {
            let end = self.seats().as_ptr_range().end.cast::<AtomicU64>();
            std::slice::from_raw_parts(end, self.items)
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: nobody borrows from it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

struct Worker {
    process: Pid,
    pidfd: OwnedFd,
}

struct Workers<'a, W> {
    page: Page,
    start: Instant,
    limit: Duration,
    work: &'a W,
    /// By seat; `None` where there is nothing to do any more.
    workers: Vec<Option<Worker>>,
    is_heard: Vec<bool>,
}

/// Has `work` done on `items` items in `jobs` processes, and ends when all of them are done or lost; an
/// error of `work` ends it at once. There must be no other threads.
pub fn run(
    items: usize,
    jobs: usize,
    limit: Duration,
    work: &impl Fn(usize) -> anyhow::Result<()>,
    mut hear: impl FnMut(Heard) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let seats = jobs.min(items);
    let mut workers = Workers {
        page: Page::new(seats, items)?,
        start: Instant::now(),
        limit,
        work,
        workers: Vec::new(),
        is_heard: vec![false; items],
    };
    for seat in 0..seats {
        let worker = workers.start(seat)?;
        workers.workers.push(Some(worker));
    }
    while workers.workers.iter().any(Option::is_some) {
        workers.wait_a_while();
        for seat in 0..seats {
            if let Some((item, why)) = workers.look_after(seat)? {
                workers.is_heard[item] = true;
                hear(Heard::Lost { item, why })?;
            }
        }
        workers.tell(&mut hear)?;
    }
    Ok(())
}

impl<W: Fn(usize) -> anyhow::Result<()>> Workers<'_, W> {
    fn start(&self, seat: usize) -> anyhow::Result<Worker> {
        self.page.seats()[seat].item.store(NONE, Ordering::Relaxed);
        // SAFETY: this is the only thread, so that the new process finds no lock held.
        match unsafe { libc::fork() } {
            0 => {
                let status = self.work_at(seat).map_or_else(
                    |error| {
                        self.page.head().error.write(&format!("{error:#}"));
                        1
                    },
                    |()| 0,
                );
                // SAFETY: nothing of the parent's is to be ended here.
                unsafe { libc::_exit(status) }
            }
            -1 => Err(io::Error::last_os_error()).context("cannot start a worker"),
            process => {
                let process = Pid::from_raw(process).expect("not 0, which is the new process");
                let pidfd = pidfd_open(process, PidfdFlags::empty());
                Ok(Worker { process, pidfd: pidfd.context("cannot watch a worker")? })
            }
        }
    }

    /// In the worker.
    fn work_at(&self, seat: usize) -> anyhow::Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        let (head, seat) = (self.page.head(), &self.page.seats()[seat]);
        loop {
            let item = head.next.fetch_add(1, Ordering::Relaxed);
            let Some(took) = self.page.took().get(item as usize) else { return Ok(()) };
            let since = self.start.elapsed();
            seat.since.store(since.as_nanos() as u64, Ordering::Release);
            seat.item.store(item, Ordering::Release);
            (self.work)(item as usize)?;
            let spent = self.start.elapsed().saturating_sub(since).as_nanos() as u64;
            took.store(spent.max(1), Ordering::Release);
            seat.item.store(NONE, Ordering::Release);
        }
    }

    /// Until a worker ends, or it is time to look.
    fn wait_a_while(&self) {
        let workers = self.workers.iter().flatten();
        let mut ends: Vec<PollFd<'_>> =
            workers.map(|worker| PollFd::new(&worker.pidfd, PollFlags::IN)).collect();
        // Interrupted, there is one more look.
        let _ = poll(&mut ends, Some(&INTERVAL));
    }

    /// The item that a worker has lost.
    fn look_after(&mut self, seat: usize) -> anyhow::Result<Option<(usize, String)>> {
        let Some(Worker { process, .. }) = &self.workers[seat] else { return Ok(None) };
        let process = *process;
        let late = match waitpid(Some(process), WaitOptions::NOHANG)? {
            Some((_, status)) => return self.ended(seat, status),
            None => self.is_late(seat),
        };
        if !late {
            return Ok(None);
        }
        kill_process(process, Signal::KILL)?;
        let lost = self.item_at(seat);
        waitpid(Some(process), WaitOptions::empty())?;
        self.replace(seat)?;
        let limit = humantime::format_duration(self.limit);
        Ok(lost.map(|item| (item, format!("took longer than the limit of {limit}"))))
    }

    fn ended(
        &mut self,
        seat: usize,
        status: WaitStatus,
    ) -> anyhow::Result<Option<(usize, String)>> {
        if let Some(signal) = status.terminating_signal() {
            let lost = self.item_at(seat);
            self.replace(seat)?;
            return Ok(lost.map(|item| (item, format!("crashed ({})", name_of(signal)))));
        }
        self.workers[seat] = None;
        match status.exit_status() {
            Some(0) => Ok(None),
            _ => Err(anyhow!("{}", self.page.head().error.read())),
        }
    }

    fn replace(&mut self, seat: usize) -> anyhow::Result<()> {
        self.workers[seat] = Some(self.start(seat)?);
        Ok(())
    }

    /// That is not done.
    fn item_at(&self, seat: usize) -> Option<usize> {
        let item = self.page.seats()[seat].item.load(Ordering::Acquire) as usize;
        let took = self.page.took().get(item)?;
        (took.load(Ordering::Acquire) == 0).then_some(item)
    }

    fn is_late(&self, seat: usize) -> bool {
        let at = self.item_at(seat);
        let since = self.page.seats()[seat].since.load(Ordering::Acquire);
        let spent = self.start.elapsed().saturating_sub(Duration::from_nanos(since));
        // One that has gone on meanwhile is not late with what it has begun.
        at.is_some() && spent > self.limit && self.item_at(seat) == at
    }

    /// Of all that is done and not told yet.
    fn tell(&mut self, hear: &mut impl FnMut(Heard) -> anyhow::Result<()>) -> anyhow::Result<()> {
        for (item, took) in self.page.took().iter().enumerate() {
            let took = took.load(Ordering::Acquire);
            if took > 0 && !self.is_heard[item] {
                self.is_heard[item] = true;
                hear(Heard::Done { item, took: Duration::from_nanos(took) })?;
            }
        }
        hear(Heard::Nothing)
    }
}

/// None outlives an error.
impl<W> Drop for Workers<'_, W> {
    fn drop(&mut self) {
        for Worker { process, .. } in self.workers.iter().flatten() {
            let _ = kill_process(*process, Signal::KILL);
            let _ = waitpid(Some(*process), WaitOptions::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// What is heard of items that these workers have worked on, by item.
    fn heard(
        jobs: usize,
        limit: Duration,
        work: impl Fn(usize) -> anyhow::Result<()>,
    ) -> Vec<String> {
        let mut heard = vec![String::new(); 5];
        run(5, jobs, limit, &work, |one| {
            match one {
                Heard::Done { item, .. } => heard[item] += "done",
                Heard::Lost { item, why } => heard[item] += &why,
                Heard::Nothing => {}
            }
            Ok(())
        })
        .unwrap();
        heard
    }

    const LONG: Duration = Duration::from_secs(600);

    fn die(signal: i32) {
        // SAFETY: only this worker ends.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::kill(libc::getpid(), signal);
        }
    }

    #[test]
    fn what_crashes_takes_no_other_item_with_it() {
        for jobs in [1, 3] {
            let heard = heard(jobs, LONG, |item| {
                [1, 3].contains(&item).then(|| die(libc::SIGSEGV));
                Ok(())
            });
            assert_eq!(heard, ["done", "crashed (SIGSEGV)", "done", "crashed (SIGSEGV)", "done"]);
        }
    }

    #[test]
    fn what_never_ends_is_ended() {
        let heard = heard(2, Duration::from_millis(300), |item| match item {
            2 => loop {
                std::thread::park();
            },
            _ => Ok(()),
        });
        assert_eq!(heard[2], "took longer than the limit of 300ms");
        assert_eq!([&heard[..2], &heard[3..]].concat(), ["done"; 4]);
    }

    #[test]
    fn an_error_ends_all() {
        // Made before the fork: who makes one takes the lock of backtraces, which another test may hold then.
        let no_room = Cell::new(Some(anyhow!("no room")));
        let work = |item| if item == 1 { no_room.take().map_or(Ok(()), Err) } else { Ok(()) };
        let error = run(5, 1, LONG, &work, |_| Ok(())).unwrap_err();
        assert_eq!(error.to_string(), "no room");
    }
}
