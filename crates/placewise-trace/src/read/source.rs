//! Opens a trace: what it is compressed with, and whether it is text at all, is told by its
//! first bytes, not by its name.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use flate2::read::MultiGzDecoder;

use super::ahead::Ahead;
use super::error::TraceError;

/// As many first bytes as any of the magic numbers takes.
const MAGIC_LENGTH: usize = 10;

pub(super) fn open(path: &Path) -> Result<Source, TraceError> {
    if path == Path::new("-") {
        return from_reader("standard input", Box::new(io::stdin()));
    }
    let trace = path.display().to_string();
    let opened = File::open(path).and_then(|mut file| Ok((magic(&mut file)?, file)));
    let (magic, file) =
        opened.map_err(|source| TraceError::Open { trace: trace.clone(), source })?;
    if is_trace_dat(&magic) {
        return report(trace, path);
    }
    decompress(&trace, magic, Box::new(file))
}

pub(super) fn from_reader(
    trace: &str,
    mut reader: Box<dyn Read + Send>,
) -> Result<Source, TraceError> {
    let magic = magic(&mut reader)
        .map_err(|source| TraceError::Open { trace: trace.to_owned(), source })?;
    if is_trace_dat(&magic) {
        return Err(TraceError::TraceDatStream { trace: trace.to_owned() });
    }
    decompress(trace, magic, reader)
}

/// The text of a trace.
pub(super) struct Source {
    /// What errors call it.
    pub trace: String,
    pub text: Box<dyn Read>,
    pub report: Option<Report>,
}

/// The `trace-cmd report` that prints the text.
pub(super) struct Report(Child);

impl Report {
    /// To be called at the end of the text.
    pub fn finish(mut self, trace: &str) -> Result<(), TraceError> {
        let trace = trace.to_owned();
        match self.0.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(TraceError::TraceCmdFailed { trace, status }),
            Err(source) => Err(TraceError::TraceCmd { trace, source }),
        }
    }
}

/// Leaves no process behind when the reader goes before the end of the text.
impl Drop for Report {
    fn drop(&mut self) {
        // Neither has an effect on a process that has ended and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn magic(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut magic = Vec::with_capacity(MAGIC_LENGTH);
    reader.take(MAGIC_LENGTH as u64).read_to_end(&mut magic)?;
    Ok(magic)
}

fn decompress(
    trace: &str,
    magic: Vec<u8>,
    reader: Box<dyn Read + Send>,
) -> Result<Source, TraceError> {
    let trace = trace.to_owned();
    let kind = magic.clone();
    let whole = io::Cursor::new(magic).chain(reader);
    let text: Box<dyn Read> = match kind.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(Ahead::of(MultiGzDecoder::new(whole))),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => match zstd::Decoder::new(whole) {
            Ok(decoder) => Box::new(Ahead::of(decoder)),
            Err(source) => return Err(TraceError::Open { trace, source }),
        },
        [0xfd, b'7', b'z', b'X', b'Z', ..] => {
            return Err(TraceError::Compression { trace, format: "xz" });
        }
        [b'B', b'Z', b'h', _, 0x31, 0x41, ..] => {
            return Err(TraceError::Compression { trace, format: "bzip2" });
        }
        [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..] => {
            return Err(TraceError::PerfData { trace });
        }
        _ => Box::new(whole),
    };
    Ok(Source { trace, text, report: None })
}

fn is_trace_dat(magic: &[u8]) -> bool {
    magic == b"\x17\x08\x44tracing"
}

fn report(trace: String, path: &Path) -> Result<Source, TraceError> {
    let spawned = Command::new("trace-cmd")
        .args(["report", "-i"])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child =
        spawned.map_err(|source| TraceError::TraceCmd { trace: trace.clone(), source })?;
    let text = child.stdout.take().expect("piped");
    Ok(Source { trace, text: Box::new(text), report: Some(Report(child)) })
}

/// Whether a decoder says that its input ends too early.
pub(super) fn is_truncated(error: &io::Error) -> bool {
    error.kind() == ErrorKind::UnexpectedEof
}
