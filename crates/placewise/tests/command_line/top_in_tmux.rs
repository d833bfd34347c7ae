//! `placewise top` in a terminal, as tmux shows it: every panel at two sizes, a window that grows, keys.
//! Skipped where tmux is not installed; the live one also where nothing can be recorded.

use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::record::{PLACEWISE, cannot_record, instance_of, wait_until, with_tracefs};

const PANELS: [&str; 3] = ["CPUs by LLC", "wakeups by distance", "who waited longest"];

type Starts = fn(&[&str]) -> Command;

/// A server of its own with one window.
struct Tmux {
    directory: TempDir,
}

impl Tmux {
    /// With `words` in the window. `starts`: makes a command of words.
    fn start(starts: Starts, (width, height): (usize, usize), words: &[&str]) -> Self {
        let tmux = Tmux { directory: tempfile::tempdir().unwrap() };
        let socket = tmux.socket();
        let (width, height) = (width.to_string(), height.to_string());
        let new = ["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height];
        let all = [&["tmux", "-S", &socket], &new[..], words].concat();
        assert!(starts(&all).status().unwrap().success());
        tmux
    }

    fn socket(&self) -> String {
        self.directory.path().join("tmux").display().to_string()
    }

    fn tell(&self, words: &[&str]) -> String {
        let output =
            Command::new("tmux").args(["-S", &self.socket()]).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn screen(&self) -> String {
        self.tell(&["capture-pane", "-p"])
    }

    /// All panels fill a window of that size.
    fn shows_all(&self, (width, height): (usize, usize)) -> bool {
        let screen = self.screen();
        let lines: Vec<&str> = screen.lines().collect();
        let fills = |line: &&str| line.ends_with('┐') && line.chars().count() == width;
        lines.len() == height
            && lines.iter().filter(|line| fills(line)).count() == PANELS.len()
            && PANELS.iter().all(|panel| screen.contains(panel))
            && lines[height - 1].starts_with('└')
    }

    /// The share of the time that was watched, in percent.
    fn watched(&self) -> Option<f64> {
        let screen = self.screen();
        let (_, watched) = screen.split_once("watched ")?;
        watched.split_whitespace().next()?.parse().ok()
    }

    fn has_ended(&self) -> bool {
        let mut ask = Command::new("tmux");
        let ask = ask.args(["-S", &self.socket(), "has-session"]);
        !ask.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.tell(&["kill-server"]);
    }
}

fn has_tmux() -> bool {
    Command::new("tmux").arg("-V").stdout(Stdio::null()).status().is_ok()
}

fn plainly(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

/// Small, then large: the next frame has the new size. Then `q`.
fn is_shown_at_two_sizes(starts: Starts, words: &[&str]) {
    let (small, large) = ((80, 24), (200, 60));
    let tmux = Tmux::start(starts, small, words);
    wait_until("80x24 is filled", || tmux.shows_all(small));
    tmux.tell(&["resize-window", "-x", "200", "-y", "60"]);
    wait_until("200x60 is filled", || tmux.shows_all(large));
    tmux.tell(&["send-keys", "q"]);
    wait_until("q ends it", || tmux.has_ended());
}

#[test]
fn a_recorded_trace_is_played() {
    if !has_tmux() {
        return println!("skipped: tmux is not installed");
    }
    let traces = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces");
    let trace = &format!("{traces}/vm32-k73-hackbench-pipe.txt.zst");
    // It takes longer to draw a frame: keys count all the same.
    let how = ["--speed", "0.1", "--interval", "0.001"];
    is_shown_at_two_sizes(plainly, &[&[PLACEWISE, "top", trace], &how[..]].concat());
}

fn cannot_show_the_kernel() -> Option<&'static str> {
    cannot_record().or_else(|| (!has_tmux()).then_some("tmux is not installed"))
}

#[test]
fn the_running_kernel_is_shown() {
    if let Some(why) = cannot_show_the_kernel() {
        return println!("skipped: {why}");
    }
    is_shown_at_two_sizes(with_tracefs, &[PLACEWISE, "top", "--interval", "0.1"]);
}

/// Drawing alone takes more than it may.
#[test]
fn tracing_is_off_while_it_takes_too_much() {
    if let Some(why) = cannot_show_the_kernel() {
        return println!("skipped: {why}");
    }
    let words = [PLACEWISE, "top", "--interval", "0.01", "--overhead", "0.1"];
    let tmux = Tmux::start(with_tracefs, (80, 24), &words);
    let pid = tmux.tell(&["list-panes", "-F", "#{pane_pid}"]).trim().parse().unwrap();
    let tracing_on = format!("{}/tracing_on", instance_of(pid));
    let is_off = || with_tracefs(&["grep", "-qx", "0", &tracing_on]).status().unwrap().success();
    wait_until("it says what it watched", || tmux.watched().is_some_and(|percent| percent < 90.0));
    wait_until("tracing is off", is_off);
}
