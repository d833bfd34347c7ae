//! The scheduler core by what must hold of it, and by cases of each rule.

mod groups;
mod knobs;
mod patches;
mod properties;
mod sleepers;
mod world;
