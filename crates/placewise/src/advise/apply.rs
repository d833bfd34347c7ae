//! Carries out one piece of advice on this host: shows the commands, asks, runs them, records again for
//! as long, and says whether what was predicted has come.
//!
//! Whatever fails on the way, or a signal, has all taken back. The dialogue is on stderr; what came of
//! it is a part of the report. Limit: before and after are one recording each, which have no interval.

use std::io::{self, BufRead, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use placewise_policy::running_release;
use placewise_replay::{Source, read};
use placewise_sim::Better;
use placewise_trace::Header;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use super::changes::Changes;
use super::goal::{Aim, Goal};
use super::search::Advice;
use super::step::Step;
use crate::change::change_pct;
use crate::input::InputError;
use crate::machine_readable::nine_digits;
use crate::record;
use crate::record::command::sleep;
use crate::replay::Built;
use crate::report::foreign::visible;
use crate::report::number;

const PAUSE: Duration = Duration::from_millis(100);

/// What is to be carried out, and how.
pub struct Order<'a> {
    /// As it stands in the list of advice, from 1 on.
    pub number: usize,
    /// Do not ask.
    pub yes: bool,
    /// Where the second recording goes.
    pub output: &'a Path,
}

/// What came of it. Figures are of the goal: per second, or in us.
#[derive(Serialize)]
pub struct Applied {
    number: usize,
    what: String,
    /// The second recording.
    trace: String,
    #[serde(serialize_with = "nine_digits")]
    before: Option<f64>,
    #[serde(serialize_with = "nine_digits")]
    predicted: Option<f64>,
    #[serde(serialize_with = "nine_digits")]
    after: Option<f64>,
    /// Positive is better.
    #[serde(serialize_with = "nine_digits")]
    change_pct: Option<f64>,
    /// It is not taken back.
    is_kept: bool,
}

impl Order<'_> {
    /// What can be refused before any advice is looked for.
    pub fn check(&self, header: &Header) -> Result<(), InputError> {
        check_host(header)?;
        if self.yes || io::stdin().is_terminal() {
            return Ok(());
        }
        let problem = "--apply asks before it changes anything: use a terminal, or --yes";
        Err(InputError(problem.into()))
    }

    pub fn carry_out(
        &self,
        advice: &[Advice<'_>],
        built: &Built,
        goal: &Goal,
    ) -> anyhow::Result<Applied> {
        let chosen = self.chosen(advice)?;
        let steps = here(&chosen.candidate.steps)?;
        self.ask_to_begin(&chosen.candidate.what, &steps)?;
        // From here on a signal does not end us before all is taken back.
        let stop = record::stop_at_signals().context("cannot handle signals")?;
        let changes = Changes::begin(&chosen.candidate.what, steps)?;
        let length = Duration::from_nanos(built.replay.recording.length_ns);
        let tried = self.try_out(&changes, length, built, goal, &stop);
        let after = match tried {
            Ok(after) => after,
            Err(error) => return Err(taken_back(changes, error)),
        };
        let mut applied = Applied::new(self, chosen, goal, goal.recorded(&built.recorded), after);
        say(&applied.text(goal));
        applied.is_kept = self.asks_to_keep(&stop);
        if applied.is_kept {
            say("kept; `placewise advise --undo` takes it back");
        } else {
            changes.take_back()?;
            say("taken back");
        }
        Ok(applied)
    }

    fn chosen<'a, 'b>(&self, advice: &'a [Advice<'b>]) -> Result<&'a Advice<'b>, InputError> {
        let there_are = match advice.len() {
            0 => "there is no advice to carry out".to_owned(),
            1 => "there is one piece of advice".to_owned(),
            more => format!("there are {more} pieces of advice"),
        };
        let problem = || InputError(format!("--apply {}: {there_are}", self.number));
        self.number.checked_sub(1).and_then(|at| advice.get(at)).ok_or_else(problem)
    }

    fn ask_to_begin(&self, what: &str, steps: &[Step]) -> anyhow::Result<()> {
        say(what);
        steps
            .iter()
            .flat_map(Step::commands)
            .for_each(|command| say(&format!("  do:   {command}")));
        let undo = steps.iter().rev().flat_map(|step| step.undo().commands());
        undo.for_each(|command| say(&format!("  undo: {command}")));
        if self.yes {
            return Ok(());
        }
        let never = AtomicBool::new(false);
        ensure!(answer("Run these commands? [y/N] ", &never) == Some(true), "nothing was changed");
        Ok(())
    }

    /// The goal's figure of the second recording; NaN where it has none.
    fn try_out(
        &self,
        changes: &Changes,
        length: Duration,
        built: &Built,
        goal: &Goal,
        stop: &AtomicBool,
    ) -> anyhow::Result<f64> {
        changes.make(|| stop.load(Ordering::Relaxed))?;
        self.record(length, stop)?;
        let Built { machine, kernel, .. } = built;
        let source = Source { trace: self.output, machine, kernel: &kernel.policy };
        let (_, measured) = read(&source)?;
        ensure!(!stop.load(Ordering::Relaxed), "stopped by a signal");
        Ok(goal.recorded(&measured))
    }

    fn record(&self, length: Duration, stop: &AtomicBool) -> anyhow::Result<()> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let duration = format!("{}ms", length.as_millis().max(1));
        let mut command = Command::new(program);
        command.args(["record", "--duration", &duration, "--output"]).arg(self.output);
        let mut recorder = command.spawn().context("cannot start the recorder")?;
        let mut is_told = false;
        let status = loop {
            if let Some(status) = recorder.try_wait().context("cannot wait for the recorder")? {
                break status;
            }
            if stop.load(Ordering::Relaxed) && !std::mem::replace(&mut is_told, true) {
                let _ = kill_process(pid(&recorder), Signal::TERM);
            }
            sleep(PAUSE, None);
        };
        ensure!(!stop.load(Ordering::Relaxed), "stopped by a signal");
        ensure!(status.success(), "the second recording failed: {status}");
        Ok(())
    }

    fn asks_to_keep(&self, stop: &AtomicBool) -> bool {
        let asks = !self.yes && io::stdin().is_terminal();
        !asks || answer("Keep it? [y/N] ", stop) == Some(true)
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// All taken back, or what was not.
fn taken_back(changes: Changes, error: anyhow::Error) -> anyhow::Error {
    match changes.take_back() {
        Ok(()) => error.context("all was taken back"),
        Err(worse) => worse.context(format!("{error:#}")),
    }
}

/// Takes back what an earlier call has kept.
pub fn undo() -> anyhow::Result<()> {
    let changes = Changes::of_file()?;
    let what = changes.what().to_owned();
    changes.take_back()?;
    say(&format!("taken back: {what}"));
    Ok(())
}

/// Advice on another kernel's trace is none for this host.
fn check_host(header: &Header) -> Result<(), InputError> {
    let here = running_release();
    match &header.kernel {
        Some(release) if *release == here => Ok(()),
        release => {
            let release = release.as_deref().unwrap_or("an unknown kernel");
            let problem = format!(
                "--apply: the trace is of {release}, and this host runs {here}; record here first"
            );
            Err(InputError(problem))
        }
    }
}

fn here(steps: &[Step]) -> anyhow::Result<Vec<Step>> {
    let mut all = Vec::new();
    for step in steps {
        let here = step.as_it_is()?;
        if here.is_empty() {
            let problem =
                "--apply: none of the threads of the trace is there any more; record again";
            return Err(InputError(problem.into()).into());
        }
        all.extend(here);
    }
    Ok(all)
}

fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", visible(text));
}

/// `None` where a signal came first, or no answer.
fn answer(question: &str, stop: &AtomicBool) -> Option<bool> {
    let _ = write!(io::stderr(), "{question}");
    let stdin = io::stdin();
    loop {
        if stop.load(Ordering::Relaxed) {
            say("");
            return None;
        }
        if is_readable(&stdin) {
            break;
        }
    }
    let mut line = String::new();
    let read = stdin.lock().read_line(&mut line).ok()?;
    (read > 0).then(|| matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Waits for a while.
fn is_readable(stdin: &io::Stdin) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let mut ends = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
    let pause = Timespec::try_from(PAUSE).expect("it is short");
    matches!(poll(&mut ends, Some(&pause)), Ok(1..))
}

impl Applied {
    fn new(order: &Order<'_>, chosen: &Advice<'_>, goal: &Goal, before: f64, after: f64) -> Self {
        let is_known = |value: f64| value.is_finite().then_some(value);
        let gain = before * chosen.change.pct / 100.0;
        let predicted = match goal.aim.better() {
            Better::Higher => before + gain,
            Better::Lower => before - gain,
        };
        Applied {
            number: order.number,
            what: chosen.candidate.what.clone(),
            trace: PathBuf::from(order.output).display().to_string(),
            before: is_known(before),
            predicted: is_known(predicted),
            after: is_known(after),
            change_pct: change_pct(before, after, goal.aim.better()),
            is_kept: true,
        }
    }

    fn text(&self, goal: &Goal) -> String {
        let unit = if goal.aim == Aim::Throughput { "stretches/s" } else { "us" };
        let of = |value: Option<f64>| value.map_or_else(|| "not known".to_owned(), number::figure);
        let change =
            self.change_pct.map_or_else(String::new, |pct| format!(" ({} %)", number::change(pct)));
        format!(
            "{}, {unit}: before {}, predicted {}, after {}{change}",
            goal.aim.name(),
            of(self.before),
            of(self.predicted),
            of(self.after),
        )
    }
}
