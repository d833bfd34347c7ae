//! Everything, for programs: the fields of a value as they stand.
//!
//! A figure that could not be had is null; in a comparison `significant` is null for the first
//! policy and where one run cannot tell.

use serde::Serialize;

use super::foreign::in_json;

pub fn render(value: &(impl Serialize + ?Sized)) -> anyhow::Result<String> {
    Ok(in_json(&serde_json::to_string_pretty(value)?) + "\n")
}
