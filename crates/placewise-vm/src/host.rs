//! What a guest takes from the host: programs of this project, of Debian, and kernels.
//!
//! Whatever is missing is told in one line, with how to get it.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::guest::{Guest, PARALLEL_QEMU};

/// What every boot takes, besides the emulator and what its guest names.
pub const USUAL: &[&str] = &["busybox", "vm-guest"];
pub const PLACEWISE: &str = "placewise";

/// How to build the programs of this project, by the start of their names; the others are Debian's.
const BUILDS: &[(&str, &str)] = &[
    (PLACEWISE, "cargo build --package placewise"),
    ("scx_placewise", "make test-vm, with clang-19, libelf-dev and zlib1g-dev installed"),
];

/// A path, or why there is none.
type Found = Result<PathBuf, String>;

#[derive(Default)]
pub struct Host {
    /// Directories by series.
    kernels: BTreeMap<String, Found>,
    programs: BTreeMap<String, Found>,
}

impl Host {
    /// Looks for all that these guests take, and installs and fetches what is not here yet.
    pub fn prepare(guests: impl IntoIterator<Item = impl Borrow<Guest>>) -> anyhow::Result<Self> {
        let mut host = Self::default();
        for guest in guests {
            let guest = guest.borrow();
            if !host.kernels.contains_key(&guest.kernel) {
                host.kernels.insert(guest.kernel.clone(), fetch_kernel(&guest.kernel)?);
            }
            let own = guest.programs.iter().map(String::as_str);
            for name in own.chain(USUAL.iter().copied()).chain([guest.clock.qemu(), PLACEWISE]) {
                if !host.programs.contains_key(name) {
                    host.programs.insert(name.to_owned(), find_program(name)?);
                }
            }
        }
        Ok(host)
    }

    /// What the host has not, a line each.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let all = self.kernels.values().chain(self.programs.values());
        all.filter_map(|found| found.as_ref().err().map(String::as_str))
    }

    pub fn kernel(&self, series: &str) -> Found {
        found(&self.kernels, series)
    }

    pub fn program(&self, name: &str) -> Found {
        found(&self.programs, name)
    }
}

fn found(all: &BTreeMap<String, Found>, name: &str) -> Found {
    all.get(name).cloned().unwrap_or_else(|| Err(format!("nobody looked for {name}")))
}

fn find_program(name: &str) -> anyhow::Result<Found> {
    if name == PARALLEL_QEMU {
        return Ok(script("build-qemu.sh", "")?.map(PathBuf::from));
    }
    // A test is in a directory beside the programs.
    let program = env::current_exe().context("this program has no path")?;
    let built = program.ancestors().skip(1).take(2).map(|directory| directory.join(name));
    if let Some(built) = built.into_iter().find(|built| built.is_file()) {
        return Ok(Ok(built));
    }
    if let Some((_, how)) = BUILDS.iter().find(|(program, _)| name.starts_with(program)) {
        return Ok(Err(format!("{name} is not built: {how}")));
    }
    if let Some(installed) = on_path(name) {
        return Ok(Ok(installed));
    }
    let refusal = script("need.sh", name)?.err();
    let reason =
        || refusal.unwrap_or_else(|| format!("{name} is missing, even after installing it"));
    Ok(on_path(name).ok_or_else(reason))
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut candidates = env::split_paths(&path).map(|directory| directory.join(name));
    candidates.find(|candidate| candidate.is_file())
}

fn fetch_kernel(series: &str) -> anyhow::Result<Found> {
    Ok(script("fetch-kernel.sh", series)?.map(PathBuf::from))
}

/// What the script prints, or the end of its complaints.
fn script(name: &str, argument: &str) -> anyhow::Result<Result<String, String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(name);
    let output = Command::new(&path)
        .arg(argument)
        .output()
        .with_context(|| format!("cannot run {}", path.display()))?;
    let last_line = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        text.trim_end().lines().next_back().unwrap_or_default().to_owned()
    };
    Ok(match output.status.success() {
        true => Ok(last_line(&output.stdout)),
        false => Err(last_line(&output.stderr)),
    })
}

/// The shared libraries of a program, with the names by which it asks for them.
pub fn libraries(program: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("cannot run ldd")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if let Some(line) = text.lines().find(|line| line.contains("not found")) {
        bail!("{}: {}", program.display(), line.trim());
    }
    // A static program has none: "not a dynamic executable".
    let words =
        text.lines().filter_map(|line| line.split_whitespace().find(|w| w.starts_with('/')));
    Ok(words.map(PathBuf::from).collect())
}
