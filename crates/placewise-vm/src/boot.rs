//! One boot: builds the guest, runs QEMU until it powers off, and collects what it left.
//!
//! The directory of a case keeps everything: `console`, `out/` with the guest's files, and the
//! audits. The guest's files come as a tar stream over a virtio port, or a
//! serial one.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use regex::Regex;

use crate::figures::Figures;
use crate::guest::{Clock, Guest};
use crate::host::{self, Host};
use crate::initramfs::Initramfs;

/// `max` has every feature that is emulated; the vendor decides how Linux reads the topology. The
/// instructions for random numbers would make runs differ.
const CPU: &str = "max,vendor=GenuineIntel,-rdrand,-rdseed";
/// QEMU before 8.0 may leave wrong flags after cmpxchg16b; an interrupt then ends the guest with a double
/// fault. Before Linux 7 the kernel executes it with every allocation, where it is offered; Linux 7 seldom
/// does, and has no BPF arenas without it.
const CPU_BEFORE_LINUX_7: &str = "max,vendor=GenuineIntel,-rdrand,-rdseed,-cx16";
/// Of the boot, warnings and worse go to the console. A panic ends QEMU, and a task that hangs for
/// two minutes is one. On a busy host the kernel would think that its timer does not work.
const KERNEL_ARGUMENTS: &str =
    "console=ttyS0 loglevel=5 panic=-1 nokaslr hung_task_panic=1 no_timer_check";
/// CPUs have times of their own, which differ by less than matters. Without mitigations: isolated page
/// tables empty the emulated TLB with every system call, which costs the host most of its time.
const PARALLEL_KERNEL_ARGUMENTS: &str = "tsc=reliable mitigations=off";

/// The exit status of timeout(1).
const TIMED_OUT: i32 = 124;

/// What init says first on the console: the kernel has booted.
const BOOTED: &str = "\nLinux ";
/// A kernel that has not booted by then hangs, as one of 64 emulated CPUs was seen to: it is booted once more.
const BOOTS_WITHIN: Duration = Duration::from_secs(240);
const PAUSE: Duration = Duration::from_millis(20);

/// What a boot left behind.
pub struct Run {
    pub console: String,
    pub figures: Figures,
}

/// What a case needs from the host.
pub struct Parts {
    kernel: PathBuf,
    qemu: PathBuf,
    placewise: PathBuf,
    /// With their paths in the guest.
    files: Vec<(PathBuf, String)>,
}

impl Parts {
    /// The error says what is missing.
    pub fn find(host: &Host, guest: &Guest) -> Result<Self, String> {
        let kernel = host.kernel(&guest.kernel)?;
        let mut files = vec![(kernel.join("config"), "config".to_owned())];
        let own = guest.programs.iter().map(String::as_str);
        for name in host::USUAL.iter().copied().chain(own) {
            files.push((host.program(name)?, format!("bin/{name}")));
        }
        Ok(Self {
            kernel: kernel.join("vmlinuz"),
            qemu: host.program(guest.clock.qemu())?,
            placewise: host.program(host::PLACEWISE)?,
            files,
        })
    }
}

/// Boots and collects; an error where the guest did not get to its end.
pub fn run(guest: &Guest, parts: &Parts, directory: &Path) -> anyhow::Result<Run> {
    fs::create_dir_all(directory.join("out")).with_context(|| directory.display().to_string())?;
    build_initramfs(guest, parts, &directory.join("initramfs"))?;
    let ended = boot(guest, parts, directory)?;
    let console = console(directory)?;
    fs::remove_file(directory.join("initramfs")).context("the initramfs")?;
    let limit = guest.limit_seconds;
    ensure!(ended, "the guest was still running after {limit} s\n{}", tail(&console));
    unpack(directory).with_context(|| format!("nothing from the guest\n{}", tail(&console)))?;
    let mut figures = Figures::parse(&read(&directory.join("out/figures"))?)?;
    audit_traces(parts, directory, &mut figures)?;
    Ok(Run { console, figures })
}

fn build_initramfs(guest: &Guest, parts: &Parts, path: &Path) -> anyhow::Result<()> {
    let mut initramfs = Initramfs::create(path, &guest.script)?;
    for (file, name) in &parts.files {
        initramfs.add_file(file, name)?;
        if name.starts_with("bin/") {
            for library in host::libraries(file)? {
                let name = library.to_string_lossy();
                initramfs.add_file(&library, name.trim_start_matches('/'))?;
            }
        }
    }
    initramfs.finish()
}

fn cpu(kernel: &str) -> &'static str {
    let major = kernel.split('.').next().and_then(|major| major.parse().ok());
    if major.is_some_and(|major: u32| major < 7) { CPU_BEFORE_LINUX_7 } else { CPU }
}

/// Whether the guest powered off in time.
fn boot(guest: &Guest, parts: &Parts, directory: &Path) -> anyhow::Result<bool> {
    let mut qemu = start(guest, parts, directory)?;
    let started = Instant::now();
    while qemu.try_wait().context("QEMU")?.is_none() && started.elapsed() < BOOTS_WITHIN {
        thread::sleep(PAUSE);
    }
    if qemu.try_wait().context("QEMU")?.is_none() && !has_booted(directory)? {
        // timeout(1) hands it on.
        Command::new("kill").arg(qemu.id().to_string()).status().context("cannot run kill")?;
        qemu.wait().context("QEMU")?;
        qemu = start(guest, parts, directory)?;
    }
    let status = qemu.wait().context("QEMU")?;
    Ok(status.code() != Some(TIMED_OUT))
}

fn has_booted(directory: &Path) -> anyhow::Result<bool> {
    let console = fs::read(directory.join("console")).context("the console")?;
    Ok(String::from_utf8_lossy(&console).contains(BOOTED))
}

fn start(guest: &Guest, parts: &Parts, directory: &Path) -> anyhow::Result<Child> {
    let console = File::create(directory.join("console")).context("the console")?;
    let parallel = matches!(guest.clock, Clock::Parallel { .. });
    let append =
        [KERNEL_ARGUMENTS, if parallel { PARALLEL_KERNEL_ARGUMENTS } else { "" }].join(" ");
    // It ends the guest also where this program is no more.
    let mut qemu = Command::new("timeout");
    qemu.arg("--foreground")
        .arg(guest.limit_seconds.to_string())
        .arg(&parts.qemu)
        .args(["-M", "q35", "-accel", "tcg,thread=single", "-cpu", cpu(&guest.kernel)])
        .args(guest.machine.qemu_arguments())
        .args(guest.clock.qemu_arguments())
        .args(["-nodefaults", "-nographic", "-no-reboot", "-serial", "stdio"])
        .args(["-serial", "file:serial.tar"])
        .args(["-device", "virtio-serial-pci", "-device", "virtserialport,chardev=out"])
        .args(["-chardev", "file,id=out,path=out.tar"])
        .args(env::var("QEMU_ARGUMENTS").unwrap_or_default().split_whitespace())
        .args(["-initrd", "initramfs", "-append", &append, "-kernel"])
        .arg(&parts.kernel)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(console.try_clone().context("the console")?)
        .stderr(console);
    qemu.spawn().context("cannot run timeout and QEMU")
}

fn unpack(directory: &Path) -> anyhow::Result<()> {
    let (serial, out) = (directory.join("serial.tar"), directory.join("out.tar"));
    if fs::metadata(&serial).is_ok_and(|file| file.len() > 0) {
        fs::rename(&serial, &out).context("serial.tar")?;
    } else {
        fs::remove_file(&serial).context("serial.tar")?;
    }
    let status = Command::new("tar")
        .args(["--extract", "--file", "out.tar", "--directory", "out"])
        .current_dir(directory)
        .stderr(Stdio::null())
        .status()
        .context("cannot run tar")?;
    ensure!(status.success(), "out.tar is not whole");
    fs::remove_file(out).context("out.tar")
}

/// Audits every trace; its figures have the name of the trace.
fn audit_traces(parts: &Parts, directory: &Path, figures: &mut Figures) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory.join("out")).context("the guest's files")? {
        let path = entry.context("the guest's files")?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(name) = file.strip_suffix(".txt.zst") else { continue };
        let audit = Command::new(&parts.placewise)
            .args(["audit", "--format", "json"])
            .arg(&path)
            .output()
            .context("cannot run placewise")?;
        let error = String::from_utf8_lossy(&audit.stderr);
        ensure!(audit.status.success(), "placewise audit of {file}: {error}");
        let json = String::from_utf8_lossy(&audit.stdout);
        fs::write(directory.join(name).with_extension("audit.json"), json.as_bytes())?;
        figures.add_audit(name, &json)?;
    }
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn console(directory: &Path) -> anyhow::Result<String> {
    // The firmware clears the screen.
    let escapes = Regex::new("\r|\u{1b}(c|\\[[0-9;?]*[A-Za-z])")?;
    let bytes = fs::read(directory.join("console")).context("the console")?;
    Ok(escapes.replace_all(&String::from_utf8_lossy(&bytes), "").into_owned())
}

/// The end of a console, for a failure to show.
pub fn tail(console: &str) -> String {
    const LINES: usize = 30;
    let lines: Vec<&str> = console.lines().collect();
    let shown = &lines[lines.len().saturating_sub(LINES)..];
    format!("  | {}", shown.join("\n  | "))
}
