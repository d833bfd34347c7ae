//! The guest's file system: an archive of the programs and scripts that a case needs.
//!
//! The same files give the same bytes: no times, no inode numbers of the host.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use cpio::newc::{self, ModeFileType};

const INIT: &str = include_str!("../guest/init.sh");
const FUNCTIONS: &str = include_str!("../guest/functions.sh");
/// `guest` is somebody without privileges.
const USERS: &str = "root:x:0:0::/:/bin/sh\nguest:x:1000:1000::/:/bin/sh\n";
const GROUPS: &str = "root:x:0:\nguest:x:1000:\n";

pub struct Initramfs {
    archive: BufWriter<File>,
    directories: BTreeSet<String>,
    files: BTreeSet<String>,
}

impl Initramfs {
    pub fn create(path: &Path, script: &str) -> anyhow::Result<Self> {
        let archive = File::create(path).with_context(|| path.display().to_string())?;
        let mut initramfs = Self {
            archive: BufWriter::new(archive),
            directories: BTreeSet::new(),
            files: BTreeSet::new(),
        };
        for directory in ["dev", "out", "proc", "run", "sys", "tmp"] {
            initramfs.add_directory(directory)?;
        }
        initramfs.add("init", INIT.as_bytes())?;
        initramfs.add("functions.sh", FUNCTIONS.as_bytes())?;
        initramfs.add("scenario.sh", script.as_bytes())?;
        initramfs.add("etc/passwd", USERS.as_bytes())?;
        initramfs.add("etc/group", GROUPS.as_bytes())?;
        Ok(initramfs)
    }

    /// A file of the host, at `name` in the guest.
    pub fn add_file(&mut self, file: &Path, name: &str) -> anyhow::Result<()> {
        let content = fs::read(file).with_context(|| file.display().to_string())?;
        self.add(name, &content)
    }

    fn add(&mut self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        if !self.files.insert(name.to_owned()) {
            return Ok(());
        }
        if let Some((directory, _)) = name.rsplit_once('/') {
            self.add_directory(directory)?;
        }
        let size = u32::try_from(content.len()).with_context(|| format!("{name} is too large"))?;
        self.write(name, ModeFileType::Regular, size, content)
    }

    fn add_directory(&mut self, name: &str) -> anyhow::Result<()> {
        if !self.directories.insert(name.to_owned()) {
            return Ok(());
        }
        if let Some((parent, _)) = name.rsplit_once('/') {
            self.add_directory(parent)?;
        }
        self.write(name, ModeFileType::Directory, 0, &[])
    }

    fn write(
        &mut self,
        name: &str,
        kind: ModeFileType,
        size: u32,
        content: &[u8],
    ) -> anyhow::Result<()> {
        let number = self.files.len() + self.directories.len();
        let entry =
            newc::Builder::new(name).ino(number as u32).mode(0o755).set_mode_file_type(kind);
        let mut writer = entry.write(&mut self.archive, size);
        writer.write_all(content).and_then(|()| writer.finish()).context("the initramfs")?;
        Ok(())
    }

    pub fn finish(mut self) -> anyhow::Result<()> {
        newc::trailer(&mut self.archive).context("the initramfs")?;
        self.archive.flush().context("the initramfs")
    }
}
