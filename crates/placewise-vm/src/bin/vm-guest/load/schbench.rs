//! schbench: messengers that wake workers, by the method of the model of that name.

use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::case::{Case, Window};
use super::team::{self, Body, Kind, Outcome};

/// What all tasks of a messenger share.
struct Messenger {
    thread: OnceLock<Thread>,
    workers: Vec<Worker>,
    /// Who was the last to come on the list of workers that wait for it. Without a lock, as the tool has it:
    /// who waits for one is woken once more.
    last: AtomicUsize,
    spin: Duration,
    sleep: Duration,
}

/// No worker.
const NOBODY: usize = usize::MAX;

#[derive(Default)]
struct Worker {
    thread: OnceLock<Thread>,
    /// Who came on the list before.
    before: AtomicUsize,
    /// When it was woken, in ns since the start; 0 while nobody has.
    woken: AtomicU64,
}

struct Run {
    start: Instant,
    stop: AtomicBool,
    window: Window,
    latencies: Mutex<Vec<u64>>,
}

pub fn run(case: &mut Case) -> anyhow::Result<Outcome> {
    let workers = case.number("workers", 16)?;
    let messengers = case.number("messengers", 1)?;
    let worker_spin = case.microseconds("cputime_us", 30_000)?;
    let spin = case.microseconds("message_cputime_us", 30_000)?;
    let sleep = case.microseconds("sleeptime_us", 30_000)?;
    let window = case.window(1_000, 10_000)?;
    let run = Arc::new(Run {
        start: Instant::now(),
        stop: AtomicBool::new(false),
        window,
        latencies: Mutex::default(),
    });
    let messengers: Vec<Arc<Messenger>> = (0..messengers)
        .map(|_| {
            let workers = (0..workers).map(|_| Worker::default()).collect();
            Arc::new(Messenger {
                thread: OnceLock::new(),
                workers,
                last: NOBODY.into(),
                spin,
                sleep,
            })
        })
        .collect();
    let mut bodies: Vec<Body> = Vec::new();
    for messenger in &messengers {
        let (its, of) = (messenger.clone(), run.clone());
        bodies.push(Box::new(move || Ok(its.message(&of))));
        for number in 0..workers {
            let (its, of) = (messenger.clone(), run.clone());
            bodies.push(Box::new(move || Ok(its.work(&of, number, worker_spin))));
        }
    }
    let mut outcome = team::run(Kind::Thread, bodies, || {
        thread::sleep(window.warmup + window.measured);
        run.stop.store(true, Ordering::SeqCst);
        messengers.iter().for_each(|messenger| messenger.release());
    })?;
    outcome.latencies = std::mem::take(&mut run.latencies.lock().expect("no task panicked"));
    Ok(outcome)
}

impl Run {
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }
}

impl Messenger {
    fn message(&self, run: &Run) -> u64 {
        self.thread.get_or_init(thread::current);
        let mut pseudo_random = 1_u32;
        while run.goes_on() {
            // A wake that came before is forgotten.
            thread::park_timeout(Duration::ZERO);
            let stamp = run.now();
            for worker in self.take_list() {
                worker.woken.store(stamp, Ordering::Release);
                worker.thread.get().expect("it is on the list").unpark();
            }
            if run.goes_on() {
                thread::park();
            }
            spin(self.spin);
            pseudo_random = pseudo_random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            thread::sleep(self.sleep + self.sleep / 4 * (pseudo_random >> 24) / 256);
        }
        0
    }

    /// Rounds, each of which is a message.
    fn work(&self, run: &Run, number: usize, for_a_while: Duration) -> u64 {
        let own = &self.workers[number];
        own.thread.get_or_init(thread::current);
        let (mut rounds, mut latencies) = (0, Vec::new());
        let warm = (run.window.warmup.as_nanos()) as u64 + run.now();
        while run.goes_on() {
            spin(for_a_while);
            own.woken.store(0, Ordering::Relaxed);
            self.enlist(number);
            if let Some(messenger) = self.thread.get() {
                messenger.unpark();
            }
            while own.woken.load(Ordering::Acquire) == 0 && run.goes_on() {
                thread::park();
            }
            // In this order: who was let go by the end may be woken even now.
            let (woken, now) = (own.woken.load(Ordering::Acquire), run.now());
            if woken > warm {
                latencies.push(now - woken);
            }
            rounds += 1;
        }
        run.latencies.lock().expect("no task panicked").append(&mut latencies);
        rounds
    }

    fn enlist(&self, number: usize) {
        let before = &self.workers[number].before;
        let behind = |last| {
            before.store(last, Ordering::Relaxed);
            Some(number)
        };
        let always = self.last.fetch_update(Ordering::AcqRel, Ordering::Acquire, behind);
        always.expect("somebody is always last");
    }

    /// Who came last is first.
    fn take_list(&self) -> impl Iterator<Item = &Worker> {
        let mut next = self.last.swap(NOBODY, Ordering::AcqRel);
        iter::from_fn(move || {
            let worker = self.workers.get(next)?;
            next = worker.before.load(Ordering::Relaxed);
            Some(worker)
        })
    }

    /// Lets all go that wait, once they are to stop.
    fn release(&self) {
        let workers = self.workers.iter().filter_map(|worker| worker.thread.get());
        self.thread.get().into_iter().chain(workers).for_each(Thread::unpark);
    }
}

fn spin(duration: Duration) {
    let start = Instant::now();
    while start.elapsed() < duration {}
}
