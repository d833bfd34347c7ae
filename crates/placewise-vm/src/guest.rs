//! What is booted, where its time comes from, and which emulator that takes.

use crate::machine::Machine;

/// The emulator.
pub const QEMU: &str = "qemu-system-x86_64";
/// The one with CPUs that run side by side in virtual time.
pub const PARALLEL_QEMU: &str = "qemu-parallel-time";

/// A nanosecond per instruction; idle time passes at once.
const BY_INSTRUCTIONS: &[&str] =
    &["-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm"];

/// What is booted, and what it does then.
pub struct Guest {
    /// Series, such as 6.18.
    pub kernel: String,
    pub machine: Machine,
    pub clock: Clock,
    /// Programs that the script needs, besides those of busybox.
    pub programs: Vec<String>,
    pub script: String,
    /// Of the host's time, from start to power off.
    pub limit_seconds: u64,
}

/// Where the guest's time comes from: all but the host's make runs slower.
#[derive(Clone, Copy, PartialEq)]
pub enum Clock {
    Host,
    /// The number of instructions, all CPUs' together. Runs are the same until a device of the emulator, which
    /// has a thread of its own, is early or late.
    Instructions,
    /// Each CPU's own, so that CPUs run side by side: takes a QEMU of scripts/build-qemu.sh.
    Parallel {
        seed: u32,
    },
}

impl Clock {
    pub fn qemu_arguments(self) -> Vec<String> {
        let seed = match self {
            Self::Host => return Vec::new(),
            Self::Instructions => 42,
            Self::Parallel { seed } => seed,
        };
        let seed = ["-seed".to_owned(), seed.to_string()];
        BY_INSTRUCTIONS.iter().map(|&word| word.to_owned()).chain(seed).collect()
    }

    /// The name of the emulator that it takes.
    pub fn qemu(self) -> &'static str {
        match self {
            Self::Parallel { .. } => PARALLEL_QEMU,
            Self::Host | Self::Instructions => QEMU,
        }
    }
}
