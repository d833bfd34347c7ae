//! Output files are there whole or not at all: written beside their place, then renamed into it.

use std::fs::Permissions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::NamedTempFile;

use crate::input::InputError;

/// A file that appears under its name only once [`OutputFile::finish`] has been called.
pub struct OutputFile {
    path: PathBuf,
    writer: BufWriter<NamedTempFile>,
}

impl OutputFile {
    /// Refuses a place that cannot be written now, before any work is done for it.
    pub fn create(path: &Path) -> Result<Self, InputError> {
        let refuse = |why: String| InputError(format!("{}: {why}", path.display()));
        if path.exists() && !path.is_file() {
            return Err(refuse("is not a regular file; name a file to write".into()));
        }
        if path.file_name().is_none() {
            return Err(refuse("names no file; name a file to write".into()));
        }
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .prefix(".placewise-")
            .permissions(Permissions::from_mode(0o666)) // less the umask
            .tempfile_in(directory)
            .map_err(|error| refuse(format!("cannot write there: {}", reason(&error))))?;
        Ok(Self { path: path.to_owned(), writer: BufWriter::new(file) })
    }

    pub fn finish(self) -> anyhow::Result<()> {
        let context = || format!("cannot write {}", self.path.display());
        let file = self.writer.into_inner().map_err(|error| error.into_error());
        let file = file.with_context(context)?;
        file.persist(&self.path).with_context(context)?;
        Ok(())
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// The system's own words, without the path of the temporary file.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such directory; create it first".into(),
        kind => kind.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_there_before_finish() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.txt");
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        assert!(!path.exists());
        file.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn an_unfinished_file_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.txt");
        drop(OutputFile::create(&path).unwrap());
        assert_eq!(directory.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn devices_and_directories_are_refused() {
        assert!(OutputFile::create(Path::new("/dev/null")).is_err());
        assert!(OutputFile::create(Path::new("/")).is_err());
    }
}
