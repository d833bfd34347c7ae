//! The maps that outlive a scheduler, which is loaded anew when a CPU comes or goes: pinned for root
//! alone, for as long as the loader lives.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use libbpf_rs::MapHandle;

const DIRECTORY: &str = "/sys/fs/bpf/placewise";

/// The maps of tasks' storage: `bpf/task.h` says why.
pub const MAPS: [&str; 2] = ["hints", "tasks"];

/// Where the maps are pinned, from the first load of the scheduler until this is dropped.
pub struct Pins(());

impl Pins {
    /// Takes away what a loader that was killed has left.
    pub fn new() -> io::Result<Self> {
        if !Path::new(DIRECTORY).exists() {
            DirBuilder::new().mode(0o700).create(DIRECTORY)?;
        }
        for map in MAPS {
            match fs::remove_file(path(map)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(Self(()))
    }

    pub fn path(&self, map: &str) -> PathBuf {
        path(map)
    }

    /// A map, once a scheduler has been loaded.
    pub fn map(&self, map: &str) -> libbpf_rs::Result<MapHandle> {
        MapHandle::from_pinned_path(path(map))
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        for map in MAPS {
            let _ = fs::remove_file(path(map));
        }
        let _ = fs::remove_dir(DIRECTORY);
    }
}

fn path(map: &str) -> PathBuf {
    Path::new(DIRECTORY).join(map)
}
