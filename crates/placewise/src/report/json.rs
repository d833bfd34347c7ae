//! The whole comparison for programs: the fields of [`Comparison`] as they stand.
//!
//! A figure that could not be had is null; `significant` is null for the first policy and where
//! one run cannot tell.

use crate::comparison::Comparison;

pub fn render(comparison: &Comparison) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(comparison)? + "\n")
}
