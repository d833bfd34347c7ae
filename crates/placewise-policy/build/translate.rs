//! Translates the declarations of the policy headers to Rust.
//!
//! Understands just what those headers use: `#define NAME number`, enums with
//! optional values, and structs of integers, bools, enums, structs and arrays
//! of them. Anything else inside a struct is a build error, not a guess.

use std::fmt::Write;

pub enum Item {
    Constant { name: String, value: String },
    Enum { name: String, values: Vec<(String, String)> },
    Struct { name: String, fields: Vec<Field> },
}

pub struct Field {
    name: String,
    rust_type: String,
    doc: Option<String>,
}

pub fn parse(headers: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let mut lines = headers.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(constant) = parse_define(line) {
            items.push(constant);
        } else if let Some(name) = block_name(line, "enum ") {
            let body = block_body(&mut lines);
            items.push(parse_enum(name, &body));
        } else if let Some(name) = block_name(line, "struct ") {
            let body = block_body(&mut lines);
            items.push(parse_struct(name, &body));
        }
    }
    items
}

/// `#define NAME expression` where the expression is made of numbers and names.
fn parse_define(line: &str) -> Option<Item> {
    let (name, value) = line.strip_prefix("#define ")?.split_once(' ')?;
    let value = value.split("/*").next()?.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_ ()/*+-<".contains(c);
    let ours = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if !ours || value.is_empty() || !value.chars().all(plain) {
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
    let mut values: Vec<(String, String)> = Vec::new();
    for (text, _) in declarations(body, ',') {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name.trim().to_string(), value.trim().to_string()),
            None => match values.last() {
                Some((previous, _)) => (text, format!("{previous} + 1")),
                None => (text, "0".to_string()),
            },
        };
        values.push((name, value));
    }
    Item::Enum { name: name.to_string(), values }
}

fn parse_struct(name: &str, body: &str) -> Item {
    let mut fields = Vec::new();
    for (text, doc) in declarations(body, ';') {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
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
    let cast = if size.chars().all(|c| c.is_ascii_digit()) { "" } else { " as usize" };
    format!("[{element}; {size}{cast}]")
}

fn split_array(declarator: &str) -> (&str, Vec<&str>) {
    let mut parts = declarator.split('[');
    let name = parts.next().expect("split yields one piece at least");
    (name, parts.map(|size| size.trim_end_matches(']')).collect())
}

pub fn rust_type(c_type: &str) -> String {
    match c_type {
        "u8" | "u16" | "u32" | "u64" | "bool" => c_type.to_string(),
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

pub fn to_rust(items: &[Item]) -> String {
    let mut out = String::new();
    for item in items {
        match item {
            Item::Constant { name, value } => writeln!(out, "pub const {name}: u32 = {value};"),
            Item::Enum { name, values } => {
                writeln!(out, "/// One of `enum {name}`.\npub type {} = u32;", camel(name)).expect("a String grows");
                values.iter().try_for_each(|(name, value)| writeln!(out, "pub const {name}: u32 = {value};"))
            }
            Item::Struct { name, fields } => {
                writeln!(out, "/// `struct {name}`.\n#[repr(C)]\n#[derive(Clone, Copy, Debug)]\npub struct {} {{", camel(name)).expect("a String grows");
                for field in fields {
                    if let Some(doc) = &field.doc {
                        writeln!(out, "    /// {}", doc.replace('[', "\\[").replace('<', "\\<")).expect("a String grows");
                    }
                    writeln!(out, "    pub {}: {},", field.name, field.rust_type).expect("a String grows");
                }
                writeln!(out, "}}")
            }
        }
        .expect("a String grows");
    }
    out.push_str(&rust_layout_table(items));
    out
}

fn rust_layout_table(items: &[Item]) -> String {
    let mut out = String::from("#[cfg(test)]\npub const RUST_LAYOUT: &[(&str, usize)] = &[\n");
    for_each_member(items, |name, member| {
        let text = match member {
            Some(field) => format!(
                "    (\"{name}.{field}\", std::mem::offset_of!({}, {field})),\n",
                camel(name)
            ),
            None => format!("    (\"{name}\", size_of::<{}>()),\n", camel(name)),
        };
        out.push_str(&text);
    });
    out + "];\n"
}

/// What the C compiler makes of the same structs, for a test to compare.
pub fn to_layout_table(items: &[Item]) -> String {
    let mut out = String::from("static const unsigned long layout[] = {\n");
    for_each_member(items, |name, member| {
        let text = match member {
            Some(field) => format!("\t__builtin_offsetof(struct {name}, {field}),\n"),
            None => format!("\tsizeof(struct {name}),\n"),
        };
        out.push_str(&text);
    });
    out + "};\n"
}

fn for_each_member(items: &[Item], mut visit: impl FnMut(&str, Option<&str>)) {
    for item in items {
        if let Item::Struct { name, fields } = item {
            visit(name, None);
            fields.iter().for_each(|field| visit(name, Some(&field.name)));
        }
    }
}
