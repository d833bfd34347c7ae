//! JSON as rt-app and workgen take it, read into a tree that knows where each value stands.
//!
//! Comments, trailing commas and equal keys in one object are allowed, and order is kept: a phase
//! is a sequence of events. Values nested deeper than rt-app files ever are get refused.

use std::ops::RangeInclusive;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions};

use crate::error::{WorkloadError, quoted, suggestion};

/// A value, its line and the keys that lead to it.
#[derive(Debug)]
pub(super) struct Node {
    place: Place,
    value: Value,
}

/// Where a value stands, for messages.
#[derive(Clone, Debug)]
pub(super) struct Place {
    line: usize,
    path: String,
}

#[derive(Debug)]
enum Value {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Text(String),
    /// As written: whether it is a whole number in range is asked when its meaning is known.
    Number(String),
    Boolean(bool),
    Null,
}

/// A key of an object with its value.
#[derive(Debug)]
pub(super) struct Member {
    pub key: String,
    pub node: Node,
}

impl Place {
    pub fn wrong(&self, problem: impl Into<String>) -> WorkloadError {
        let place = match self.path.as_str() {
            "" => format!("line {}", self.line),
            path => format!("line {}, {path}", self.line),
        };
        WorkloadError::new(place, problem)
    }
}

impl Node {
    pub fn place(&self) -> &Place {
        &self.place
    }

    pub fn wrong(&self, problem: impl Into<String>) -> WorkloadError {
        self.place.wrong(problem)
    }

    pub fn members(&self) -> Result<&[Member], WorkloadError> {
        match &self.value {
            Value::Object(members) => Ok(members),
            _ => Err(self.expected("an object { ... }")),
        }
    }

    pub fn elements(&self) -> Result<&[Node], WorkloadError> {
        match &self.value {
            Value::Array(elements) => Ok(elements),
            _ => Err(self.expected("an array [ ... ]")),
        }
    }

    pub fn text(&self) -> Result<&str, WorkloadError> {
        match &self.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.expected("a string")),
        }
    }

    /// A string that names something, so not the empty one.
    pub fn name(&self) -> Result<&str, WorkloadError> {
        match self.text()? {
            "" => Err(self.expected("a name")),
            name => Ok(name),
        }
    }

    pub fn boolean(&self) -> Result<bool, WorkloadError> {
        match self.value {
            Value::Boolean(value) => Ok(value),
            _ => Err(self.expected("true or false")),
        }
    }

    /// A whole number in a range; `unit` names its unit, or is empty.
    pub fn integer(&self, range: RangeInclusive<i64>, unit: &str) -> Result<i64, WorkloadError> {
        let number = match &self.value {
            Value::Number(text) => text.parse().ok(),
            _ => None,
        };
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            let expected =
                format!("a whole number from {} to {} {unit}", range.start(), range.end());
            self.expected(expected.trim_end())
        })
    }

    fn expected(&self, what: &str) -> WorkloadError {
        self.wrong(format!("expected {what}, found {}", self.value.describe()))
    }
}

impl Value {
    fn describe(&self) -> String {
        match self {
            Value::Object(_) => "an object".to_string(),
            Value::Array(_) => "an array".to_string(),
            Value::Text(text) => format!("the string {}", quoted(text)),
            Value::Number(text) => quoted(text),
            Value::Boolean(value) => value.to_string(),
            Value::Null => "null".to_string(),
        }
    }
}

impl Member {
    /// The value of a key that may stand in its object once; `earlier` is what was found before.
    pub fn only<'a>(&'a self, earlier: Option<&Node>) -> Result<&'a Node, WorkloadError> {
        match earlier {
            None => Ok(&self.node),
            Some(earlier) => {
                let line = earlier.place.line;
                Err(self
                    .node
                    .wrong(format!("this key stands on line {line} already; keep one of the two")))
            }
        }
    }

    pub fn unknown(&self, known: &[&str]) -> WorkloadError {
        self.node.wrong(format!("unknown key; {}", suggestion(&self.key, known)))
    }
}

/// Reads a text; anything but one JSON value is refused.
pub(super) fn parse(text: &str) -> Result<Node, WorkloadError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &options).map_err(
        |error| {
            let place = format!("line {}, column {}", error.line_display(), error.column_display());
            WorkloadError::new(place, format!("not JSON: {}", one_line(&error.kind().to_string())))
        },
    )?;
    match parsed.value {
        Some(value) => Lines::of(text).convert(value, String::new(), 0),
        None => {
            Err(WorkloadError::new("line 1", "expected a JSON object with a `tasks` object in it"))
        }
    }
}

/// Where the lines of a text start.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(std::iter::once(0).chain(ends.map(|(index, _)| index + 1)).collect())
    }

    /// Counted from 1.
    fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset)
    }

    fn convert(
        &self,
        value: ast::Value,
        path: String,
        depth: usize,
    ) -> Result<Node, WorkloadError> {
        const DEEPEST: usize = 8;
        let place = Place { line: self.line(value.range().start), path };
        if depth > DEEPEST {
            return Err(place.wrong("nested deeper than anything in an rt-app file"));
        }
        let value = match value {
            ast::Value::Object(object) => {
                let members = object.properties.into_iter();
                let members = members.map(|property| self.member(property, &place.path, depth));
                Value::Object(members.collect::<Result<_, _>>()?)
            }
            ast::Value::Array(array) => {
                let elements = array.elements.into_iter().enumerate();
                let elements = elements.map(|(index, element)| {
                    self.convert(element, format!("{}[{index}]", place.path), depth + 1)
                });
                Value::Array(elements.collect::<Result<_, _>>()?)
            }
            ast::Value::StringLit(text) => Value::Text(text.value.into_owned()),
            ast::Value::NumberLit(number) => Value::Number(number.value.to_string()),
            ast::Value::BooleanLit(boolean) => Value::Boolean(boolean.value),
            ast::Value::NullKeyword(_) => Value::Null,
        };
        Ok(Node { place, value })
    }

    fn member(
        &self,
        property: ast::ObjectProp,
        path: &str,
        depth: usize,
    ) -> Result<Member, WorkloadError> {
        let key = property.name.into_string();
        let shown = quoted(&key);
        let shown = shown.trim_matches('`');
        let path = match path {
            "" => shown.to_string(),
            path => format!("{path}.{shown}"),
        };
        let node = self.convert(property.value, path, depth + 1)?;
        Ok(Member { key, node })
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
