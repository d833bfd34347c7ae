//! The scheduler core by what must hold of it, and by cases of each rule.

mod properties;
mod sleepers;
