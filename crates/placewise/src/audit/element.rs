//! What stands in a list is named by what it is of, not by its rank: that changes from trace to trace.

use serde_json::Value;

/// The fields that tell the elements of a list apart, in this order.
const NAMES: [&str; 10] =
    ["pid", "name", "distance", "waker", "wakee", "target", "search", "task", "cause", "policy"];

/// `hackbench`, `1204/hackbench`; of equal ones the second is `hackbench#2`. What has no name has its
/// place.
pub fn names(list: &[Value]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (at, element) in list.iter().enumerate() {
        let fields = NAMES.iter().filter_map(|field| element.get(field));
        let texts = fields.filter_map(|field| match field {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        });
        let name = texts.collect::<Vec<_>>().join("/");
        let name = if name.is_empty() { at.to_string() } else { name };
        let numbered = |number: usize| match number {
            1 => name.clone(),
            _ => format!("{name}#{number}"),
        };
        let free = (1..).map(numbered).find(|name| !names.contains(name));
        names.push(free.expect("there is always a next number"));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn elements_are_named_by_what_they_are_of() {
        let list = json!([
            { "count": 3, "name": "seq" },
            { "name": "sort", "pid": 12 },
            { "name": "seq" },
            { "search": "core", "target": "prev" },
            "a line"
        ]);
        let expected = ["seq", "12/sort", "seq#2", "prev/core", "4"];
        assert_eq!(names(list.as_array().unwrap()), expected);
    }
}
