//! Unix sockets that are found by their path.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::{fs, io};

/// Takes away the socket of a loader that was killed. A file of another kind is somebody else's.
pub fn remove_left_socket(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path),
        Ok(_) => {
            Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file, and no socket"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
