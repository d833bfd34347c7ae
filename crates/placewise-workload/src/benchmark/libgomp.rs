//! What GNU's OpenMP runtime decides for every benchmark that uses it: how long a thread that waits at
//! a barrier spins before it sleeps.

use crate::parameter::{Parameter, Settings};
use crate::program::Nanos;

pub(super) const SPIN_COUNT: Parameter = Parameter::integer(
    "spin_count",
    300_000,
    1,
    1_000_000_000,
    "",
    "rounds that a thread spins at a barrier before it sleeps (GOMP_SPINCOUNT)",
);

/// A round of spinning is a load, a compare and a pause (assumed: some 60 cycles).
const SPIN_ROUND_NS: Nanos = 17;

pub(super) fn spin_ns(settings: &Settings) -> Nanos {
    settings.integer(SPIN_COUNT.name) * SPIN_ROUND_NS
}
