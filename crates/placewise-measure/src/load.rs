//! The loads, by what they load.

mod absence;
mod caches;
mod calls;
pub mod clock;
mod memory;
mod tasks;
pub mod wakeups;

use std::io;

use crate::batches::Load;
use crate::place::{Places, stay_on};

/// Loads for all that can be measured on these CPUs. The calling thread stays on one of them.
pub fn all(places: &Places, nr_llcs: usize) -> io::Result<Vec<Load>> {
    stay_on(places.home)?;
    let mut loads = calls::loads()?;
    loads.extend(absence::loads(places)?);
    loads.extend(tasks::loads(places)?);
    loads.extend(wakeups::loads(places)?);
    loads.extend(caches::loads(places)?);
    loads.extend(memory::loads(places, nr_llcs)?);
    Ok(loads)
}
