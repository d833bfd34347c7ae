//! Files of a crate import each other in no circle, what the simulation's state
//! is knows no engine, functions are short, and examples in comments are run.

use std::fs;
use std::path::{Path, PathBuf};

use placewise_tidy::function::{Function, functions_of_c, functions_of_rust};
use placewise_tidy::import::{circle, imports};

use crate::{crates, files, workspace};

const LONGEST_FUNCTION: usize = 70;

/// The circle as `a.rs -> b.rs -> a.rs`, its files as below `directory`.
fn circle_below(root: &Path, directory: &Path) -> Option<String> {
    let name =
        |file: &PathBuf| file.strip_prefix(directory).expect("it is below").display().to_string();
    let circle = circle(&imports(root))?;
    Some(circle.iter().map(name).collect::<Vec<_>>().join(" -> "))
}

#[test]
fn files_of_a_crate_import_each_other_in_no_circle() {
    let roots = crates()
        .into_iter()
        .flat_map(|directory| ["src/lib.rs", "src/main.rs"].map(|root| directory.join(root)));
    let circles: Vec<String> = roots
        .filter(|root| root.exists())
        .filter_map(|root| circle_below(&root, workspace()))
        .collect();
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

/// Writes a crate of `files` and looks for a circle in it.
fn circle_of(files: &[(&str, &str)]) -> Option<String> {
    let directory = tempfile::tempdir().expect("there is room");
    for (name, text) in files {
        let file = directory.path().join(name);
        fs::create_dir_all(file.parent().expect("it is below")).expect("there is room");
        fs::write(file, text).expect("there is room");
    }
    circle_below(&directory.path().join("lib.rs"), directory.path())
}

#[test]
fn a_circle_is_found_whatever_way_it_takes() {
    let by_use = circle_of(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use super::{c::{C, D}, Other}; pub struct B;"),
        ("c.rs", "pub fn c() { let _ = vec![crate::a::A]; }"),
    ]);
    assert_eq!(by_use.as_deref(), Some("a.rs -> b.rs -> c.rs -> a.rs"));

    let by_reexport = circle_of(&[
        ("lib.rs", "mod state; mod engine;"),
        ("state/mod.rs", "mod task; pub use task::Task;"),
        ("state/task.rs", "use crate::engine::Engine; pub struct Task;"),
        ("engine.rs", "use crate::state::Task; pub struct Engine;"),
    ]);
    assert_eq!(by_reexport.as_deref(), Some("engine.rs -> state/task.rs -> engine.rs"));

    let by_root = circle_of(&[
        ("lib.rs", "mod a; pub struct Error; pub fn run() { a::run() }"),
        ("a.rs", "use crate::Error; pub fn run() {}"),
    ]);
    assert_eq!(by_root.as_deref(), Some("a.rs -> lib.rs -> a.rs"));
}

#[test]
fn what_leads_downwards_is_no_circle() {
    let tree = circle_of(&[
        ("lib.rs", "mod a; mod b; pub use a::A; pub use b::*;"),
        ("a.rs", "use crate::b::B; pub struct A; mod tests { use super::*; }"),
        ("b.rs", "use std::fmt; pub struct B; impl B { fn a() -> a::A { a::A } }"),
    ]);
    assert_eq!(tree, None);
}

#[test]
fn the_state_of_a_simulation_knows_no_engine() {
    let state = workspace().join("crates/placewise-sim/src/state");
    let files = files(&state, "rs");
    assert!(!files.is_empty());
    for file in files {
        let text = fs::read_to_string(&file).expect("it is there");
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            assert!(!line.contains("Engine"), "{}: {line}", file.display());
        }
    }
}

fn too_long(file: &Path, functions: Vec<Function>) -> Vec<String> {
    let long = functions.into_iter().filter(|function| function.lines > LONGEST_FUNCTION);
    long.map(|Function { name, line, lines }| {
        format!("{}:{line}: {name}: {lines} lines, at most {LONGEST_FUNCTION}", file.display())
    })
    .collect()
}

/// rustdoc reads all of a crate anew to run its examples.
#[test]
fn examples_are_looked_for_where_there_are_any() {
    for directory in crates().into_iter().filter(|of| of.join("src/lib.rs").exists()) {
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
        let sources = files(&directory.join("src"), "rs");
        let has_example =
            sources.iter().any(|file| has_example(&fs::read_to_string(file).unwrap()));
        let looked_for = !manifest.contains("doctest = false");
        assert_eq!(looked_for, has_example, "{}: `doctest` in [lib]", directory.display());
    }
}

fn has_example(source: &str) -> bool {
    let comments = source.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))
    });
    let fences = comments.filter_map(|text| text.trim().strip_prefix("```"));
    fences.step_by(2).any(|language| language != "text")
}

#[test]
fn functions_are_short() {
    let sources = |extension| {
        let of = move |directory| files(&workspace().join(directory), extension);
        ["crates", "policy"].into_iter().flat_map(of)
    };
    let rust = sources("rs").map(|file| (functions_of_rust(&file), file));
    let c = sources("h").chain(sources("c")).map(|file| (functions_of_c(&file), file));
    let long: Vec<String> =
        rust.chain(c).flat_map(|(functions, file)| too_long(&file, functions)).collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn the_lines_of_functions_are_counted() {
    let directory = tempfile::tempdir().expect("there is room");
    let count = |name: &str, text: &str, of: fn(&Path) -> Vec<Function>| -> Vec<usize> {
        let file = directory.path().join(name);
        fs::write(&file, text).expect("there is room");
        of(&file).iter().map(|function| function.lines).collect()
    };
    let rust = "trait T { fn none(); }\nfn f(\n    a: [u8; 2],\n) {\n    fn g() {\n    }\n}\n";
    assert_eq!(count("a.rs", rust, functions_of_rust), [6, 2]);
    let c = "#define A(b)\nint f(int a);\n\nstatic int g(int a,\n\tint b)\n{\n\treturn a;\n}\n\nstruct s {\n};\n";
    assert_eq!(count("a.c", c, functions_of_c), [5]);
}
