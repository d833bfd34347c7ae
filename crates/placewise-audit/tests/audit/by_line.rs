//! The audit of traces that are written by hand: what is a placement, what it saw, what is inferred,
//! and what becomes of traces that no kernel writes.

mod adversarial;
mod inferred;
mod script;
mod state;
mod wakeups;
