//! The maps that outlive a scheduler, which is loaded anew when a CPU comes or goes: pinned for root
//! alone, for as long as the loader lives.
//!
//! Who may write to their directory could put maps of their own in the place of ours. So it is opened
//! once, has to be root's alone, and is reached through what was opened, whatever comes to stand at
//! its path. Whoever may make directories beside it (bpf file systems let all, unless mounted
//! otherwise) can only keep the scheduler from being loaded.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use libbpf_rs::MapHandle;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fstat, fstatfs, mkdirat, open, openat, unlinkat,
};
use rustix::io::Errno;

const DIRECTORY: &str = "/sys/fs/bpf/placewise";

/// `BPF_FS_MAGIC` of linux/magic.h.
const BPF_FS: i64 = 0xcafe_4a11;

/// The maps of tasks' storage: `bpf/task.h` says why.
pub const MAPS: [&str; 2] = ["hints", "tasks"];

/// Where the maps are pinned, from the first load of the scheduler until this is dropped.
pub struct Pins {
    parent: OwnedFd,
    name: OsString,
    directory: OwnedFd,
}

impl Pins {
    /// Takes away what a loader that was killed has left.
    pub fn new() -> io::Result<Self> {
        Self::at(Path::new(DIRECTORY))
    }

    /// In that directory of a bpf file system.
    pub fn at(path: &Path) -> io::Result<Self> {
        let (parent, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
        let parent = open_bpf(parent)?;
        match mkdirat(&parent, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let directory = open_own(&parent, name).map_err(|found| {
            let expected = "expected a directory of root's, with mode 0700";
            io::Error::other(format!("{}: {expected}, and it {found}: remove it", path.display()))
        })?;
        let pins = Self { parent, name: name.to_owned(), directory };
        pins.unpin()?;
        Ok(pins)
    }

    fn unpin(&self) -> io::Result<()> {
        for map in MAPS {
            match unlinkat(&self.directory, map, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// In the directory that was opened. Valid in this process, while this is not dropped.
    pub fn path(&self, map: &str) -> PathBuf {
        Path::new("/proc/self/fd").join(self.directory.as_raw_fd().to_string()).join(map)
    }

    /// A map, once a scheduler has been loaded.
    pub fn map(&self, map: &str) -> libbpf_rs::Result<MapHandle> {
        MapHandle::from_pinned_path(self.path(map))
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        let _ = self.unpin();
        let _ = unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR);
    }
}

/// The directory where a bpf file system is mounted.
fn open_bpf(path: &Path) -> io::Result<OwnedFd> {
    let directory = open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    match fstatfs(&directory)?.f_type == BPF_FS {
        true => Ok(directory),
        false => Err(io::Error::other(format!(
            "{0}: no bpf file system is mounted there: mount -t bpf bpf {0}",
            path.display()
        ))),
    }
}

/// The error says what it is instead.
fn open_own(parent: &OwnedFd, name: &OsStr) -> Result<OwnedFd, String> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::LOOP) => return Err("is none".to_string()),
        opened => opened.map_err(|error| format!("cannot be opened ({error})"))?,
    };
    let stat = fstat(&directory).map_err(|error| format!("cannot be looked at ({error})"))?;
    let mode = stat.st_mode & !FileType::Directory.as_raw_mode();
    match (stat.st_uid, mode) {
        (0, 0o700) => Ok(directory),
        (owner, mode) => Err(format!("has owner {owner} and mode {mode:04o}")),
    }
}
