//! A trace as the steps of an audit: who is who ([`task`]), what happened ([`step`]), how each
//! wakeup ended ([`timeline`]), and when idle CPUs went on where that is not traced (`idle_exits`).

pub mod by_name;
pub mod by_number;
pub mod by_pair;
mod idle_exits;
pub mod selection;
pub mod step;
pub mod task;
pub mod timeline;
pub mod wakeup;
