//! A tracefs instance: ring buffers of its own, with the scheduler's placement tracepoints on.
//!
//! It is named after the recorder's process and goes when the recorder does, however that ends: see
//! [`Cleaner`]. What should be left behind even so, the next recording removes. The kernel itself
//! tells it from an instance that is recorded from, which cannot be removed: its pipe is open.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use placewise_trace::ring::{KINDS, Kind};
use rustix::fs::OFlags;

use crate::cleaner::Cleaner;

const TRACEFS: &str = "/sys/kernel/tracing";
const PREFIX: &str = "placewise-";
/// The same on all CPUs, unlike the default `local`, and what programs read as CLOCK_MONOTONIC.
pub const CLOCK: &str = "mono";

/// To tell with each event of which process the task is.
const RECORD_TGID: &str = "options/record-tgid";

/// The kernel may take a moment to close the pipe of a recorder that was killed.
const REMOVE: &str =
    r#"echo 0 >"$1/tracing_on"; for try in 1 2 3 4 5; do rmdir "$1" && break; sleep 1; done"#;

/// Fields are dropped in this order: an instance cannot be removed while its pipe is open.
pub struct TraceInstance {
    dir: PathBuf,
    /// Nothing is read of it.
    _pipe: File,
    _cleaner: Cleaner,
}

/// What came of the events so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// That have been read.
    pub events: u64,
    /// By CPU, where there are any.
    pub lost: BTreeMap<usize, u64>,
}

impl TraceInstance {
    /// Makes an instance in which tracing is still off.
    pub fn create(buffer_size_kb: u32) -> anyhow::Result<Self> {
        check_access()?;
        let instance = Self::open()?;
        instance.stop()?;
        instance.write("buffer_size_kb", &buffer_size_kb.to_string()).with_context(|| {
            format!("no {buffer_size_kb} KB for each CPU; try a smaller --buffer-size")
        })?;
        instance.write("trace_clock", CLOCK)?;
        ensure!(
            instance.dir.join(RECORD_TGID).exists(),
            "recording needs a kernel from v4.14 on; trace-cmd and perf record older ones"
        );
        instance.write(RECORD_TGID, "1")?;
        for Kind { name, .. } in &KINDS {
            instance.write(&format!("events/sched/{name}/enable"), "1")?;
        }
        Ok(instance)
    }

    /// Locks out other recorders, who would take for stale what is not open yet.
    fn open() -> anyhow::Result<Self> {
        let instances = Path::new(TRACEFS).join("instances");
        let dir = instances.join(format!("{PREFIX}{}", std::process::id()));
        let create = || {
            let lock = File::open(&instances)?;
            lock.lock()?;
            remove_stale(&instances);
            fs::create_dir(&dir)?;
            let cleaner = Cleaner::start(REMOVE, &dir)?;
            Ok::<_, io::Error>((nonblocking(&dir.join("trace_pipe"))?, cleaner))
        };
        let (_pipe, _cleaner) =
            create().with_context(|| format!("cannot create {}", dir.display()))?;
        Ok(Self { dir, _pipe, _cleaner })
    }

    pub fn start(&self) -> anyhow::Result<()> {
        self.write("tracing_on", "1")
    }

    pub fn stop(&self) -> anyhow::Result<()> {
        self.write("tracing_on", "0")
    }

    pub fn statistics(&self) -> anyhow::Result<Statistics> {
        let per_cpu = self.dir.join("per_cpu");
        let mut statistics = Statistics::default();
        for entry in fs::read_dir(&per_cpu).with_context(|| per_cpu.display().to_string())? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let Some(cpu) = name.strip_prefix("cpu").and_then(|cpu| cpu.parse().ok()) else {
                continue;
            };
            statistics.add(cpu, &self.read(&format!("per_cpu/{name}/stats"))?);
        }
        Ok(statistics)
    }

    /// Where the fields of an event of the scheduler are.
    pub fn format(&self, event: &str) -> anyhow::Result<String> {
        self.read(&format!("events/sched/{event}/format"))
    }

    /// The events of a CPU as the ring buffer has them, a page at a time.
    pub fn raw(&self, cpu: usize) -> io::Result<File> {
        nonblocking(&self.dir.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw")))
    }

    /// How large these pages are: what stands in front of their data, and that.
    pub fn page_bytes(&self) -> anyhow::Result<usize> {
        let path = Path::new(TRACEFS).join("events/header_page");
        // There is no second read of it.
        let mut header = vec![0; 4096];
        let length = File::open(&path).and_then(|mut file| file.read(&mut header));
        header.truncate(length.with_context(|| path.display().to_string())?);
        let text = String::from_utf8_lossy(&header);
        page_bytes(&text).with_context(|| format!("{}: no size of `data`", path.display()))
    }

    fn read(&self, file: &str) -> anyhow::Result<String> {
        let path = self.dir.join(file);
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    }

    fn write(&self, file: &str, value: &str) -> anyhow::Result<()> {
        let path = self.dir.join(file);
        fs::write(&path, value).with_context(|| path.display().to_string())
    }
}

impl Statistics {
    /// Adds the `stats` file of a CPU.
    fn add(&mut self, cpu: usize, stats: &str) {
        let value = |name: &str| -> u64 {
            let fields = stats.lines().filter_map(|line| line.split_once(':'));
            let mut named = fields.filter(|(field, _)| *field == name);
            named.next().and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0)
        };
        self.events += value("read events");
        let lost = value("overrun") + value("commit overrun") + value("dropped events");
        if lost > 0 {
            self.lost.insert(cpu, lost);
        }
    }
}

fn nonblocking(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)
}

/// The process of each task that ran since some recorder has asked for it.
pub fn tgids() -> HashMap<u32, u32> {
    let text = fs::read_to_string(Path::new(TRACEFS).join("saved_tgids")).unwrap_or_default();
    let pair = |line: &str| {
        let (pid, tgid) = line.split_once(' ')?;
        Some((pid.parse().ok()?, tgid.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

/// By `field: char data; offset:16; size:4080; signed:1;`
fn page_bytes(header: &str) -> Option<usize> {
    let data = header.lines().find(|line| line.trim().starts_with("field: char data;"))?;
    let value = |key: &str| -> Option<usize> {
        data.split(';').find_map(|part| part.trim().strip_prefix(key)?.parse().ok())
    };
    Some(value("offset:")? + value("size:")?)
}

fn check_access() -> anyhow::Result<()> {
    let mounted = fs::read_dir(TRACEFS).map(|mut files| files.next().is_some());
    match mounted {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            bail!("{TRACEFS}: no access; recording needs root, as with sudo")
        }
        Ok(true) if !rustix::process::geteuid().is_root() => {
            bail!("recording needs root, as with sudo")
        }
        Ok(true) => Ok(()),
        _ => bail!(
            "{TRACEFS}: recording needs root and tracefs, which is not mounted; \
             as root: mount -t tracefs tracefs {TRACEFS}"
        ),
    }
}

/// Tries all there are: the kernel keeps those in use.
fn remove_stale(instances: &Path) {
    let Ok(entries) = fs::read_dir(instances) else { return };
    let is_ours =
        |name: &str| name.strip_prefix(PREFIX).is_some_and(|pid| pid.parse::<u32>().is_ok());
    for entry in entries.flatten() {
        if is_ours(&entry.file_name().to_string_lossy()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: &str = "\
entries: 5
overrun: 7
commit overrun: 1
bytes: 320
oldest event ts:     0.000000
now ts: 11107.499646
dropped events: 2
read events: 40
";

    #[test]
    fn a_page_is_its_header_and_its_data() {
        let header = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                      \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
        assert_eq!(page_bytes(header), Some(4096));
        assert_eq!(page_bytes("field: u64 timestamp;"), None);
    }

    #[test]
    fn every_way_to_lose_events_counts() {
        let mut statistics = Statistics::default();
        statistics.add(3, STATS);
        statistics.add(4, "overrun: 0\nread events: 2\n");
        assert_eq!(statistics, Statistics { events: 42, lost: BTreeMap::from([(3, 10)]) });
    }
}
