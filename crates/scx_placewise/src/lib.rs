//! The policy's BPF build, loaded into the running kernel.
//!
//! [`KernelPolicy`] holds the programs of `policy.bpf.c` and the arena with
//! their state, and runs them by the names of their entry points. It needs
//! root, a kernel with BPF arenas and its BTF, and a clang for BPF when this
//! crate is built; where one is missing, [`LoadError::Unavailable`] says which.

pub mod exit;
pub mod figures;
pub mod hint;
pub mod pins;
pub mod report;

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::{MapType, Object, ObjectBuilder, PrintLevel, Program};
use placewise_policy::State;

mod arena;
pub mod scheduler;

/// Why the policy is not in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Something is missing here that BPF needs.
    #[error("{0}")]
    Unavailable(String),
    /// The verifier does not accept a program: a defect of the policy.
    #[error("the kernel refused the policy:\n{0}")]
    Refused(String),
}

/// A walk over the levels or CPUs to balance, as words; no kind of walk has more.
pub type Walk = [u64; 5];

/// Arguments and result of one call; mirrors `struct call` of `policy.bpf.c`.
#[repr(C)]
struct Call {
    state: *mut State,
    argument: [u64; 5],
    result: u64,
    walk: Walk,
}

/// How many wakeups [`KernelPolicy::wakeups`] holds.
pub const NR_WAKEUPS: usize = 8192;

/// A wakeup on `cpu` of a task that last ran on `prev`, and the CPU that was chosen for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Wakeup {
    pub task: u32,
    pub prev: u32,
    pub cpu: u32,
    pub chosen: u32,
}

/// What the arena holds.
#[repr(C)]
struct Memory {
    state: State,
    wakeups: [Wakeup; NR_WAKEUPS],
}

/// The policy's BPF programs and their state.
pub struct KernelPolicy {
    programs: Vec<(String, OwnedFd)>,
    memory: NonNull<Memory>,
    _object: Object, // unmaps the arena when it is dropped
}

// SAFETY: nothing in it belongs to the thread that loaded it.
unsafe impl Send for KernelPolicy {}

#[cfg(bpf_object)]
fn object() -> Result<&'static [u8], LoadError> {
    Ok(include_bytes!(concat!(env!("OUT_DIR"), "/policy.bpf.o")))
}

#[cfg(not(bpf_object))]
fn object() -> Result<&'static [u8], LoadError> {
    Err(LoadError::Unavailable(env!("BPF_OBJECT_MISSING").to_string()))
}

/// What libbpf says while it loads; where a program is refused, the verifier's log.
static MESSAGES: Mutex<String> = Mutex::new(String::new());

fn keep_message(_: PrintLevel, message: String) {
    MESSAGES.lock().unwrap_or_else(PoisonError::into_inner).push_str(&message);
}

/// The last lines of [`MESSAGES`], where a verifier's log gives its reason.
fn last_messages() -> String {
    let messages = MESSAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let lines: Vec<&str> = messages.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// May this process load programs into this kernel at all?
fn check_kernel() -> Result<(), LoadError> {
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

impl KernelPolicy {
    /// Loads every program; the state starts as all zeros.
    pub fn load() -> Result<Self, LoadError> {
        let object = object()?;
        check_kernel()?;
        libbpf_rs::set_print(Some((PrintLevel::Info, keep_message)));
        let object = ObjectBuilder::default()
            .open_memory(object)
            .and_then(|object| object.load())
            .map_err(|error| LoadError::Refused(format!("{}\n{error}", last_messages())))?;
        Ok(KernelPolicy {
            programs: programs(&object),
            memory: arena::mapping(&object).0.cast(),
            _object: object,
        })
    }

    /// The names of the entry points.
    pub fn entry_points(&self) -> impl Iterator<Item = &str> {
        self.programs.iter().map(|(name, _)| name.as_str())
    }

    /// The state that the programs work on.
    pub fn state(&mut self) -> &mut State {
        // SAFETY: the arena stays mapped as long as the object lives, programs
        // run only inside `call`, and all-zero bytes are a valid State.
        unsafe { &mut self.memory.as_mut().state }
    }

    /// The wakeups that the entry point `decide_wakeups` decides, at the time that is its argument.
    /// `decide_nothing` does all the rest of what that one does: they are there to be timed.
    pub fn wakeups(&mut self) -> &mut [Wakeup; NR_WAKEUPS] {
        // SAFETY: as above; all-zero bytes are valid Wakeups.
        unsafe { &mut self.memory.as_mut().wakeups }
    }

    /// Runs an entry point; `arguments` are those after the state and the walk.
    pub fn call(&mut self, entry_point: &str, arguments: &[u64], walk: Option<&mut Walk>) -> u64 {
        let mut no_walk = Walk::default();
        let walk = walk.unwrap_or(&mut no_walk);
        let state: *mut State = self.memory.as_ptr().cast();
        let mut call = Call { state, argument: [0; 5], result: 0, walk: *walk };
        call.argument[..arguments.len()].copy_from_slice(arguments);
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
            ctx_in: (&raw mut call).cast(),
            ctx_size_in: size_of::<Call>() as u32,
            ..Default::default()
        };
        let fd = self.program(entry_point);
        // SAFETY: the context is a live Call, which is what every program takes.
        let status = unsafe { libbpf_sys::bpf_prog_test_run_opts(fd, &raw mut options) };
        assert_eq!(status, 0, "BPF_PROG_RUN of {entry_point}");
        *walk = call.walk;
        call.result
    }

    /// How many instructions the verifier followed in an entry point.
    pub fn verified_instructions(&self, entry_point: &str) -> u32 {
        self.information(entry_point).verified_insns
    }

    fn information(&self, entry_point: &str) -> libbpf_sys::bpf_prog_info {
        information(self.program(entry_point))
    }

    fn program(&self, entry_point: &str) -> i32 {
        let named = |(name, _): &&(String, OwnedFd)| name == entry_point;
        let (_, fd) = self.programs.iter().find(named).expect("an entry point of the policy");
        fd.as_raw_fd()
    }
}

/// What the kernel says of a loaded program.
fn information(program: i32) -> libbpf_sys::bpf_prog_info {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of::<libbpf_sys::bpf_prog_info>() as u32;
    // SAFETY: the kernel writes at most `length` bytes of `info`, which asks for no arrays.
    let status = unsafe {
        libbpf_sys::bpf_obj_get_info_by_fd(program, (&raw mut info).cast(), &raw mut length)
    };
    assert_eq!(status, 0, "information about a loaded program");
    info
}

/// The programs by entry point, with file descriptors of their own.
fn programs(object: &Object) -> Vec<(String, OwnedFd)> {
    let named = |program: Program<'_>| {
        let name = program.name().to_string_lossy().trim_end_matches("_call").to_string();
        let fd = program.as_fd().try_clone_to_owned().expect("a file descriptor is free");
        (name, fd)
    };
    object.progs().map(named).collect()
}
