//! Makes of `policy/entry_points.h` what calls the policy, so that it is the only list of entry
//! points: functions with C linkage, programs for `policy.bpf.c`, and a macro for Rust.
//!
//! Understands just the prototypes that stand there.

use super::translate::{camel, rust_type};

pub struct EntryPoint {
    doc: Option<String>,
    result: String,
    name: String,
    parameters: Vec<Parameter>,
}

struct Parameter {
    kind: Kind,
    name: String,
}

enum Kind {
    State {
        read_only: bool,
    },
    Task,
    /// A struct of the caller's.
    Walk(String),
    Number(String),
}

pub fn parse(header: &str) -> Vec<EntryPoint> {
    let prototypes = header.split(");").map(str::trim).filter(|text| !text.is_empty());
    prototypes.map(EntryPoint::parse).collect()
}

impl EntryPoint {
    /// The comment right above a prototype is about it.
    fn parse(text: &str) -> Self {
        let (comments, prototype) = text.rsplit_once("*/").unwrap_or(("", text));
        let doc = (!prototype.starts_with("\n\n"))
            .then(|| comments.rsplit_once("/*"))
            .flatten()
            .map(|(_, doc)| doc.replace("\n *", "\n"));
        let (head, parameters) = prototype.split_once('(').unwrap_or_else(|| {
            panic!("entry_points.h: expected a prototype, found {prototype}");
        });
        let (result, name) = head.trim().split_once(' ').expect("a result and a name");
        EntryPoint {
            doc: doc.map(|doc| doc.split_whitespace().collect::<Vec<_>>().join(" ")),
            result: result.to_string(),
            name: name.to_string(),
            parameters: parameters.split(',').map(|text| Parameter::parse(text.trim())).collect(),
        }
    }

    fn has_state(&self) -> bool {
        self.parameters.iter().any(|p| matches!(p.kind, Kind::State { .. } | Kind::Task))
    }

    fn walk(&self) -> Option<&str> {
        self.parameters.iter().find_map(|parameter| match &parameter.kind {
            Kind::Walk(walk) => Some(walk.as_str()),
            _ => None,
        })
    }

    /// The group of Rust's macro that it stands in.
    fn group(&self) -> &'static str {
        let read_only = |p: &Parameter| matches!(p.kind, Kind::State { read_only: true });
        match self.walk() {
            Some(_) => "walking",
            None if !self.has_state() => "pure",
            None if self.parameters.iter().any(read_only) => "reading",
            None => "changing",
        }
    }

    /// The call of the policy's function; `number` spells the caller's word of that index and name.
    fn call(&self, number: impl Fn(usize, &str) -> String) -> String {
        let words = self.parameters.iter().scan(0, |words, parameter| {
            let at = *words;
            *words += usize::from(matches!(parameter.kind, Kind::Task | Kind::Number(_)));
            Some((at, parameter))
        });
        let arguments = words.map(|(at, Parameter { kind, name })| match kind {
            Kind::State { .. } => "st".to_string(),
            Kind::Walk(_) => "walk".to_string(),
            Kind::Task => format!("task_of(st, {})", number(at, name)),
            Kind::Number(_) => number(at, name),
        });
        format!("{}({})", self.name, arguments.collect::<Vec<_>>().join(", "))
    }

    /// `ENTER` is told the number that [`to_rust`] names.
    fn to_native(&self, number: usize) -> String {
        let state = self.has_state().then(|| "struct state *st".to_string());
        let others = self.parameters.iter().filter_map(|Parameter { kind, name }| match kind {
            Kind::State { .. } => None,
            Kind::Task => Some(format!("u32 {name}")),
            Kind::Walk(walk) => Some(format!("struct {walk} *walk")),
            Kind::Number(number) => Some(format!("{number} {name}")),
        });
        let parameters: Vec<String> = state.into_iter().chain(others).collect();
        format!(
            "{} placewise_{}({})\n{{\n\tENTER({number});\n\treturn {};\n}}\n",
            self.result,
            self.name,
            parameters.join(", "),
            self.call(|_, name| name.to_string())
        )
    }

    fn to_bpf(&self) -> String {
        let call = self.call(|at, _| format!("call->argument[{at}]"));
        let result = if self.result == "void" { format!("({call}, 0)") } else { call };
        match self.walk() {
            Some(walk) => format!("WALK({}, {walk}, {result})\n", self.name),
            None => format!("ENTRY_POINT({}, {result})\n", self.name),
        }
    }

    fn to_rust(&self) -> String {
        let doc = self.doc.as_ref().map(|doc| format!("#[doc = {doc:?}] ")).unwrap_or_default();
        let parameters = self.parameters.iter().filter_map(|Parameter { kind, name }| match kind {
            Kind::State { .. } => None,
            Kind::Task => Some(format!("{name}: u32")),
            Kind::Walk(walk) => Some(format!("walk: &mut {}", camel(walk))),
            Kind::Number(number) => Some(format!("{name}: {}", rust_type(number))),
        });
        let parameters = parameters.collect::<Vec<_>>().join(", ");
        let result = match self.result.as_str() {
            "void" => String::new(),
            number => format!(" -> {}", rust_type(number)),
        };
        format!("                {{ {doc}fn {}({parameters}){result} }}\n", self.name)
    }
}

impl Parameter {
    fn parse(text: &str) -> Self {
        let (kind, name) = text.rsplit_once([' ', '*']).expect("a type and a name");
        let kind = match kind.trim_end_matches([' ', '*']) {
            "struct state" => Kind::State { read_only: false },
            "const struct state" => Kind::State { read_only: true },
            "struct task" => Kind::Task,
            other => match other.strip_prefix("struct ") {
                Some(walk) => Kind::Walk(walk.to_string()),
                None => Kind::Number(other.to_string()),
            },
        };
        Parameter { kind, name: name.to_string() }
    }
}

/// Functions with C linkage.
pub fn to_native(entry_points: &[EntryPoint]) -> String {
    entry_points.iter().enumerate().map(|(at, entry_point)| entry_point.to_native(at)).collect()
}

/// Programs, by the macros of `policy.bpf.c`.
pub fn to_bpf(entry_points: &[EntryPoint]) -> String {
    entry_points.iter().map(EntryPoint::to_bpf).collect()
}

/// A macro that hands the list to another one, by what the functions do with the state; and their
/// names, by number.
pub fn to_rust(entry_points: &[EntryPoint]) -> String {
    let group = |wanted: &str| {
        let members = entry_points.iter().filter(|entry_point| entry_point.group() == wanted);
        let members: String = members.map(EntryPoint::to_rust).collect();
        format!("            {wanted} {{\n{members}            }}\n")
    };
    let groups: String = ["changing", "reading", "walking", "pure"].map(group).concat();
    let names: Vec<String> = entry_points.iter().map(|of| format!("{:?}", of.name)).collect();
    format!(
        "/// Expands a macro with the prototypes of `policy/entry_points.h`.\n\
         #[macro_export]\nmacro_rules! for_each_entry_point {{\n    ($expand:ident) => {{\n        \
         $expand! {{\n{groups}        }}\n    }};\n}}\n\n\
         /// The entry points by number.\n\
         pub const ENTRY_POINTS: &[&str] = &[{}];\n",
        names.join(", ")
    )
}
