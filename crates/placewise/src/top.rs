//! `placewise top`: where tasks run and wait, in a terminal: of the running kernel, of a trace, which is
//! played, or of a loaded scheduler.
//!
//! [`live`] or a trace feeds a [`Meter`], which is asked for a [`Moment`] once per frame, and [`screen`]
//! draws that. Nothing is asked of a policy, which would cost more than a live view may; what it may is a
//! [`Budget`]'s to say. [`scx`] asks the scheduler itself.

mod budget;
mod live;
mod screen;
mod scx;
mod terminal;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use placewise_audit::{Meter, Moment};
use placewise_machine::{Machine, TraceTopology};
use placewise_policy::running_release;
use placewise_trace::TraceReader;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::{Frame, Terminal};

use crate::audit;
use crate::input::InputError;
use budget::{Budget, OwnCost};
use live::{Live, PAUSE};
use screen::Status;
use scx::{Look, Scheduler};
use terminal::{Tty, Wish};

const EXAMPLE: &str = "\
Examples:
  sudo placewise top
  sudo placewise top --scx
  placewise top trace.txt.zst --speed 0.1
  placewise top trace.txt.zst --once --size 200x60

Keys: q or Ctrl-C ends it, r counts from now on.
A live view needs root and tracefs, as `placewise record` does; its second line says what it costs,
and what share of the time it watches for that.
Exit status: 0 on success, 2 when the input is at fault, 1 when something else went wrong.";

/// Show where tasks run and wait, live or of a trace
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct TopArgs {
    /// Trace to play, as `placewise audit` takes it [default: the running kernel]
    trace: Option<PathBuf>,

    /// Machine of the trace [default: the header of the trace]
    #[arg(long, value_name = "MACHINE", requires = "trace")]
    machine: Option<String>,

    /// Show what a loaded scx_placewise says of itself instead, with no tracepoint on
    #[arg(long, conflicts_with = "trace")]
    scx: bool,

    /// How fast the trace is played: 0.1 takes ten times as long as it took
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = positive)]
    speed: f64,

    /// Seconds between two frames
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = positive)]
    interval: f64,

    /// Percent of one CPU that it may take: it watches only so much of the time
    #[arg(long, value_name = "PERCENT", default_value_t = 1.5, value_parser = percent)]
    #[arg(conflicts_with_all = ["trace", "scx", "once"])]
    overhead: f64,

    /// Print one frame as text: of the whole trace, or of the kernel after one interval
    #[arg(long)]
    once: bool,

    /// Columns and lines of that frame
    #[arg(long, value_name = "WxH", default_value = "80x24", value_parser = size, requires = "once")]
    size: (u16, u16),
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().map_err(|error| error.to_string())?;
    match (0.001..=1_000_000.0).contains(&number) {
        true => Ok(number),
        false => Err("expected a number from 0.001 to 1000000".into()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().map_err(|error| error.to_string())?;
    match (0.1..=100.0).contains(&number) {
        true => Ok(number),
        false => Err("expected a number from 0.1 to 100".into()),
    }
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let expected = "expected columns and lines from 20x10 to 1000x1000, such as 80x24";
    let (width, height) = text.split_once('x').ok_or(expected)?;
    let size = width.parse().ok().zip(height.parse().ok());
    let fits =
        |(width, height): &(u16, u16)| (20..=1000).contains(width) && (10..=1000).contains(height);
    size.filter(fits).ok_or_else(|| expected.into())
}

pub fn run(args: &TopArgs) -> anyhow::Result<()> {
    let (mut view, status) = View::of(args)?;
    let interval = Duration::from_secs_f64(args.interval);
    if args.once {
        view.wait(interval)?;
        let text = frame(args.size, &status, &view.picture()?)?;
        return Ok(io::stdout().write_all(text.as_bytes())?);
    }
    show(&mut view, status, interval, args.overhead / 100.0)
}

/// What is looked at.
enum View {
    Kernel(Box<Metered>, Box<Live>),
    Trace(Box<Metered>, Box<Player>),
    Scheduler(Box<Scheduler>),
}

/// What has been seen of a trace, or of the kernel.
struct Metered {
    machine: Machine,
    meter: Meter,
}

/// A trace that is played.
struct Player {
    reader: TraceReader,
    speed: f64,
    begun: Instant,
    /// The time of the first record.
    first_ns: Option<u64>,
    ended: bool,
}

/// What one frame shows.
enum Picture<'v> {
    Moment(&'v Machine, Moment),
    Scheduler(Look),
}

impl View {
    fn of(args: &TopArgs) -> anyhow::Result<(Self, Status)> {
        let (view, source, keys) = match &args.trace {
            Some(path) => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                (Self::of_trace(path, args)?, name.to_string_lossy().into_owned(), "q: quit")
            }
            None if args.scx => {
                let scheduler = Scheduler::connect(Path::new(scx::SOCKET))?;
                (View::Scheduler(Box::new(scheduler)), scx::SOCKET.to_owned(), "q: quit")
            }
            None => {
                let kernel = running_release();
                (Self::of_kernel()?, kernel, "q: quit, r: from now on")
            }
        };
        Ok((view, Status { source, watched: None, own_share: None, keys }))
    }

    fn of_trace(path: &Path, args: &TopArgs) -> anyhow::Result<Self> {
        let (reader, machine) = audit::open_trace(path, args.machine.as_deref())?;
        // Who looks on while it is played sees no further than what was played.
        let meter = if args.once { Meter::new(&machine)? } else { Meter::live(&machine)? };
        let (speed, begun) = (args.speed, Instant::now());
        let player = Player { reader, speed, begun, first_ns: None, ended: false };
        Ok(View::Trace(Box::new(Metered { machine, meter }), Box::new(player)))
    }

    fn of_kernel() -> anyhow::Result<Self> {
        let machine = placewise_machine::from_trace("this machine", &TraceTopology::of_host()?)?;
        let mut meter = Meter::live(&machine)?;
        let live = Box::new(Live::start(&machine, &mut meter)?);
        Ok(View::Kernel(Box::new(Metered { machine, meter }), live))
    }

    /// All of a trace; of what is live, what comes in that time.
    fn wait(&mut self, time: Duration) -> anyhow::Result<()> {
        if let View::Trace(metered, player) = self {
            return player.read_until(&mut metered.meter, u64::MAX);
        }
        let end = Instant::now() + time;
        while Instant::now() < end {
            std::thread::sleep(PAUSE.min(end - Instant::now()));
            self.read()?;
        }
        Ok(())
    }

    /// What has come by now.
    fn read(&mut self) -> anyhow::Result<()> {
        match self {
            View::Kernel(metered, live) => live.read(&mut metered.meter),
            View::Trace(metered, player) => player.play(&mut metered.meter),
            View::Scheduler(_) => Ok(()),
        }
    }

    fn picture(&mut self) -> anyhow::Result<Picture<'_>> {
        match self {
            View::Kernel(metered, _) | View::Trace(metered, _) => {
                Ok(Picture::Moment(&metered.machine, metered.meter.moment()))
            }
            View::Scheduler(scheduler) => Ok(Picture::Scheduler(scheduler.look()?)),
        }
    }

    /// All else has one beginning.
    fn reset(&mut self) -> anyhow::Result<()> {
        if let View::Kernel(metered, live) = self {
            metered.meter = Meter::live(&metered.machine)?;
            live.begin(&mut metered.meter);
        }
        Ok(())
    }

    /// From now on, or not. Only the running kernel has to be watched.
    fn watch(&mut self, watch: bool) -> anyhow::Result<()> {
        match self {
            View::Kernel(metered, live) => live.watch(watch, &mut metered.meter),
            View::Trace(..) | View::Scheduler(_) => Ok(()),
        }
    }

    fn watched(&self) -> Option<f64> {
        match self {
            View::Kernel(_, live) => Some(live.watched()),
            View::Trace(..) | View::Scheduler(_) => None,
        }
    }
}

fn draw(frame: &mut Frame<'_>, status: &Status, picture: &Picture<'_>) {
    match picture {
        Picture::Moment(machine, moment) => screen::draw(frame, machine, status, moment),
        Picture::Scheduler(look) => scx::draw(frame, status, look),
    }
}

/// Until whoever sits there has seen enough. `overhead`: the share of a CPU that this may take.
fn show(
    view: &mut View,
    mut status: Status,
    interval: Duration,
    overhead: f64,
) -> anyhow::Result<()> {
    let mut tty = Tty::open()?;
    let mut counted = OwnCost::now();
    let mut budget = Budget::new(overhead, counted);
    loop {
        let next = Instant::now() + interval;
        status.own_share = Some(OwnCost::now().share_since(counted));
        status.watched = view.watched();
        let picture = view.picture()?;
        tty.terminal.draw(|frame| draw(frame, &status, &picture))?;
        // Once at least, however long it took to draw: nobody is kept from leaving.
        loop {
            let wish = tty.wait(next.min(Instant::now() + PAUSE))?;
            view.read()?;
            view.watch(budget.allows(OwnCost::now()))?;
            match wish {
                Wish::Quit => return Ok(()),
                Wish::Reset => {
                    view.reset()?;
                    counted = OwnCost::now();
                }
                Wish::GoOn => {}
            }
            if Instant::now() >= next {
                break;
            }
        }
    }
}

impl Player {
    /// What has come by now, at its speed.
    fn play(&mut self, meter: &mut Meter) -> anyhow::Result<()> {
        let played_ns = (self.begun.elapsed().as_secs_f64() * self.speed * 1e9) as u64;
        let until = self.first_ns.map_or(0, |first| first.saturating_add(played_ns));
        self.read_until(meter, until)
    }

    fn read_until(&mut self, meter: &mut Meter, until_ns: u64) -> anyhow::Result<()> {
        let mut latest = 0;
        while !self.ended && latest <= until_ns {
            match self.reader.next_record().map_err(|error| InputError(error.to_string()))? {
                Some(record) => {
                    latest = record.time_ns;
                    self.first_ns.get_or_insert(latest);
                    meter.read(&record);
                }
                None => {
                    self.ended = true;
                    meter.end();
                }
            }
        }
        Ok(())
    }
}

/// One frame as lines of text.
fn frame(
    (width, height): (u16, u16),
    status: &Status,
    picture: &Picture<'_>,
) -> anyhow::Result<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).context("cannot draw")?;
    terminal.draw(|frame| draw(frame, status, picture)).context("cannot draw")?;
    Ok(lines(terminal.backend().buffer()))
}

fn lines(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let line = |cells: &[ratatui::buffer::Cell]| {
        let text: String = cells.iter().map(|cell| cell.symbol()).collect();
        format!("{}\n", text.trim_end())
    };
    buffer.content.chunks(width).map(line).collect()
}
