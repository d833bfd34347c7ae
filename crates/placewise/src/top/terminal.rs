//! The terminal while `top` has it: raw, on its alternate screen, and given back whatever ends us but
//! SIGKILL.
//!
//! Keys come from /dev/tty, so that a trace may come from standard input.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use ratatui::Terminal;
use ratatui::backend::TermionBackend;
use ratatui::termion::raw::{IntoRawMode, RawTerminal};
use ratatui::termion::screen::{AlternateScreen, IntoAlternateScreen};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};

const CTRL_C: u8 = 3;

type Screen = AlternateScreen<RawTerminal<File>>;

pub struct Tty {
    pub terminal: Terminal<TermionBackend<Screen>>,
    keys: File,
    stop: Arc<AtomicBool>,
}

/// What whoever sits there wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    GoOn,
    /// Count from here.
    Reset,
    Quit,
}

impl Tty {
    pub fn open() -> anyhow::Result<Self> {
        let tty = || OpenOptions::new().read(true).write(true).open("/dev/tty");
        let no_terminal = "no terminal to draw on; --once prints one frame";
        let keys = tty().context(no_terminal)?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        // It only has to end the wait: the next frame looks how large the window is.
        signal_hook::flag::register(SIGWINCH, Arc::new(AtomicBool::new(false)))?;
        let screen = tty()?.into_raw_mode().context(no_terminal)?.into_alternate_screen()?;
        let terminal = Terminal::new(TermionBackend::new(screen))?;
        Ok(Tty { terminal, keys, stop })
    }

    /// Waits until a key is hit, a signal comes, or the time is over.
    pub fn wait(&mut self, until: Instant) -> io::Result<Wish> {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left.max(Duration::from_millis(1))).expect("it is short");
        let mut keys = [PollFd::new(&self.keys, PollFlags::IN)];
        let hit = matches!(poll(&mut keys, Some(&left)), Ok(1..));
        if self.stop.load(Ordering::Relaxed) {
            return Ok(Wish::Quit);
        }
        if !hit {
            return Ok(Wish::GoOn);
        }
        let mut typed = [0; 64];
        let count = self.keys.read(&mut typed)?;
        Ok(wish(&typed[..count]))
    }
}

fn wish(typed: &[u8]) -> Wish {
    match typed {
        // The terminal has gone.
        [] => Wish::Quit,
        keys if keys.iter().any(|key| [b'q', b'Q', CTRL_C].contains(key)) => Wish::Quit,
        keys if keys.contains(&b'r') => Wish::Reset,
        _ => Wish::GoOn,
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        // The screen goes back by itself; the cursor was hidden by the first frame.
        let _ = self.terminal.show_cursor();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_the_first_line_says() {
        assert_eq!(wish(b"q"), Wish::Quit);
        assert_eq!(wish(b"xxQ"), Wish::Quit);
        assert_eq!(wish(&[CTRL_C]), Wish::Quit);
        assert_eq!(wish(b""), Wish::Quit);
        assert_eq!(wish(b"r"), Wish::Reset);
        assert_eq!(wish(b"\x1b[A"), Wish::GoOn);
    }
}
