//! Output files are there whole or not at all, and no more open than the file they replace.
//!
//! While it is written a file has no name (O_TMPFILE), so nothing is left of it if the process is
//! killed. Where the file system has no such files (NFS, FAT, overlayfs before v6.1) it has a hidden
//! name beside its place, which a [`Cleaner`] removes.
//!
//! Whoever may write to the directory can put something at the file's place first. What root
//! writes then goes neither through their link nor into a file of theirs.
//!
//! Limits: of the file that is replaced mode, owner and group are kept, ACLs and extended attributes
//! are not. It is replaced in two steps; killed between them, the process leaves the new file, whole,
//! under its hidden name.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, OFlags, linkat};
use rustix::process::geteuid;
use tempfile::TempPath;

use crate::cleaner::Cleaner;
use crate::input::InputError;

/// The mode of a new file, less the umask.
pub const FOR_ALL: u32 = 0o666;
pub const FOR_OWNER: u32 = 0o600;

/// A file that appears under its name only once [`OutputFile::finish`] has been called, and only if
/// all that was written is in it.
pub struct OutputFile {
    path: PathBuf,
    writer: BufWriter<File>,
    /// Something is missing in the file.
    failure: Option<ErrorKind>,
    /// None for a file without a name.
    hidden: Option<Hidden>,
    /// Where the file that is replaced goes.
    old: Option<PathBuf>,
}

struct Hidden {
    name: TempPath,
    /// None where there is no shell: the file can still be written.
    _cleaner: Option<Cleaner>,
}

impl OutputFile {
    /// Refuses a place that cannot be written now, before any work is done for it. The `mode` is
    /// that of a new file.
    pub fn create(path: &Path, mode: u32) -> anyhow::Result<Self> {
        let refuse = |why: &str| InputError(format!("{}: {why}", path.display()));
        let old = path.symlink_metadata().ok();
        if let Some(old) = &old {
            check_replaceable(old, directory(path)).map_err(refuse)?;
        }
        if path.file_name().is_none() {
            return Err(refuse("names no file; name a file to write").into());
        }
        let mode = if old.is_some() { FOR_OWNER } else { mode };
        let opened = nameless(directory(path), mode).map(|file| (file, None));
        let opened = opened.or_else(|_| hidden(directory(path), mode));
        let (file, hidden) = opened.map_err(|error| match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => cannot_write(path, error),
            ErrorKind::NotFound => refuse("no such directory; create it first").into(),
            // Not the system's own words, which name the hidden file.
            kind => refuse(&format!("cannot write there: {kind}")).into(),
        })?;
        if let Some(old) = &old {
            inherit(&file, old).map_err(|error| cannot_write(path, error))?;
        }
        Ok(Self {
            path: path.to_owned(),
            writer: BufWriter::new(file),
            failure: None,
            hidden,
            old: None,
        })
    }

    /// A file that is replaced then goes to its name with `.old` behind, as those of perf do, unless
    /// it is empty.
    pub fn keeping_old(mut self) -> anyhow::Result<Self> {
        let mut name = self.path.clone().into_os_string();
        name.push(".old");
        let old = PathBuf::from(name);
        if let Ok(older) = old.symlink_metadata() {
            check_replaceable(&older, directory(&old))
                .map_err(|why| InputError(format!("{}: {why}", old.display())))?;
        }
        self.old = Some(old);
        Ok(self)
    }

    pub fn finish(self) -> anyhow::Result<()> {
        self.replace().map(drop)
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Finishes, and says where the file went that was replaced, if it was kept.
    pub fn replace(mut self) -> anyhow::Result<Option<PathBuf>> {
        self.appear().map_err(|error| cannot_write(&self.path, error))
    }

    fn appear(&mut self) -> io::Result<Option<PathBuf>> {
        if let Some(kind) = self.failure {
            return Err(kind.into());
        }
        self.writer.flush()?;
        let file = self.writer.get_ref();
        // Some file systems find out only now that they are full.
        file.sync_all()?;
        let has_content = |path: &Path| path.symlink_metadata().is_ok_and(|file| file.len() > 0);
        let old = self.old.take().filter(|_| has_content(&self.path));
        if let Some(old) = &old {
            std::fs::rename(&self.path, old)?;
        }
        match self.hidden.take() {
            Some(hidden) => hidden.name.persist(&self.path)?,
            None => link(file, &self.path)?,
        }
        Ok(old)
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer.write_all(bytes);
        written.inspect_err(|error| self.failure = Some(error.kind()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

fn cannot_write(path: &Path, error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("cannot write {}", path.display()))
}

/// Where it is.
pub fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

fn check_replaceable(old: &Metadata, directory: &Path) -> Result<(), &'static str> {
    if !old.is_file() {
        return Err("is not a regular file (a link is not followed); name a file to write");
    }
    let Ok(directory) = directory.metadata() else { return Ok(()) };
    let is_shared = directory.mode() & 0o022 != 0;
    let is_theirs = ![0, geteuid().as_raw(), directory.uid()].contains(&old.uid());
    match is_shared && (is_theirs || old.nlink() > 1) {
        true => Err("another user may have put it there, for others may write to the directory; \
                     remove it or name another file"),
        false => Ok(()),
    }
}

fn inherit(file: &File, old: &Metadata) -> io::Result<()> {
    let has_group = fchown(file, Some(old.uid()), Some(old.gid()))
        .or_else(|_| fchown(file, None, Some(old.gid())))
        .is_ok();
    let bits = if has_group { 0o777 } else { 0o707 };
    file.set_permissions(Permissions::from_mode(old.mode() & bits))
}

fn nameless(directory: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).mode(mode).custom_flags(OFlags::TMPFILE.bits() as i32);
    let file = options.open(directory)?;
    // Without /proc it could not be given a name.
    proc_path(&file).symlink_metadata().map(|_| file)
}

fn proc_path(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Gives a nameless file its name. Only a rename replaces, so that takes two steps.
fn link(file: &File, path: &Path) -> io::Result<()> {
    let link = |name: &Path| linkat(CWD, proc_path(file), CWD, name, AtFlags::SYMLINK_FOLLOW);
    match link(path) {
        Err(error) if error == rustix::io::Errno::EXIST => {
            let hidden = builder().make_in(directory(path), |name| Ok(link(name)?))?;
            hidden.persist(path)?;
            Ok(())
        }
        linked => Ok(linked?),
    }
}

fn hidden(directory: &Path, mode: u32) -> io::Result<(File, Option<Hidden>)> {
    let permissions = Permissions::from_mode(mode);
    let (file, name) = builder().permissions(permissions).tempfile_in(directory)?.into_parts();
    let _cleaner = Cleaner::start(r#"rm -f "$1""#, &name).ok();
    Ok((file, Some(Hidden { name, _cleaner })))
}

fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".placewise-");
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_there_before_finish() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.txt");
        let mut file = OutputFile::create(&path, FOR_ALL).unwrap();
        file.write_all(b"whole").unwrap();
        assert_eq!(names(directory.path()), [""; 0]);
        file.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(directory.path()), ["trace.txt"]);
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = directory.read_dir().unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn what_is_replaced_is_kept_unless_it_is_empty() {
        let directory = tempfile::tempdir().unwrap();
        let [path, old] = ["trace.txt", "trace.txt.old"].map(|name| directory.path().join(name));
        let write = |text: &str| {
            let mut file = OutputFile::create(&path, FOR_ALL).unwrap().keeping_old().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.replace().unwrap()
        };
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        File::create(&path).unwrap();
        assert_eq!(write("first"), None);
        assert_eq!(write("second"), Some(old.clone()));
        assert_eq!((read(&path), read(&old)), ("second".into(), "first".into()));
        assert_eq!(write("third"), Some(old.clone()));
        assert_eq!((read(&path), read(&old)), ("third".into(), "second".into()));
    }

    /// Before any work is done for the file.
    #[test]
    fn a_name_for_the_old_file_that_is_taken_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.txt");
        std::fs::create_dir(directory.path().join("trace.txt.old")).unwrap();
        let refused = OutputFile::create(&path, FOR_ALL).unwrap().keeping_old();
        assert!(refused.err().unwrap().to_string().contains("trace.txt.old: is not a regular"));
    }

    /// As on a file system that has only files with a name.
    fn create_hidden(path: &Path) -> OutputFile {
        let mut output = OutputFile::create(path, FOR_ALL).unwrap();
        let (file, hidden) = hidden(directory(path), FOR_ALL).unwrap();
        (output.writer, output.hidden) = (BufWriter::new(file), hidden);
        output
    }

    #[test]
    fn a_file_with_a_hidden_name_appears_and_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.txt");
        let mut file = create_hidden(&path);
        file.write_all(b"whole").unwrap();
        file.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(directory.path()), ["trace.txt"]);
    }

    #[test]
    fn a_hidden_name_goes_without_our_help() {
        let directory = tempfile::tempdir().unwrap();
        let file = create_hidden(&directory.path().join("trace.txt"));
        let Hidden { name, _cleaner } = file.hidden.unwrap();
        assert!(name.exists());
        // Killed, we would not remove it, and the kernel would close the pipe.
        std::mem::forget(name);
        drop(_cleaner);
        assert_eq!(names(directory.path()), [""; 0]);
    }

    #[test]
    fn a_file_with_a_hole_does_not_appear() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.txt");
        let mut file = OutputFile::create(&path, FOR_ALL).unwrap();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let good = std::mem::replace(&mut file.writer, BufWriter::new(full));
        assert!(file.write_all(&[b'x'; 1 << 16]).is_err());
        file.writer = good; // as when there is room again
        file.write_all(b"the rest").unwrap();
        assert!(file.finish().is_err());
        assert_eq!(names(directory.path()), [""; 0]);
    }

    /// Mode, owner and group that a file has once one with `mode` has been replaced.
    fn replaced(mode: u32, owner: Option<u32>) -> (u32, u32, u32) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.txt");
        let old = File::create(&path).unwrap();
        fchown(&old, owner, owner).unwrap();
        old.set_permissions(Permissions::from_mode(mode)).unwrap();
        OutputFile::create(&path, FOR_ALL).unwrap().finish().unwrap();
        assert_eq!(names(directory.path()), ["trace.txt"]);
        let new = path.metadata().unwrap();
        assert_ne!(new.ino(), old.metadata().unwrap().ino());
        (new.mode() & 0o7777, new.uid(), new.gid())
    }

    #[test]
    fn what_is_replaced_lends_its_mode_and_owner() {
        assert_eq!(replaced(0o600, None).0, 0o600);
        assert_eq!(replaced(0o640, None).0, 0o640);
        assert_eq!(replaced(0o6755, None).0, 0o755);
        if geteuid().is_root() {
            assert_eq!(replaced(0o640, Some(65534)), (0o640, 65534, 65534));
        }
    }

    #[test]
    fn a_mode_is_that_of_a_new_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.txt");
        OutputFile::create(&path, FOR_OWNER).unwrap().finish().unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o600);
    }

    /// What is said about a file at `path` in a directory of ours with `mode`.
    fn refusal(path: &Path, mode: u32) -> Option<String> {
        let directory = path.parent().unwrap();
        std::fs::set_permissions(directory, Permissions::from_mode(mode)).unwrap();
        OutputFile::create(path, FOR_ALL).err().map(|error| error.to_string())
    }

    #[test]
    fn what_others_may_have_put_there_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.txt");
        let old = File::create(&path).unwrap();
        assert_eq!(refusal(&path, 0o1777), None);
        std::fs::hard_link(&path, directory.path().join("link")).unwrap();
        assert!(refusal(&path, 0o1777).unwrap().contains("another user"));
        assert_eq!(refusal(&path, 0o755), None);
        std::fs::remove_file(directory.path().join("link")).unwrap();
        if geteuid().is_root() {
            fchown(&old, Some(65534), None).unwrap();
            assert!(refusal(&path, 0o1777).unwrap().contains("another user"));
            assert!(refusal(&path, 0o775).unwrap().contains("another user"));
            assert_eq!(refusal(&path, 0o755), None);
        }
    }

    #[test]
    fn links_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.txt");
        let target = directory.path().join("target");
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(OutputFile::create(&path, FOR_ALL).is_err());
        std::fs::remove_file(&path).unwrap();
        // Nor one that comes while we write.
        let file = OutputFile::create(&path, FOR_ALL).unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        file.finish().unwrap();
        assert_eq!(names(directory.path()), ["trace.txt"]);
        assert!(path.symlink_metadata().unwrap().is_file());
    }

    #[test]
    fn devices_and_directories_are_refused() {
        assert!(OutputFile::create(Path::new("/dev/null"), FOR_ALL).is_err());
        assert!(OutputFile::create(Path::new("/"), FOR_ALL).is_err());
    }
}
