//! What a line is that gives no record.

use super::losses::{Losses, Malformed};

/// Why a line gives no record.
#[derive(Debug)]
pub(super) enum Skip {
    /// `# ...`, which may belong to the header.
    Comment,
    /// What tools print besides: a banner, a line of a call stack.
    NoEvent,
    UnknownEvent,
    /// It names a CPU that the policies have no room for.
    CpuOutOfRange,
    Malformed(Malformed),
}

pub(super) fn cpu_in_range(cpu: u64) -> Result<u32, Skip> {
    match cpu < Losses::NR_CPUS.into() {
        true => Ok(cpu as u32),
        false => Err(Skip::CpuOutOfRange),
    }
}

impl From<Malformed> for Skip {
    fn from(malformed: Malformed) -> Self {
        Skip::Malformed(malformed)
    }
}
