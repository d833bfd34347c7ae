//! The reader: turns lines into records and counts what is lost.

use std::io::{self, Read};
use std::path::Path;

use polonius_the_crab::prelude::*;

use super::error::TraceError;
use super::lines::{Found, Lines, MOST_BEFORE_EVENTS};
use super::losses::{Losses, Malformed};
use super::order::{Order, SecondTrace};
use super::skip::{self, Skip};
use super::source::{self, Report, Source};
use super::{events, marks, prefix};
use crate::event::{Context, Event, Record};
use crate::header::Header;

/// After so many wrong lines of a header the rest is not looked at: memory is to stay bounded.
const MOST_PROBLEMS: usize = 100;

/// Reads the records of a trace one by one.
///
/// ```
/// # use placewise_trace::TraceReader;
/// let text: &[u8] = b"\
/// bash-42 [003] d..2. 1.000100: sched_waking: comm=cat pid=43 prio=120 target_cpu=001
/// CPU:3 [LOST 7 EVENTS]
/// ";
/// let mut reader = TraceReader::from_reader("trace", text)?;
/// while let Some(record) = reader.next_record()? {
///     println!("{} on CPU {}: {:?}", record.time_ns, record.cpu, record.event);
/// }
/// assert_eq!(reader.losses().lost_events, 7);
/// # Ok::<(), placewise_trace::TraceError>(())
/// ```
pub struct TraceReader {
    trace: String,
    lines: Lines,
    /// The first line behind the header, found and not yet taken.
    ahead: Option<io::Result<Found>>,
    header: Header,
    report: Option<Report>,
    losses: Losses,
    /// The time of the last record.
    time_ns: u64,
    order: Order,
    events: u64,
}

impl TraceReader {
    /// Opens a file, `-` for standard input: text, plain or compressed with gzip or zstd, or a
    /// `trace.dat`, which an installed `trace-cmd report` turns into text.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        Self::new(source::open(path)?)
    }

    /// Reads text, plain or compressed with gzip or zstd; errors call it `name`.
    pub fn from_reader(name: &str, reader: impl Read + Send + 'static) -> Result<Self, TraceError> {
        Self::new(source::from_reader(name, Box::new(reader))?)
    }

    fn new(Source { trace, text, report }: Source) -> Result<Self, TraceError> {
        let mut reader = TraceReader {
            trace,
            lines: Lines::new(text),
            ahead: None,
            header: Header::default(),
            report,
            losses: Losses::default(),
            time_ns: 0,
            order: Order::new(),
            events: 0,
        };
        reader.read_header()?;
        Ok(reader)
    }

    /// What the comment lines say. Those before the first event have been read; what stands
    /// behind the last one, such as lost events, is there after the last record.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What is known to be missing so far; final after the last record.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The next record; its texts are those of the line, which the next call overwrites.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        let mut this = self;
        // A loop that returns a borrow from some of its turns only: today's borrow checker
        // wants it spelled out.
        polonius_loop!(|this| -> Result<Option<Record<'polonius>>, TraceError> {
            if !polonius_try!(this.advance()) {
                polonius_return!(Ok(None));
            }
            match parse(this.lines.current(), this.time_ns) {
                Ok(record) => {
                    if record.time_ns < this.time_ns {
                        this.losses.clock_step(this.time_ns - record.time_ns);
                    }
                    match record.event {
                        Event::LostEvents { count } => this.losses.gap(count),
                        _ => {
                            let followed = this.order.event(record.cpu, record.time_ns);
                            polonius_try!(is_one_trace(followed, &this.trace, &this.lines));
                            this.events += 1;
                        }
                    }
                    this.time_ns = record.time_ns;
                    polonius_return!(Ok(Some(record)));
                }
                Err(Skip::Comment) => {
                    let comment = this.lines.current();
                    let followed = this.order.comment(comment);
                    polonius_try!(is_one_trace(followed, &this.trace, &this.lines));
                    take_comment(comment, &mut this.header, &mut this.losses);
                }
                Err(Skip::NoEvent) => {}
                Err(Skip::UnknownEvent) => this.losses.unknown_events += 1,
                Err(Skip::CpuOutOfRange) => this.losses.cpus_out_of_range += 1,
                Err(Skip::Malformed(reason)) => {
                    this.losses.malformed(this.lines.number, reason);
                }
            }
        })
    }

    /// The line of the last record.
    pub fn line(&self) -> &str {
        self.lines.current()
    }

    /// Its number, from 1.
    pub fn line_number(&self) -> u64 {
        self.lines.number
    }

    fn read_header(&mut self) -> Result<(), TraceError> {
        match self.lines.is_utf16() {
            Ok(false) => {}
            Ok(true) => return Err(TraceError::Utf16 { trace: self.trace.clone() }),
            Err(error) => {
                self.ahead = Some(Err(error));
                return Ok(());
            }
        }
        loop {
            let found = self.lines.advance();
            let is_line = matches!(found, Ok(Found::Line));
            if !is_line || !matches!(parse(self.lines.current(), 0), Err(Skip::Comment)) {
                self.ahead = Some(found);
                return Ok(());
            }
            take_comment(self.lines.current(), &mut self.header, &mut self.losses);
            self.is_near_events()?;
        }
    }

    /// Goes to the next whole line; false at the end.
    fn advance(&mut self) -> Result<bool, TraceError> {
        loop {
            self.is_near_events()?;
            let found = self.ahead.take().unwrap_or_else(|| self.lines.advance());
            self.losses.non_utf8_lines = self.lines.repaired;
            match found {
                Ok(Found::Line) => return Ok(true),
                Ok(Found::TooLong) => self.losses.malformed(self.lines.number, Malformed::TooLong),
                Ok(Found::Endless) => {
                    let (trace, line) = (self.trace.clone(), self.lines.number);
                    return Err(TraceError::EndlessLine { trace, line });
                }
                Ok(Found::Unfinished) => self.losses.truncated_last_line = true,
                Ok(Found::End) => return self.end(),
                Err(error) if source::is_truncated(&error) => {
                    self.losses.truncated_file = true;
                    return self.end();
                }
                Err(source) => {
                    let (trace, line) = (self.trace.clone(), self.lines.number + 1);
                    return Err(TraceError::Read { trace, line, source });
                }
            }
        }
    }

    fn end(&mut self) -> Result<bool, TraceError> {
        if let Some(report) = self.report.take() {
            report.finish(&self.trace)?;
        }
        if self.events == 0 {
            return Err(self.no_event());
        }
        Ok(false)
    }

    /// An error, once there has been too much text without an event.
    fn is_near_events(&self) -> Result<(), TraceError> {
        if self.events > 0 || self.lines.bytes <= MOST_BEFORE_EVENTS {
            return Ok(());
        }
        let (trace, lines, detail) = (self.trace.clone(), self.lines.number, self.detail());
        Err(TraceError::NoEventYet { trace, lines, detail })
    }

    fn no_event(&self) -> TraceError {
        let (trace, lines, detail) = (self.trace.clone(), self.lines.number, self.detail());
        TraceError::NoEvent { trace, lines, detail }
    }

    /// The first line that could not be read.
    fn detail(&self) -> String {
        match &self.losses.first_malformed {
            Some(first) => format!("; line {}: {}", first.line, first.reason),
            None => String::new(),
        }
    }
}

fn take_comment(comment: &str, header: &mut Header, losses: &mut Losses) {
    if header.problems.len() < MOST_PROBLEMS {
        header.line(comment);
    }
    let overrun = marks::overwritten(comment).max(header.lost_events());
    losses.overrun = losses.overrun.max(overrun.unwrap_or(0));
}

/// The error at the current line, if a second trace begins with it.
fn is_one_trace(
    followed: Result<(), SecondTrace>,
    trace: &str,
    lines: &Lines,
) -> Result<(), TraceError> {
    followed.map_err(|sign| {
        let (trace, line) = (trace.to_owned(), lines.number);
        TraceError::SecondTrace { trace, line, sign }
    })
}

/// The record of a line; marks of lost events are given the time of the record before.
fn parse(line: &str, time_ns: u64) -> Result<Record<'_>, Skip> {
    // A comment may quote a line of a trace.
    let prefix = if line.starts_with('#') { None } else { prefix::parse(line) };
    match prefix {
        Some((prefix, text)) => {
            let event = match marks::perf_lost(text) {
                Some(count) => Event::LostEvents { count },
                None => events::parse(text)?,
            };
            let prefix::Prefix { task, cpu, context, time_ns } = prefix;
            let prefix::RunningTask { comm, pid, tgid } = task;
            let cpu = skip::cpu_in_range(cpu)?;
            Ok(Record { time_ns, cpu, comm, pid, tgid, context, event })
        }
        None => {
            let marks::Lost { cpu, count } = marks::lost(line).ok_or_else(|| no_event(line))?;
            let (cpu, event) = (skip::cpu_in_range(cpu)?, Event::LostEvents { count });
            let (comm, pid, tgid, context) = ("", 0, None, Context::Unknown);
            Ok(Record { time_ns, cpu, comm, pid, tgid, context, event })
        }
    }
}

/// What a line is that has neither the prefix of an event nor marks lost ones.
fn no_event(line: &str) -> Skip {
    if line.starts_with('#') {
        Skip::Comment
    } else if marks::is_no_event(line) {
        Skip::NoEvent
    } else {
        Malformed::Prefix.into()
    }
}
