//! How many lines functions have, from the line of their name to that of their
//! closing brace.

use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::source::{identifier, is_punctuation, tokens};

pub struct Function {
    pub name: String,
    pub line: usize,
    pub lines: usize,
}

/// The functions of a Rust file, those in others and in macros' arguments too.
pub fn functions_of_rust(file: &Path) -> Vec<Function> {
    let mut functions = Vec::new();
    collect(tokens(file), &mut functions);
    functions
}

fn collect(stream: TokenStream, functions: &mut Vec<Function>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        if identifier(Some(token)).as_deref() == Some("fn") {
            functions.extend(function(&tokens[at + 1..]));
        }
        if let TokenTree::Group(group) = token {
            collect(group.stream(), functions);
        }
    }
}

/// The function whose name is the first of `tokens`, if it has a body.
fn function(tokens: &[TokenTree]) -> Option<Function> {
    let name = identifier(tokens.first())?;
    let line = tokens[0].span().start().line;
    let declaration = tokens.iter().take_while(|token| !is_punctuation(Some(token), ';'));
    let body = declaration.into_iter().find_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    })?;
    let lines = body.span_close().end().line - line + 1;
    Some(Function { name, line, lines })
}

/// The functions of a C file in the kernel's style: both braces in the first column.
pub fn functions_of_c(file: &Path) -> Vec<Function> {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut functions = Vec::new();
    let mut begin = None;
    for (number, line) in (1..).zip(text.lines()) {
        match line {
            "" => begin = None,
            "}" => functions.extend(begin.take().map(|(name, line): (&str, usize)| Function {
                name: name.to_string(),
                line,
                lines: number - line + 1,
            })),
            _ if begin.is_none()
                && line.contains('(')
                && !line.starts_with([' ', '\t', '#', '/']) =>
            {
                begin = Some((line, number));
            }
            _ => {}
        }
    }
    functions
}
