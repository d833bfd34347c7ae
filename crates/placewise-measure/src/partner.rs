//! A thread on a CPU of its own that does its part of a batch when it is told to, and sleeps between
//! batches.

use std::hint::spin_loop;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::place::stay_on;

/// Raised by the one side for the other to see.
#[derive(Default)]
pub struct Flag(AtomicBool);

impl Flag {
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn turn(&self, up: bool) {
        self.0.store(up, Ordering::Release);
    }
}

pub struct Partner {
    begin: SyncSender<()>,
    done: Receiver<io::Result<()>>,
    stop: Arc<Flag>,
    busy: Arc<Flag>,
}

impl Partner {
    /// `part` is its part of each batch; it is given the flag that [`Partner::stop`] raises.
    pub fn start(
        cpu: usize,
        mut part: impl FnMut(&Flag) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let (begin, begun) = sync_channel(1);
        let (tell, done) = sync_channel(1);
        let (stop, busy) = (Arc::new(Flag::default()), Arc::new(Flag::default()));
        let (told_stop, says_busy) = (stop.clone(), busy.clone());
        thread::Builder::new().spawn(move || {
            let placed = stay_on(cpu);
            let mut answer = tell.send(placed);
            while answer.is_ok() && begun.recv().is_ok() {
                says_busy.turn(true);
                let outcome = part(&told_stop);
                says_busy.turn(false);
                answer = tell.send(outcome);
            }
        })?;
        let partner = Self { begin, done, stop, busy };
        partner.wait()?;
        Ok(partner)
    }

    pub fn begin(&self) -> io::Result<()> {
        self.stop.turn(false);
        self.begin.send(()).map_err(|_| gone())
    }

    /// Until it is at its part. It may not be waited for on its own CPU.
    pub fn wait_until_busy(&self) {
        while !self.busy.is_set() {
            spin_loop();
        }
    }

    pub fn wait(&self) -> io::Result<()> {
        self.done.recv().map_err(|_| gone())?
    }

    pub fn stop(&mut self) -> io::Result<()> {
        self.stop.turn(true);
        self.wait()
    }
}

fn gone() -> io::Error {
    io::Error::other("a partner thread has ended")
}
