//! What must hold of a run after each of its events, for tests.

pub mod invariants;
pub mod missed_idle;
