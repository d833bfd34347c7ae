//! A trace as the steps of an audit: who is who ([`task`]), what happened ([`step`]), and how each
//! wakeup ended ([`timeline`]).

pub mod by_name;
pub mod by_number;
pub mod by_pair;
pub mod selection;
pub mod step;
pub mod task;
pub mod timeline;
pub mod wakeup;
