//! Translates the declarations of the policy headers to Rust.
//!
//! Understands just what those headers use: `#define NAME number`, enums with
//! optional values, and structs of integers, bools, enums, structs, arrays of
//! them, and pointers to the arena or to functions. Anything else inside a struct
//! is a build error, not a guess.

pub enum Item {
    Constant { name: String, value: String },
    Enum { name: String, values: Vec<Value> },
    Struct { name: String, fields: Vec<Field> },
}

pub struct Value {
    name: String,
    value: String,
    doc: Option<String>,
}

pub struct Field {
    name: String,
    rust_type: String,
    doc: Option<String>,
}

pub fn parse(headers: &str) -> Vec<Item> {
    parse_some(headers, |_| true)
}

/// Only declarations with names that are wanted; what else stands there need not be understood.
pub fn parse_some(headers: &str, wanted: impl Fn(&str) -> bool) -> Vec<Item> {
    let mut items = Vec::new();
    let mut lines = headers.lines();
    while let Some(line) = lines.next() {
        let item = if let Some(name) = block_name(line, "enum ").filter(|name| wanted(name)) {
            Some(parse_enum(name, &block_body(&mut lines)))
        } else if let Some(name) = block_name(line, "struct ").filter(|name| wanted(name)) {
            Some(parse_struct(name, &block_body(&mut lines)))
        } else {
            parse_define(line, &wanted)
        };
        items.extend(item);
    }
    items
}

/// `#define NAME expression` where the expression is made of numbers and names.
fn parse_define(line: &str, wanted: impl Fn(&str) -> bool) -> Option<Item> {
    let (name, value) = line.strip_prefix("#define ")?.split_once(' ')?;
    let value = value.split("/*").next()?.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_ ()/*+-<".contains(c);
    let ours = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if !ours || !wanted(name) || value.is_empty() || !value.chars().all(plain) {
        return None;
    }
    let value = match value {
        "U32_MAX" => "u32::MAX".to_string(),
        other => other.trim_end_matches("ULL").to_string(),
    };
    Some(Item::Constant { name: name.to_string(), value })
}

fn block_name<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    line.strip_prefix(keyword)?.strip_suffix(" {")
}

fn block_body<'a>(lines: &mut impl Iterator<Item = &'a str>) -> String {
    lines
        .take_while(|line| !line.starts_with('}'))
        .fold(String::new(), |body, line| body + line + "\n")
}

/// Splits at `end`, keeping for each piece the comment that follows it on its line.
fn declarations(body: &str, end: char) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    let mut rest = body;
    let mut text = String::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("/*") {
            let (comment, tail) = after.split_once("*/").expect("comments are closed");
            let trailing = text.trim().is_empty().then(|| found.last_mut()).flatten();
            if let Some((_, doc @ None)) = trailing {
                let comment: Vec<&str> = comment.split_whitespace().collect();
                *doc = Some(comment.join(" "));
            }
            rest = tail;
            continue;
        }
        let c = rest.chars().next().expect("not empty");
        if c == end {
            found.push((std::mem::take(&mut text).trim().to_string(), None));
        } else {
            text.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    if !text.trim().is_empty() {
        found.push((text.trim().to_string(), None));
    }
    found
}

fn parse_enum(name: &str, body: &str) -> Item {
    let mut values: Vec<Value> = Vec::new();
    for (text, doc) in declarations(body, ',') {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name.trim().to_string(), value.trim().to_string()),
            None => match values.last() {
                Some(previous) => (text, format!("{} + 1", previous.name)),
                None => (text, "0".to_string()),
            },
        };
        values.push(Value { name, value, doc });
    }
    Item::Enum { name: name.to_string(), values }
}

fn parse_struct(name: &str, body: &str) -> Item {
    let mut fields = Vec::new();
    for (text, doc) in declarations(body, ';') {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(field) = pointer(&text, doc.as_deref()) {
            fields.push(field);
            continue;
        }
        let (base, names) = split_type(&text);
        let mut doc = doc;
        for declarator in names.split(',') {
            let (field, dimensions) = split_array(declarator.trim());
            let rust_type = dimensions
                .iter()
                .rev()
                .fold(rust_type(base), |element, size| array_of(&element, size));
            fields.push(Field { name: field.to_string(), rust_type, doc: doc.take() });
        }
    }
    Item::Struct { name: name.to_string(), fields }
}

/// `struct state __arena *st`, or `void (*enqueue)(...)`: Rust calls none of those.
fn pointer(text: &str, doc: Option<&str>) -> Option<Field> {
    let (name, rust_type) = match text.split_once(" (*") {
        Some((_, rest)) => (rest.split(')').next()?, "*const ()".to_string()),
        None => {
            let (base, name) = text.split_once(" __arena *")?;
            (name, format!("*mut {}", rust_type(base)))
        }
    };
    Some(Field { name: name.to_string(), rust_type, doc: doc.map(str::to_string) })
}

/// `struct sched_avg avg` is of type `struct sched_avg`, `u32 a, b` of type `u32`.
fn split_type(text: &str) -> (&str, &str) {
    let words = if text.starts_with("struct ") || text.starts_with("enum ") { 2 } else { 1 };
    let at = text
        .match_indices(' ')
        .nth(words - 1)
        .unwrap_or_else(|| panic!("not a declaration: {text}"))
        .0;
    (&text[..at], &text[at + 1..])
}

/// A size that is a number needs no cast.
fn array_of(element: &str, size: &str) -> String {
    match size.chars().all(|c| c.is_ascii_digit()) {
        true => format!("[{element}; {size}]"),
        false => format!("[{element}; ({size}) as usize]"),
    }
}

fn split_array(declarator: &str) -> (&str, Vec<&str>) {
    let mut parts = declarator.split('[');
    let name = parts.next().expect("split yields one piece at least");
    (name, parts.map(|size| size.trim_end_matches(']')).collect())
}

pub fn rust_type(c_type: &str) -> String {
    match c_type {
        "u8" | "u16" | "u32" | "u64" | "bool" => c_type.to_string(),
        "char" => "u8".to_string(),
        "s32" => "i32".to_string(),
        "s64" => "i64".to_string(),
        other => match other.split_once(' ') {
            Some(("enum", _)) => "u32".to_string(),
            Some(("struct", name)) => camel(name),
            _ => panic!("no Rust type for the C type {other}"),
        },
    }
}

pub fn camel(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// `derived` are the traits of a struct.
pub fn to_rust(items: &[Item], derived: impl Fn(&str) -> &'static str) -> String {
    items.iter().map(|item| item.to_rust(&derived)).collect()
}

impl Item {
    fn to_rust(&self, derived: impl Fn(&str) -> &'static str) -> String {
        match self {
            Item::Constant { name, value } => format!("pub const {name}: u32 = {value};\n"),
            Item::Enum { name, values } => {
                let values = values.iter().map(|Value { name, value, doc }| {
                    format!("{}pub const {name}: u32 = {value};\n", doc_comment(doc))
                });
                let values: String = values.collect();
                format!("/// One of `enum {name}`.\npub type {} = u32;\n{values}", camel(name))
            }
            Item::Struct { name, fields } => {
                let fields = fields.iter().map(|Field { name, rust_type, doc }| {
                    format!("    {}pub {name}: {rust_type},\n", doc_comment(doc))
                });
                let (fields, derived): (String, _) = (fields.collect(), derived(name));
                format!(
                    "/// `struct {name}`.\n#[repr(C)]\n#[derive({derived})]\npub struct {} {{\n{fields}}}\n",
                    camel(name)
                )
            }
        }
    }
}

fn doc_comment(doc: &Option<String>) -> String {
    let escaped = |doc: &String| doc.replace('[', "\\[").replace('<', "\\<");
    doc.as_ref().map(|doc| format!("/// {}\n", escaped(doc))).unwrap_or_default()
}

/// The names of an enum's values, without their number, and what the C says they mean.
pub fn meanings<'a>(items: &'a [Item], wanted: &str) -> Vec<(&'a str, &'a str)> {
    let values = items.iter().find_map(|item| match item {
        Item::Enum { name, values } if name == wanted => Some(values),
        _ => None,
    });
    let values = values.unwrap_or_else(|| panic!("enum {wanted} is not declared"));
    let named = values.iter().filter(|value| !value.name.starts_with("NR_"));
    let meaning = |Value { name, doc, .. }: &'a Value| match doc {
        Some(doc) => (name.as_str(), doc.as_str()),
        None => panic!("enum {wanted}: {name} has no comment that says what it means"),
    };
    named.map(meaning).collect()
}

/// A macro that hands an enum to another one, to make a Rust enum of it.
pub fn to_enum_macro(items: &[Item], name: &str) -> String {
    let values = meanings(items, name).into_iter().map(|(value, meaning)| {
        let word = value.to_lowercase();
        format!("            {} = {word:?}: {meaning:?},\n", camel(&word))
    });
    let values: String = values.collect();
    format!(
        "macro_rules! for_each_{name} {{\n    ($expand:ident) => {{\n        \
         $expand! {{\n{values}        }}\n    }};\n}}\n"
    )
}

/// What rustc makes of the structs and enums, to be compared.
pub fn to_rust_layout_table(items: &[Item]) -> String {
    let mut out = String::from("pub(crate) const RUST_LAYOUT: &[(&str, usize)] = &[\n");
    for_each_agreed(items, |agreed| {
        let (name, value) = match agreed {
            Agreed::Size(of) => (of.to_string(), format!("size_of::<{}>()", camel(of))),
            Agreed::Offset(of, field) => {
                let offset = format!("std::mem::offset_of!({}, {field})", camel(of));
                (format!("{of}.{field}"), offset)
            }
            Agreed::Value(name) => (name.to_string(), format!("{name} as usize")),
        };
        out.push_str(&format!("    ({name:?}, {value}),\n"));
    });
    out + "];\n"
}

/// What the C compiler makes of the same.
pub fn to_layout_table(items: &[Item]) -> String {
    let mut out = String::from("static const unsigned long layout[] = {\n");
    for_each_agreed(items, |agreed| {
        let value = match agreed {
            Agreed::Size(of) => format!("sizeof(struct {of})"),
            Agreed::Offset(of, field) => format!("__builtin_offsetof(struct {of}, {field})"),
            Agreed::Value(name) => name.to_string(),
        };
        out.push_str(&format!("\t{value},\n"));
    });
    out + "};\n"
}

/// A number in which Rust and C have to agree.
enum Agreed<'a> {
    Size(&'a str),
    Offset(&'a str, &'a str),
    Value(&'a str),
}

fn for_each_agreed(items: &[Item], mut visit: impl FnMut(Agreed<'_>)) {
    for item in items {
        match item {
            Item::Constant { .. } => {}
            Item::Enum { values, .. } => {
                values.iter().for_each(|value| visit(Agreed::Value(&value.name)));
            }
            Item::Struct { name, fields } => {
                visit(Agreed::Size(name));
                fields.iter().for_each(|field| visit(Agreed::Offset(name, &field.name)));
            }
        }
    }
}
