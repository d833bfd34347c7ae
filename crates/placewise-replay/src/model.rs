//! A recording as a model: what tasks of each class do next, given what they did last, and for how long.
//! A recording of any length is drawn of it, with more clients if asked for.
//!
//! ```text
//!   Recording ─> pairs.rs (peers.rs: of one class)   who calls whom, and when that is answered
//!        │  └──> answers.rs   each call has an answer
//!        └─────> learn.rs (chain.rs: what follows what) ─> draw.rs ─> Recording
//!                    fit.rs: how fast each class is in it
//! ```
//!
//! **A class** is the tasks of one name that mostly sleep for the same: tasks of a name, arrivals, or a while. Of each
//! class: a Markov chain over what its tasks do (its state is the last two of these, and how many calls are not
//! answered), and how long it took, for each that follows another.
//! Of each task that was there: its class, whom it wakes, and whom it owed an answer as the trace began.
//!
//! A task does first what it did first, in its order, and then what its class does: so starting up is no
//! matter of chances, nor is what did too little to tell any.
//!
//! **Kept**: who answers whom, so that closed loops stay closed; intervals of arrivals, lengths of sleeps;
//! forks, and what a child does until it exits. **Lost**: what depends on more than the last two things
//! that a task did, phases of the whole load above all; that two tasks do the same at the same time.

mod act;
mod answers;
mod chain;
mod draw;
mod fit;
mod learn;
mod pairs;
mod peers;

pub use draw::Draw;
pub use learn::Model;
