//! The tokens of a file, with the lines that they stand on.

use std::fs;
use std::path::Path;

use proc_macro2::{Spacing, TokenStream, TokenTree};

/// Panics with the file's name if it is no Rust.
pub fn tokens(file: &Path) -> TokenStream {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    text.parse().unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

pub fn identifier(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(name)) => Some(name.to_string()),
        _ => None,
    }
}

pub fn is_punctuation(token: Option<&TokenTree>, expected: char) -> bool {
    matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == expected)
}

/// Whether `::` is at `at`.
pub fn is_path_separator(tokens: &[TokenTree], at: usize) -> bool {
    let first = matches!(&tokens.get(at), Some(TokenTree::Punct(p))
        if p.as_char() == ':' && p.spacing() == Spacing::Joint);
    first && is_punctuation(tokens.get(at + 1), ':')
}
