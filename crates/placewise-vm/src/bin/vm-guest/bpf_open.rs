//! Asks the kernel for a BPF object by its id, as one who wants to write a map or detach a
//! scheduler would, and says what it answers.

use std::ffi::{c_int, c_uint};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Open a BPF object by id: `errno`, or `errno none`
#[derive(clap::Args)]
pub struct BpfOpenArgs {
    object: Object,
    id: u32,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Object {
    Map,
    Link,
}

impl Object {
    /// BPF_MAP_GET_FD_BY_ID, BPF_LINK_GET_FD_BY_ID of linux/bpf.h.
    fn command(self) -> c_int {
        match self {
            Self::Map => 14,
            Self::Link => 30,
        }
    }
}

/// Of `union bpf_attr`, what these commands read.
#[repr(C)]
struct GetFdById {
    id: u32,
    next_id: u32,
    open_flags: u32,
}

pub fn run(args: &BpfOpenArgs) -> anyhow::Result<()> {
    match open(args) {
        Ok(_) => println!("errno none"),
        Err(error) => println!("errno {}", name(&error)),
    }
    Ok(())
}

fn open(args: &BpfOpenArgs) -> io::Result<OwnedFd> {
    let attributes = GetFdById { id: args.id, next_id: 0, open_flags: 0 };
    let size = size_of::<GetFdById>() as c_uint;
    // SAFETY: bpf() reads `size` bytes of the attributes and keeps no pointer to them.
    let fd =
        unsafe { libc::syscall(libc::SYS_bpf, args.object.command(), &raw const attributes, size) };
    match c_int::try_from(fd) {
        // SAFETY: bpf() returned a new descriptor, which nobody else owns.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn name(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM) => "EPERM".into(),
        Some(libc::EACCES) => "EACCES".into(),
        Some(libc::ENOENT) => "ENOENT".into(),
        _ => error.to_string().replace(' ', "_"),
    }
}
