//! The policy's BPF programs, to be called like functions: for the differential test and the benchmark.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use libbpf_rs::{Object, Program};
use placewise_policy::{State, WALK_WORDS};

use crate::arena;
use crate::object::{self, LoadError};
use crate::shared::{self, Call, Memory, WakeupToDecide};

/// A walk over the levels or CPUs to balance, as words.
pub type Walk = [u64; WALK_WORDS as usize];

/// How many wakeups [`KernelPolicy::wakeups`] holds.
pub const NR_WAKEUPS: usize = shared::NR_WAKEUPS as usize;

/// The policy's BPF programs and their state.
pub struct KernelPolicy {
    programs: Vec<(String, OwnedFd)>,
    memory: NonNull<Memory>,
    _object: Object, // unmaps the arena when it is dropped
}

// SAFETY: nothing in it belongs to the thread that loaded it.
unsafe impl Send for KernelPolicy {}

impl KernelPolicy {
    /// Loads every program; the state starts as all zeros.
    pub fn load() -> Result<Self, LoadError> {
        let built = object::built()?;
        object::check_kernel()?;
        let object = object::load(object::open(built.policy)?)?;
        Ok(KernelPolicy {
            programs: programs(&object),
            memory: arena::mapping(&object),
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
    pub fn wakeups(&mut self) -> &mut [WakeupToDecide; NR_WAKEUPS] {
        // SAFETY: as above; all-zero bytes are valid there.
        unsafe { &mut self.memory.as_mut().wakeup }
    }

    /// Runs an entry point; `arguments` are those after the state and the walk.
    pub fn call(&mut self, entry_point: &str, arguments: &[u64], walk: Option<&mut Walk>) -> u64 {
        let mut no_walk = Walk::default();
        let walk = walk.unwrap_or(&mut no_walk);
        let st: *mut State = self.memory.as_ptr().cast();
        let mut call = Call { st, argument: [0; 5], result: 0, walk: *walk };
        call.argument[..arguments.len()].copy_from_slice(arguments);
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
            ctx_in: (&raw mut call).cast(),
            ctx_size_in: size_of::<Call>() as u32,
            ..Default::default()
        };
        let fd = self.program(entry_point).as_raw_fd();
        // SAFETY: the context is a live Call, which is what every program takes.
        let status = unsafe { libbpf_sys::bpf_prog_test_run_opts(fd, &raw mut options) };
        assert_eq!(status, 0, "BPF_PROG_RUN of {entry_point}");
        *walk = call.walk;
        call.result
    }

    /// How many instructions the verifier followed in an entry point.
    pub fn verified_instructions(&self, entry_point: &str) -> u32 {
        object::verified_instructions(self.program(entry_point))
    }

    fn program(&self, entry_point: &str) -> BorrowedFd<'_> {
        let named = |(name, _): &&(String, OwnedFd)| name == entry_point;
        let (_, fd) = self.programs.iter().find(named).expect("an entry point of the policy");
        fd.as_fd()
    }
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
