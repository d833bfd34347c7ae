//! Reading machines. [`load`](mod@load) finds the importer of a machine that the user names; each
//! importer says where every CPU sits ([`shape`]) and where its cost figures come from
//! ([`costs_of_file`]).

pub(crate) mod cost_bounds;
mod costs_of_file;
mod cpu_kinds;
pub(crate) mod cpu_lists;
pub(crate) mod file;
mod host;
mod hwloc;
mod likeness;
pub mod load;
mod presets;
pub mod processor;
mod shape;
mod synthetic;
pub mod trace;

#[cfg(test)]
mod properties;
