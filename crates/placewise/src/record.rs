//! `placewise record`: every placement decision of the running kernel, as a compressed text file
//! that says which machine it is from.
//!
//! The scheduler's tracepoints go to a tracefs instance of their own, so that no other tracer is
//! disturbed. While something is recorded the pages of its ring buffers (`buffers`) are put aside as they are
//! (`spool`); their text is made afterwards (`transcript`). The recorder is one thread that reads all
//! there is, then sleeps; it does not block in the read, for then every event of an idle system
//! would wake it, and that would be an event again.
//!
//! Limit: one reader for all CPUs. The buffers hold what it has not read yet; what they cannot hold is
//! lost, and the trace says where and how much.

pub mod buffers;
pub mod command;
mod environment;
pub mod instance;
mod residents;
mod spool;
mod transcript;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use nix::unistd::User;
use placewise_machine::CpuSet;
use placewise_trace::ring::Reader;
use placewise_trace::{FtraceWriter, Header};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::audit;
use crate::output_file::{self, OutputFile, directory};
use crate::report::foreign::visible;
use buffers::Buffers;
use command::{RunningCommand, sleep};
use instance::{Statistics, TraceInstance};
use residents::Residents;
use spool::Spool;
use transcript::Transcript;

const EXAMPLE: &str = "\
Examples:
  placewise record hackbench -g 4
  sudo placewise record --user \"$USER\" make test
  placewise record --duration 10 -o web.txt.zst
  placewise record --duration 10 --perfetto web.perfetto-trace

Needs root and tracefs. The trace can be given to `placewise audit`. One that was there under its
name before is kept as FILE.old.
Exit status: that of COMMAND if it ends by itself, 128 + N if signal N kills it; the trace is kept,
and if COMMAND failed a line says so. Otherwise 0 on success, 2 when the input is at fault, 1 when
something else went wrong, such as missing rights; then there is no trace.";

/// How long the recorder sleeps when it has read everything.
const PAUSE: Duration = Duration::from_millis(100);
/// The fastest: who has recorded waits for it.
const COMPRESSION_LEVEL: i32 = 1;

/// Record the scheduler's decisions on this host
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct RecordArgs {
    /// File to write, compressed with zstd
    #[arg(short, long, value_name = "FILE", default_value = "placewise-trace.txt.zst")]
    output: PathBuf,

    /// Once it is recorded, also write the trace for Perfetto (ui.perfetto.dev)
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,

    /// Stop after seconds, or a time such as 2min [default: when COMMAND ends, else at Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,

    /// Buffer of each CPU; what does not fit before it is read is lost
    #[arg(long, value_name = "KB", default_value_t = 16384)]
    #[arg(value_parser = clap::value_parser!(u32).range(4..))]
    buffer_size: u32,

    /// Run COMMAND as this user and not as root: its groups, HOME, USER and LOGNAME
    #[arg(long, value_name = "NAME", requires = "command", value_parser = user)]
    user: Option<User>,

    /// Program to start once recording is on, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// A number alone is of seconds, as `perf` and `timeout` have it.
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map(Duration::from_secs);
    match seconds.or_else(|_| humantime::parse_duration(text)) {
        Ok(Duration::ZERO) => Err("expected more than nothing".into()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{error}; expected seconds, or a time such as 500ms or 2min")),
    }
}

fn user(name: &str) -> Result<User, String> {
    let user = User::from_name(name).map_err(|error| error.desc().to_owned())?;
    user.ok_or_else(|| "there is no such user".into())
}

pub fn run(args: &RecordArgs) -> anyhow::Result<()> {
    // As open as tracefs is: there are all users' tasks in it.
    let output = OutputFile::create(&args.output, output_file::FOR_OWNER)?.keeping_old()?;
    let create = |path: &PathBuf| OutputFile::create(path, output_file::FOR_OWNER);
    let perfetto = args.perfetto.as_ref().map(create).transpose()?;
    let stop = stop_at_signals().context("cannot handle signals")?;
    let mut recording = Recording::prepare(args, output)?;
    let command = recording.run(args, &stop)?;
    let summary = recording.finish(args)?;
    eprintln!("{}", visible(&summary));
    perfetto.map_or(Ok(()), |file| audit::write_perfetto(&args.output, file))?;
    Ok(command.map_or(Ok(()), |command| command.result())?)
}

/// Ctrl-C, Ctrl-\\, kill and a closed terminal end the recording, not the recorder.
pub fn stop_at_signals() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// From the first page of the buffers to the last line of the file.
struct Recording {
    header: Header,
    residents: Residents,
    spool: Spool,
    buffers: Buffers,
    /// Cannot be removed while its buffers are open.
    instance: TraceInstance,
    output: OutputFile,
    duration: Duration,
}

impl Recording {
    fn prepare(args: &RecordArgs, output: OutputFile) -> anyhow::Result<Self> {
        let spool = Spool::create(directory(&args.output)).with_context(|| writing(args))?;
        let instance = TraceInstance::create(args.buffer_size)?;
        let header = Header {
            command: (!args.command.is_empty()).then(|| shown(&args.command)),
            clock: Some(instance::CLOCK.to_owned()),
            ..environment::header()?
        };
        let cpus: CpuSet = header.topology.cpus.keys().copied().collect();
        let buffers = Buffers::open(&instance, &cpus)?;
        let residents = Residents::of_host(cpus);
        Ok(Self { header, residents, spool, buffers, instance, output, duration: Duration::ZERO })
    }

    /// Records until one of the reasons to stop. The command is returned if it ended by itself: what
    /// ends us may end it as well, as Ctrl-C does, and that is no failure of it.
    fn run(
        &mut self,
        args: &RecordArgs,
        stop: &AtomicBool,
    ) -> anyhow::Result<Option<RunningCommand>> {
        let mut progress = Progress::new(args);
        self.instance.start()?;
        let start = Instant::now();
        let mut command = RunningCommand::start(&args.command, args.user.as_ref())?;
        let limit = args.duration.unwrap_or(Duration::MAX);
        let is_told = loop {
            let read_all = self.read().with_context(|| writing(args))?;
            let ended = command.as_mut().is_some_and(RunningCommand::has_ended);
            let is_told = stop.load(Ordering::Relaxed) || start.elapsed() >= limit;
            if ended || is_told {
                break is_told;
            }
            progress.show(&self.instance, start)?;
            self.residents.look_if_due();
            if read_all {
                let left = limit.saturating_sub(start.elapsed());
                sleep(PAUSE.min(left), command.as_ref().and_then(RunningCommand::end));
            }
        };
        self.instance.stop()?;
        self.duration = start.elapsed();
        self.residents.look();
        progress.bar.finish_and_clear();
        Ok(command.filter(|_| !is_told))
    }

    /// Moves a round of pages from the kernel to the spool; true when there was no more.
    fn read(&mut self) -> anyhow::Result<bool> {
        let Self { buffers, spool, .. } = self;
        let round = buffers.read(|cpu, page| spool.page(cpu, page))?;
        spool.round(round.until_ns)?;
        Ok(round.read_all)
    }

    /// Reads what is left, makes it text, closes the file, and says in a line what is in it.
    fn finish(mut self, args: &RecordArgs) -> anyhow::Result<String> {
        while !self.read().with_context(|| writing(args))? {}
        let Statistics { events, lost } = self.instance.statistics()?;
        let nr_lost = lost.values().sum();
        let footer = Header { overrun: Some(nr_lost), lost, ..Header::default() };
        let duration = self.duration;
        let kept = self.write(&footer).with_context(|| writing(args))?.replace()?;

        let file = args.output.display().to_string();
        let seconds = duration.as_secs_f64();
        let remedy = if nr_lost > 0 { " (a larger --buffer-size loses fewer)" } else { "" };
        let kept = kept.map(|old| format!(" (the last one is {})", old.display()));
        let kept = kept.unwrap_or_default();
        Ok(format!(
            "recorded {events} events in {seconds:.1} s, {nr_lost} lost{remedy}: {file}{kept}; \
             next: placewise audit {}",
            shell_words::quote(&file)
        ))
    }

    /// The text of what was put aside.
    fn write(self, footer: &Header) -> anyhow::Result<OutputFile> {
        let Self { mut header, residents, spool, buffers, instance, output, .. } = self;
        residents.tell(&mut header);
        let reader = Reader::new(buffers::layouts(&instance)?);
        drop((buffers, instance));
        let out = zstd::Encoder::new(output, COMPRESSION_LEVEL)?;
        let writer = FtraceWriter::of_recording(out, header.topology.cpus.len());
        let mut transcript =
            Transcript::new(reader, instance::tgids(), writer.with_header(&header));
        let style = ProgressStyle::with_template("{bar:40} {percent} % written");
        let style = style.expect("the template is well formed");
        let bar = |bytes| ProgressBar::new(bytes).with_style(style);
        spool.read(|file, bytes| bar(bytes).wrap_read(file), |spooled| transcript.take(spooled))?;
        let mut out = transcript.finish()?;
        write!(out, "{footer}")?;
        Ok(out.finish()?)
    }
}

fn shown(command: &[OsString]) -> String {
    shell_words::join(command.iter().map(|word| word.to_string_lossy()))
}

fn writing(args: &RecordArgs) -> String {
    format!("cannot write {}", args.output.display())
}

/// What is recorded so far, on a terminal, unless that belongs to a command.
struct Progress {
    bar: ProgressBar,
    shown_at: Option<Instant>,
}

impl Progress {
    fn new(args: &RecordArgs) -> Self {
        let style = ProgressStyle::with_template("{msg}; Ctrl-C ends the recording");
        let bar = match args.command.is_empty() {
            true => ProgressBar::new_spinner(),
            false => ProgressBar::hidden(),
        };
        let bar = bar.with_style(style.expect("the template is well formed"));
        Self { bar, shown_at: None }
    }

    /// Once a second: the kernel is asked about every CPU.
    fn show(&mut self, instance: &TraceInstance, start: Instant) -> anyhow::Result<()> {
        let is_fresh = self.shown_at.is_some_and(|at| at.elapsed() < Duration::from_secs(1));
        if self.bar.is_hidden() || is_fresh {
            return Ok(());
        }
        let Statistics { events, lost } = instance.statistics()?;
        let (seconds, lost) = (start.elapsed().as_secs(), lost.values().sum::<u64>());
        self.bar.set_message(format!("{seconds} s, {events} events, {lost} lost"));
        self.shown_at = Some(Instant::now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_or_times_with_a_unit() {
        assert_eq!(duration("10"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("2min"), Ok(Duration::from_secs(120)));
        for wrong in ["0", "0s", "soon", "-1s", "-1"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
