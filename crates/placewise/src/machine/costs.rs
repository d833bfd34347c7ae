//! Cost figures as JSON.

use placewise_machine::Machine;
use serde_json::Value;

/// The costs in the form of a machine file.
pub fn costs_with_sources(machine: &Machine) -> anyhow::Result<serde_json::Map<String, Value>> {
    let values = serde_json::to_value(&machine.costs)?;
    let figure = |(name, source): (&String, &String)| {
        let figure = serde_json::json!({ "value": values[name.as_str()], "source": source });
        (name.clone(), figure)
    };
    Ok(machine.cost_sources.iter().map(figure).collect())
}
