//! Measures what things cost on the running host: micro-loads, pinned to pairs of CPUs at each distance,
//! and the cost figures of a machine file that follow from them.
//!
//! A figure of a machine file is what the simulator charges for a step, and few steps can be timed alone:
//! most follow from differences ([`costs`]). What cannot be told apart keeps the figure that the machine
//! has borrowed, and says so.
//!
//! Apart from that, [`heap`] is what the speed of a simulation is held against.
//!
//! Limits: scanning and ticks are not measured, of load balancing only how long a pass may be held up, and
//! neither is what an idle LLC adds to the exit of an idle state; distances are taken from one CPU only.

pub mod batches;
pub mod costs;
pub mod heap;
mod load;
pub mod others;
mod partner;
mod place;
pub mod quantity;
pub mod real;

use std::io;
use std::time::Duration;

use placewise_machine::Machine;

pub use crate::load::clock::hz;
use crate::place::Places;
use crate::quantity::Measurements;

/// Measures all that can be on `host`, in about `limit`; `tell` is told how much of that is done. The
/// calling thread stays on one CPU from then on.
pub fn measure(host: &Machine, limit: Duration, tell: impl FnMut(f64)) -> io::Result<Measurements> {
    let places = Places::of(host)?;
    batches::measure(load::all(&places, host.nr_llcs())?, limit, tell)
}

/// The CPU from which all is measured, and the nearest core's, if there is one.
pub fn neighbours(host: &Machine) -> io::Result<(usize, Option<usize>)> {
    let places = Places::of(host)?;
    Ok((places.home, places.nearest().map(|(_, cpu)| cpu)))
}
