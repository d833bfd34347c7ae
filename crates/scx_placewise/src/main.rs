//! `scx_placewise`: load a placement policy into the running kernel.
//!
//! The scheduler stays loaded until Ctrl-C, or until the kernel throws it out. What goes wrong is
//! one line and an exit status: 2 where something here is not as it must be, 1 where the scheduler
//! failed. Standard output has what was asked for (--stats, --verify), and nothing else.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::builder::RangedI64ValueParser;
use clap::{Parser, ValueEnum};
use placewise_policy::own::{OwnError, Spec};
use placewise_policy::{Policy, kernel_for_release, running_release};
use scx_placewise::LoadError;
use scx_placewise::exit::Exit;
use scx_placewise::figures::{Figures, Source};
use scx_placewise::hint::{HintMap, HintServer};
use scx_placewise::pins::Pins;
use scx_placewise::report::{self, MetricsFile, serve_scx_stats};
use scx_placewise::scheduler::{self, LONGEST_TIMEOUT_MS, Options, Scheduler, SchedulerError};
use scx_stats::prelude::StatsServer;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGINT, SIGTERM};

const EXIT_BAD_INPUT: u8 = 2;
const EXIT_FAILURE: u8 = 1;

/// Where clients of scx_stats look.
const SCX_STATS: &str = "/var/run/scx/root/stats";

/// How often the kernel is asked whether the scheduler still runs.
const WATCH: Duration = Duration::from_millis(100);

/// How often the metrics are written: Prometheus asks no more often unless told to.
const METRICS: Duration = Duration::from_secs(15);

/// How long a machine may take to be describable again after hotplug.
const SETTLING: Duration = Duration::from_secs(10);

const EXAMPLES: &str = "\
Examples:
  scx_placewise                                  the placement of the running kernel
  scx_placewise --policy short-task --stats 1s   a patch that was never merged, and what it does
  scx_placewise --policy ./mine                  your own: `placewise policy eject` writes one
  scx_placewise --kernel v6.0                    the placement of another kernel
  scx_placewise --only-hinted                    only the tasks that `placewise hint` hints
  scx_placewise --timeout-ms 5000                thrown out when a task waits five seconds
  scx_placewise --stats 1s --format json         for programs
  scx_placewise --metrics /run/placewise.prom    for Prometheus' node_exporter
  scx_placewise --verify                         nothing is scheduled

It takes root and a kernel with sched_ext, and stays loaded until Ctrl-C. `placewise list` has the
policies and kernels.
Exit status: 0 when it was told to stop; 2 when something here is not as it must be (argument,
machine, no root, no sched_ext, another scheduler); 1 when the kernel refused the scheduler, or
ended it with an error.";

/// Run this machine's tasks under a placement policy, as a sched_ext scheduler
#[derive(Parser)]
#[command(version = env!("PLACEWISE_VERSION"), after_help = EXAMPLES)]
struct Cli {
    /// The policy: `baseline`, or patches, hints, knobs and the directory of one of your own (`DIR`
    /// with a `/` or `.`, or `NAME=DIR`) joined by commas
    #[arg(long, default_value = "baseline")]
    policy: String,

    /// The kernel whose placement it changes [default: the running one]
    #[arg(long)]
    kernel: Option<String>,

    /// Schedule only the tasks that ask for it (SCHED_EXT)
    #[arg(long)]
    only_hinted: bool,

    /// Let the kernel unload the scheduler when a runnable task waits so long
    #[arg(long, value_name = "MS", value_parser = timeouts())]
    timeout_ms: Option<u32>,

    /// Only have the kernel verify the programs: how many instructions of each it followed
    #[arg(long)]
    verify: bool,

    /// Print what was placed and moved, as a table each time so much time has passed, such as 1s
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    stats: Option<Duration>,

    /// How to print what --stats prints
    #[arg(long, value_enum, default_value_t = Format::Table, requires = "stats")]
    format: Format,

    /// Write the figures for the textfile collector of Prometheus' node_exporter, four times a minute
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,

    /// Where to listen for `placewise hint`
    #[arg(long, value_name = "PATH", default_value = placewise_hint::SOCKET)]
    hint_socket: PathBuf,
}

fn timeouts() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(LONGEST_TIMEOUT_MS))
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For the terminal
    Table,
    /// For programs: a line each time, of `"schema": 1` and the fields that scx_stats clients get
    Json,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match run(&cli) {
        Ok(exit) if exit.as_ref().is_some_and(Exit::is_error) => ExitCode::from(EXIT_FAILURE),
        Ok(_) => ExitCode::SUCCESS,
        // `scx_placewise --stats 1s | head` has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Help and version as clap prints them; a wrong command line as one line.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    let problem = text.split("\n\n").next().unwrap_or(&text).trim_start_matches("error: ");
    let one_line: Vec<&str> = problem.split_whitespace().collect();
    say(format_args!("scx_placewise: {}", one_line.join(" ")));
    ExitCode::from(EXIT_BAD_INPUT)
}

fn fail(error: &anyhow::Error) -> ExitCode {
    let of_scheduler = error.downcast_ref::<SchedulerError>();
    if let Some(SchedulerError::Own(OwnError::DoesNotCompile { messages, .. })) = of_scheduler {
        say(format_args!("{}", messages.trim_end()));
    }
    say(format_args!("scx_placewise: {error:#}"));
    let failed = matches!(
        of_scheduler,
        Some(SchedulerError::Attach(_) | SchedulerError::Load(LoadError::Refused(_)))
    );
    ExitCode::from(if failed { EXIT_FAILURE } else { EXIT_BAD_INPUT })
}

/// For the eyes of whoever started it. It schedules on where nobody listens.
fn say(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{text}");
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_error = error.downcast_ref::<io::Error>();
    io_error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn run(cli: &Cli) -> anyhow::Result<Option<Exit>> {
    let kernel = match &cli.kernel {
        Some(kernel) => kernel.clone(),
        None => running_kernel()?,
    };
    let spec = Spec::parse(&cli.policy)?;
    let policy = spec.policy(&kernel)?;
    if let Some(what) = policy.simulated_only() {
        let policy = &cli.policy;
        anyhow::bail!("--policy {policy}: {what} simulated only; try `placewise compare`");
    }
    scheduler::check()?;
    let object = scheduler::object(spec.directory.map(Path::new))?;
    match cli.verify {
        true => verify(&object).map(|()| None),
        false => schedule(cli, &kernel, &policy, &object),
    }
}

fn verify(object: &[u8]) -> anyhow::Result<()> {
    for (program, instructions) in Scheduler::verify(object)? {
        writeln!(io::stdout(), "{instructions:>8} {program}")?;
    }
    Ok(())
}

/// Until it is told to stop, or the kernel has unloaded the scheduler for good.
fn schedule(
    cli: &Cli,
    kernel: &str,
    policy: &Policy,
    object: &[u8],
) -> anyhow::Result<Option<Exit>> {
    let options = Options { only_hinted: cli.only_hinted, timeout_ms: cli.timeout_ms };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let pins = Pins::new()?;
    let load = || Scheduler::load(object, policy, options, &pins);
    let mut scheduler = load()?;
    let services = Services::start(cli, &pins)?;
    loop {
        services.figures.follow(scheduler.figures());
        say(format_args!("{} on {kernel}: loaded; Ctrl-C unloads it", policy.name));
        tell_systemd(NotifyState::Ready);
        let Some(exit) = watch(cli, &scheduler, &services, &stop)? else {
            return Ok(None);
        };
        if !exit.wants_restart() {
            say(format_args!("{}{exit}", exit.dump));
            return Ok(Some(exit));
        }
        say(format_args!("{exit}: loading it anew"));
        drop(scheduler);
        scheduler = load_anew(load)?;
    }
}

/// While CPUs come and go, what sysfs says of the machine need not fit together at once.
fn load_anew(load: impl Fn() -> Result<Scheduler, SchedulerError>) -> anyhow::Result<Scheduler> {
    let start = Instant::now();
    loop {
        match load() {
            Err(SchedulerError::Machine(_)) if start.elapsed() < SETTLING => {
                std::thread::sleep(WATCH);
            }
            loaded => return Ok(loaded?),
        }
    }
}

/// Who asks from outside: they stay while the scheduler is loaded anew.
struct Services {
    figures: Source,
    metrics: Option<MetricsFile>,
    hints: HintServer,
    _scx_stats: StatsServer<(), ()>,
}

impl Services {
    fn start(cli: &Cli, pins: &Pins) -> anyhow::Result<Self> {
        let figures = Source::default();
        let metrics = cli.metrics.as_deref().map(MetricsFile::create).transpose()?;
        let _scx_stats = serve_scx_stats(SCX_STATS.as_ref(), &figures)?;
        let hints = HintMap::new(pins.map("hints")?, cli.only_hinted);
        let hints = HintServer::start(&cli.hint_socket, hints)?;
        Ok(Self { figures, metrics, hints, _scx_stats })
    }

    fn write_metrics(&self) {
        if let Some(metrics) = &self.metrics
            && let Err(error) = metrics.write(&self.figures.read())
        {
            say(format_args!("scx_placewise: {error:#}"));
        }
    }
}

/// What is done from time to time.
struct Due {
    interval: Duration,
    last: Option<Instant>,
}

impl Due {
    fn every(interval: Duration) -> Self {
        Self { interval, last: None }
    }

    /// True at first, and each time that the interval is over.
    fn now(&mut self) -> bool {
        let due = self.last.is_none_or(|last| last.elapsed() >= self.interval);
        if due {
            self.last = Some(Instant::now());
        }
        due
    }
}

/// Why the kernel has unloaded the scheduler; None if it is to be unloaded by us.
fn watch(
    cli: &Cli,
    scheduler: &Scheduler,
    services: &Services,
    stop: &AtomicBool,
) -> anyhow::Result<Option<Exit>> {
    let mut stats = cli.stats.map(Due::every);
    let mut metrics = Due::every(METRICS);
    let mut watchdog = sd_notify::watchdog_enabled().map(|timeout| Due::every(timeout / 4));
    let (mut before, mut beats) = (None, None);
    while !stop.load(Ordering::Relaxed) {
        if let Some(exit) = scheduler.exited() {
            return Ok(Some(exit));
        }
        if stats.as_mut().is_some_and(Due::now) {
            let now = services.figures.read();
            if let Some(before) = before.replace(now.clone()) {
                show(cli.format, &now.since(&before))?;
            }
        }
        if metrics.now() {
            services.write_metrics();
        }
        if watchdog.as_mut().is_some_and(Due::now) {
            let now = services.hints.beats();
            if beats.replace(now) != Some(now) {
                tell_systemd(NotifyState::Watchdog);
            }
        }
        std::thread::sleep(WATCH);
    }
    Ok(None)
}

/// Where it has not started us, nobody is told.
fn tell_systemd(state: NotifyState<'_>) {
    let _ = sd_notify::notify(&[state]);
}

fn show(format: Format, figures: &Figures) -> anyhow::Result<()> {
    let text = match format {
        Format::Table => report::table(figures),
        Format::Json => report::json(figures)?,
    };
    writeln!(io::stdout(), "{text}")?;
    Ok(())
}

/// The newest known kernel that is not newer than the running one.
fn running_kernel() -> anyhow::Result<String> {
    let release = running_release();
    let kernel = kernel_for_release(&release);
    let kernel = kernel.with_context(|| {
        format!(
            "no kernel is known that stands for the running one, {release}: name one with --kernel"
        )
    })?;
    Ok(kernel.to_string())
}
