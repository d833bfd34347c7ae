//! What the hardware counts while this thread runs in user space, where the kernel lets it count:
//! many virtual machines have no such counters, and `kernel.perf_event_paranoid` may forbid them.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

/// The first version of `struct perf_event_attr`, which all kernels know.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_COUNT_HW_CPU_CYCLES: u64 = 0;
const PERF_COUNT_HW_INSTRUCTIONS: u64 = 1;
const PERF_COUNT_HW_CACHE_MISSES: u64 = 3;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;

/// Counters that run.
pub struct Counters {
    instructions: File,
    cycles: File,
    cache_misses: File,
}

/// What they have come to.
#[derive(Clone, Copy)]
pub struct Counts {
    pub instructions: u64,
    pub cycles: u64,
    pub cache_misses: u64,
}

impl Counters {
    /// Of this thread, from now on.
    pub fn start() -> io::Result<Counters> {
        Ok(Counters {
            instructions: counter(PERF_COUNT_HW_INSTRUCTIONS)?,
            cycles: counter(PERF_COUNT_HW_CPU_CYCLES)?,
            cache_misses: counter(PERF_COUNT_HW_CACHE_MISSES)?,
        })
    }

    pub fn stop(self) -> io::Result<Counts> {
        Ok(Counts {
            instructions: count(self.instructions)?,
            cycles: count(self.cycles)?,
            cache_misses: count(self.cache_misses)?,
        })
    }
}

fn counter(config: u64) -> io::Result<File> {
    let attributes = Attributes {
        kind: PERF_TYPE_HARDWARE,
        size: size_of::<Attributes>() as u32,
        config,
        flags: EXCLUDE_KERNEL | EXCLUDE_HV,
        ..Attributes::default()
    };
    let (this_thread, any_cpu, no_group, close_on_exec) = (0, -1, -1, 8);
    // SAFETY: the kernel reads `size` bytes of the attributes, and they are there.
    let number = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            this_thread,
            any_cpu,
            no_group,
            close_on_exec,
        )
    };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(number as i32) })
}

fn count(mut counter: File) -> io::Result<u64> {
    let mut count = [0; 8];
    counter.read_exact(&mut count)?;
    Ok(u64::from_ne_bytes(count))
}
