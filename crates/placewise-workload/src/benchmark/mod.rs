//! The benchmarks there are models of: each is one module that ends in one [`Model`];
//! [`libgomp`] is what those with OpenMP share, [`gate`] what those do whose tasks are let go at once.

mod context_switch1;
mod dbench;
mod gate;
mod hackbench;
mod herd;
mod libgomp;
mod lu;
mod netperf;
mod pgbench;
mod schbench;
mod schbench2;
mod schedpipe;
mod stream;
mod tbench;

use crate::model::Model;

/// In the order of lists.
pub(crate) const BENCHMARKS: &[&Model] = &[
    &hackbench::MODEL,
    &schbench::MODEL,
    &schbench2::MODEL,
    &schedpipe::MODEL,
    &context_switch1::MODEL,
    &herd::MODEL,
    &netperf::MODEL,
    &tbench::MODEL,
    &pgbench::MODEL,
    &dbench::MODEL,
    &stream::MODEL,
    &lu::MODEL,
];
