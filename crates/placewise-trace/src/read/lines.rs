//! Cuts a stream into lines, in constant memory and without copying them.
//!
//! A line that does not fit into the buffer is passed over up to its end, unless that is nowhere
//! near. Bytes that are not UTF-8, as a comm cut within a character has them, are replaced by `?`.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;

use memchr::memchr;

/// Longer lines are not kept: a path in an exec event has 4,096 bytes at most.
pub(super) const LONGEST_LINE: usize = 128 * 1024;
/// Longer lines have no end: a compressed file of a few kB can hold one of many GB.
pub(super) const LONGEST_PASSED_OVER: u64 = 32 << 20;
/// Text that has no scheduler event until then is no trace, and may have no end.
pub(super) const MOST_BEFORE_EVENTS: u64 = 32 << 20;
/// Byte-order marks.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

pub(super) struct Lines {
    source: Box<dyn Read>,
    buffer: Box<[u8]>,
    /// What of the buffer has been filled and not yet been handed out.
    unread: Range<usize>,
    current: Range<usize>,
    /// What is unread is ASCII, as nearly all of a trace is: no line of it is looked at for that.
    is_ascii: bool,
    /// Of the current line, from 1.
    pub number: u64,
    /// Read so far: the lines with their ends.
    pub bytes: u64,
    /// Lines in which bytes were replaced.
    pub repaired: u64,
}

/// What [`Lines::advance`] found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Line,
    /// It is passed over: the current line is empty.
    TooLong,
    /// It is longer than [`LONGEST_PASSED_OVER`]: nothing may follow.
    Endless,
    /// The stream ends without a newline, so that the line may have been cut.
    Unfinished,
    End,
}

impl Lines {
    pub fn new(source: Box<dyn Read>) -> Self {
        Lines {
            source,
            buffer: vec![0; LONGEST_LINE].into_boxed_slice(),
            unread: 0..0,
            current: 0..0,
            is_ascii: true,
            number: 0,
            bytes: 0,
            repaired: 0,
        }
    }

    /// To be called before the first line: passes over the mark that the text is in UTF-8, or
    /// tells the one that it is in UTF-16.
    pub fn is_utf16(&mut self) -> io::Result<bool> {
        while self.unread.len() < UTF8_MARK.len() && self.fill()? > 0 {}
        let start = &self.buffer[self.unread.clone()];
        if start.starts_with(UTF8_MARK) {
            self.unread.start += UTF8_MARK.len();
            return Ok(false);
        }
        Ok(UTF16_MARKS.iter().any(|mark| start.starts_with(mark)))
    }

    /// The line that [`advance`](Self::advance) found, without its end.
    pub fn current(&self) -> &str {
        let line = &self.buffer[self.current.clone()];
        // SAFETY: `advance` has repaired the line, and the buffer changes with the next one only.
        unsafe { str::from_utf8_unchecked(line) }
    }

    #[inline]
    pub fn advance(&mut self) -> io::Result<Found> {
        match memchr(b'\n', &self.buffer[self.unread.clone()]) {
            Some(length) => Ok(self.take(length, 0)),
            None => self.read_on(),
        }
    }

    /// What is unread is the beginning of a line.
    #[cold]
    fn read_on(&mut self) -> io::Result<Found> {
        self.current = 0..0;
        let mut passed_over = 0;
        loop {
            let mut searched = self.unread.len();
            if searched == self.buffer.len() {
                passed_over += searched as u64;
                self.unread = 0..0;
                searched = 0;
            }
            if passed_over > LONGEST_PASSED_OVER {
                self.number += 1;
                return Ok(Found::Endless);
            }
            if self.fill()? == 0 {
                return Ok(self.end(passed_over > 0));
            }
            if let Some(at) = memchr(b'\n', &self.buffer[self.unread.clone()][searched..]) {
                return Ok(self.take(searched + at, passed_over));
            }
        }
    }

    /// The line ends after so many unread bytes.
    #[inline(always)]
    fn take(&mut self, length: usize, passed_over: u64) -> Found {
        let start = self.unread.start;
        self.unread.start += length + 1;
        self.number += 1;
        self.bytes += passed_over + length as u64 + 1;
        if passed_over > 0 {
            return Found::TooLong;
        }
        self.current = start..start + length;
        self.trim_carriage_return();
        if !self.is_ascii {
            self.repair();
        }
        Found::Line
    }

    fn end(&mut self, too_long: bool) -> Found {
        let rest = !self.unread.is_empty();
        self.unread = 0..0;
        if !rest && !too_long {
            return Found::End;
        }
        self.number += 1;
        Found::Unfinished
    }

    /// Reads more behind the unread bytes, which move to the front; 0 at the end of the stream.
    fn fill(&mut self) -> io::Result<usize> {
        if self.unread.start > 0 {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        loop {
            match self.source.read(&mut self.buffer[self.unread.end..]) {
                Ok(count) => {
                    let more = self.unread.end..self.unread.end + count;
                    self.is_ascii = (self.is_ascii || self.buffer[self.unread.clone()].is_ascii())
                        && self.buffer[more].is_ascii();
                    self.unread.end += count;
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Serial consoles end lines so.
    fn trim_carriage_return(&mut self) {
        if self.buffer[self.current.clone()].last() == Some(&b'\r') {
            self.current.end -= 1;
        }
    }

    fn repair(&mut self) {
        let line = &mut self.buffer[self.current.clone()];
        if !line.is_ascii() && replace_invalid(line) {
            self.repaired += 1;
        }
    }
}

/// Replaces each byte that is not UTF-8; whether there was one.
fn replace_invalid(line: &mut [u8]) -> bool {
    let mut from = 0;
    while let Err(error) = str::from_utf8(&line[from..]) {
        let start = from + error.valid_up_to();
        let end = error.error_len().map_or(line.len(), |length| start + length);
        line[start..end].fill(b'?');
        from = end;
    }
    from > 0
}
