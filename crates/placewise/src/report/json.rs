//! Everything, for programs: the fields of a value as they stand.
//!
//! A figure that could not be had is null; in a comparison `significant` is null for the first
//! policy and where one run cannot tell.

use serde::{Serialize, Serializer};

use super::foreign::in_json;

/// Of what is printed: keys are added under the same number; it grows when one is renamed or goes, or
/// means something else. `schemas/` has what they are.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Versioned<'a, T: ?Sized> {
    schema: u32,
    #[serde(flatten)]
    value: &'a T,
}

/// The `value` has to be an object.
pub fn render(value: &(impl Serialize + ?Sized)) -> anyhow::Result<String> {
    let value = Versioned { schema: SCHEMA, value };
    Ok(in_json(&serde_json::to_string_pretty(&value)?) + "\n")
}

/// A field that is what a command prints by itself.
pub fn whole<S: Serializer>(value: &impl Serialize, serializer: S) -> Result<S::Ok, S::Error> {
    Versioned { schema: SCHEMA, value }.serialize(serializer)
}

/// The same as a line of JSON Lines.
pub fn line(value: &impl Serialize) -> anyhow::Result<String> {
    let value = Versioned { schema: SCHEMA, value };
    Ok(in_json(&serde_json::to_string(&value)?) + "\n")
}
