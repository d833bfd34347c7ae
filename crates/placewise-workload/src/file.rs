//! Reads the text files that users name, up to a length that no sensible one has.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::WorkloadError;

const LARGEST_MIB: u64 = 16;

/// A file as text in UTF-8.
pub fn read_text(path: &Path) -> Result<String, WorkloadError> {
    let file = path.display().to_string();
    let wrong = |problem: String| WorkloadError::new(&file, problem);
    let largest = LARGEST_MIB << 20;
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|open| open.take(largest + 1).read_to_end(&mut bytes))
        .map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > largest {
        return Err(wrong(format!("is larger than {LARGEST_MIB} MiB, which no such file needs")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        wrong(format!("line {line} is no text; expected UTF-8"))
    })
}
