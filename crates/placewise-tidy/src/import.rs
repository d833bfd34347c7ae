//! Which files of a crate import which, and the circles among them.
//!
//! A file imports another if it names something in it by a path from `crate`,
//! `super`, `self` or a module that it declares. A name that a module
//! re-exports is that of the file it comes from, so to re-export what is below
//! imports nothing. Modules named `tests` import what they like.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::source::{identifier, is_path_separator, is_punctuation, tokens};

/// Names from the crate's root downwards.
type ModulePath = Vec<String>;

struct Module {
    file: PathBuf,
    /// Names it re-exports, and from where.
    reexports: BTreeMap<String, ModulePath>,
}

/// A path as a module spells it.
struct Mention {
    module: ModulePath,
    path: Vec<String>,
    reexports: bool,
}

/// For each file, those that it imports.
pub type Imports = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// Who imports whom below `root`, a crate's `lib.rs` or `main.rs`.
pub fn imports(root: &Path) -> Imports {
    let mut reader = Reader::default();
    reader.file(root, Vec::new());
    reader.note_reexports();
    reader.imports()
}

/// A circle among `imports`, each file followed by one that it imports.
pub fn circle(imports: &Imports) -> Option<Vec<PathBuf>> {
    imports.keys().find_map(|start| way(imports, start, start))
}

/// A shortest way of at least one step.
fn way(imports: &Imports, from: &Path, to: &Path) -> Option<Vec<PathBuf>> {
    let mut ways = vec![vec![from.to_path_buf()]];
    let mut seen = BTreeSet::new();
    let mut next = 0;
    while let Some(way) = ways.get(next).cloned() {
        next += 1;
        for file in imports.get(way.last()?).into_iter().flatten() {
            let longer = [way.as_slice(), std::slice::from_ref(file)].concat();
            if file == to {
                return Some(longer);
            }
            if seen.insert(file) {
                ways.push(longer);
            }
        }
    }
    None
}

#[derive(Default)]
struct Reader {
    modules: BTreeMap<ModulePath, Module>,
    mentions: Vec<Mention>,
}

impl Reader {
    fn file(&mut self, file: &Path, module: ModulePath) {
        self.module(tokens(file), file, module);
    }

    fn module(&mut self, stream: TokenStream, file: &Path, module: ModulePath) {
        let here = Module { file: file.to_path_buf(), reexports: BTreeMap::new() };
        self.modules.insert(module.clone(), here);
        self.walk(stream, file, &module);
    }

    fn walk(&mut self, stream: TokenStream, file: &Path, module: &ModulePath) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let word = identifier(Some(token));
            at += match word.as_deref() {
                Some("mod") => self.declaration(&tokens[at..], file, module),
                Some("use") => self.import(&tokens, at, module),
                Some(_) => self.expression(&tokens, at, module),
                None => {
                    if let TokenTree::Group(group) = token {
                        self.walk(group.stream(), file, module);
                    }
                    1
                }
            };
        }
    }

    /// `mod name;` or `mod name { ... }`; returns how many tokens that is.
    fn declaration(&mut self, tokens: &[TokenTree], file: &Path, module: &ModulePath) -> usize {
        let Some(name) = identifier(tokens.get(1)) else { return 1 };
        if name == "tests" {
            return 3;
        }
        let child = [module.as_slice(), std::slice::from_ref(&name)].concat();
        match tokens.get(2) {
            Some(TokenTree::Group(group)) => self.module(group.stream(), file, child),
            _ => self.file(&file_of_child(file, &name), child),
        }
        3
    }

    /// `use a::{b, c::d};`
    fn import(&mut self, tokens: &[TokenTree], at: usize, module: &ModulePath) -> usize {
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        let reexports = identifier(before).as_deref() == Some("pub")
            || matches!(before, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
        let end = tokens[at..].iter().position(|token| is_punctuation(Some(token), ';'));
        let end = at + end.unwrap_or(tokens.len() - at);
        for path in use_tree(&tokens[at + 1..end], &[]) {
            self.mentions.push(Mention { module: module.clone(), path, reexports });
        }
        end - at
    }

    /// `a::b::c`, anywhere.
    fn expression(&mut self, tokens: &[TokenTree], at: usize, module: &ModulePath) -> usize {
        let goes_on = at >= 2 && is_path_separator(tokens, at - 2);
        let of_macro = at >= 1 && is_punctuation(tokens.get(at - 1), '$');
        if goes_on || of_macro || !is_path_separator(tokens, at + 1) {
            return 1;
        }
        let mut path = Vec::new();
        let mut next = at;
        while let Some(name) = identifier(tokens.get(next)) {
            path.push(name);
            next += 1;
            if !is_path_separator(tokens, next) {
                break;
            }
            next += 2;
        }
        self.mentions.push(Mention { module: module.clone(), path, reexports: false });
        next - at
    }

    fn note_reexports(&mut self) {
        for mention in self.mentions.iter().filter(|mention| mention.reexports) {
            let Some(path) = self.absolute(mention) else { continue };
            let Some(name) = path.last() else { continue };
            let module = self.modules.get_mut(&mention.module).expect("it mentions");
            module.reexports.insert(name.clone(), path);
        }
    }

    fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for mention in &self.mentions {
            let Some(path) = self.absolute(mention) else { continue };
            let to = &self.owner(&path).file;
            let from = &self.modules[&mention.module].file;
            let of_below = mention.reexports && path.starts_with(&mention.module);
            if to != from && !of_below {
                imports.entry(from.clone()).or_default().insert(to.clone());
            }
        }
        imports
    }

    /// The path from the crate's root; none if it leads into another crate.
    fn absolute(&self, mention: &Mention) -> Option<ModulePath> {
        let first = mention.path.first()?;
        let ups = mention.path.iter().take_while(|name| *name == "super").count();
        let base = match first.as_str() {
            "crate" => return Some(mention.path[1..].to_vec()),
            "self" => return Some([&mention.module, &mention.path[1..]].concat()),
            "super" => &mention.module[..mention.module.len().checked_sub(ups)?],
            name => {
                let child = [mention.module.as_slice(), &[name.to_string()]].concat();
                self.modules.contains_key(&child).then_some(mention.module.as_slice())?
            }
        };
        Some([base, &mention.path[ups..]].concat())
    }

    /// The module that has what `path` names.
    fn owner(&self, path: &[String]) -> &Module {
        let mut at = 0;
        while at < path.len() && self.modules.contains_key(&path[..=at]) {
            at += 1;
        }
        let module = &self.modules[&path[..at]];
        match path.get(at).and_then(|name| module.reexports.get(name)) {
            Some(from) if from != path => self.owner(&[from, &path[at + 1..]].concat()),
            _ => module,
        }
    }
}

/// Where `mod name;` in `file` finds it.
fn file_of_child(file: &Path, name: &str) -> PathBuf {
    let stem = file.file_stem().expect("it is a file's path");
    let directory = match stem.to_str() {
        Some("lib" | "main" | "mod") => file.with_file_name(""),
        _ => file.with_extension(""),
    };
    let flat = directory.join(format!("{name}.rs"));
    if flat.exists() { flat } else { directory.join(name).join("mod.rs") }
}

/// The paths of a use tree below `prefix`; an alias is not followed, `*` and
/// `self` stand for the module.
fn use_tree(tokens: &[TokenTree], prefix: &[String]) -> Vec<Vec<String>> {
    let branches = tokens.split(|token| is_punctuation(Some(token), ','));
    branches
        .filter(|branch| !branch.is_empty())
        .flat_map(|branch| use_branch(branch, prefix))
        .collect()
}

fn use_branch(tokens: &[TokenTree], prefix: &[String]) -> Vec<Vec<String>> {
    let mut path = prefix.to_vec();
    for token in tokens {
        match token {
            TokenTree::Ident(name) if name == "as" => break,
            TokenTree::Ident(name) if name == "self" && !path.is_empty() => break,
            TokenTree::Ident(name) => path.push(name.to_string()),
            TokenTree::Group(group) => {
                let branches: Vec<TokenTree> = group.stream().into_iter().collect();
                return use_tree(&branches, &path);
            }
            _ => {}
        }
    }
    vec![path]
}
