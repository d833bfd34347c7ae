//! A verb that calls policies of somebody's own runs in a process of its own, so that one that loops
//! or crashes is reported by a process that it cannot reach.
//!
//! The process is a fork: it has the terminal, prints, and ends as any other. Both see one page, where
//! each thread that calls such a policy says which entry point it is in. A thread that stays in one for
//! [`PATIENCE`] looks is stuck. What a policy has written where it must not may show much later, so
//! that any crash of such a process is told as the policy's.
//!
//! Limit: time in which the process is stopped or suspended does not count, time in which it gets no
//! CPU does.

use std::ffi::c_int;
use std::io;
use std::panic::PanicHookInfo;
use std::process::ExitCode;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use anyhow::Context;
use placewise_policy::ENTRY_POINTS;
use placewise_policy::own::{NOWHERE, WatchSlot};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, kill_process, pidfd_open,
    set_parent_process_death_signal, waitpid,
};

use crate::exit_status;
use crate::input::InputError;

/// A look is taken so often.
const INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Looks that find a thread in the same call: five seconds, where a call takes microseconds.
const PATIENCE: u32 = 50;

const NR_SLOTS: usize = 2048;
const NR_TREES: usize = 64;

/// What both processes see. It starts as all zeros.
struct Page {
    slots: [Slot; NR_SLOTS],
    slots_taken: AtomicU32,
    trees: [Text; NR_TREES],
    nr_trees: AtomicU32,
    /// The thread that a fatal signal was for.
    hit: AtomicU32,
    /// Of the first panic.
    panic: Text,
}

/// [`WatchSlot`], as it is read by others than its thread.
#[repr(C)]
struct Slot {
    entered: AtomicU32,
    calls: AtomicU32,
    thread: AtomicU32,
    unused: [u32; 13],
}

const _: () = assert!(size_of::<Slot>() == size_of::<WatchSlot>());

/// Up to the first zero.
pub struct Text([AtomicU8; 256]);

impl Text {
    pub fn write(&self, text: &str) {
        for (byte, of_text) in self.0[..255].iter().zip(text.bytes()) {
            byte.store(of_text, Ordering::Relaxed);
        }
    }

    pub fn read(&self) -> String {
        let bytes = self.0.iter().map(|byte| byte.load(Ordering::Relaxed));
        let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Of this process, and of those that it forks then.
fn page() -> &'static Page {
    static PAGE: OnceLock<&Page> = OnceLock::new();
    PAGE.get_or_init(|| {
        let (read_write, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping, of a whole page, which zeros are valid for, and never unmapped.
        unsafe {
            let page = mmap_anonymous(std::ptr::null_mut(), size_of::<Page>(), read_write, shared);
            page.expect("there is memory for a page").cast::<Page>().as_ref().expect("mapped")
        }
    })
}

/// The number of a tree of that name; a name has one.
pub fn tree_number(name: &str) -> u32 {
    let page = page();
    let nr_trees = page.nr_trees.load(Ordering::Relaxed);
    let known = (0..nr_trees).find(|at| page.trees[*at as usize].read() == name);
    known.unwrap_or_else(|| {
        // Beyond the last, one more shares its name.
        let number = nr_trees.min(NR_TREES as u32 - 1);
        page.trees[number as usize].write(name);
        page.nr_trees.store(number + 1, Ordering::Relaxed);
        number
    })
}

/// Where this thread says which entry point it is in.
pub extern "C" fn slot_of_thread() -> *mut WatchSlot {
    thread_local! {
        static SLOT: NonNull<WatchSlot> = take_slot();
    }
    SLOT.with(|slot| slot.as_ptr())
}

/// Threads come and go: there are more slots than run at once.
fn take_slot() -> NonNull<WatchSlot> {
    let page = page();
    let taken = page.slots_taken.fetch_add(1, Ordering::Relaxed) as usize;
    let slot = &page.slots[taken % NR_SLOTS];
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    slot.thread.store(thread as u32, Ordering::Relaxed);
    NonNull::from(slot).cast()
}

/// Runs `verb` in a process of its own, and ends as that does; an error where a policy has ended it.
/// There must be no other threads yet.
pub fn run(verb: impl FnOnce() -> ExitCode) -> anyhow::Result<ExitCode> {
    page();
    // SAFETY: this is the only thread, so that the new process finds no lock held.
    match unsafe { libc::fork() } {
        0 => {
            prepare_for_the_worst().context("cannot be watched")?;
            Ok(verb())
        }
        -1 => Err(io::Error::last_os_error()).context("cannot start a process for the policy"),
        process => watch(Pid::from_raw(process).expect("not 0, which is the new process")),
    }
}

fn prepare_for_the_worst() -> anyhow::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    std::panic::set_hook(Box::new(panicked));
    for signal in FATAL {
        // SAFETY: the handler only stores a number; on its own stack, if this one is at its end.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note_thread as extern "C" fn(c_int) as usize;
            action.sa_flags = libc::SA_ONSTACK | libc::SA_RESETHAND;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
    Ok(())
}

const FATAL: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT];

/// The signal comes again, and ends the process then.
extern "C" fn note_thread(_: c_int) {
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    page().hit.store(thread as u32, Ordering::Relaxed);
}

/// Nobody is to go on: other threads wait for this one.
fn panicked(panic: &PanicHookInfo<'_>) {
    let at = panic.location().map(|at| format!(" ({at})")).unwrap_or_default();
    let message = panic.payload_as_str().unwrap_or("a panic");
    page().panic.write(&format!("{message}{at}"));
    std::process::abort();
}

fn watch(process: Pid) -> anyhow::Result<ExitCode> {
    // Ctrl-C is for the other, which may have something to say to it.
    // SAFETY: nothing is called.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
    let pidfd = pidfd_open(process, PidfdFlags::empty()).ok();
    let mut looks = Looks::default();
    loop {
        if let Some((_, status)) = waitpid(Some(process), WaitOptions::NOHANG)? {
            return ended(status);
        }
        wait_a_while(pidfd.as_ref());
        if let Some(slot) = looks.stuck(page()) {
            kill_process(process, Signal::KILL)?;
            waitpid(Some(process), WaitOptions::empty())?;
            let problem = format!("{} has not come back for ten seconds", place(slot));
            return Err(InputError(problem).into());
        }
    }
}

/// Until the process ends, or it is time to look.
fn wait_a_while(process: Option<&OwnedFd>) {
    let mut ends: Vec<PollFd<'_>> =
        process.map(|process| PollFd::new(process, PollFlags::IN)).into_iter().collect();
    // Interrupted, there is one more look.
    let _ = poll(&mut ends, Some(&INTERVAL));
}

/// What was found at the last look, and at how many before.
#[derive(Default)]
struct Looks(Vec<(u32, u32, u32)>);

impl Looks {
    /// A slot whose thread has been in the same call for too long.
    fn stuck<'p>(&mut self, page: &'p Page) -> Option<&'p Slot> {
        let taken = page.slots_taken.load(Ordering::Relaxed) as usize;
        self.0.resize(taken.min(NR_SLOTS), (NOWHERE, 0, 0));
        let mut stuck = None;
        for (slot, last) in page.slots.iter().zip(&mut self.0) {
            let (entered, calls) =
                (slot.entered.load(Ordering::Relaxed), slot.calls.load(Ordering::Relaxed));
            let same = (entered, calls) == (last.0, last.1) && entered != NOWHERE;
            *last = (entered, calls, if same { last.2 + 1 } else { 0 });
            if last.2 >= PATIENCE {
                stuck = Some(slot);
            }
        }
        stuck
    }
}

/// `./mine: select_task_rq`
fn place(slot: &Slot) -> String {
    let entered = slot.entered.load(Ordering::Relaxed);
    let tree = page().trees[(entered >> 16) as usize % NR_TREES].read();
    let entry_point = ENTRY_POINTS.get((entered as usize & 0xffff).wrapping_sub(1));
    format!("{tree}: {}", entry_point.unwrap_or(&"an entry point"))
}

/// As a shell tells it, if it was not the policy's fault.
fn ended(status: WaitStatus) -> anyhow::Result<ExitCode> {
    let Some(signal) = status.terminating_signal() else {
        let status = status.exit_status().unwrap_or(exit_status::FAILURE.into());
        return Ok(ExitCode::from(status as u8));
    };
    if FATAL.contains(&signal) {
        Err(crashed(signal).into())
    } else {
        Ok(ExitCode::from(128 + signal as u8))
    }
}

fn crashed(signal: c_int) -> InputError {
    let page = page();
    let hit = page.hit.load(Ordering::Relaxed);
    let inside = |slot: &&Slot| {
        slot.thread.load(Ordering::Relaxed) == hit
            && slot.entered.load(Ordering::Relaxed) != NOWHERE
    };
    let signal = name_of(signal);
    if let Some(slot) = page.slots.iter().find(inside) {
        return InputError(format!("{} crashed ({signal})", place(slot)));
    }
    let nr_trees = page.nr_trees.load(Ordering::Relaxed) as usize;
    let trees: Vec<String> = page.trees[..nr_trees].iter().map(Text::read).collect();
    let trees = trees.join(", ");
    match page.panic.read().as_str() {
        "" => InputError(format!(
            "{trees}: Placewise crashed ({signal}), which it does where a policy has written what it must not"
        )),
        panic => InputError(format!("{trees}: what it decided cannot be carried out: {panic}")),
    }
}

pub fn name_of(signal: c_int) -> String {
    let names = ["SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT"];
    let place = FATAL.iter().position(|fatal| *fatal == signal);
    place.map_or(format!("signal {signal}"), |place| names[place].to_owned())
}
