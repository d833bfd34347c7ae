//! `placewise policy diff`: what a tree of one's own changes in the headers, and what it decides
//! otherwise.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use placewise_policy::own::HEADERS;
use serde::Serialize;

use super::decisions::{self, Decisions, Example};
use crate::own_policy;
use crate::report::foreign::visible;
use crate::report::{TableOrJson, json, terminal};

#[derive(clap::Args)]
pub struct DiffArgs {
    /// Directory that `placewise policy eject` has written
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// States drawn at random that both are asked of
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    states: u32,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = TableOrJson::Table)]
    format: TableOrJson,
}

#[derive(Serialize)]
struct Difference {
    /// Those that differ.
    headers: Vec<Changed>,
    states: u32,
    #[serde(flatten)]
    decisions: Decisions,
}

#[derive(Serialize)]
struct Changed {
    header: String,
    /// Unified.
    diff: String,
}

pub fn run(args: &DiffArgs) -> anyhow::Result<()> {
    let directory = args.directory.to_str().context("a directory with a name in UTF-8")?;
    let code = own_policy::load(directory)?;
    let difference = Difference {
        headers: changed(&args.directory)?,
        states: args.states,
        decisions: decisions::differences(code, args.states),
    };
    let text = match args.format {
        TableOrJson::Table => text(&difference),
        TableOrJson::Json => json::render(&difference)?,
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// All headers that there are on either side, in the order of their names.
fn changed(directory: &Path) -> anyhow::Result<Vec<Changed>> {
    let read = |name: &str| {
        let path = directory.join(name);
        let text = path.exists().then(|| fs::read_to_string(&path)).transpose();
        text.with_context(|| format!("cannot read {}", path.display()))
    };
    let mut headers = Vec::new();
    for name in names(directory)? {
        let known = HEADERS.iter().find(|(known, _)| *known == name);
        let (ours, theirs) = (known.map(|(_, text)| *text), read(&name)?);
        if ours != theirs.as_deref() {
            let mut options = diffy::DiffOptions::new();
            options.set_original_filename(format!("a/{name}"));
            options.set_modified_filename(format!("b/{name}"));
            let (ours, theirs) = (ours.unwrap_or_default(), theirs.unwrap_or_default());
            headers.push(Changed {
                diff: options.create_patch(ours, &theirs).to_string(),
                header: name,
            });
        }
    }
    Ok(headers)
}

fn names(directory: &Path) -> anyhow::Result<Vec<String>> {
    let mut names: Vec<String> = HEADERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".h") && !names.contains(&name) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn text(difference: &Difference) -> String {
    let mut text = String::new();
    for Changed { diff, .. } in &difference.headers {
        text.extend(diff.lines().map(|line| format!("{}\n", shown(line))));
    }
    if difference.headers.is_empty() {
        text += "no header differs\n";
    }
    let Decisions { entry_points, examples } = &difference.decisions;
    let mut table = terminal::empty_bare_table();
    table.set_header(["decisions", "asked", "differ", "%"]);
    table.align_right_from(1);
    for of in entry_points {
        let share = 100.0 * f64::from(of.differ) / f64::from(of.asked.max(1));
        let (asked, differ) = (of.asked.to_string(), of.differ.to_string());
        table.add_row([of.entry_point.to_owned(), asked, differ, format!("{share:.2}")]);
    }
    text += &format!("\n{}\n", table.trimmed());
    for example in examples {
        text += &told(example);
    }
    text
}

/// Tabs stay, as in any patch.
fn shown(line: &str) -> String {
    line.split('\t').map(visible).collect::<Vec<_>>().join("\t")
}

fn told(example: &Example) -> String {
    let Example { entry_point, kernel_and_policy, cpus, situation, question, built_in, own } =
        example;
    let lines = [
        format!("{entry_point}, {kernel_and_policy}, {cpus} CPUs"),
        format!("  {situation}"),
        format!("  {question}"),
        format!("  built in: {built_in}"),
        format!("  own:      {own}"),
    ];
    let options = textwrap::Options::new(100).subsequent_indent("    ");
    let wrapped = lines.iter().map(|line| textwrap::fill(line, &options) + "\n");
    format!("\n{}", wrapped.collect::<String>())
}
