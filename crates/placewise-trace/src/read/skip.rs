//! What a line is that gives no record.

use super::losses::Malformed;

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

impl From<Malformed> for Skip {
    fn from(malformed: Malformed) -> Self {
        Skip::Malformed(malformed)
    }
}
