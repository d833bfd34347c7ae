//! The BPF objects that were built with this crate, and their way into the kernel.

use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use libbpf_rs::{MapType, Object, ObjectBuilder, OpenObject, PrintLevel};

/// Why programs are not in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Something is missing here that BPF needs.
    #[error("{0}")]
    Unavailable(String),
    /// The verifier does not accept a program: a defect of the policy.
    #[error("the kernel refused the policy:\n{0}")]
    Refused(String),
}

/// What build.rs has compiled.
pub struct Built {
    /// `policy.bpf.c`
    pub policy: &'static [u8],
    /// `bpf/main.bpf.c`
    pub scheduler: &'static [u8],
}

#[cfg(bpf_object)]
const BUILT: Result<Built, &str> = Ok(Built {
    policy: include_bytes!(concat!(env!("OUT_DIR"), "/policy.bpf.o")),
    scheduler: include_bytes!(concat!(env!("OUT_DIR"), "/main.bpf.o")),
});

#[cfg(not(bpf_object))]
const BUILT: Result<Built, &str> = Err(env!("BPF_OBJECT_MISSING"));

pub fn built() -> Result<Built, LoadError> {
    BUILT.map_err(|missing| LoadError::Unavailable(missing.to_string()))
}

/// May this process load programs into this kernel at all?
pub fn check_kernel() -> Result<(), LoadError> {
    let unavailable = |reason: String| Err(LoadError::Unavailable(reason));
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return unavailable("the kernel has no BTF (/sys/kernel/btf/vmlinux)".to_string());
    }
    match MapType::Arena.is_supported() {
        Ok(true) => Ok(()),
        Ok(false) => unavailable("no BPF arenas here: they take root and Linux 6.9".to_string()),
        Err(error) => unavailable(format!("cannot ask for BPF arenas: {error}")),
    }
}

/// Not in the kernel yet: maps and global data can be changed.
pub fn open(object: &[u8]) -> Result<OpenObject, LoadError> {
    messages().clear();
    libbpf_rs::set_print(Some((PrintLevel::Info, keep_message)));
    ObjectBuilder::default().open_memory(object).map_err(refused)
}

pub fn load(object: OpenObject) -> Result<Object, LoadError> {
    object.load().map_err(refused)
}

/// The error, with what libbpf said last.
pub fn refused(error: libbpf_rs::Error) -> LoadError {
    LoadError::Refused(format!("{}\n{error}", last_messages()))
}

/// What libbpf says while it loads; where a program is refused, the verifier's log.
static MESSAGES: Mutex<String> = Mutex::new(String::new());

fn messages() -> MutexGuard<'static, String> {
    MESSAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep_message(_: PrintLevel, message: String) {
    messages().push_str(&message);
}

/// The end of [`MESSAGES`], where a verifier's log gives its reason.
fn last_messages() -> String {
    let messages = messages();
    let lines: Vec<&str> = messages.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// How many instructions the verifier followed in a loaded program.
pub fn verified_instructions(program: impl AsFd) -> u32 {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of::<libbpf_sys::bpf_prog_info>() as u32;
    let fd = program.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes of `info`, which asks for no arrays.
    let status =
        unsafe { libbpf_sys::bpf_obj_get_info_by_fd(fd, (&raw mut info).cast(), &raw mut length) };
    assert_eq!(status, 0, "information about a loaded program");
    info.verified_insns
}
